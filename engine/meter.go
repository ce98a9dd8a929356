package engine

import (
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// repeated counts a call that was answered with the outcome of an earlier one.
func (e *Engine) repeated(rec ledger.Record) {
	if m, ok := e.opts.Meter.(RepeatMeter); ok {
		m.Repeated(rec)
	}
}

// shown tells that a read is the first that showed an effect of a write.
func (e *Engine) shown(rec ledger.Record, j verify.Judgement) {
	if m, ok := e.opts.Meter.(EffectMeter); ok && !rec.EffectSeen {
		m.Shown(rec, j.Verdict, max(j.Since, 0))
	}
}

// called tells how long a call took.
func (e *Engine) called(w intent.WriteIntent, o Outcome, err error, took time.Duration) {
	if m, ok := e.opts.Meter.(CallMeter); ok {
		m.Called(ledger.Record{Tenant: w.Tenant, ID: o.ID, Tool: w.Tool, Destination: w.Destination, Kind: w.Kind}, o, err, took)
	}
}

// ErrorType is what error.type says of a call, in spans and wherever else it is
// counted: one of few words, never what an error says, and "" where the call did
// what it was made for.
func ErrorType(o Outcome, err error) string {
	if err != nil {
		return errorType(err)
	}
	return wrongly[o.Status]
}

// unmetered is the meter that counts nothing.
type unmetered struct{}

func (unmetered) Sent(ledger.Record, Sent)                            {}
func (unmetered) Looked(ledger.Record, verify.Verdict, time.Duration) {}
func (unmetered) Ended(ledger.Record)                                 {}
func (unmetered) Held(ledger.Record, Hold)                            {}
func (unmetered) Failed(ledger.Record, error)                         {}
