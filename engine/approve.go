package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// Errors of decisions that are not taken.
var (
	// ErrExpired: the time in which the write could be approved was over. It is
	// settled as expired.
	ErrExpired = ledger.ErrExpired
	// ErrForbidden: whoever decides may not: an agent, whoever asked for the
	// write, somebody who has approved it already, or under another's name.
	// Also: whoever asks for a write, or for an undoing, may ask for none.
	ErrForbidden = errors.New("not yours to decide")
)

// ruleRisk is the rule by which writes are held and expire.
const ruleRisk = "risk"

// held says that the write waits for people, for how many and how long.
func (t *task) held() ledger.Event {
	h := policies.Classify(t.e.risks(), t.intent)
	reason := "its risk class asks for a person's approval"
	if h.Approvers > 1 {
		reason = fmt.Sprintf("its risk class asks for the approval of %d different people", h.Approvers)
	}
	if len(h.Rules) > 0 {
		reason += " (" + strings.Join(h.Rules, ", ") + ")"
	}
	return ledger.Event{Kind: ledger.EvHeld, Rule: ruleRisk, Reason: reason, Need: h.Approvers, In: h.Within}
}

// lapsed reports whether the time in which a held write could be approved is
// over, and nobody has said so yet.
func lapsed(r ledger.Record) bool {
	return r.State == ledger.Held && !r.Entrusted && !r.Overdue && !r.Due.IsZero() && !r.Now.Before(r.Due)
}

// lapse does what follows from nobody's approval: the write expires, or is
// marked overdue and goes on waiting. Neither needs its destination.
func (e *Engine) lapse(rec ledger.Record, claimed time.Time, l life) error {
	t := &task{e: e, life: l}
	t.adopt(rec, claimed)
	if e.waitsOn(rec) {
		t.log().Warn("nobody approved a held write in time; it goes on waiting", "due", rec.Due.UTC())
		return t.commit(ledger.Event{Kind: ledger.EvOverdue, Rule: ruleRisk, Reason: overAt(rec) + "; it goes on waiting"})
	}
	return t.commit(ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Expired, Rule: ruleRisk, Reason: overAt(rec)})
}

// waitsOn reports whether a held write goes on waiting when nobody approved it in
// time. Where its intent cannot be read it does not.
func (e *Engine) waitsOn(rec ledger.Record) bool {
	w, err := intent.DecodeStored(rec.Intent)
	return err == nil && policies.Classify(e.risks(), w).OnTimeout == policies.OnTimeoutEscalate
}

func overAt(rec ledger.Record) string {
	return "nobody approved it until " + rec.Due.UTC().Format(time.RFC3339)
}

// mayDecide refuses a decision of somebody who may decide nothing, and one under
// another's name than that of the credentials.
func mayDecide(ctx context.Context, by, reason string) error {
	who := Caller(ctx)
	if err := who.decides(); err != nil {
		return err
	}
	switch {
	case ledger.SamePerson(by, "") || strings.TrimSpace(reason) == "":
		return errors.New("a decision needs a name (by) and a reason")
	case who.Name != "" && !ledger.SamePerson(who.Name, by):
		return fmt.Errorf("%w: the decision is in the name of %q, the credentials are those of %q", ErrForbidden, by, who.Name)
	}
	return nil
}

// decides refuses whoever may decide nothing.
func (p Principal) decides() error {
	switch {
	case p.Role == RoleAgent:
		return fmt.Errorf("%w: the credentials are an agent's (%q), and an agent decides about no write", ErrForbidden, p.Name)
	case !slices.Contains([]Role{"", RoleReviewer, RoleOperator}, p.Role):
		return fmt.Errorf("%w: the role of the credentials is %q; want %s or %s", ErrForbidden, p.Role, RoleReviewer, RoleOperator)
	case p.Role != "" && ledger.SamePerson(p.Name, ""):
		return fmt.Errorf("%w: the credentials name nobody, and whoever decides has a name", ErrForbidden)
	}
	return nil
}

// allowed refuses a decision about this write by whoever decides. A caller in
// this process, whose name is not known yet, is nobody in particular.
func (d Decision) allowed(rec ledger.Record) error {
	switch {
	case d.Digest != "" && d.Digest != rec.Digest:
		return fmt.Errorf("%w: the decision is about digest %s, write %s has %s", ledger.ErrDigestMismatch, d.Digest, rec.ID, rec.Digest)
	case d.Word != WordApprove:
		return nil
	case !ledger.SamePerson(d.By, "") && ledger.SamePerson(d.By, rec.RequestedBy):
		return fmt.Errorf("%w: %q asked for write %s, and somebody else must approve it", ErrForbidden, d.By, rec.ID)
	case ledger.AmongPeople(rec.Agreed, d.By):
		return fmt.Errorf("%w: %q has approved write %s already, and %d different people must", ErrForbidden, d.By, rec.ID, rec.Need)
	}
	return nil
}

// approval is the event of one more approval: the last that is needed lets the
// write go.
func (d Decision) approval(rec ledger.Record) ledger.EventKind {
	if len(rec.Agreed)+1 < rec.Need {
		return ledger.EvAgreed
	}
	return ledger.EvApproved
}

// missing is how many approvals a held write still waits for.
func missing(r ledger.Record) int { return max(max(r.Need, 1)-len(r.Agreed), 0) }
