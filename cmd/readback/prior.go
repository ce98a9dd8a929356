package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

// prior is the write that has begun a business operation before, for whoever is
// refused because of it.
type prior struct {
	Workflow string    `json:"workflow"`
	Step     string    `json:"step,omitempty"`
	Tool     string    `json:"tool"`
	Write    ledger.ID `json:"write"`
	State    string    `json:"state"`
	// Differs says that it asks for something else under the same key.
	Differs bool `json:"differs"`
	// Outcome is there when it is settled.
	Outcome *engine.Outcome `json:"outcome,omitempty"`
}

// priorOf is the write that an error is about, nil where it is about none.
func priorOf(err error) *prior {
	var blocked *ledger.BlockedError
	if !errors.As(err, &blocked) {
		return nil
	}
	r := blocked.Prior
	p := &prior{Workflow: r.Workflow, Step: r.Step, Tool: r.Tool, Write: r.ID, State: r.Phase(),
		Differs: declared(r) && blocked.Received != "" && blocked.Received != r.Digest}
	if r.State == ledger.Settled {
		out := engine.OutcomeOf(r)
		p.Outcome = &out
	}
	return p
}

// declared says that it is known what a write asks for as an intent. A step that
// declares none asks for it in words of its own, which cannot be compared.
func declared(r ledger.Record) bool { return !r.Entrusted || r.Destination != "" }

func (p *prior) text() string {
	rows := []string{"  workflow\t" + report.Safe(p.Workflow)}
	if p.Step != "" {
		rows = append(rows, "  step\t"+report.Safe(p.Step))
	}
	rows = append(rows, "  tool\t"+report.Safe(p.Tool), "  write\t"+string(p.Write), "  state\t"+p.State)
	if p.Outcome != nil {
		rows = append(rows, "  outcome\t"+report.Safe(p.Outcome.Text))
	}
	return report.Table(rows...)
}

// hint says what can be done about it.
func (p *prior) hint() string {
	text := "Nothing was recorded, and nothing was sent. "
	if p.Differs {
		return text + "It asks for something else under the same key: want another key for another operation."
	}
	if p.Outcome == nil {
		text += "`readback submit --wait-prior` waits for its outcome. "
	}
	switch ledger.State(p.State) {
	case ledger.Held:
		return text + "It waits for people; when they deny it, it stops no other."
	case ledger.Sending, ledger.Compensating:
		return text
	}
	return text + fmt.Sprintf("`readback operation release --id %s` lets the operation go, by a person who answers for it.", p.Write)
}

// awaited is the outcome of the write that has begun the operation before, where
// that is what an error says. One that asks for something else is no answer.
func awaited(ctx context.Context, e *engine.Engine, err error) (engine.Outcome, *prior, error) {
	p := priorOf(err)
	if p == nil || p.Differs {
		return engine.Outcome{}, nil, err
	}
	out, err := e.AwaitPrior(ctx, err)
	return out, p, err
}

// heading says whose outcome follows.
func (p *prior) heading() string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The operation was begun before, by workflow %q", report.Safe(p.Workflow))
	if p.Step != "" {
		fmt.Fprintf(&b, " (step %q)", report.Safe(p.Step))
	}
	return b.String() + "; nothing was recorded or sent now. This is its outcome:\n"
}
