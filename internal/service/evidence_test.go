package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

func TestUndeclaredFieldsAreEvidence(t *testing.T) {
	seen := json.RawMessage(`[{"path":"/salary","problem":"changed","want":"41","got":"42"}]`)
	for name, c := range map[string]struct {
		role    engine.Role
		verdict verify.Verdict
		value   bool
		reason  string
	}{
		"an agent, an undeclared field":   {engine.RoleAgent, verify.Collateral, false, "it never named the field"},
		"an agent, a field that it named": {engine.RoleAgent, verify.Mismatched, true, "without it no agent can fix the intent"},
		"a reviewer, an undeclared field": {engine.RoleReviewer, verify.Collateral, true, "evidence is for reviewers"},
		"an unknown role, undeclared":     {"", verify.Collateral, false, "who may nothing sees nothing"},
	} {
		who := Who{Tenant: "acme", Name: "ana", Role: c.role}
		out := New(Parts{}).shown(who, engine.Outcome{Verdict: c.verdict, Mismatches: seen})
		if got := string(out.Mismatches); strings.Contains(got, "42") != c.value || !strings.Contains(got, "/salary") || !strings.Contains(got, "changed") {
			t.Errorf("%s: got %s: %s", name, got, c.reason)
		}
		prior := &ledger.BlockedError{Prior: ledger.Record{ID: "wr_1", Tenant: "acme", Verdict: c.verdict.String(), Mismatches: seen}}
		err := refused(who, fmt.Errorf("refused: %w", prior))
		var blocked *ledger.BlockedError
		if !errors.As(err, &blocked) || !errors.Is(err, ledger.ErrBlocked) || strings.Contains(string(blocked.Prior.Mismatches), "42") != c.value || blocked.Prior.ID != "wr_1" {
			t.Errorf("%s: of the write in the way: %+v: %s", name, blocked, c.reason)
		}
		if string(prior.Prior.Mismatches) != string(seen) {
			t.Errorf("%s: the error of others was changed", name)
		}
	}
	if err := refused(Who{}, access.ErrForbidden); !errors.Is(err, access.ErrForbidden) {
		t.Error(err)
	}
	if got := engine.WithoutEvidence(verify.Collateral, json.RawMessage(`{"got":"42"}`)); got != nil {
		t.Errorf("unreadable evidence is returned: %s", got)
	}
}

// stub has one write, which changed a field that no intent names.
type stub struct {
	Writes
	ledger.Ledger
	record ledger.Record
}

func (s stub) Do(context.Context, intent.WriteIntent) (engine.Outcome, error) {
	return engine.OutcomeOf(s.record), &ledger.BlockedError{Prior: s.record}
}

func (s stub) Wait(context.Context, string, ledger.ID, bool) (engine.Outcome, error) {
	return engine.OutcomeOf(s.record), nil
}

func (s stub) Get(context.Context, string, ledger.ID) (ledger.Record, error) { return s.record, nil }

func TestEveryWayToAnOutcomeReturnsTheSame(t *testing.T) {
	s := stub{record: ledger.Record{ID: "wr_1", Tenant: "acme", State: ledger.Review, Verdict: verify.Collateral.String(),
		Mismatches: json.RawMessage(`[{"path":"/salary","problem":"changed","want":"41","got":"42"}]`)}}
	o := New(Parts{Writes: s, Ledger: s})
	for _, role := range []engine.Role{engine.RoleAgent, engine.RoleOperator} {
		who := Who{Tenant: "acme", Name: "ana", Role: role}
		sent, blocked := o.Submit(t.Context(), who, intent.WriteIntent{}, time.Second)
		now, err1 := o.Outcome(t.Context(), who, "wr_1", 0)
		later, err2 := o.Outcome(t.Context(), who, "wr_1", time.Second)
		var prior *ledger.BlockedError
		if !errors.As(blocked, &prior) || err1 != nil || err2 != nil {
			t.Fatal(blocked, err1, err2)
		}
		for way, got := range map[string]json.RawMessage{"submit": sent.Mismatches, "in the way": prior.Prior.Mismatches, "now": now.Mismatches, "later": later.Mismatches} {
			if strings.Contains(string(got), "42") != (role == engine.RoleOperator) || !strings.Contains(string(got), "/salary") {
				t.Errorf("%s gets by %s: %s", role, way, got)
			}
		}
	}
}
