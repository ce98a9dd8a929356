package jira_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
)

// Issues and comments of a Jira Cloud site.
func Example() {
	tickets, err := jira.New(jira.Options{
		URL:   "https://example.atlassian.net",
		User:  "bot@example.com",
		Token: func(context.Context) (string, error) { return "from a vault", nil },
	})
	if err != nil {
		panic(err)
	}
	var reg connectors.Registry
	if err := reg.Register("jira", connectors.Destination{Connector: tickets, Profiles: tickets.Profiles()}); err != nil {
		panic(err)
	}
	fmt.Println(slices.Sorted(maps.Keys(tickets.Profiles())))
	// Output: [comment issue]
}
