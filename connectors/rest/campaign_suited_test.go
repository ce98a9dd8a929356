package rest_test

import (
	"context"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

// suited are the kinds whose fixture is that of the suite of connectors. The campaign runs on the
// same.
var suited = map[string]destination{
	"github-issues/issue":            ofSuite(true, func() api { a, _ := gitHub(fakerest.GitHubOptions{}); return a }),
	"google-calendar-events/event":   ofSuite(true, func() api { a, _ := calendar(); return a }),
	"hubspot-contacts/contact":       ofSuite(true, func() api { a, _ := hubSpot("contact"); return a }),
	"hubspot-contacts/keyed-contact": ofSuite(true, func() api { a, _ := hubSpot("keyed-contact"); return a }),
	"notion-pages/page":              ofSuite(true, func() api { a, _ := notion(fakerest.NotionOptions{}); return a }),
	"salesforce-objects/record":      ofSuite(true, func() api { a, _ := salesforce(true); return a }),
	"zendesk-tickets/ticket":         ofSuite(true, func() api { a, _ := zendesk(fakerest.ZendeskOptions{}); return a }),
}

// ofSuite is a destination of the campaign that has the fixture of the suite.
func ofSuite(native bool, open func() api) destination {
	a := open()
	secrets := map[string]string{}
	for name, of := range a.options.Secrets {
		secrets[name], _ = of(context.Background()) // they are constants
	}
	return destination{
		kind: a.kind, collection: a.collection, native: native, lag: 5 * time.Second, traits: a.traits, names: a.names,
		parameters: a.options.Parameters, secrets: secrets,
		open:   func() *fakerest.Fake { a = open(); return a.fake },
		create: func(n int) intent.WriteIntent { return a.intent(intent.Create, n) },
		record: func(o fakerest.Object) (r connectors.Record, ok bool) { return a.record(o) },
		other: func(_ *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
			if !taken {
				w = a.intent(intent.Create, -1-n) // of another record
			}
			if err := a.put(merged(w), ""); err != nil {
				panic(err)
			}
		},
	}
}
