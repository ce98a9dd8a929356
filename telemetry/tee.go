package telemetry

import (
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// Tee tells several meters what happens, in turn, each what it can be told. Nil
// ones are left out.
func Tee(meters ...engine.Meter) engine.Meter {
	var t tee
	for _, m := range meters {
		if m != nil {
			t = append(t, m)
		}
	}
	return t
}

type tee []engine.Meter

var (
	_ engine.RepeatMeter = tee(nil)
	_ engine.EffectMeter = tee(nil)
	_ engine.CallMeter   = tee(nil)
)

// Sent implements [engine.Meter].
func (t tee) Sent(rec ledger.Record, s engine.Sent) {
	for _, m := range t {
		m.Sent(rec, s)
	}
}

// Looked implements [engine.Meter].
func (t tee) Looked(rec ledger.Record, v verify.Verdict, took time.Duration) {
	for _, m := range t {
		m.Looked(rec, v, took)
	}
}

// Ended implements [engine.Meter].
func (t tee) Ended(rec ledger.Record) {
	for _, m := range t {
		m.Ended(rec)
	}
}

// Held implements [engine.Meter].
func (t tee) Held(rec ledger.Record, h engine.Hold) {
	for _, m := range t {
		m.Held(rec, h)
	}
}

// Failed implements [engine.Meter].
func (t tee) Failed(rec ledger.Record, err error) {
	for _, m := range t {
		m.Failed(rec, err)
	}
}

// Repeated implements [engine.RepeatMeter].
func (t tee) Repeated(rec ledger.Record) { told(t, func(m engine.RepeatMeter) { m.Repeated(rec) }) }

// Shown implements [engine.EffectMeter].
func (t tee) Shown(rec ledger.Record, v verify.Verdict, after time.Duration) {
	told(t, func(m engine.EffectMeter) { m.Shown(rec, v, after) })
}

// Called implements [engine.CallMeter].
func (t tee) Called(rec ledger.Record, o engine.Outcome, err error, took time.Duration) {
	told(t, func(m engine.CallMeter) { m.Called(rec, o, err, took) })
}

// told tells those that can be told.
func told[M any](t tee, tell func(M)) {
	for _, m := range t {
		if can, ok := m.(M); ok {
			tell(can)
		}
	}
}
