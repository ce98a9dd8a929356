package gate_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/intent"
)

// quoting removes one word from sentences, if it is passed an intent that contains it.
type quoting struct{ word string }

func (q quoting) Reveals(string, string) bool { return false }
func (q quoting) Clean(_ string, v any, of ...intent.WriteIntent) {
	if s, ok := v.(*string); ok && len(of) == 1 {
		*s = strings.ReplaceAll(*s, q.word, "redacted")
	}
}

// TestAFailedReadIsLoggedWithoutValues: a destination's error about an intent can contain its
// sensitive values, and logs are kept for long.
func TestAFailedReadIsLoggedWithoutValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newBench(t, func(o *gate.Options) {
			o.Redaction, o.Logger = quoting{"ada@hot.example"}, slog.New(slog.NewTextHandler(&log, nil))
		})
		wf := b.begin()
		b.ask(wf, "a", withIntent())
		time.Sleep(2 * time.Minute)
		b.dest.fails = errors.New("no such mailbox: ada@hot.example")
		b.ask(wf, "a", withIntent())
		if logged := log.String(); !strings.Contains(logged, "no such mailbox: redacted") || strings.Contains(logged, "ada") {
			t.Errorf("the log says %q", logged)
		}
	})
}
