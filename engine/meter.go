package engine

import (
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// repeated counts a call that was answered with the outcome of an earlier one.
func (e *Engine) repeated(rec ledger.Record) {
	if m, ok := e.opts.Meter.(RepeatMeter); ok {
		m.Repeated(rec)
	}
}

// unmetered is the meter that counts nothing.
type unmetered struct{}

func (unmetered) Sent(ledger.Record, Sent)                            {}
func (unmetered) Looked(ledger.Record, verify.Verdict, time.Duration) {}
func (unmetered) Ended(ledger.Record)                                 {}
func (unmetered) Held(ledger.Record, Hold)                            {}
func (unmetered) Failed(ledger.Record, error)                         {}
