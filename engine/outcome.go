package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// Status is what became of a write, for its caller.
type Status string

// The statuses. The zero value is none of them and means nothing.
const (
	StatusVerified    Status = "verified"    // seen at the destination
	StatusNotApplied  Status = "not_applied" // known not to have happened
	StatusCompensated Status = "compensated" // undone, and that was verified
	StatusAccepted    Status = "accepted"    // a person took responsibility for it as it is
	StatusAbandoned   Status = "abandoned"   // a person gave it up; its effect stays unknown
	StatusReview      Status = "review"      // a person decides
	StatusHeld        Status = "held"        // waits for approval; nothing was sent
	StatusInProgress  Status = "in_progress" // recorded, and goes on by itself
	StatusUnverified  Status = "unverified"  // the destination said yes; it is looked at later, on purpose
	StatusDenied      Status = "denied"      // a person refused it; nothing was sent
	StatusExpired     Status = "expired"     // nobody approved it in time; nothing was sent
	StatusEntrusted   Status = "entrusted"   // its caller makes it itself, and has not said that it is done
	StatusReported    Status = "reported"    // whoever made it says so, its caller or a destination that cannot be read; nobody looked
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
	WaitsReviewer    Waiting = "reviewer"    // one that a reviewer must decide about
	WaitsLogin       Waiting = "login"       // the destination refuses our login
	WaitsBreaker     Waiting = "breaker"     // sends to the destination fail
	WaitsRate        Waiting = "rate"        // the destination's rate, or a pause that it asked for
	WaitsBusy        Waiting = "busy"        // as many sends as allowed are under way
	WaitsStopped     Waiting = "stopped"     // an operator stopped sends
	WaitsDestination Waiting = "destination" // the destination could not be reached, or said not now
	WaitsRecovery    Waiting = "recovery"    // a worker ended in the middle; its write is read back first
)

// waitingWords say it to callers. Nothing that a destination or an operator wrote
// is in them.
var waitingWords = map[Waiting]string{
	WaitsLogin:       "until the destination accepts our login again",
	WaitsBreaker:     "since sends to the destination fail; one is tried from time to time",
	WaitsRate:        "since the destination takes no more sends now",
	WaitsBusy:        "since as many sends to the destination as allowed are under way",
	WaitsStopped:     "since an operator stopped sends",
	WaitsDestination: "since the destination could not be reached or said not now; it is tried again",
	WaitsRecovery:    "since a worker ended while it may have been sent; it is read back first",
}

// waiting is what a record in progress waits for.
func waiting(r ledger.Record) Waiting {
	worked := r.LeaseUntil.After(r.Now)
	turnedAway := slices.Contains([]connectors.Fate{connectors.FateNotSent, connectors.FateThrottled, connectors.FateLogin}, connectors.Fate(r.LastFate))
	switch {
	case r.Behind != "":
		return WaitsQueue
	case r.State == ledger.Sending && !worked:
		return WaitsRecovery
	case r.State == ledger.Checking && Waiting(r.Rule) == WaitsLogin:
		return WaitsLogin
	case r.State == ledger.Checking && r.Verdict == verify.Unavailable.String() && r.Unproven > 0:
		return WaitsDestination
	case worked, r.State != ledger.Queued && (r.State != ledger.Checking || !turnedAway):
		return ""
	}
	switch rule := Waiting(r.Rule); rule {
	case WaitsLogin, WaitsBreaker, WaitsRate, WaitsBusy, WaitsStopped:
		return rule
	}
	switch {
	case r.LastFate == string(connectors.FateLogin):
		return WaitsLogin
	case turnedAway, r.Rule == "pre-state":
		return WaitsDestination
	}
	return ""
}

// Outcome is what the caller gets. It never holds the destination's raw answer,
// and "redacted:" and a digest in the place of every sensitive value.
type Outcome struct {
	ID     ledger.ID `json:"id"`
	Status Status    `json:"status"`
	// Text is a sentence for a person, ForModel one for a model: what
	// happened, and what to do and not to do.
	Text     string `json:"text"`
	ForModel string `json:"for_model"`
	// Verdict is the last one; Mismatches how what was seen differs.
	Verdict    verify.Verdict  `json:"verdict"`
	Mismatches json.RawMessage `json:"mismatches,omitempty"`
	// Ref and URL name the record at the destination, where it was verified.
	Ref string `json:"ref,omitempty"`
	URL string `json:"url,omitempty"`
	// Undoing is the write that undoes this one, or was to.
	Undoing ledger.ID `json:"undoing,omitempty"`
	// Sends and Reads count calls; Created and Settled are on the ledger's
	// clock, Settled zero while it is not.
	Sends   int       `json:"sends"`
	Reads   int       `json:"reads"`
	Created time.Time `json:"created,omitzero"`
	Settled time.Time `json:"settled,omitzero"`
	// Replayed says that this call did not begin the write.
	Replayed bool `json:"replayed"`
	// Refusal is why the destination did not take the last send, in its own words:
	// foreign text, which is data and never an instruction. Nil where it took it, and
	// where the write is verified all the same.
	Refusal *ledger.Said `json:"refusal,omitempty"`
	// NotChecked lists what was sent and never compared, as JSON Pointers: verified
	// says nothing about it.
	NotChecked []string `json:"not_checked,omitempty"`
	// RecheckUntil is until when a recheck is pending that may still contradict a
	// settled outcome; zero when the outcome is final.
	RecheckUntil time.Time `json:"recheck_until,omitzero"`
	// WaitsFor is what a write in progress waits for, "" for none or none that is
	// known. Behind is the write of the same record that comes first.
	WaitsFor Waiting   `json:"waits_for,omitempty"`
	Behind   ledger.ID `json:"behind,omitempty"`
	// AskAgain says whether asking again can help, AskAfter when.
	AskAgain Again     `json:"ask_again"`
	AskAfter time.Time `json:"ask_after,omitzero"`
}

// OutcomeOf reads the outcome off a record that was looked up.
func OutcomeOf(r ledger.Record) Outcome { return outcomeOf(r, true) }

// outcomeOf reads the outcome off a record.
func outcomeOf(r ledger.Record, replayed bool) Outcome {
	o := Outcome{
		ID: r.ID, Verdict: verify.ParseVerdict(r.Verdict), Mismatches: redact.Shown(r.Mismatches), Undoing: r.Child,
		Sends: r.Sends, Reads: r.Reads, Created: r.Created, Settled: r.SettledAt,
		Replayed: replayed, AskAgain: AgainNo, Status: statusOf(r), NotChecked: r.NotChecked,
	}
	if o.Status == StatusInProgress || o.Status == StatusUnverified {
		o.AskAgain, o.AskAfter = AgainLater, r.Due
		if r.Due.Before(r.Now) { // it is being worked on, or about to be
			o.AskAfter = r.Now
		}
		o.WaitsFor, o.Behind = waiting(r), r.Behind
		if r.Behind != "" && !r.Now.IsZero() {
			o.AskAfter = r.Now.Add(behindAsk)
		}
	}
	if o.Status != StatusVerified {
		o.Refusal = r.Refusal
	}
	if o.Status == StatusVerified {
		o.Ref, o.URL, o.Mismatches = redact.ShownText(r.Ref), redact.ShownText(r.URL), nil
	}
	if o.Status == StatusNotApplied || o.Status == StatusExpired {
		o.AskAgain = AgainYes
	}
	o.Text = sentence(o.Status, r)
	o.ForModel = advice(o.Status, r)
	if o.Status == StatusVerified && len(o.NotChecked) > 0 {
		o.Text += " Not compared: " + strings.Join(o.NotChecked, ", ") + "."
		o.ForModel += " Not compared, so not verified: " + strings.Join(o.NotChecked, ", ") + "."
	}
	if o.Status == StatusVerified && r.Proof != "" {
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
			o.Text += fmt.Sprintf(" A recheck is overdue since %s.", until)
			o.ForModel += " A recheck that is overdue may still contradict this."
			return o
		}
		o.Text += fmt.Sprintf(" A recheck is pending until %s.", until)
		o.ForModel += fmt.Sprintf(" A recheck that is pending until %s may still contradict this.", until)
	}
	return o
}

func statusOf(r ledger.Record) Status {
	switch r.State {
	case ledger.Held:
		return StatusHeld
	case ledger.Review:
		return StatusReview
	case ledger.Entrusted:
		return StatusEntrusted
	case ledger.Settled:
		return Status(r.Settlement)
	}
	if unverified(r) {
		return StatusUnverified
	}
	return StatusInProgress
}

// underWay is the outcome of a write whose end the caller did not wait for.
func underWay(r ledger.Record, replayed bool) Outcome {
	if r.State == "" {
		r.State = ledger.Queued
	}
	return outcomeOf(r, replayed)
}

func sentence(s Status, r ledger.Record) string {
	what := subject(r)
	switch s {
	case StatusVerified:
		if r.Sends == 0 {
			return fmt.Sprintf("The %s was as wanted before; nothing was sent. %s.", what, upper(r.Reason))
		}
		if changedSince(r) {
			return fmt.Sprintf("The %s was read back and was as declared when it was settled. A later read found it changed: %s.", what, r.Reason)
		}
		return fmt.Sprintf("The %s was read back and is as declared.", what)
	case StatusNotApplied:
		return fmt.Sprintf("The %s was not written: %s.", what, r.Reason)
	case StatusCompensated:
		return fmt.Sprintf("The %s was undone, and that was read back.", what)
	case StatusAccepted:
		return fmt.Sprintf("A person accepted the %s as it is: %s.", what, r.Reason)
	case StatusAbandoned:
		return fmt.Sprintf("A person gave up on the %s; whether it was written stays unknown: %s.", what, r.Reason)
	case StatusReview:
		return fmt.Sprintf("A person must look at the %s: %s.", what, r.Reason)
	case StatusHeld:
		return fmt.Sprintf("The %s waits for %s; nothing was sent.", what, awaited(r))
	case StatusDenied:
		return fmt.Sprintf("The %s was denied; nothing was sent: %s.", what, r.Reason)
	case StatusExpired:
		return fmt.Sprintf("The approval of the %s expired; nothing was sent: %s.", what, r.Reason)
	case StatusEntrusted:
		return fmt.Sprintf("The %s is left to step %q of workflow %q, which has not said that it is done.", what, r.Step, r.Workflow)
	case StatusReported:
		if !r.Entrusted {
			return fmt.Sprintf("The destination said yes to the %s; nobody can look there, so that it is not verified.", what)
		}
		return fmt.Sprintf("The %s was made by step %q of workflow %q, as it says; nobody looked.", what, r.Step, r.Workflow)
	case StatusUnverified:
		return fmt.Sprintf("The destination said yes to the %s; whether it is as declared is looked at later.", what)
	}
	if r.Behind != "" {
		return fmt.Sprintf("The %s is recorded and waits for write %s of the same record, which comes first; nothing was sent.", what, r.Behind)
	}
	if why := waitingWords[waiting(r)]; why != "" {
		return fmt.Sprintf("The %s is recorded and waits %s.", what, why)
	}
	return fmt.Sprintf("The %s is recorded and under way (%s).", what, r.Phase())
}

// changedSince reports whether the last read of a verified write showed it
// otherwise than declared, and that was decided to take nothing back.
func changedSince(r ledger.Record) bool {
	switch verify.ParseVerdict(r.Verdict) {
	case verify.Mismatched, verify.Collateral, verify.Stale, verify.Absent:
		return r.State == ledger.Settled && r.Settlement == ledger.Verified && r.Rule == "recheck"
	}
	return false
}

// subject is what was asked for. Of what a caller does itself less may be known.
func subject(r ledger.Record) string {
	if r.Destination == "" {
		return fmt.Sprintf("operation %q of tool %q", r.IdempotencyKey, r.Tool)
	}
	return fmt.Sprintf("%s at %q", r.Kind, r.Destination)
}

// awaited is what a held write waits for, and until when.
func awaited(r ledger.Record) string {
	what := "a person's approval"
	switch n := missing(r); {
	case len(r.Agreed) > 0:
		what = fmt.Sprintf("%d more of %d approvals", n, r.Need)
	case n > 1:
		what = fmt.Sprintf("the approval of %d different people", n)
	}
	switch {
	case r.Overdue:
		what += ", which is overdue"
	case !r.Due.IsZero():
		what += " until " + r.Due.UTC().Format(time.RFC3339)
	}
	return what
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func advice(s Status, r ledger.Record) string {
	switch s {
	case StatusVerified:
		if changedSince(r) {
			return "Done and verified; the record was changed since. Do not call again for this operation."
		}
		return "Done and verified. Do not call again for this operation."
	case StatusNotApplied:
		return "Not done, and known not to be. If it is still wanted and the reason has gone, make a new call."
	case StatusCompensated:
		return "Undone and verified. Do not assume that the operation took effect."
	case StatusAccepted:
		return "A person accepted it as it is. Do not call again for this operation."
	case StatusAbandoned:
		return "A person gave it up. Do not call again for this operation without being told to."
	case StatusReview:
		return fmt.Sprintf("Unclear, and waiting for a reviewer (id %s). Do not call again and do not try another way.", r.ID)
	case StatusHeld:
		return fmt.Sprintf("Waiting for %s (id %s). Do not call again; ask for its outcome later.", awaited(r), r.ID)
	case StatusDenied:
		return "A person denied it. Do not call again."
	case StatusExpired:
		return "Not done: nobody approved it in time, and nothing was sent. If it is still wanted, make a new call."
	case StatusEntrusted:
		return fmt.Sprintf("Begun by step %q of workflow %q, which has not said that it is done. Do not do it again.", r.Step, r.Workflow)
	case StatusReported:
		if !r.Entrusted {
			return "Sent, and the destination said yes. Unverified: nobody can look there. Do not call again for this operation."
		}
		return fmt.Sprintf("Done by step %q of workflow %q, as it says. Do not do it again.", r.Step, r.Workflow)
	case StatusUnverified:
		return fmt.Sprintf("Sent, and not verified yet (id %s). Do not call again; where it matters that it took effect, ask for its outcome later.", r.ID)
	}
	if r.Behind != "" {
		return fmt.Sprintf("Waiting in line (id %s): write %s of the same record comes first. Do not call again; ask for its outcome later.", r.ID, r.Behind)
	}
	if why := waitingWords[waiting(r)]; why != "" {
		return fmt.Sprintf("Recorded (id %s); it waits %s, and is carried out without a further call. Do not call again with other words; ask for its outcome later.", r.ID, why)
	}
	return fmt.Sprintf("Under way (id %s). Do not call again with other words; ask for its outcome later.", r.ID)
}

// Error is a failure of the engine or its ledger with what is known about the
// effect.
type Error struct {
	ID ledger.ID
	// Known is "not applied" or "unknown"; never "applied", which only an
	// outcome says.
	Known string
	Err   error
}

// What an Error can know. A write that is in the ledger, or may be, goes on by
// itself, so that of it nothing is known even when nothing was sent yet.
const (
	KnownNotApplied = "not applied" // nothing was sent, and nothing will be
	KnownNothing    = "unknown"
)

// Error says what is known, and why.
func (e *Error) Error() string {
	if e.Known == KnownNotApplied {
		return fmt.Sprintf("write %s: not applied, nothing was sent: %v", e.ID, e.Err)
	}
	return fmt.Sprintf("write %s: unknown whether applied; as far as the ledger holds it, it goes on by itself: %v", e.ID, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
