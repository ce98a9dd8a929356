package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

// prior is the write that began a business operation before, for the caller that is
// refused because of it.
type prior struct {
	Workflow string    `json:"workflow"`
	Step     string    `json:"step,omitempty"`
	Tool     string    `json:"tool"`
	Write    ledger.ID `json:"write"`
	State    string    `json:"state"`
	// Differs reports that its intent differs under the same key.
	Differs bool `json:"differs"`
	// Outcome is set when it is settled.
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

// declared reports whether the intent of a write is known. A step without a declared
// intent has its own words instead, which cannot be compared.
func declared(r ledger.Record) bool { return !r.Delegated || r.Destination != "" }

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

// hint is the remedy.
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
	return text + fmt.Sprintf("`readback operation release --id %s` releases the operation; the operator takes responsibility.", p.Write)
}

// awaited is the outcome of the write that began the operation before, if err is about
// such a write. It is not used if that write's intent differs.
func awaited(ctx context.Context, e *engine.Engine, err error) (engine.Outcome, *prior, error) {
	p := priorOf(err)
	if p == nil || p.Differs {
		return engine.Outcome{}, nil, err
	}
	out, err := e.AwaitPrior(ctx, err)
	return out, p, err
}

// heading names the write whose outcome follows.
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
