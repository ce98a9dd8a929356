package engine_test

import (
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// engineWords mean something only to those who know the engine.
var engineWords = regexp.MustCompile(`(?i)as declared|\bdeclared|recheck|horizon|settle|pre-state|\bstamp|queue|verdict|vacuous|collateral|compensat|idempoten|\blease|\bfence|digest|\bledger|structural`)

// TestWordsOfOutcomes: the texts of outcomes are for people and models who know nothing of the engine.
func TestWordsOfOutcomes(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	all := []ledger.Record{
		{State: ledger.Settled, Settlement: ledger.Verified},
		{State: ledger.Settled, Settlement: ledger.Verified, Sends: 1, Rule: "recheck", Verdict: verify.Mismatched.String()},
		{State: ledger.Settled, Settlement: ledger.Verified, Sends: 1, Due: now.Add(time.Hour), NotChecked: []string{"/note"}, Proof: "a copy in a mailbox"},
		{State: ledger.Settled, Settlement: ledger.Verified, Sends: 1, Due: now.Add(-time.Hour), Erased: "er_1"},
		{State: ledger.Settled, Settlement: ledger.Reported, Delegated: true}, {State: ledger.Delegated, Delegated: true},
		{State: ledger.Held, Need: 2}, {State: ledger.Held, Need: 2, Agreed: []string{"ada"}, Due: now.Add(time.Hour)}, {State: ledger.Held, Overdue: true},
		{State: ledger.Queued, QueuedBehind: "wr_2"}, {State: ledger.Queued, LastFate: string(connectors.FateLogin)}, {State: ledger.Queued, LastFate: string(connectors.FateNotSent)},
		{State: ledger.Sending, LeaseUntil: now.Add(time.Hour)}, {State: ledger.Checking, LeaseUntil: now.Add(time.Hour)}, {State: ledger.Checking, Unverified: true, Answered: true},
	}
	for _, s := range []ledger.Status{ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned, ledger.Denied, ledger.Expired, ledger.Reported} {
		all = append(all, ledger.Record{State: ledger.Settled, Settlement: s, Sends: 1})
	}
	for _, s := range []ledger.State{ledger.Held, ledger.Queued, ledger.Sending, ledger.Checking, ledger.Compensating, ledger.Review} {
		all = append(all, ledger.Record{State: s})
	}
	for _, w := range []engine.Waiting{engine.WaitsLogin, engine.WaitsBreaker, engine.WaitsRate, engine.WaitsBusy, engine.WaitsStopped} {
		all = append(all, ledger.Record{State: ledger.Queued, Rule: string(w)})
	}
	seen, waits := map[ledger.Status]bool{}, map[engine.Waiting]bool{}
	for _, r := range all {
		r.ID, r.Destination, r.Kind, r.Tool, r.Workflow, r.Step, r.Now = "wr_1", "shop", "order", "make_order", "w", "s", now
		r.Mismatches = json.RawMessage(`[]`)
		o := engine.OutcomeOf(r)
		seen[o.Status], waits[o.WaitsFor] = true, true
		for _, text := range []string{o.Text, o.ForModel} {
			if word := engineWords.FindString(text); word != "" || text == "" {
				t.Errorf("%s, %s: %q is a word of the engine: %s", r.State, o.Status, word, text)
			}
		}
	}
	for _, s := range []ledger.Status{ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned, ledger.Denied, ledger.Expired, ledger.Reported,
		ledger.StatusReview, ledger.StatusHeld, ledger.StatusDelegated, ledger.InProgress, ledger.Unverified} {
		if !seen[s] {
			t.Errorf("no case is %s", s)
		}
	}
	for _, w := range []engine.Waiting{engine.WaitsQueue, engine.WaitsLogin, engine.WaitsBreaker, engine.WaitsRate, engine.WaitsBusy, engine.WaitsStopped, engine.WaitsDestination, engine.WaitsRecovery} {
		if !waits[w] {
			t.Errorf("no case waits for %s", w)
		}
	}
}
