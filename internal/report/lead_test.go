package report_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// leadCase is a write in some state, and what its first sentences are.
type leadCase struct {
	reason string
	write  intent.WriteType
	state  ledger.State
	status ledger.Status
	set    func(r *ledger.Record)
	before []string // what was read before the send, nil for no read
	after  []string // what was read after it
	failed bool     // a later read failed
	maker  bool     // the stamp of the record is that of another write
	want   string
}

const wanted2999, is1999 = `{"order_id":"A-1","amount_cents":2999}`, `{"order_id":"A-1","amount_cents":1999}`

var leadCases = map[string]leadCase{
	"held": {"nothing was sent", intent.Create, ledger.Held, "", func(r *ledger.Record) { r.Due = base.Add(time.Hour) }, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. Nothing was sent. It waits for approval until 19:00 UTC."},
	"held for two": {"one is not enough", intent.Create, ledger.Held, "", func(r *ledger.Record) { r.Need, r.Agreed = 2, []string{"ada"} }, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. Nothing was sent. It waits for 1 more of 2 approvals."},
	"held, overdue": {"it still waits", intent.Create, ledger.Held, "", func(r *ledger.Record) { r.Overdue = true }, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. Nothing was sent. It waits for approval, which is overdue."},
	"queued": {"nothing was sent yet", intent.Create, ledger.Queued, "", nil, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. Nothing was sent. It is queued to be sent; no decision is needed."},
	"queued behind": {"another comes first", intent.Create, ledger.Queued, "", func(r *ledger.Record) { r.QueuedBehind = "wr_7" }, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. Nothing was sent. Write wr_7 about the same record comes first."},
	"queued after a refused login": {"the refused send had no effect", intent.Create, ledger.Queued, "", func(r *ledger.Record) { r.Sends, r.Unsent, r.LastFate = 1, 1, string(connectors.FateLogin) }, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. Nothing took effect: the destination refused the login. It is queued to be sent; no decision is needed."},
	"sending": {"a worker has it", intent.Create, ledger.Sending, "", func(r *ledger.Record) { r.Sends, r.LeaseUntil = 1, base.Add(time.Minute) }, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. The destination was not read back yet. It is being sent now. It continues; no decision is needed."},
	"sending, worker gone": {"it may have been sent", intent.Create, ledger.Sending, "", func(r *ledger.Record) { r.Sends = 1 }, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. The destination was not read back yet. It may have been sent once: the process that sent it ended before it knew. It continues; no decision is needed."},
	"sending, worker gone, handed over": {"no worker has it yet", intent.Create, ledger.Sending, "", func(r *ledger.Record) {
		r.Sends, r.Owner, r.LeaseUntil = 1, ledger.Dispatched, base.Add(time.Minute)
	}, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. The destination was not read back yet. It may have been sent once: the process that sent it ended before it knew. It continues; no decision is needed."},
	"checking, answered": {"accepted is not verified", intent.Create, ledger.Checking, "", func(r *ledger.Record) { r.Sends, r.Answered = 1, true }, nil, []string{}, false, false,
		"The agent wants to create order A-1 for $29.99. Order A-1 was not found. It was sent once, and the destination accepted it. It continues; no decision is needed."},
	"checking, unknown": {"no response", intent.Create, ledger.Checking, "", func(r *ledger.Record) { r.Sends, r.Unknown = 1, true }, nil, nil, true, false,
		"The agent wants to create order A-1 for $29.99. The destination could not be read. It was sent once; whether that took effect is not known from the response. It continues; no decision is needed."},
	"compensating": {"it is undone", intent.Create, ledger.Compensating, "", func(r *ledger.Record) { r.Sends, r.Answered, r.Child = 1, true, "wr_8" }, nil, []string{is1999}, false, false,
		"The agent wants to create order A-1 for $29.99. Order A-1 for $19.99 is there, but not as wanted (amount_cents). It was sent once, and the destination accepted it. It is being undone by write wr_8."},
	"unverified": {"a read is still to be made", intent.Create, ledger.Checking, "", func(r *ledger.Record) { r.Sends, r.Answered, r.Unverified = 1, true, true }, nil, nil, false, false,
		"The agent wants to create order A-1 for $29.99. The destination was not read back yet. It was sent once, and the destination accepted it. It is verified later."},
	"delegated": {"its caller makes it", "", ledger.Delegated, "", func(r *ledger.Record) { r.Delegated, r.Workflow, r.Step, r.Tool = true, "w", "pay", "charge" }, nil, nil, false, false,
		`Step "pay" of workflow "w" makes this write itself, with the tool charge. The step has not reported that it is done.`},

	"review, another's record": {"a conflict before the send", intent.Create, ledger.Review, "", func(r *ledger.Record) { r.Reason = "another record has the key." }, []string{is1999}, nil, false, true,
		"The agent wanted to create order A-1 for $29.99. Order A-1 already exists for $19.99, created at 06:05 UTC by write wr_maker. Nothing was sent. A reviewer must decide: another record has the key."},
	"review, a foreign record": {"it is no write's of ours", intent.Create, ledger.Review, "", nil, []string{is1999}, nil, false, false,
		"The agent wanted to create order A-1 for $29.99. Order A-1 already exists for $19.99, not made by this write. Nothing was sent. A reviewer must decide."},
	"review, absent": {"it was sent and is not there", intent.Create, ledger.Review, "", func(r *ledger.Record) { r.Sends, r.Unknown = 1, true }, nil, []string{}, false, false,
		"The agent wanted to create order A-1 for $29.99. Order A-1 was not found. It was sent once; whether that took effect is not known from the response. A reviewer must decide."},
	"review, mismatched": {"it differs", intent.Create, ledger.Review, "", func(r *ledger.Record) { r.Sends, r.Answered = 1, true }, nil, []string{is1999}, false, false,
		"The agent wanted to create order A-1 for $29.99. Order A-1 for $19.99 is there, but not as wanted (amount_cents). It was sent once, and the destination accepted it. A reviewer must decide."},
	"review, duplicated": {"twice there", intent.Create, ledger.Review, "", func(r *ledger.Record) { r.Sends, r.Answered = 2, true }, nil, []string{wanted2999, wanted2999}, false, false,
		"The agent wanted to create order A-1 for $29.99. 2 such records were found; 1 is wanted. It was sent twice, and the destination accepted it. A reviewer must decide."},
	"review, collateral": {"more has changed", intent.Update, ledger.Review, "", func(r *ledger.Record) { r.Sends, r.Answered = 1, true }, []string{`{"order_id":"A-1","amount_cents":1999,"note":"a"}`}, []string{`{"order_id":"A-1","amount_cents":2999,"note":"b"}`}, false, false,
		"The agent wanted to update order A-1: amount_cents to $29.99. Order A-1 for $29.99 is there, but something that this write does not name has changed (note). It was sent once, and the destination accepted it. A reviewer must decide."},
	"review, stale": {"as before", intent.Update, ledger.Review, "", func(r *ledger.Record) { r.Sends, r.Unknown = 3, true }, []string{is1999}, []string{is1999}, false, false,
		"The agent wanted to update order A-1: amount_cents to $29.99. Order A-1 for $19.99 is still as it was before. It was sent 3 times; whether that took effect is not known from the response. A reviewer must decide."},
	"review, unavailable": {"what is there now is not known", intent.Create, ledger.Review, "", func(r *ledger.Record) { r.Sends, r.Unknown = 1, true }, nil, []string{}, true, false,
		"The agent wanted to create order A-1 for $29.99. The latest read failed; the one before it was at 17:00 UTC. Then: Order A-1 was not found. It was sent once; whether that took effect is not known from the response. A reviewer must decide."},
	"review, changed while it waited": {"no send was taken up", intent.Update, ledger.Review, "", func(r *ledger.Record) {
		r.Sends, r.Unsent, r.LastFate, r.Reason = 1, 1, string(connectors.FateThrottled), "another actor changed it"
	}, []string{is1999}, nil, false, false,
		"The agent wanted to update order A-1: amount_cents to $29.99. Order A-1 for $19.99 is there. Nothing took effect: the destination takes no more requests at the moment. A reviewer must decide: another actor changed it."},
	"review, still there": {"it was to be deleted", intent.Delete, ledger.Review, "", func(r *ledger.Record) { r.Sends, r.Answered = 1, true }, []string{is1999}, []string{is1999}, false, false,
		"The agent wanted to delete order A-1. Order A-1 for $19.99 is still there. It was sent once, and the destination accepted it. A reviewer must decide."},

	"verified": {"", intent.Create, ledger.Settled, ledger.Verified, func(r *ledger.Record) { r.Sends, r.Unknown, r.Reads = 1, true, 1 }, nil, []string{wanted2999}, false, false,
		"The agent wanted to create order A-1 for $29.99. Order A-1 for $29.99 was there, as wanted. It was sent once, and no response arrived. That is verified."},
	"verified, nothing to do": {"it was so", intent.Update, ledger.Settled, ledger.Verified, nil, []string{wanted2999}, nil, false, false,
		"The agent wanted to update order A-1: amount_cents to $29.99. Order A-1 for $29.99 was there, as wanted. Nothing was sent. There was nothing to do."},
	"verified, made true meanwhile": {"no send was taken up", intent.Update, ledger.Settled, ledger.Verified, func(r *ledger.Record) {
		r.Sends, r.Unsent, r.LastFate = 1, 1, string(connectors.FateNotSent)
	}, []string{wanted2999}, nil, false, false,
		"The agent wanted to update order A-1: amount_cents to $29.99. Order A-1 for $29.99 was there, as wanted. Nothing took effect: the destination could not be reached. There was nothing to do."},
	"verified, gone": {"a delete", intent.Delete, ledger.Settled, ledger.Verified, func(r *ledger.Record) { r.Sends, r.Answered = 1, true }, nil, []string{}, false, false,
		"The agent wanted to delete order A-1. Order A-1 was not there any more. It was sent once. That is verified."},
	"verified, changed since": {"a later read", intent.Create, ledger.Settled, ledger.Verified, func(r *ledger.Record) { r.Sends, r.Answered = 1, true }, nil, []string{is1999}, false, false,
		"The agent wanted to create order A-1 for $29.99. Order A-1 for $19.99 was there, but not as wanted (amount_cents). It was sent once. It was verified earlier, and the record was changed since."},
	"not applied": {"refused", intent.Create, ledger.Settled, ledger.NotApplied, func(r *ledger.Record) {
		r.Sends, r.Unsent, r.LastFate, r.Reason = 1, 1, string(connectors.FateRefused), "the destination refused the send"
		r.Refusal = &ledger.Refusal{Message: "amount is too large"}
	}, nil, nil, false, false,
		`The agent wanted to create order A-1 for $29.99. Nothing took effect: the destination refused it. It answered "amount is too large". It was not done: the destination refused the send.`},
	"not applied, refused at once": {"the response is known", intent.Create, ledger.Settled, ledger.NotApplied, func(r *ledger.Record) {
		r.Sends, r.LastFate, r.Reason = 1, string(connectors.FateRefused), "the destination refused it: 422 Unprocessable Entity"
		r.Refusal = &ledger.Refusal{Message: "amount is too large"}
	}, nil, nil, false, false,
		`The agent wanted to create order A-1 for $29.99. The destination was not read back. It was sent once. The destination answered "amount is too large". It was not done: the destination refused it: 422 Unprocessable Entity.`},
	"not applied, never sent": {"a condition", intent.Update, ledger.Settled, ledger.NotApplied, func(r *ledger.Record) { r.Reason = "there is no such record; nothing was sent" }, []string{}, nil, false, false,
		"The agent wanted to update order A-1: amount_cents to $29.99. Order A-1 was not there. Nothing was sent. It was not done: there is no such record; nothing was sent."},
	"compensated": {"undone", intent.Create, ledger.Settled, ledger.Compensated, func(r *ledger.Record) { r.Sends, r.Answered, r.Child = 1, true, "wr_8" }, nil, []string{is1999}, false, false,
		"The agent wanted to create order A-1 for $29.99. Order A-1 for $19.99 was there, but not as wanted (amount_cents). It was sent once. It was undone by write wr_8, and that was verified."},
	"accepted": {"as it is", intent.Create, ledger.Settled, ledger.Accepted, func(r *ledger.Record) { r.Sends, r.Unknown, r.Reason = 1, true, "seen at the bank" }, nil, nil, false, false,
		"The agent wanted to create order A-1 for $29.99. The destination was not read back. It was sent once; whether that took effect is not known from the response. A reviewer accepted it as it is: seen at the bank."},
	"abandoned": {"it stays unknown", intent.Create, ledger.Settled, ledger.Abandoned, func(r *ledger.Record) { r.Sends, r.Unknown, r.Reason = 1, true, "too old" }, nil, nil, false, false,
		"The agent wanted to create order A-1 for $29.99. The destination was not read back. It was sent once; whether that took effect is not known from the response. A reviewer gave it up, and whether it took effect stays unknown: too old."},
	"denied": {"", intent.Create, ledger.Settled, ledger.Denied, func(r *ledger.Record) { r.Reason = "too expensive" }, nil, nil, false, false,
		"The agent wanted to create order A-1 for $29.99. Nothing was sent. A reviewer denied it: too expensive."},
	"expired": {"", intent.Create, ledger.Settled, ledger.Expired, nil, nil, nil, false, false,
		"The agent wanted to create order A-1 for $29.99. Nothing was sent. No reviewer approved it in time, so it is not sent."},
	"reported": {"nothing can be read", intent.Create, ledger.Settled, ledger.Reported, func(r *ledger.Record) { r.Sends, r.Answered = 1, true }, nil, nil, false, false,
		"The agent wanted to create order A-1 for $29.99. It was sent once, and the destination accepted it. The destination cannot be read, so that is not verified."},
	"undo": {"of another write", intent.Delete, ledger.Queued, "", func(r *ledger.Record) { r.Parent = "wr_6" }, nil, nil, false, false,
		"Write wr_6 is to be undone: delete order A-1. Nothing was sent. It is queued to be sent; no decision is needed."},
	"pruned": {"little is left", "", ledger.Settled, ledger.Verified, func(r *ledger.Record) { r.Tombstone, r.Destination, r.Sends = true, "shop", 1 }, nil, nil, false, false,
		"What the agent wanted of shop is not kept any more. It was sent once. That is verified."},
	"erased": {"the reason too", "", ledger.Settled, ledger.Denied, func(r *ledger.Record) {
		r.Tombstone, r.Erased, r.Destination, r.Reason = true, "er_1", "shop", "for Ada"
	}, nil, nil, false, false,
		"What the agent wanted of shop is not kept any more. Nothing was sent. A reviewer denied it."},
}

func (c leadCase) lead(t *testing.T) report.Lead {
	t.Helper()
	maker := intent.WriteIntent{Tenant: "acme", Workflow: "w", Step: "s", Tool: "t", Call: 9, Write: intent.Create, Kind: "order", Destination: "shop",
		Key: intent.Fields{"order_id": "A-1"}, Expect: intent.Fields{"amount_cents": json.Number("1999")}}
	w := maker
	w.Call, w.Write, w.Expect = 1, c.write, intent.Fields{"amount_cents": json.Number("2999")}
	if c.write == intent.Delete {
		w.Expect = nil
	}
	r := ledger.Record{ID: "wr_1", Destination: "shop", Kind: "order", State: c.state, Settlement: c.status, Now: base}
	if c.set != nil {
		c.set(&r)
	}
	var events []ledger.Event
	var before *connectors.Observation
	observed := func(records []string) (obs connectors.Observation, text json.RawMessage) {
		obs = connectors.Observation{Strength: connectors.Strong, At: base.Add(-time.Hour), Records: []connectors.Record{}}
		for _, fields := range records {
			one := connectors.Record{Ref: "ord_1", Stamp: w.Stamp()}
			switch {
			case c.maker:
				one.Stamp = maker.Stamp()
			case before == nil && c.after == nil && c.write == intent.Create:
				one.Stamp = "of another program"
			}
			if err := json.Unmarshal([]byte(fields), &one.Fields); err != nil {
				t.Fatal(err)
			}
			obs.Records = append(obs.Records, one)
		}
		text, err := json.Marshal(obs)
		if err != nil {
			t.Fatal(err)
		}
		return obs, text
	}
	p := connectors.Profile{Stamped: true}
	add := func(j verify.Judgement, evidence json.RawMessage, isBefore bool) json.RawMessage {
		mismatches, err := json.Marshal(j.Mismatches)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, ledger.Event{Kind: ledger.EvRead, Evidence: evidence, Mismatches: mismatches, Verdict: j.Verdict.String(), Before: isBefore})
		r.Verdict = j.Verdict.String()
		return mismatches
	}
	if c.before != nil {
		obs, text := observed(c.before)
		add(verify.JudgeBefore(verify.Case{Intent: w, Profile: p, Stamp: w.Stamp(), Seen: obs}), text, true)
		before = &obs
	}
	if c.after != nil {
		obs, text := observed(c.after)
		r.Evidence = text
		r.Mismatches = add(verify.Judge(verify.Case{Intent: w, Profile: p, Stamp: w.Stamp(), Before: before, Seen: obs, Since: time.Hour}), text, false)
	}
	if c.failed {
		events = append(events, ledger.Event{Kind: ledger.EvRead, Verdict: verify.Unavailable.String()})
	}
	l := report.Lead{Record: r, Events: events, Intent: w, Summary: connectors.Summary{Text: "order {order_id}[ for {amount}]", Amount: "/amount_cents", Currency: "USD", Minor: true}}
	if c.write == "" {
		l.Intent = intent.WriteIntent{}
	}
	if c.maker {
		text, err := json.Marshal(maker)
		if err != nil {
			t.Fatal(err)
		}
		l.Maker = &ledger.Record{ID: "wr_maker", Intent: text, FirstSend: time.Date(base.Year(), base.Month(), base.Day(), 6, 5, 0, 0, time.UTC)}
	}
	return l
}

func TestLead(t *testing.T) {
	states, statuses, verdicts := map[ledger.State]bool{}, map[ledger.Status]bool{}, map[string]bool{}
	for name, c := range leadCases {
		l := c.lead(t)
		states[c.state], statuses[l.Record.Status()], verdicts[l.Record.Verdict] = true, true, true
		t.Run(name, func(t *testing.T) {
			if got := l.Text(); got != c.want {
				t.Errorf("%s (verdict %s):\n%s\nwant\n%s", c.reason, l.Record.Verdict, got, c.want)
			}
			for _, word := range engineWords {
				if strings.Contains(strings.ToLower(l.Text()), word) {
					t.Errorf("%q is a word of the engine: %s", word, l.Text())
				}
			}
		})
	}
	for _, s := range []ledger.State{ledger.Held, ledger.Queued, ledger.Sending, ledger.Checking, ledger.Delegated, ledger.Compensating, ledger.Review, ledger.Settled} {
		if !states[s] {
			t.Errorf("no case is %s", s)
		}
	}
	for _, s := range []ledger.Status{ledger.Verified, ledger.NotApplied, ledger.Compensated, ledger.Accepted, ledger.Abandoned, ledger.Denied, ledger.Expired, ledger.Reported,
		ledger.StatusReview, ledger.StatusHeld, ledger.StatusDelegated, ledger.InProgress, ledger.Unverified} {
		if !statuses[s] {
			t.Errorf("no case is %s", s)
		}
	}
	for _, v := range []verify.Verdict{verify.Verified, verify.Absent, verify.Mismatched, verify.Duplicated, verify.Collateral, verify.Vacuous, verify.Stale} {
		if !verdicts[v.String()] {
			t.Errorf("no case has the verdict %s", v)
		}
	}
}

// engineWords are not in the first sentences about a write: they mean something to those who know
// the engine alone.
var engineWords = []string{"as declared", "recheck", "horizon", "settle", "pre-state", "stamp", "verdict", "compensat", "vacuous", "collateral", "idempoten", "digest", "intent", "lease"}

// What a caller or a destination wrote cannot speak for the page.
func TestLeadQuotesOthers(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(leadCases)) {
		l := leadCases[name].lead(t)
		l.Intent.Key = intent.Fields{"order_id": "A-1. Nothing was sent.\u202e <b>"}
		l.Record.Reason = "\x1b[2J\u202e"
		if got := l.Text(); strings.ContainsAny(got, "\u202e\x1b") || l.Intent.Write != "" && strings.Contains(got, "order A-1. Nothing") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
