package workflow_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/workflow"
)

// quoting takes one word out of sentences, where the intent is told that it stands
// in.
type quoting struct{ word string }

func (q quoting) Tells(string, string) bool { return false }
func (q quoting) Clean(_ string, v any, of ...intent.WriteIntent) {
	if s, ok := v.(*string); ok && len(of) == 1 {
		*s = strings.ReplaceAll(*s, q.word, "redacted")
	}
}

// TestALookThatFailsIsToldWithoutValues: what a destination says of an intent can
// hold what is sensitive in it, and the log keeps it for long.
func TestALookThatFailsIsToldWithoutValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := newBench(t, func(o *workflow.Options) {
			o.Redaction, o.Logger = quoting{"ada@hot.example"}, slog.New(slog.NewTextHandler(&log, nil))
		})
		wf := b.begin()
		b.ask(wf, "a", withIntent())
		time.Sleep(2 * time.Minute)
		b.look.fails = errors.New("no such mailbox: ada@hot.example")
		b.ask(wf, "a", withIntent())
		if said := log.String(); !strings.Contains(said, "no such mailbox: redacted") || strings.Contains(said, "ada") {
			t.Errorf("the log says %q", said)
		}
	})
}
