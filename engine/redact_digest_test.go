package engine_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// A repeat gets the recorded outcome whatever key the recorded digest was made with, and
// nothing else does. A different request is refused, as is one that cannot be compared because
// the key is missing.
func TestARepeatIsRecognisedUnderEveryKey(t *testing.T) {
	marked := func(w *intent.WriteIntent) { w.Sensitive = []string{"/note"} }
	unmarked := func(*intent.WriteIntent) {}
	for name, c := range map[string]struct {
		before, now  []string // the ids of the keys
		first, again func(*intent.WriteIntent)
		keyed        bool
		missing      string
		reason       string
	}{
		"the same keys":               {[]string{"k1"}, []string{"k1"}, marked, marked, true, "", "as ever"},
		"nothing sensitive":           {[]string{"k1"}, []string{"k2"}, unmarked, unmarked, false, "", "its digest is what a second program computes"},
		"before there were keys":      {nil, []string{"k1"}, unmarked, marked, false, "", "the row has the plain digest for ever"},
		"after a rotation":            {[]string{"k1"}, []string{"k2", "k1"}, marked, marked, true, "", "the earlier key is still known"},
		"before a process rotated":    {[]string{"k2", "k1"}, []string{"k1", "k2"}, marked, marked, true, "", "the newer key is known already"},
		"marked first, then not":      {[]string{"k1"}, []string{"k1"}, marked, unmarked, true, "", "marks have no part in what is asked for"},
		"marked only the second time": {[]string{"k1"}, []string{"k1"}, unmarked, marked, false, "", "the same"},
		"without its key":             {[]string{"k1"}, []string{"k2"}, marked, marked, true, "k1", "it is unknown whether it is the same"},
		"without keys":                {[]string{"k1"}, nil, marked, unmarked, true, "k1", "the same"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, orders.Plain.Options(), nil)
				with := func(keys []string) *engine.Engine {
					o := &engine.Options{}
					if len(keys) > 0 {
						o.Vault = vaultOf(t, keys...)
					}
					return b.engineOn(b.ledger, b.world.Destination(), o)
				}
				w := order("A-1", intent.Create)
				w.Payload = intent.Fields{"note": "PIN 4711"}
				first, again := w, w
				c.first(&first)
				c.again(&again)
				b.engine = with(c.before)
				out := b.do(first)
				rec := b.state(out.ID)
				plain, err := w.Digest()
				if err != nil || strings.HasPrefix(rec.Digest, "hmac:") != c.keyed || (rec.Digest == plain) == c.keyed {
					t.Errorf("recorded as %s, keyed: want %t", rec.Digest, c.keyed)
				}
				e := with(c.now)
				got, err := e.Do(t.Context(), again)
				if c.missing == "" && (err != nil || !got.Replayed || got.ID != out.ID) {
					t.Errorf("the repeat: %+v, %v: %s", got, err, c.reason)
				}
				if c.missing != "" && (!errors.Is(err, redact.ErrNoKey) || !errors.Is(err, ledger.ErrNoKey) || errors.Is(err, ledger.ErrDigestMismatch) || !strings.Contains(err.Error(), `"`+c.missing+`"`)) {
					t.Errorf("the repeat: %+v, %v: %s", got, err, c.reason)
				}
				other := again
				other.Payload = intent.Fields{"note": "PIN 4712"}
				_, err = e.Do(t.Context(), other)
				if want := ledger.ErrDigestMismatch; c.missing == "" && !errors.Is(err, want) {
					t.Errorf("another intent: %v, want %v", err, want)
				}
				elsewhere, _ := other.Digest()
				if err == nil || c.keyed && (strings.Contains(err.Error(), plain) || strings.Contains(err.Error(), elsewhere)) || len(other.Sensitive) > 0 && strings.Contains(err.Error(), elsewhere) {
					t.Errorf("another intent: %v: a guess can be tested against the error", err)
				}
				if writes, _ := b.world.Count(); writes != 1 {
					t.Errorf("%d sends", writes)
				}
			})
		})
	}
}

// Two calls of one process that mark the same request differently share one send.
func TestCallsThatMarkOtherwiseShareOneSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Plain.Options(), nil)
		b.engine = b.engineOn(b.ledger, b.world.Destination(), &engine.Options{Vault: vaultOf(t, "k1")})
		w := order("A-1", intent.Create)
		w.Payload = intent.Fields{"note": "PIN 4711"}
		marked := w
		marked.Sensitive = []string{"/note"}
		outs := make(chan engine.Outcome, 2)
		for _, one := range []intent.WriteIntent{w, marked} {
			go func() {
				out, err := b.engine.Do(t.Context(), one)
				if err != nil {
					t.Error(err)
				}
				outs <- out
			}()
		}
		if a, b := <-outs, <-outs; a.ID != b.ID || a.Status != ledger.Verified || b.Status != ledger.Verified {
			t.Errorf("%+v, %+v", a, b)
		}
		if writes, _ := b.world.Count(); writes != 1 {
			t.Errorf("%d sends", writes)
		}
	})
}
