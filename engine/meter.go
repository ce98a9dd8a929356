package engine

import (
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// metered tells a meter what happens, as far as it wants to hear it, and keeps
// from the work whatever panics in it.
type metered struct{ meter Meter }

func (m metered) Sent(rec ledger.Record, s Sent) { quietly(func() { m.meter.Sent(rec, s) }) }

func (m metered) Looked(rec ledger.Record, v verify.Verdict, took time.Duration) {
	quietly(func() { m.meter.Looked(rec, v, took) })
}

func (m metered) Ended(rec ledger.Record) { quietly(func() { m.meter.Ended(rec) }) }

func (m metered) Held(rec ledger.Record, h Hold) { quietly(func() { m.meter.Held(rec, h) }) }

func (m metered) Failed(rec ledger.Record, err error) { quietly(func() { m.meter.Failed(rec, err) }) }

// repeated counts a call that was answered with the outcome of an earlier one.
func (e *Engine) repeated(rec ledger.Record) {
	if m, ok := e.meter.meter.(RepeatMeter); ok {
		quietly(func() { m.Repeated(rec) })
	}
}

// shown tells that a read is the first that showed an effect of a write.
func (e *Engine) shown(rec ledger.Record, j verify.Judgement) {
	if c, ok := e.opts.Guards.(ReadObserver); ok && !rec.EffectSeen && rec.LastFate == ledger.FateUnknown && j.Verdict == verify.Verified {
		c.Confirmed(rec)
	}
	if m, ok := e.meter.meter.(EffectMeter); ok && !rec.EffectSeen {
		quietly(func() { m.Shown(rec, j.Verdict, max(j.Since, 0)) })
	}
}

// login tells the guards whether the credentials of a read were accepted.
func (t *task) login(j verify.Judgement) {
	o, ok := t.e.opts.Guards.(ReadObserver)
	switch {
	case !ok:
	case j.Login:
		o.LoginRefused(t.rec, t.scope().Text(j.Reason))
	case j.Verdict != verify.Unavailable:
		o.LoginAccepted(t.rec)
	}
}

// called tells how long a call took.
func (e *Engine) called(w intent.WriteIntent, o Outcome, err error, took time.Duration) {
	if m, ok := e.meter.meter.(CallMeter); ok {
		rec := ledger.Record{Tenant: w.Tenant, ID: o.ID, Tool: w.Tool, Destination: w.Destination, Kind: w.Kind}
		quietly(func() { m.Called(rec, o, err, took) })
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
