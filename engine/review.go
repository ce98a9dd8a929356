package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
	"github.com/readback-go/readback/verify"
)

// readAgain reads a write in review: a later read may settle it, or show that a repeat is
// harmless. The reviewer decides everything else.
func (t *task) readAgain() error {
	if t.mayHaveBeenSent() {
		if err := t.note(t.assumed()); err != nil {
			return err
		}
	}
	if t.profile.WriteOnly { // no read can settle it
		return t.commit(ledger.Event{Kind: ledger.EvEscalated})
	}
	if handled, err := t.awaitUndoing(); handled || err != nil {
		return err
	}
	if parked, err := t.readUntilAgreed(); parked || err != nil {
		return err
	}
	c := t.policyCase()
	d := t.decide(c)
	switch {
	case t.rec.LeftQueue && d.Kind == policies.Retry: // later writes of its queue may have been made
	case d.Kind == policies.Accept, d.Kind == policies.Fail, d.Kind == policies.Retry:
		ev := ledger.Event{Kind: ledger.EvDirected, Rule: "a later read", Reason: orElse(d.Reason, "a later read settles it")}
		if err := t.note(ev); err != nil {
			return err
		}
		if parked, err := t.act(c, d); parked || err != nil {
			return err
		}
		return t.run()
	}
	return t.commit(t.leaveToReviewer())
}

// leaveToReviewer puts a write back into review. The reason for the review does not change.
func (t *task) leaveToReviewer() ledger.Event {
	ev := ledger.Event{Kind: ledger.EvDeferred, In: t.pauseBeforeRead(0)}
	if ev.In == 0 {
		ev.Kind = ledger.EvEscalated
	}
	return ev
}

// readUntilAgreed reads, and reads again until enough reads agree on verified.
func (t *task) readUntilAgreed() (parked bool, err error) {
	for {
		if parked, err := t.readBack(); parked || err != nil {
			return parked, err
		}
		if t.judged.Verdict != verify.Verified || t.agreeing >= t.profile.Confirm() {
			return false, nil
		}
		if parked, err := t.pause(t.nextRead(t.policyCase()), policies.Decision{}); parked || err != nil {
			return parked, err
		}
	}
}

// pauseBeforeRead returns the pause before the next read of a write that is in review or needs
// a read that long after its send. The pauses grow; 0 means no more reads.
func (t *task) pauseBeforeRead(after time.Duration) time.Duration {
	since := t.sinceSend()
	if since > after+reviewEnd {
		return 0
	}
	return min(max(since, reviewFirst), reviewMost)
}

// Errors of refused decisions.
var (
	// ErrExpired: the write's approval deadline has passed. The write is settled as expired.
	ErrExpired = ledger.ErrExpired
	// ErrForbidden: the caller has no right to decide. It is an agent, requested the write, has
	// approved it already, or decides under another caller's name. It is also returned to a
	// caller with no right to request a write or an undo.
	ErrForbidden = errors.New("not yours to decide")
)

// ruleRisk is the rule that holds writes and lets them expire.
const ruleRisk = "risk"

// held returns the event that the write waits for approval, with the number of approvers and
// the time limit.
func (t *task) held() ledger.Event {
	h := policies.Classify(t.e.risks(), t.intent)
	reason := "its risk class requires a reviewer's approval"
	if h.Approvers > 1 {
		reason = fmt.Sprintf("its risk class requires the approval of %d different reviewers", h.Approvers)
	}
	if len(h.Rules) > 0 {
		reason += " (" + strings.Join(h.Rules, ", ") + ")"
	}
	return ledger.Event{Kind: ledger.EvHeld, Rule: ruleRisk, Reason: reason, Need: h.Approvers, In: h.Within}
}

// lapsed reports whether a held write's approval deadline has passed without this being
// recorded.
func lapsed(r ledger.Record) bool {
	return r.State == ledger.Held && !r.Delegated && !r.Overdue && !r.Due.IsZero() && !r.Now.Before(r.Due)
}

// lapse handles a missing approval: the write expires, or is marked overdue and continues to
// wait. Neither needs the destination.
func (e *Engine) lapse(rec ledger.Record, claimed time.Time, l lifetime) error {
	t := &task{e: e, lifetime: l}
	t.adopt(rec, claimed)
	if e.waitsOn(rec) {
		t.log().Warn("a held write was not approved in time; it continues to wait", "due", rec.Due.UTC())
		return t.commit(ledger.Event{Kind: ledger.EvOverdue, Rule: ruleRisk, Reason: overAt(rec) + "; it still waits"})
	}
	return t.commit(ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Expired, Rule: ruleRisk, Reason: overAt(rec)})
}

// waitsOn reports whether a held write continues to wait after its approval deadline. It does
// not if its intent is unreadable.
func (e *Engine) waitsOn(rec ledger.Record) bool {
	w, err := intent.DecodeStored(rec.Intent)
	return err == nil && policies.Classify(e.risks(), w).OnTimeout == policies.OnTimeoutEscalate
}

func overAt(rec ledger.Record) string {
	return "no reviewer approved it before " + rec.Due.UTC().Format(time.RFC3339)
}

// mayDecide refuses a caller with no right to decide, and a decision under another name than
// that of the credentials.
func mayDecide(ctx context.Context, by, reason string) error {
	who := Caller(ctx)
	if err := who.decides(); err != nil {
		return err
	}
	switch {
	case ledger.SameName(by, "") || strings.TrimSpace(reason) == "":
		return errors.New("a decision needs a name (by) and a reason")
	case who.Name != "" && !ledger.SameName(who.Name, by):
		return fmt.Errorf("%w: the decision is in the name of %q, the credentials are those of %q", ErrForbidden, by, who.Name)
	}
	return nil
}

// decides refuses a caller with no right to decide.
func (p Principal) decides() error {
	switch {
	case p.Role == RoleAgent:
		return fmt.Errorf("%w: the credentials are an agent's (%q), and an agent decides about no write", ErrForbidden, p.Name)
	case !slices.Contains([]Role{"", RoleReviewer, RoleOperator}, p.Role):
		return fmt.Errorf("%w: the role of the credentials is %q; want %s or %s", ErrForbidden, p.Role, RoleReviewer, RoleOperator)
	case p.Role != "" && ledger.SameName(p.Name, ""):
		return fmt.Errorf("%w: the credentials have no name, and a decision needs the reviewer's name", ErrForbidden)
	}
	return nil
}

// allowed refuses a decision about this write by a caller with no right to it. A caller in this
// process whose name is not known yet matches no name.
func (d Decision) allowed(rec ledger.Record) error {
	switch {
	case d.Digest != "" && d.Digest != rec.Digest:
		return fmt.Errorf("%w: the decision is about digest %s, write %s has %s", ledger.ErrDigestMismatch, d.Digest, rec.ID, rec.Digest)
	case d.Word != WordApprove:
		return nil
	case !ledger.SameName(d.By, "") && ledger.SameName(d.By, rec.RequestedBy):
		return fmt.Errorf("%w: %q asked for write %s, and another reviewer must approve it", ErrForbidden, d.By, rec.ID)
	case ledger.AmongNames(rec.Agreed, d.By):
		return fmt.Errorf("%w: %q has approved write %s already, and %d different reviewers must", ErrForbidden, d.By, rec.ID, rec.Need)
	}
	return nil
}

// approval returns the event of one more approval: the last one needed approves the write.
func (d Decision) approval(rec ledger.Record) ledger.EventKind {
	if len(rec.Agreed)+1 < rec.Need {
		return ledger.EvAgreed
	}
	return ledger.EvApproved
}

// missing returns how many approvals a held write still needs.
func missing(r ledger.Record) int { return max(max(r.Need, 1)-len(r.Agreed), 0) }

// Choice is one of the decisions that a reviewer can take about a write now, with its effect.
type Choice struct {
	Word Word `json:"word"`
	// Allowed says whether [Engine.Resolve] would accept it from the caller; Why says why not.
	// A worker that holds the write at the moment does not count: Resolve then fails with
	// [ErrBusy], and the caller can retry.
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"`
	// Effect describes what it would do, Danger what could go wrong ("a second send could
	// duplicate, because …"). Both are sentences for a reviewer. An empty Danger means that
	// none is known.
	Effect string `json:"effect"`
	Danger string `json:"danger,omitempty"`
	// NoEffect says that, as far as the last read shows, it would neither send nor undo anything
	// nor end the write; Effect says why. It is accepted all the same, and then reads once more.
	NoEffect bool `json:"no_effect,omitempty"`
	// Force says that the decision fails without [Decision.Force].
	Force bool `json:"force,omitempty"`
}

// allWords lists every decision, in display order.
func allWords() []Word {
	return []Word{WordApprove, WordDeny, WordAccept, WordRetry, WordCompensate, WordAbandon}
}

// Choices lists what the caller can decide about a write as it is now: every decision for a
// write that is held or in review, none for any other. It makes the checks of [Engine.Resolve],
// and fails as the ledger does.
func (e *Engine) Choices(ctx context.Context, tenant string, id ledger.ID) ([]Choice, error) {
	rec, err := e.ledger.Get(ctx, tenant, id)
	if err != nil || rec.State != ledger.Held && rec.State != ledger.Review {
		return nil, err
	}
	v := chooser{rec: rec, who: Caller(ctx), budget: e.opts.Budget, waits: lapsed(rec) && e.waitsOn(rec)}
	if v.stored, v.damaged = e.open(rec); v.damaged != nil {
		v.stored.seals = nil
	}
	if _, p, err := e.reg.Lookup(rec.Destination, rec.Kind); err == nil {
		v.profile = &p
	}
	if rec.Child != "" {
		switch child, err := e.ledger.Get(ctx, tenant, rec.Child); {
		case err == nil:
			v.undoing = []ledger.Record{child}
		case !errors.Is(err, ledger.ErrNotFound):
			return nil, err
		}
	}
	return v.choices(), nil
}

// chooser holds what a choice depends on.
type chooser struct {
	rec     ledger.Record
	profile *connectors.Profile
	who     Principal
	budget  int
	undoing []ledger.Record
	waits   bool // it continues to wait after its approval deadline

	stored  storedWrite
	damaged error // the stored intent or pre-state cannot be read
}

func (v *chooser) choices() []Choice {
	all := make([]Choice, 0, len(allWords()))
	for _, word := range allWords() {
		c := Choice{Word: word}
		if err := v.refused(word); err != nil {
			c.Why = err.Error()
		} else {
			c.Allowed = true
		}
		v.describe(&c)
		all = append(all, c)
	}
	return all
}

// refused returns why Resolve would refuse a decision.
func (v *chooser) refused(word Word) error {
	d := Decision{Word: word, By: v.who.Name}
	if err := cmp.Or(v.who.decides(), d.refused(v.rec)); err != nil {
		return err
	}
	for _, child := range v.undoing {
		if err := d.beside(child); err != nil {
			return err
		}
	}
	switch {
	case lapsed(v.rec) && !v.waits:
		return fmt.Errorf("write %s: %w: %s", v.rec.ID, ErrExpired, overAt(v.rec))
	case !d.continues():
		return nil
	case v.damaged != nil:
		return v.damaged
	case v.profile == nil:
		return fmt.Errorf("%w: %q with kind %q is not registered here", connectors.ErrUnknownDestination, v.rec.Destination, v.rec.Kind)
	}
	return nil
}

// expected returns the case that a decision would meet if the first read showed what the last
// one showed. If no read result was kept, or there was none, it assumes that nothing of the
// write is visible.
func (v *chooser) expected() (k policies.Case, assumed bool) {
	r, p := v.rec, *v.profile
	k = caseOf(r, v.stored.intent, p, r.Now, &Clock{})
	k.Budget, k.Invertible = budget(v.budget, p), slices.Contains(p.Undo, v.stored.intent.Write)
	seen, kept := v.lastSeen()
	if !kept {
		assumed = true
		seen = connectors.Observation{Strength: strongest(p)}
		if v.stored.before != nil {
			seen.Records = v.stored.before.Records
		}
	}
	if p.WriteOnly {
		return k, false // no read is made: nothing is judged
	}
	k.Judgement = verify.Judge(verify.Case{Intent: v.stored.intent, Profile: p, Stamp: v.stored.intent.Stamp(),
		Before: v.stored.before, Seen: seen, Since: k.SinceSend, Assumed: !r.Restored.IsZero()})
	return k, assumed
}

// lastSeen returns the last read result, or the pre-state before the first send.
func (v *chooser) lastSeen() (seen connectors.Observation, kept bool) {
	text := v.rec.Evidence
	if len(text) == 0 && v.rec.Sends == 0 {
		text = v.rec.Before
	}
	if len(text) == 0 || tooLarge(text) {
		return seen, false
	}
	if s := v.stored.seals; s != nil {
		kept = openInto(s, text, &seen) == nil
	} else {
		kept = decodeExact(redact.Shown(text), &seen) == nil
	}
	return seen, kept
}

// strongest returns the strongest read that the destination supports with only the stamp or the
// business key.
func strongest(p connectors.Profile) connectors.Strength {
	for _, path := range p.Reads {
		if path.Strength == connectors.Strong && path.By != "ref" {
			return connectors.Strong
		}
	}
	return connectors.Weak
}

// Yield releases the business operation of a write: from then on its idempotency key blocks no
// other write, whatever this one did or may yet do. It is an operator's override, recorded with
// name and reason, and changes nothing else about the write. Repeating it changes nothing.
//
// It fails with [ErrForbidden], with [ledger.ErrNotFound], or with [ErrNotWaiting] for a write
// that has no idempotency key or whose operation cannot be released now. Deny a held write
// instead. For a write that is being sent or undone, wait for the end.
func (e *Engine) Yield(ctx context.Context, tenant string, id ledger.ID, by, reason string) error {
	if err := mayDecide(ctx, by, reason); err != nil {
		return err
	}
	if who := Caller(ctx); who.Role == RoleReviewer {
		return fmt.Errorf("%w: %q decides about writes, and letting an operation go is an operator's to say", ErrForbidden, who.Name)
	}
	ctx = context.WithoutCancel(ctx) // a short wait must not prevent the decision
	for range yieldTries {
		rec, err := e.ledger.Get(ctx, tenant, id)
		switch {
		case err != nil:
			return err
		case rec.Yielded:
			return nil
		case rec.State == ledger.Held && rec.Delegated:
			return fmt.Errorf("%w: %s waits for approval; reject step %q of workflow %q at the gate, and it stops no other write", ErrNotWaiting, id, rec.Step, rec.Workflow)
		case rec.State == ledger.Held:
			return fmt.Errorf("%w: %s waits for approval; deny it, and it stops no other write", ErrNotWaiting, id)
		case rec.State == ledger.Sending, rec.State == ledger.Compensating:
			return fmt.Errorf("%w: %s is %s; its end must be waited for", ErrNotWaiting, id, rec.Phase())
		case rec.IdempotencyKey == "":
			return fmt.Errorf("%w: %s has no idempotency key, and so stops no other write", ErrNotWaiting, id)
		}
		// It uses the fence of the current owner: neither depends on what the other does.
		_, err = e.ledger.Append(ctx, id, rec.Fence, ledger.Event{Kind: ledger.EvYielded, By: by, Reason: e.text(rec, reason), Rule: "person",
			Trace: causedBy(trace.SpanContextFromContext(ctx), rec)})
		switch {
		case errors.Is(err, ledger.ErrFenced): // it changed owners meanwhile
		case errors.Is(err, ledger.ErrIllegalMove):
			return fmt.Errorf("%w: %s is %s: %w", ErrNotWaiting, id, rec.Phase(), err)
		default:
			return err
		}
	}
	return fmt.Errorf("%w: %s changes hands too often", ErrBusy, id)
}

// Word is a reviewer's decision about a write.
type Word string

// The decisions. Approve and deny are for held writes, the others for writes in review.
const (
	WordAccept     Word = "accept"     // take responsibility for it as it is
	WordRetry      Word = "retry"      // send again, if that is harmless
	WordCompensate Word = "compensate" // undo it
	WordAbandon    Word = "abandon"    // give it up
	WordApprove    Word = "approve"    // approve and send
	WordDeny       Word = "deny"       // refuse; nothing is sent
)

// Decision is a reviewer's decision. By and Reason are required.
type Decision struct {
	Word   Word
	By     string
	Reason string
	// Force, with retry, vouches that the effect is not there, where the engine cannot prove
	// it. The destination is read once more first, and nothing is sent if that read shows an
	// effect. Default false.
	Force bool
	// Digest is the digest that the reviewer saw. A decision with another digest than the
	// write's is refused. Default: not checked.
	Digest string
	// Seq is the number of the last event that the reviewer saw. If the write has later events,
	// the decision is refused with [ErrChanged]. Default: not checked.
	Seq int64
}

// Errors of Resolve.
var (
	// ErrChanged: the write has changed since the reviewer read it.
	ErrChanged = errors.New("the write has changed since it was read")
	// ErrNotWaiting: the write is not waiting for such a decision.
	ErrNotWaiting = errors.New("the write does not wait for this decision")
	// ErrBusy: a worker holds the write; try again when its lease has ended.
	ErrBusy = errors.New("a worker holds the write")
)

// Resolve carries out a reviewer's decision and waits for its effect. When ctx ends, the
// decision is in the ledger all the same, or an error says why not. A write that was approved
// while another one of its queue is open is in progress: it waits in the queue. A reviewer acts
// as a slow policy: the rules about second sends apply, except as Force defines. Resolve fails
// with [ledger.ErrNotFound], [ErrNotWaiting], [ErrChanged] or [ErrBusy], and then nothing has
// changed.
func (e *Engine) Resolve(ctx context.Context, tenant string, id ledger.ID, d Decision) (Outcome, error) {
	if err := mayDecide(ctx, d.By, d.Reason); err != nil {
		return Outcome{}, err
	}
	asking := context.WithoutCancel(ctx) // a short wait must not prevent the decision
	rec, err := e.ledger.Get(asking, tenant, id)
	if err != nil {
		return Outcome{}, err
	}
	if err := cmp.Or(d.current(rec), d.refused(rec)); err != nil {
		return Outcome{}, err
	}
	if err := e.undoingOpen(asking, rec, d); err != nil {
		return Outcome{}, err
	}
	if d.continues() { // else the write would be taken from the processes that know its destination
		if _, _, err := e.reg.LookupFor(rec.Tenant, rec.Destination, rec.Kind); err != nil {
			return Outcome{}, err
		}
	}
	f, began, err := e.startOrJoin(id, rec.Digest, false)
	if err != nil {
		return Outcome{}, err
	}
	if !began {
		return Outcome{}, fmt.Errorf("%w: %s", ErrBusy, id)
	}
	l := e.lifetimeOf(ctx, f)
	go func() { e.finish(id, f, guarded(id, func() error { return e.resolve(tenant, id, d, f, l) })) }()
	if e.attend(ctx, f) && !f.failed() && f.last != nil && f.last.QueuedBehind != "" {
		return outcomeOf(*f.last, true), nil
	}
	return e.wait(ctx, f, rec, true)
}

// refused returns why a decision about the write in its present state is refused, or nil.
func (d Decision) refused(rec ledger.Record) error { return cmp.Or(d.fits(rec), d.allowed(rec)) }

// current refuses a decision that is based on an earlier state of the write.
func (d Decision) current(rec ledger.Record) error {
	if d.Seq != 0 && d.Seq != rec.Seq {
		return fmt.Errorf("%w: the decision is about %s as of event %d, and there are %d", ErrChanged, rec.ID, d.Seq, rec.Seq)
	}
	return nil
}

// continues reports whether the write continues after the decision, so that its destination must
// be known. A decision that ends the write needs none.
func (d Decision) continues() bool { return d.event(ledger.Record{}).Kind != ledger.EvSettled }

// fits reports whether the write waits for this decision.
func (d Decision) fits(rec ledger.Record) error {
	state := ledger.Review
	switch d.Word {
	case WordApprove, WordDeny:
		state = ledger.Held
	case WordAccept, WordRetry, WordCompensate, WordAbandon:
	default:
		return fmt.Errorf("%w: unknown word %q; say accept, retry, compensate, abandon, approve or deny", ErrNotWaiting, d.Word)
	}
	if rec.Delegated {
		if err := d.fitsDelegated(rec); err != nil {
			return err
		}
	}
	if rec.State != state {
		return fmt.Errorf("%w: %s is %s; %q is for writes that are %s", ErrNotWaiting, rec.ID, rec.Phase(), d.Word, state)
	}
	return nil
}

// fitsDelegated reports whether the decision is for a write that its caller makes itself: the
// engine releases, sends or undoes nothing of it.
func (d Decision) fitsDelegated(rec ledger.Record) error {
	step := fmt.Sprintf("step %q of workflow %q", rec.Step, rec.Workflow)
	switch d.Word {
	case WordApprove, WordDeny:
		return fmt.Errorf("%w: %s is what %s does itself; approve or reject that step at the gate", ErrNotWaiting, rec.ID, step)
	case WordRetry, WordCompensate:
		return fmt.Errorf("%w: %s is what %s does itself; it is never sent or undone from here", ErrNotWaiting, rec.ID, step)
	}
	return nil
}

// undoingOpen refuses another send, or another undo, while an undo is open: it could undo the
// effect of the new send.
func (e *Engine) undoingOpen(ctx context.Context, rec ledger.Record, d Decision) error {
	if !d.meetsUndoing() || rec.Child == "" {
		return nil
	}
	child, err := e.ledger.Get(ctx, rec.Tenant, rec.Child)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return d.beside(child)
}

// meetsUndoing reports whether the decision could conflict with an undo.
func (d Decision) meetsUndoing() bool { return d.Word == WordRetry || d.Word == WordCompensate }

// beside refuses a decision that conflicts with an undo.
func (d Decision) beside(undoing ledger.Record) error {
	switch {
	case !d.meetsUndoing():
		return nil
	case undoing.Settlement == ledger.Verified: // a worker settles this write as compensated at its next read
		return fmt.Errorf("%w: its undoing %s is verified, and it is about to be settled as compensated", ErrNotWaiting, undoing.ID)
	case undoing.State == ledger.Settled:
		return nil
	}
	return fmt.Errorf("%w: its undoing %s is %s; decide about that first", ErrNotWaiting, undoing.ID, undoing.Phase())
}

func (e *Engine) resolve(tenant string, id ledger.ID, d Decision, f *inFlight, l lifetime) error {
	rec, asked, err := e.take(tenant, id)
	if err == nil {
		err = d.current(rec) // before deadlines change it here
	}
	if err != nil {
		return err
	}
	by := l.from
	l.from = trace.SpanContext{} // the write has its own trace
	l, s := e.startSpan(l, &rec, stageDecision, by)
	defer s.end()
	return s.done(e.resolveIn(rec, asked, d, f, l, by))
}

// resolveIn is resolve within a span.
func (e *Engine) resolveIn(rec ledger.Record, asked time.Time, d Decision, f *inFlight, l lifetime, by trace.SpanContext) (err error) {
	tenant, id := rec.Tenant, rec.ID
	if read, err := e.readHeld(rec, asked, l); err != nil {
		return err
	} else if read {
		return fmt.Errorf("%w: the ledger was restored, and whether write %s was sent in the missing time was read first; look at it again", ErrChanged, id)
	}
	if lapsed(rec) {
		if err := e.lapse(rec, asked, l); err != nil {
			return err
		}
		if rec, asked, err = e.take(tenant, id); err != nil {
			return err
		}
		if rec.Settlement == ledger.Expired {
			return fmt.Errorf("write %s: %w: %s", id, ErrExpired, rec.Reason)
		}
	}
	if err := d.refused(rec); err != nil {
		return err
	}
	t, err := e.newTask(rec, asked, l)
	if err != nil && d.continues() {
		return e.unworkable(rec, err)
	}
	if err != nil {
		t = &task{e: e, lifetime: l}
		t.adopt(rec, asked)
	}
	defer t.unsent()
	ev := d.event(rec)
	ev.Trace = causedBy(by, rec)
	err = t.commit(ev)
	switch {
	case errors.Is(err, ErrExpired): // while it was on its way to the ledger
		return cmp.Or(e.lapse(rec, asked, l), fmt.Errorf("write %s: %w", id, ErrExpired))
	case errors.Is(err, ledger.ErrFenced): // to be returned, unlike work that another worker continues
		return fmt.Errorf("%w: %s was taken over before the decision was recorded", ErrBusy, id)
	case err != nil:
		return err
	}
	f.first = t.rec
	f.keep()
	e.wakeSaga(t.rec)
	if !ended(t.rec) {
		err = t.run()
	}
	if err == nil {
		f.last = &t.rec
	}
	return err
}

// wakeSaga makes the saga of a write due, in the process that runs it: a reviewer has decided
// about the write. If that fails, or this process dies first, the saga finds out by itself
// within minutes.
func (e *Engine) wakeSaga(rec ledger.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), ledgerTimeout)
	defer cancel()
	err := ledger.ErrStale
	for n := 0; errors.Is(err, ledger.ErrStale) && n < wakeTries; n++ {
		err = wake(ctx, e.ledger, rec)
	}
	if err != nil {
		e.opts.Logger.Warn("the saga of a write continues within minutes, and not at once after the decision", "write", rec.ID, "tenant", rec.Tenant, "error", err)
	}
}

// wake writes the document even where it is due already: a worker may have read the write
// before the decision, and would record that the saga rests.
func wake(ctx context.Context, documents ledger.Documents, rec ledger.Record) error {
	p, err := documents.Document(ctx, rec.Tenant, ledger.SagaKind, rec.Workflow)
	if errors.Is(err, ledger.ErrNotFound) || err == nil && p.Due.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	if p.Due.After(p.Now) {
		p.Due = p.Now
	}
	_, err = documents.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}})
	return err
}

// take leases a write to this process, due or not.
func (e *Engine) take(tenant string, id ledger.ID) (ledger.Record, time.Time, error) {
	rec, err := e.ledger.Get(e.ctx, tenant, id)
	if err != nil {
		return rec, time.Time{}, err
	}
	claimed, asked, err := e.lent(e.ctx, ledger.Claim{Owner: e.opts.Owner, LeaseFor: e.leaseFor(rec), Tenant: tenant, ID: id, Early: true, Gone: gone(rec.Owner)})
	if err != nil {
		return rec, asked, err
	}
	if len(claimed) == 0 {
		return rec, asked, fmt.Errorf("%w: %s, until %s", ErrBusy, id, rec.LeaseUntil.Format(time.RFC3339))
	}
	return claimed[0], asked, nil
}

// event returns the decision as an event.
func (d Decision) event(rec ledger.Record) ledger.Event {
	ev := ledger.Event{By: d.By, Reason: d.Reason, Rule: "person", Digest: d.Digest}
	switch d.Word {
	case WordAccept:
		ev.Kind, ev.Settlement = ledger.EvSettled, ledger.Accepted
	case WordAbandon:
		ev.Kind, ev.Settlement = ledger.EvSettled, ledger.Abandoned
	case WordDeny:
		ev.Kind, ev.Settlement = ledger.EvSettled, ledger.Denied
	case WordApprove:
		ev.Kind = d.approval(rec)
	case WordCompensate:
		ev.Kind, ev.Directed = ledger.EvDirected, policies.DirectCompensate
	case WordRetry:
		ev.Kind, ev.Directed = ledger.EvDirected, policies.DirectRetry
		if d.Force {
			ev.Directed = policies.DirectForce
		}
	}
	return ev
}
