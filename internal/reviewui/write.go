package reviewui

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// maxOpen is how many events show their evidence.
const maxOpen = 40

// writePage is everything about one write.
type writePage struct {
	ID       string
	Self     string
	Subject  string
	Badge    badge
	Lead     string // what was wanted, what is there, what was sent, what comes of it
	ForModel string
	// Reason is why the caller asked, as it claims.
	Reason   string
	Record   ref
	Facts    facts
	Terms    facts // the intent's other requirements of the engine
	Compare  *comparison
	Own      *rest  // the declaration of a write that its caller makes
	Gone     string // why its contents are not shown
	Life     []day
	Withheld int
	Evidence []*rest
	Choices  []choice
	Deciding deciding
	Yield    *ask
	Step     string // where the gate's step is decided
	Rights   rights
	// From is the page of the inbox that the reviewer came from, and Next leads to the next write
	// of it; "" for none.
	From, Next string
	Assigned   string // the reviewer who has taken it
	Mine       bool   // that is the user
	Waits      bool   // it waits for a reviewer
}

// ref is the record at the destination.
type ref struct{ Name, Link string }

// day is the events of one day.
type day struct {
	Date string
	What []shownText
}

// shownText is one event.
type shownText struct {
	report.Timeline
	Class   string
	Details []*rest
}

// choice is one possible decision.
type choice struct {
	engine.Choice
	Value   string // the value in the form
	Label   string
	Checked bool
	Off     string // why it is disabled, "" where it is not
	Vouch   string // what the reviewer must vouch for, "" for nothing
}

// deciding is the form of a decision.
type deciding struct {
	decision
	Action string
	Any    bool // the user may make at least one of them
}

// write shows one write.
func (d *app) write(v *visit) error {
	view, err := d.view(v)
	if err != nil {
		return err
	}
	return d.showWrite(v, http.StatusOK, view, decision{}, nil)
}

// view reads the write of the path.
func (d *app) view(v *visit) (service.View, error) {
	return d.service.View(v.r.Context(), v.who, ledger.ID(v.r.PathValue("id")))
}

// showWrite shows a write, with a decision that was refused, if any.
func (d *app) showWrite(v *visit, status int, view service.View, not decision, yield *ask) error {
	r := view.Record
	b := d.writeBody(v, view)
	not.Digest, not.Seq = r.Digest, r.Seq
	b.Deciding = deciding{decision: not, Action: b.Self + "/decision"}
	for _, c := range view.Choices {
		if decisions[c.Word].label == "" || !c.Allowed && !belongs(c.Word, r.State) {
			continue // it is for writes in other states
		}
		one := choiceOf(c, view)
		if slices.ContainsFunc(b.Choices, func(o choice) bool { return o.Value == one.Value }) {
			continue
		}
		one.Checked = one.Value == not.value && one.Off == ""
		b.Deciding.Any = b.Deciding.Any || one.Off == ""
		b.Choices = append(b.Choices, one)
	}
	slices.SortStableFunc(b.Choices, func(a, b choice) int { return cmp.Compare(min(len(a.Off), 1), min(len(b.Off), 1)) })
	d.assignment(v, view, &b)
	b.Yield = d.yieldForm(v, r)
	if yield != nil {
		b.Yield = yield
	}
	p := d.page(v, b.Badge.Word+": "+b.Subject, "", b)
	p.Live, p.Back = true, b.Self
	if p.Message = d.decidedMessage(v); p.Message == nil {
		p.Message = decisionMessage(v, view)
	}
	return d.show(v, status, "write", p)
}

func (d *app) writeBody(v *visit, view service.View) writePage {
	r, paint := view.Record, newPainter()
	b := writePage{ID: report.Safe(string(r.ID)), Self: writePath(r.ID), Subject: report.Clip(view.Summary, 2*maxName), Badge: status(view.Outcome.Status),
		Lead: leadOf(view), ForModel: report.Clip(view.Outcome.ForModel, maxText), Record: ref{report.Clip(r.Ref, maxName), httpLink(r.URL)},
		Reason: report.Clip(view.Intent.Context["reason"], maxText), Facts: writeFacts(r, view.Outcome), Rights: v.rights()}
	if view.Maker != nil {
		b.Facts.write("Record made by", view.Maker.ID)
	}
	_, b.Gone = report.Gone(r)
	if r.Delegated && r.State == ledger.Held {
		b.Step = stepPath(r.Workflow, r.Step)
	}
	if d.mayHaveReceipt(r) {
		b.Facts.link("Receipt", "signed receipt of what was seen", b.Self+"/receipt")
	}
	if view.Intent.Write != "" {
		c := compare(view, paint)
		b.Compare, b.Terms = &c, terms(view.Intent)
	} else if !r.Tombstone {
		b.Own = paint.document("what was requested", r.Intent)
	}
	b.Life, b.Withheld = lifeOf(view, paint)
	for _, one := range []*rest{paint.document("the intent", r.Intent), paint.document("what the last read found", r.Evidence),
		paint.document("what was read before the send", r.Before), paint.document("the differences", r.Mismatches)} {
		if one != nil {
			b.Evidence = append(b.Evidence, one)
		}
	}
	return b
}

// leadOf is what a reviewer reads first.
func leadOf(view service.View) string {
	l := report.Lead{Record: view.Record, Events: view.Events, Intent: view.Intent, Maker: view.Maker}
	if view.Profile != nil {
		l.Summary = view.Profile.Summary
	}
	return l.Text()
}

// writeFacts are the facts about a write as a whole, with their links.
func writeFacts(r ledger.Record, o engine.Outcome) (f facts) {
	f.add("Result", o.Text)
	f.add("State", r.Phase())
	f.add("Last comparison", report.Word(r.Verdict))
	f.add("Destination", r.Destination)
	f.add("Kind", r.Kind)
	f.add("Tool", r.Tool+call(r))
	f.search("Workflow", r.Workflow, "workflow", r.Workflow)
	step := ""
	if r.Delegated && r.Workflow != "" {
		step = stepPath(r.Workflow, r.Step)
	}
	f.link("Step", r.Step, step)
	f.search("Correlation", r.CorrelationID, "correlation", r.CorrelationID)
	f.add("Trace", report.TraceID(r.Trace))
	f.search("Operation", r.IdempotencyKey, "operation", r.IdempotencyKey)
	if r.Yielded {
		f.add("Operation released", "It blocks no other write.")
	}
	f.add("Requested by", r.RequestedBy)
	f.at("Begun", r.Created, r.Now)
	f.at("Settled", r.SettledAt, r.Now)
	due := "Due"
	if r.State == ledger.Held {
		due = "Approve by"
		f.add("Approvals", report.Approvals(r))
	}
	if r.State == ledger.Held && r.Overdue {
		f.add("Overdue", "No reviewer approved it in time; it continues to wait.")
	} else {
		f.at(due, r.Due, r.Now)
	}
	f.add("Calls", report.Calls(r))
	f.add("Not checked", strings.Join(r.NotChecked, ", "))
	if r.Refusal != nil {
		f.add("Refusal", report.Words(*r.Refusal))
	}
	f.write("Waits behind", r.QueuedBehind)
	f.write("Undoes", r.Parent)
	f.write("Undone by", r.Child)
	f.search("Same record", "other writes about this record", "key", r.KeyDigest)
	f.add("Digest", r.Digest)
	return f
}

func call(r ledger.Record) string {
	if r.Call == 0 {
		return ""
	}
	return ", call " + strconv.Itoa(r.Call)
}

// terms describes the intent's requirements of the engine.
func terms(w intent.WriteIntent) (f facts) {
	f.add("Risk", map[intent.Risk]string{"": "auto: sent without asking", intent.RiskAuto: "auto: sent without asking", intent.RiskLog: "log: sent, and marked for a later review",
		intent.RiskApprove: "approve: held until a reviewer approves"}[w.Risk])
	f.add("Reversibility", map[intent.Reversibility]string{"": "pivot: not undone by itself", intent.Pivot: "pivot: not undone by itself",
		intent.Compensable: "compensable: may be undone by a compensating write", intent.Retryable: "retryable: repeated until it succeeds"}[w.Reversibility])
	f.add("On a mismatch", map[intent.MismatchPolicy]string{"": "a reviewer decides", intent.MismatchEscalate: "a reviewer decides",
		intent.MismatchRetry: "sent again if that is harmless, else a reviewer decides", intent.MismatchCompensate: "undone if that is possible, else a reviewer decides",
		intent.MismatchRepair: "our own record is updated with what was not stored, else a reviewer decides"}[w.OnMismatch])
	f.add("Records declared", strconv.Itoa(w.Want()))
	if !w.Deadline.IsZero() {
		f.add("Deadline", report.Moment(w.Deadline)+"; no send is begun after it")
	}
	return f
}

// lifeOf is the timeline of a write by days; untold counts events in the middle that are
// left out.
func lifeOf(view service.View, paint *painter) (days []day, untold int) {
	all := report.Shown(view.Record, view.Events)
	if len(all) > maxEvents {
		untold = len(all) - maxEvents
		all = append(all[:maxEvents/2:maxEvents/2], all[len(all)-maxEvents/2:]...)
	}
	opened := 0
	for _, one := range all {
		e := one.Event
		one.What, one.Event.By, one.Event.Rule = report.Sentence(one.What), report.Clip(e.By, maxName), report.Clip(e.Rule, maxName)
		t := shownText{Timeline: one, Class: classOf(e)}
		if opened < maxOpen {
			for _, part := range []*rest{paint.document(evidenceOf(e), e.Evidence), paint.document("how it differs", e.Mismatches)} {
				if part != nil {
					t.Details = append(t.Details, part)
					opened++
				}
			}
		}
		date := one.At.Format(time.DateOnly)
		if len(days) == 0 || days[len(days)-1].Date != date {
			days = append(days, day{Date: date})
		}
		last := &days[len(days)-1]
		last.What = append(last.What, t)
	}
	return days, untold
}

// evidenceOf describes the evidence of an event.
func evidenceOf(e ledger.Event) string {
	if e.Kind == ledger.EvReserved {
		return "which write it is"
	}
	return "what was seen"
}

// classOf is the class of an event, for its sign.
func classOf(e ledger.Event) string {
	switch e.Kind {
	case ledger.EvAnnounced, ledger.EvPrepared, ledger.EvSent, ledger.EvRecovered, ledger.EvRestored, ledger.EvCompensating:
		return "send"
	case ledger.EvRead, ledger.EvRechecked, ledger.EvLate:
		return "read"
	case ledger.EvAgreed, ledger.EvApproved, ledger.EvDirected, ledger.EvYielded:
		return "person"
	case ledger.EvHeld, ledger.EvOverdue, ledger.EvEscalated:
		return "wait"
	case ledger.EvSettled:
		if e.Rule == "person" {
			return "person"
		}
		return "end"
	}
	return "other"
}

func choiceOf(c engine.Choice, view service.View) choice {
	one := choice{Choice: c, Value: string(c.Word), Label: decisions[c.Word].label}
	if c.Force {
		one.Value += forced
		one.Label += ", on my word"
		one.Vouch = "I have checked the destination myself, and vouch for it."
		if c.Word == engine.WordRetry {
			one.Vouch = "I have checked the destination myself, and vouch that the effect is not there."
		}
	}
	one.Effect, one.Danger = report.Sentence(c.Effect), report.Sentence(c.Danger)
	// A read can show later what has been put right at the destination, if one comes and it matters.
	matters := c.Word != engine.WordCompensate || view.Intent.Reversibility == intent.Compensable
	switch {
	case !c.Allowed:
		one.Off = report.Sentence(c.Why)
	case c.NoEffect && !(matters && view.Record.Due.IsZero()):
		one.Off = one.Effect
	}
	return one
}

// belongs reports whether a decision applies to writes in this state.
func belongs(w engine.Word, s ledger.State) bool {
	approval := w == engine.WordApprove || w == engine.WordDeny
	return approval == (s == ledger.Held)
}

// forced marks a decision that needs a reviewer's word.
const forced = "-forced"

// yieldForm releases an operation, nil where there is none to release.
func (d *app) yieldForm(v *visit, r ledger.Record) *ask {
	if !v.may(access.Operate) || r.IdempotencyKey == "" || r.Yielded || r.Tombstone ||
		slices.Contains([]ledger.State{ledger.Held, ledger.Sending, ledger.Compensating}, r.State) {
		return nil
	}
	return &ask{ID: "yield", Action: writePath(r.ID) + "/yield", Title: "Release the operation",
		Text:   "From then on this write stops no other write of the same business operation, whatever it did or may yet do. Nothing else about it changes.",
		Danger: "Another write of the operation could double what this one did.", Button: "Release"}
}
