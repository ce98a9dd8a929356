package command_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/readback-go/readback/command"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// settings are those of a destination of the type hr, besides those that all destinations have.
type settings struct {
	Site string `yaml:"site"`
}

// people is its connector.
type people struct {
	site  string
	token func(context.Context) (string, error)
}

func (p *people) Write(context.Context, connectors.Request) (connectors.Receipt, error) {
	return connectors.Receipt{}, errors.New("one call, once; docs/guide/destinations.md has the rules")
}

func (p *people) Read(context.Context, connectors.Query) (connectors.Observation, error) {
	return connectors.Observation{}, errors.New("all records with the stamp or the business key")
}

// A program with a type of destination of its own. Its configuration can say
//
//	destinations:
//	  people: {type: hr, site: acme, secrets: {token: {env: HR_TOKEN}}}
func Example() {
	hr := command.Destination("hr", func(s settings, a command.Account) (connectors.Destination, error) {
		if s.Site == "" {
			return connectors.Destination{}, errors.New("site: is empty; want the name of the account")
		}
		return connectors.Destination{
			Connector: &people{s.Site, a.Secrets["token"]},
			Profiles: map[string]connectors.Profile{"employee": {
				Stamped: true, Unique: []intent.WriteType{intent.Create}, Horizon: connectors.Within(10 * time.Minute),
			}},
		}, nil
	})
	run := func() { command.Main(hr) } // func main() { command.Main(hr) }
	fmt.Println(run != nil)
	// Output: true
}

// A program whose due work another scheduler drives: adapters/temporal/cmd/readback-temporal has one.
func ExampleScheduler() {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	queue := flags.String("task-queue", "readback", "the task queue")
	s := command.Scheduler{Flags: flags, Run: func(ctx context.Context, w command.Work) error {
		w.Options.Dispatch = func(_ context.Context, rec ledger.Record) error {
			// Start a workflow for rec.Tenant and rec.ID on *queue. Its activity calls w.Engine.WorkOn.
			return nil
		}
		return w.Engine.Work(ctx, &w.Options)
	}}
	run := func() { s.Main() } // func main() { s.Main() }
	fmt.Println(*queue, run != nil)
	// Output: readback true
}
