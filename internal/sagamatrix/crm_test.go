package sagamatrix

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/connectors/rest/resttest"
	"github.com/readback-go/readback/intent"
)

// crm keeps the contact. The plan "sale" changes one that is there, the plan
// "welcome" makes one.
type crm struct {
	fake *resttest.HubSpot
	conn *rest.Connector
	sale bool
}

const (
	contacts = "contacts"
	address  = "ada@example.com"
)

var (
	wasContact  = map[string]any{"email": address, "firstname": "Ada", "lastname": "Byron", "jobtitle": "analyst"}
	soldContact = intent.Fields{"lastname": "Lovelace", "jobtitle": "countess"}
	newContact  = intent.Fields{"firstname": "Ada", "lastname": "Lovelace", "jobtitle": "analyst"}
)

var hubspot = sync.OnceValues(func() (*rest.Declaration, error) { return rest.ShippedDeclaration("hubspot-contacts") })

func newCRM(p plan) (place, error) {
	c := &crm{fake: resttest.NewHubSpot("pat", nil, []string{"readback_key", "readback_stamp"}), sale: p.sale}
	var err error
	c.conn, err = toCRM(rest.Options{Transport: c.fake.Transport()})
	if p.sale {
		c.fake.Put(contacts, func(now resttest.View) (string, resttest.Object) {
			id := fmt.Sprint(100 + now.Next())
			o := resttest.Object{"id": id, "archived": false, "properties": maps.Clone(wasContact)}
			o["properties"].(map[string]any)["hs_object_id"] = id
			return id, o
		})
	}
	return c, err
}

// toCRM connects to it, wherever it is.
func toCRM(o rest.Options) (*rest.Connector, error) {
	d, err := hubspot()
	if err != nil {
		return nil, err
	}
	o.Secrets = map[string]func(context.Context) (string, error){"token": func(context.Context) (string, error) { return "pat", nil }}
	return rest.New(d, o)
}

func (c *crm) close() error { return nil }

func (c *crm) reach() connectors.Destination {
	return connectors.Destination{Connector: c.conn, Profiles: c.conn.Profiles()}
}

func (c *crm) declare() intent.WriteIntent {
	w := intent.WriteIntent{Tool: "save_contact", Kind: "contact", Key: intent.Fields{"email": address}, Write: intent.Create, Expect: newContact}
	if c.sale {
		w.Write, w.Expect = intent.Update, soldContact
	}
	return w
}

var crmVices = map[vice]resttest.Fault{
	lostAnswer:  {Vice: resttest.LostAnswer},
	gateway:     {Vice: resttest.BadGateway},
	late:        {Vice: resttest.LateCommit, Delay: 90 * time.Second},
	dropped:     {Vice: resttest.DroppedBefore},
	phantom:     {Vice: resttest.PhantomSuccess},
	unreachable: {Vice: resttest.Unreachable},
	throttled:   {Vice: resttest.Throttled, Delay: 40 * time.Second},
	refused:     {Vice: resttest.Refused},
	noField:     {Vice: resttest.DroppedField},
	otherForm:   {Vice: resttest.NormalisedField},
	unreadable:  {Vice: resttest.UnreadableRead, How: "503", Times: 3},
	hanging:     {Vice: resttest.HangingRead},
}

func ofCRM() []vice { return slices.Collect(maps.Keys(crmVices)) }

func (c *crm) meet(v vice) error {
	f, ok := crmVices[v]
	if !ok {
		return unknown(v)
	}
	return c.fake.SetFault(f)
}

func (c *crm) account() account {
	var a account
	for _, e := range c.fake.Effects() {
		if e.By == resttest.ByRequest && e.Before == nil {
			a.Made++
		}
	}
	there := c.fake.Now(contacts)
	a.Live, a.What = len(there), fmt.Sprint(there)
	has := func(want map[string]any) bool {
		if len(there) != 1 {
			return false
		}
		properties, _ := there[0]["properties"].(map[string]any)
		for name, v := range want {
			if properties[name] != v {
				return false
			}
		}
		return true
	}
	switch {
	case c.sale && has(wasContact), !c.sale && len(there) == 0:
		a.Stands = asBefore
	case c.sale && has(soldContact), !c.sale && has(newContact):
		a.Stands = asDeclared
	default:
		a.Stands = otherwise
	}
	return a
}
