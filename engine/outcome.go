package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// Again says whether asking again can help.
type Again string

// Whether asking again can help. Asking again with the same structural key
// never sends again: it returns the outcome as it then is.
const (
	AgainNo    Again = "no"
	AgainYes   Again = "yes"   // as a new logical write (another call number)
	AgainLater Again = "after" // the same intent, after AskAfter
)

// Waiting is what a write in progress waits for.
type Waiting string

// What a write can wait for.
const (
	WaitsQueue       Waiting = "queue"       // an earlier write of the same record
	WaitsReviewer    Waiting = "reviewer"    // an earlier write that a reviewer must decide about
	WaitsLogin       Waiting = "login"       // the destination refuses our login
	WaitsBreaker     Waiting = "breaker"     // sends to the destination fail
	WaitsRate        Waiting = "rate"        // the destination's rate, or a pause that it asked for
	WaitsBusy        Waiting = "busy"        // the maximum of concurrent calls of the destination is reached
	WaitsStopped     Waiting = "stopped"     // an operator stopped sends
	WaitsDestination Waiting = "destination" // the destination was unreachable, or asked to retry later
	WaitsRecovery    Waiting = "recovery"    // a worker ended in the middle; its write is read back first
)

// waiting returns what a record in progress waits for.
func waiting(r ledger.Record) Waiting {
	worked := r.InHand(r.Now)
	notTakenUp := slices.Contains([]connectors.Fate{connectors.FateNotSent, connectors.FateThrottled, connectors.FateLogin}, connectors.Fate(r.LastFate))
	switch {
	case r.QueuedBehind != "":
		return WaitsQueue
	case r.State == ledger.Sending && !worked:
		return WaitsRecovery
	case r.State == ledger.Checking && !worked && Waiting(r.Rule) == WaitsBusy:
		return WaitsBusy
	case r.State == ledger.Checking && Waiting(r.Rule) == WaitsLogin:
		return WaitsLogin
	case r.State == ledger.Checking && r.Verdict == verify.Unavailable.String() && r.Unproven > 0:
		return WaitsDestination
	case worked, r.State != ledger.Queued && (r.State != ledger.Checking || !notTakenUp):
		return ""
	}
	switch rule := Waiting(r.Rule); rule {
	case WaitsLogin, WaitsBreaker, WaitsRate, WaitsBusy, WaitsStopped:
		return rule
	}
	switch {
	case r.LastFate == string(connectors.FateLogin):
		return WaitsLogin
	case notTakenUp, r.Rule == "pre-state":
		return WaitsDestination
	}
	return ""
}

// Outcome is what the caller gets. It never holds the destination's raw response. Every
// sensitive value is replaced by "redacted:" and a digest.
type Outcome struct {
	ID     ledger.ID     `json:"id"`
	Status ledger.Status `json:"status"`
	// Text is a sentence for a reader, ForModel one for a model: what happened, what to do, and
	// what not to do.
	Text     string `json:"text"`
	ForModel string `json:"for_model"`
	// Verdict is the last verdict. Mismatches lists how the observation differs.
	Verdict    verify.Verdict  `json:"verdict"`
	Mismatches json.RawMessage `json:"mismatches,omitempty"`
	// Ref and URL name the record at the destination, where it was verified. Each is omitted
	// where it is not plain (LeftOut then names it): a ref has at most 200 letters, digits and
	// . _ : / @ # + = ~ -, and a URL at most 500 URL characters. The ledger has both unchanged.
	Ref string `json:"ref,omitempty"`
	URL string `json:"url,omitempty"`
	// ReviewURL is where a reviewer decides about a write that is held or in review. The engine
	// leaves it empty; a server with a review UI sets it.
	ReviewURL string `json:"review_url,omitempty"`
	// Undoing is the write that undoes, or was to undo, this one.
	Undoing ledger.ID `json:"undoing,omitempty"`
	// Sends and Reads count calls. Created and Settled are on the ledger's clock; Settled is
	// zero while the write is not settled.
	Sends   int       `json:"sends"`
	Reads   int       `json:"reads"`
	Created time.Time `json:"created,omitzero"`
	Settled time.Time `json:"settled,omitzero"`
	// Replayed says that this call did not begin the write.
	Replayed bool `json:"replayed"`
	// Refusal is why the destination refused the last send, in its own words: foreign text,
	// which is data and never an instruction. It is nil where the send was accepted, and where
	// the write is verified all the same.
	Refusal *ledger.Refusal `json:"refusal,omitempty"`
	// NotChecked lists, as JSON Pointers, what was sent and never compared. Verified does not
	// cover it.
	NotChecked []string `json:"not_checked,omitempty"`
	// RecheckUntil is until when a recheck is pending that may still contradict a settled
	// outcome. It is zero when the outcome is final.
	RecheckUntil time.Time `json:"recheck_until,omitzero"`
	// WaitsFor is what a write in progress waits for, "" where nothing is known. Behind is the
	// write of the same record that comes first.
	WaitsFor     Waiting   `json:"waits_for,omitempty"`
	QueuedBehind ledger.ID `json:"behind,omitempty"`
	// AskAgain says whether asking again can help, AskAfter when.
	AskAgain Again     `json:"ask_again"`
	AskAfter time.Time `json:"ask_after,omitzero"`
	// Untrusted lists, as JSON Pointers, the members with text that a destination or another
	// actor wrote: data, and never an instruction. In it every invisible character is an escape
	// such as \u200b, and "…" marks a cut.
	Untrusted []string `json:"untrusted,omitempty"`
	// LeftOut lists ref and url, as JSON Pointers, where the destination's value is not plain.
	LeftOut []string `json:"left_out,omitempty"`
}

// OutcomeOf returns the outcome of a record.
func OutcomeOf(r ledger.Record) Outcome { return outcomeOf(r, true) }

// outcomeOf returns the outcome of a record, safe for every caller: foreign text is made
// visible, bounded and marked.
func outcomeOf(r ledger.Record, replayed bool) Outcome {
	o := rawOutcome(r, replayed)
	o.Text, o.ForModel = visible.Clip(o.Text, maxSentence), visible.Clip(o.ForModel, maxSentence)
	mark := func(there bool, member string) {
		if there {
			o.Untrusted = append(o.Untrusted, member)
		}
	}
	plain := func(name *string, member string, is func(string) bool) {
		if *name != "" && !is(*name) {
			*name, o.LeftOut = "", append(o.LeftOut, member)
		}
		mark(*name != "", member)
	}
	plain(&o.Ref, "/ref", visible.IsRef)
	plain(&o.URL, "/url", visible.IsURL)
	if o.Refusal != nil {
		o.Refusal = &ledger.Refusal{Status: visible.Clip(o.Refusal.Status, maxShownText), Code: visible.Clip(o.Refusal.Code, maxShownText),
			Message: visible.Clip(o.Refusal.Message, maxSentence), RequestID: visible.Clip(o.Refusal.RequestID, maxShownText)}
	}
	mark(o.Refusal != nil, "/refusal")
	o.Mismatches = visibleMismatches(o.Mismatches)
	mark(len(o.Mismatches) > 0, "/mismatches")
	if len(o.NotChecked) > 0 {
		o.NotChecked = slices.Clone(o.NotChecked)
	}
	for i, path := range o.NotChecked {
		o.NotChecked[i] = visible.Text(path)
	}
	return o
}

// visibleMismatches returns mismatches as JSON in which every character is visible. A long
// value is cut to its beginning, as a string; [verify.More] ends a list that is cut.
func visibleMismatches(raw json.RawMessage) json.RawMessage {
	all, err := verify.Decode(raw)
	if err != nil || len(all) == 0 {
		return nil
	}
	cut := len(all) > maxMismatches
	all = all[:min(len(all), maxMismatches)]
	for i := range all {
		m := &all[i]
		m.Path, m.Problem = visible.Clip(m.Path, maxShownText), visible.Clip(m.Problem, maxShownText)
		for _, v := range []*json.RawMessage{&m.Want, &m.Got} {
			switch {
			case len(*v) > maxShownValue:
				*v = encoded(visible.Clip(string(*v), maxShownValue))
			case len(*v) > 0:
				*v = visible.Document(*v, visible.Text)
			}
		}
	}
	if cut {
		all = append(all, verify.Recorded{Problem: verify.More})
	}
	return encoded(all)
}

// WithoutEvidence returns mismatches for a caller that may not read evidence. After
// [verify.Collateral] they are about fields that the intent does not name: their paths and
// problems stay, their values do not. Unreadable mismatches are omitted.
func WithoutEvidence(v verify.Verdict, mismatches json.RawMessage) json.RawMessage {
	if v != verify.Collateral {
		return mismatches
	}
	var all []verify.Mismatch
	if err := json.Unmarshal(mismatches, &all); err != nil {
		return nil
	}
	for i := range all {
		all[i].Want, all[i].Got = nil, nil
	}
	return encoded(all)
}

// rawOutcome returns the outcome of a record, with foreign text as stored; only /text is
// marked.
func rawOutcome(r ledger.Record, replayed bool) Outcome {
	o := Outcome{
		ID: r.ID, Verdict: verify.ParseVerdict(r.Verdict), Mismatches: redact.Shown(r.Mismatches), Undoing: r.Child,
		Sends: r.Sends, Reads: r.Reads, Created: r.Created, Settled: r.SettledAt,
		Replayed: replayed, AskAgain: AgainNo, Status: r.Status(), NotChecked: r.NotChecked,
	}
	if o.Status == ledger.InProgress || o.Status == ledger.Unverified {
		o.AskAgain, o.AskAfter = AgainLater, r.Due
		if r.Due.Before(r.Now) { // it is being worked on, or about to be
			o.AskAfter = r.Now
		}
		o.WaitsFor, o.QueuedBehind = waiting(r), r.QueuedBehind
		if r.QueuedBehind != "" && !r.Now.IsZero() {
			o.AskAfter = r.Now.Add(queuedAsk)
		}
	}
	if o.Status != ledger.Verified {
		o.Refusal = r.Refusal
	}
	if o.Status == ledger.Verified {
		o.Ref, o.URL, o.Mismatches = redact.ShownText(r.Ref), redact.ShownText(r.URL), nil
	}
	if o.Status == ledger.NotApplied || o.Status == ledger.Expired {
		o.AskAgain = AgainYes
	}
	if r.Erased != "" {
		r.Reason = "the reason was erased"
	}
	var quotes bool
	if o.Text, o.ForModel, quotes = words(o.Status, r); quotes {
		o.Untrusted = []string{"/text"}
	}
	if r.Erased != "" {
		o.Text += " Its contents were erased."
		o.ForModel += " Its contents were erased."
	}
	if o.Status == ledger.Verified && len(o.NotChecked) > 0 {
		o.Text += " Not compared: " + strings.Join(o.NotChecked, ", ") + "."
		o.ForModel += " Not compared, so not verified: " + strings.Join(o.NotChecked, ", ") + "."
	}
	if o.Status == ledger.Verified && r.Proof != "" {
		o.Text += " That proves " + r.Proof + "."
		o.ForModel += " That proves " + r.Proof + "."
	}
	if r.State == ledger.Settled && !r.Due.IsZero() {
		o.RecheckUntil = r.Due
		if r.RecheckUntil.After(r.Due) {
			o.RecheckUntil = r.RecheckUntil
		}
		until := o.RecheckUntil.UTC().Format(time.RFC3339)
		if !r.Now.Before(o.RecheckUntil) { // it was not made
			o.Text += fmt.Sprintf(" It was to be checked again by %s, and was not yet.", until)
			o.ForModel += " It was to be checked again and was not yet; it may still turn out otherwise."
			return o
		}
		o.Text += fmt.Sprintf(" It is checked again until %s.", until)
		o.ForModel += fmt.Sprintf(" It is checked again until %s and may still turn out otherwise.", until)
	}
	return o
}

// underWay returns the outcome of a write whose caller stopped waiting before its end.
func underWay(r ledger.Record, replayed bool) Outcome {
	if r.State == "" {
		r.State = ledger.Queued
	}
	return outcomeOf(r, replayed)
}

// Error is a failure of the engine or its ledger, with what is known about the effect.
type Error struct {
	ID ledger.ID
	// Known is "not applied" or "unknown"; never "applied", which only an outcome can state.
	Known string
	Err   error
}

// The values of Error.Known. A write that is, or may be, in the ledger is continued by a worker or
// by the next call. Its effect is therefore unknown even when nothing was sent yet.
const (
	KnownNotApplied = "not applied" // nothing was sent, and nothing will be
	KnownNothing    = "unknown"
)

// Error returns what is known, and why.
func (e *Error) Error() string {
	if e.Known == KnownNotApplied {
		return fmt.Sprintf("write %s: not applied, nothing was sent: %v", e.ID, e.Err)
	}
	return fmt.Sprintf("write %s: unknown whether applied; if the ledger holds it, a worker or the next call continues it: %v", e.ID, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
