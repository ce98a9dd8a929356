// Jira opens a ticket in a Jira that loses the answer, while an orchestrator
// replays the step, and prints the verified outcome: one issue, sent once.
//
// It needs no account: the Jira runs in this process.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// Ticket is the issue as this program knows it. The reference is its own name
// for the issue; Jira chooses the other.
type Ticket struct {
	Project   string   `json:"project" readback:"key"`
	Reference string   `json:"reference" readback:"key"`
	Type      string   `json:"issuetype"`
	Summary   string   `json:"summary"`
	Labels    []string `json:"labels"`
}

func main() {
	if _, err := run(context.Background()); err != nil {
		slog.Error("jira", "error", err)
		os.Exit(1)
	}
}

// site is a Jira that loses its first answer and whose search lags by a second.
func site() (*fakejira.Site, error) {
	s := fakejira.New(fakejira.Options{IndexLag: time.Second})
	return s, s.Set(fault.Fault{Kind: fault.LostAnswer}.Once())
}

func run(ctx context.Context) (*fakejira.Site, error) {
	fake, err := site()
	if err != nil {
		return nil, err
	}
	dest, err := jira.New(jira.Options{
		URL: "https://example.invalid", User: "robot@example.org", Transport: fake.Transport(),
		Token: func(context.Context) (string, error) { return "api-token", nil },
	})
	if err != nil {
		return nil, err
	}
	var reg connectors.Registry
	if err := reg.Register("jira", connectors.Destination{Connector: dest, Profiles: dest.Profiles()}); err != nil {
		return nil, err
	}
	eng := engine.New(ledger.NewMemory(), &reg, nil)
	defer eng.Close()

	w, err := intent.From(intent.WriteIntent{
		Tenant: "acme", Workflow: "run-42", Step: "escalate", Tool: "open_ticket",
		Destination: "jira", Kind: jira.KindIssue, Write: intent.Create,
	}, Ticket{Project: "OPS", Reference: "invoice-7721", Type: "Task", Summary: "Invoice 7721 is overdue", Labels: []string{"finance"}})
	if err != nil {
		return nil, err
	}
	for range 2 { // an orchestrator that replays the step
		out, err := eng.Do(ctx, w)
		if err != nil {
			return nil, err
		}
		fmt.Printf("%s, sends %d, replayed %t: %s %s\n", out.Status, out.Sends, out.Replayed, out.Text, out.URL)
		if out.Status != ledger.Verified {
			return fake, errors.New("the ticket is not verified")
		}
	}
	fmt.Printf("Jira has %d such issue\n", len(fake.Issues()))
	return fake, nil
}
