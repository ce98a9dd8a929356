package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/crashtest"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
)

// account is the destination's own record at one moment.
type account struct {
	live    []orders.Order
	applied int // effects of our requests
	lied    int // requests that were accepted and had no effect
	made    int // records that our requests made and the destination did not take back
}

func (r *run) account() account {
	a := account{live: r.world.Records(orderID)}
	byUs := map[string]bool{}
	for _, e := range r.world.Effects() {
		switch {
		case !e.Applied():
			a.lied++
		case e.By == orders.ByRequest:
			a.applied++
			if e.Op == orders.OpCreate {
				byUs[e.ID] = true
			}
		case e.By == orders.ByItself && e.Op == orders.OpDelete:
			delete(byUs, e.ID)
		}
	}
	a.made = len(byUs)
	return a
}

// exact reports whether the destination is as the cell's intent declares.
func (r *run) exact(a account) bool {
	if r.cell.kind.write == intent.Delete {
		return len(a.live) == 0
	}
	if len(a.live) != 1 || a.made > 1 || (a.made == 0) == r.cell.powers().creates {
		return false
	}
	f := a.live[0].Fields
	currency, _ := f["currency"].(string)
	folded := r.cell.intent().Compare != nil && strings.EqualFold(currency, "USD")
	return f["amount_cents"] == json.Number("1999") && (currency == "USD" || folded) &&
		(!r.cell.kind.there || f["note"] == "kept")
}

// asBefore reports whether the destination is as before the write.
func (r *run) asBefore(a account) bool {
	if !r.cell.kind.there {
		return len(a.live) == 0
	}
	if len(a.live) != 1 {
		return false
	}
	f := a.live[0].Fields
	return f["amount_cents"] == json.Number("5") && f["currency"] == "EUR" && f["note"] == "kept"
}

// The faults of the engine that the matrix counts. All must be 0.
const (
	silentDouble = "silent duplicate"
	silentWrong  = "silent wrong outcome"
	lost         = "lost intent"
	overHalted   = "over-halted"
	unexpected   = "unexpected outcome"
	wasteful     = "needless call"
	other        = "other flaw"
)

// faultsCounted are the faults as the document names them.
var faultsCounted = []struct{ kind, says string }{
	{silentDouble, "silent duplicates"},
	{silentWrong, "silent wrong outcomes"},
	{lost, "lost intents"},
	{overHalted, "over-halted: review where a repeat was provably harmless, or the effect was readable"},
	{unexpected, "an outcome that contradicts the destination's log"},
	{wasteful, "needless sends, reads or commits where nothing fails"},
	{other, "anything else: an error to a caller, a send or a read for a repeated submission"},
}

// judge compares the callers' results, and the end, with the destination.
func (r *run) judge() {
	for _, e := range r.ends {
		switch {
		case r.cell.fault.liar: // what it showed was not so
		case e.as == verified && !r.exact(e.then):
			r.flaw("%s: settled as verified, and there is %s", silentWrong, show(e.then))
		case e.as == notApplied && e.then.applied > 0:
			r.flaw("%s: settled as not applied, and there is %s", silentWrong, show(e.then))
		case e.as == compensated && !r.asBefore(e.then):
			r.flaw("%s: settled as compensated, and there is %s", silentWrong, show(e.then))
		}
	}
	r.oneOutcome()
	r.thrift()
	if r.cell.class.writeOnly {
		r.judgeWriteOnly()
	}
	end, status := r.account(), r.status()
	want := r.wanted()
	switch {
	case status == ledger.InProgress:
		r.flaw("%s: at the end it is %s, due %s", lost, r.final.Phase(), r.final.Due.Sub(began))
	case end.made > 1 && status != review:
		r.flaw("%s: %d records made by us, and it is %s", silentDouble, end.made, status)
	case status == verified && !r.exact(end):
		r.flaw("%s: verified at the end, and there is %s", silentWrong, show(end))
	case status == notApplied && end.applied > 0:
		r.flaw("%s: not applied at the end, and there is %s", silentWrong, show(end))
	case status == compensated && !r.asBefore(end):
		r.flaw("%s: compensated at the end, and there is %s", silentWrong, show(end))
	case slices.Contains(want.may, status):
	case status == review:
		r.flaw("%s: %s: want %v", overHalted, r.final.Reason, want.may)
	default:
		r.flaw("%s: %s (%s): want %v", unexpected, status, r.final.Reason, want.may)
	}
}

// thrift: where nothing fails one send is enough, and where nothing is wrong
// two commits, one read back, and one before where the plan needs it.
func (r *run) thrift() {
	if r.point.Fate != crashtest.Lives {
		return
	}
	if r.cell.fault.once && r.sends > 1 && !r.cell.class.writeOnly { // a copy shows what no read can

		r.flaw("%s: %d sends reached the destination", wasteful, r.sends)
	}
	reads := 1
	if r.cell.class.writeOnly {
		reads = 0
	}
	if r.cell.powers().readsFirst {
		reads++
	}
	strong := len(r.cell.options().Lags) == 0
	if commits := r.book.Commits(); r.cell.fault.faults == nil && strong && (commits != 2 || r.reads != reads) {
		r.flaw("%s: %d commits and %d reads, want 2 and %d", wasteful, commits, r.reads, reads)
	}
}

// oneOutcome: every caller of a write gets its outcome.
func (r *run) oneOutcome() {
	settled := map[ledger.Status]bool{}
	for _, e := range r.ends {
		settled[e.as] = true
	}
	for _, h := range r.outcomes {
		if h.Status != ledger.InProgress && h.Status != review && !settled[h.Status] {
			r.flaw("%s: a caller received %s, and it was never settled so", silentWrong, h.Status)
		}
	}
	if last := r.outcomes[len(r.outcomes)-1]; last.Status != r.status() {
		r.flaw("%s: the last caller received %s, and it is %s", silentWrong, last.Status, r.status())
	}
}

// wanted is the expected result of the run: that of the cell, with two exceptions. If the process
// died after it announced a send that never left, there is no effect, and nothing proves that
// there will be none. If it died with the answer, nothing may prove whose effect a difference is.
func (r *run) wanted() verdict {
	if r.cell.class.writeOnly {
		return r.wantedWriteOnly()
	}
	p := r.cell.powers()
	want := r.cell.fault.want(p)
	if r.neverLeft() && !p.repeatable() && r.final.Sends > 0 && !slices.Contains(want.may, review) {
		return verdict{append([]ledger.Status{review}, want.may...), whyFate}
	}
	if r.cell.fault.proven && !slices.Contains(want.may, review) && r.cell.kind.there && r.point.Fate != crashtest.Lives && !r.final.Answered {
		return verdict{[]ledger.Status{review}, whyWhose} // updates have no stamp here
	}
	return want
}

func (r *run) neverLeft() bool {
	switch r.point.Stage {
	case stReserve, stAnnounce:
		return r.point.Fate == crashtest.After
	case stSend:
		return r.point.Fate == crashtest.Before || r.point.Fate == crashtest.Suspends
	}
	return false
}

func (r *run) status() ledger.Status {
	switch r.final.State {
	case ledger.Settled:
		return r.final.Settlement
	case ledger.Review:
		return review
	}
	return ledger.InProgress
}

func show(a account) string {
	text := fmt.Sprintf("%d effects and %d records of ours; %d records:", a.applied, a.made, len(a.live))
	for _, o := range a.live {
		fields, err := json.Marshal(o.Fields)
		text += fmt.Sprintf(" %s %s %v", o.ID, fields, err)
	}
	return text
}

// life prints every event of the write and every effect, for failures.
func (r *run) life() string {
	const most = 60
	text := r.String()
	for _, rec := range r.records() {
		for _, e := range rec[:min(len(rec), most)] {
			text += fmt.Sprintf("\n  %10s %-12s by %-6s %s%s %s/%s", e.At.Sub(began).Round(time.Millisecond), e.Kind, e.By, e.Fate, e.Verdict, e.Rule, e.Reason)
		}
	}
	effects := r.world.Effects()
	for _, e := range effects[:min(len(effects), most)] {
		text += fmt.Sprintf("\n  %10s effect %s by %s of request %d %v", e.At.Sub(began).Round(time.Millisecond), e.Op, e.By, e.Request, e.Faults)
	}
	return text
}

// records are the events of the write and of what undoes it.
func (r *run) records() [][]ledger.Event {
	all, err := r.book.List(context.Background(), ledger.Filter{Tenant: tenant})
	if err != nil {
		return nil
	}
	var lives [][]ledger.Event
	for _, rec := range slices.Backward(all) {
		events, err := r.book.Events(context.Background(), tenant, rec.ID)
		if err == nil {
			lives = append(lives, events)
		}
	}
	return lives
}
