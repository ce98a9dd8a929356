package command_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/command"
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
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
