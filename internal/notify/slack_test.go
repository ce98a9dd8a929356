package notify_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/fakes/orders"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/readbacktest/fault"
)

// A message goes to Slack by the included declaration, and is read back there: one, though the response to
// it is lost, with texts of others as code.
func TestAMessageInSlack(t *testing.T) {
	c, err := config.Parse("readback.yaml", []byte(`ledger: a.db
destinations:
  chat: {type: rest, declaration: slack-messages, secrets: {token: {env: TOKEN}}, tenants: [acme]}
notifications:
  - {name: approvals, destination: chat, kind: message, key: {channel: C0123456789, reference: "{id}"}, expect: {text: "{text}"}, format: slack, tenants: [acme]}
`))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		slack := fakerest.NewSlack(fakerest.SlackOptions{Channels: []string{"C0123456789"}, ReadEvery: -1})
		d, err := rest.ShippedDeclaration("slack-messages")
		if err != nil {
			t.Fatal(err)
		}
		token := func(context.Context) (string, error) { return "xoxb-readback", nil }
		con, err := rest.New(d, rest.Options{Transport: slack.Transport(), Secrets: map[string]func(context.Context) (string, error){"token": token}})
		if err != nil {
			t.Fatal(err)
		}
		world, err := orders.New(orders.Plain.Options())
		if err != nil {
			t.Fatal(err)
		}
		var reg connectors.Registry
		if err := errors.Join(reg.Register("orders", world.Destination()), reg.Register("chat", connectors.Destination{Connector: con, Profiles: con.Profiles()})); err != nil {
			t.Fatal(err)
		}
		b := &bench{t: t, ledger: ledger.NewMemory()}
		b.engine = engine.New(b.ledger, &reg, nil)
		t.Cleanup(b.engine.Close)
		b.service = service.New(service.Parts{Writes: b.engine, Ledger: b.ledger, Registry: &reg})
		if err := slack.Set(fault.Fault{Kind: fault.LostAnswer, Times: 1}); err != nil {
			t.Fatal(err)
		}
		defer b.live(b.sender(b.ledger, b.engine, c.Notifications...))()
		b.do(order("acme", "<!channel> *A-1*", nil))
		time.Sleep(time.Hour)
		found, err := b.ledger.Find(t.Context(), ledger.Search{Tenant: "acme", Destination: "chat"})
		if err != nil || len(found.Records) != 1 || found.Records[0].Settlement != ledger.Verified || found.Records[0].Sends != 1 {
			t.Fatalf("%v, %+v; want one message, sent once and verified", err, found.Records)
		}
		if writes, _ := slack.Count(); writes != 1 {
			t.Errorf("%d messages, want one", writes)
		}
	})
}
