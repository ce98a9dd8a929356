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
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// crm keeps the contact. The plan "sale" changes one that is there, the plan
// "welcome" makes one.
type crm struct {
	fake *fakerest.HubSpot
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
	c := &crm{fake: fakerest.NewHubSpot("pat", nil, []string{"readback_key", "readback_stamp"}), sale: p.sale}
	var err error
	c.conn, err = toCRM(rest.Options{Transport: c.fake.Transport()})
	if p.sale {
		c.fake.Put(contacts, func(now fakerest.View) (string, fakerest.Object) {
			id := fmt.Sprint(100 + now.Next())
			o := fakerest.Object{"id": id, "archived": false, "properties": maps.Clone(wasContact)}
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

var crmFaults = map[faultKind]fault.Fault{
	lostAnswer:  {Kind: fault.LostAnswer, Times: 1},
	gateway:     {Kind: fault.BadGateway, Times: 1},
	late:        {Kind: fault.LateCommit, Times: 1, Delay: 90 * time.Second},
	dropped:     {Kind: fault.DroppedBefore, Times: 1},
	phantom:     {Kind: fault.PhantomSuccess, Times: 1},
	unreachable: {Kind: fault.Unreachable, Times: 1},
	throttled:   {Kind: fault.Throttled, Times: 1, Delay: 40 * time.Second},
	refused:     {Kind: fault.Refused, Times: 1},
	noField:     {Kind: fault.DroppedField, Times: 1},
	otherForm:   {Kind: fault.NormalisedField, Times: 1},
	unreadable:  {Kind: fault.UnreadableRead, How: "503", Times: 3},
	hanging:     {Kind: fault.HangingRead, Times: 1},
}

func ofCRM() []faultKind { return slices.Collect(maps.Keys(crmFaults)) }

func (c *crm) meet(v faultKind) error {
	f, ok := crmFaults[v]
	if !ok {
		return unknown(v)
	}
	return c.fake.Set(f)
}

func (c *crm) account() account {
	var a account
	for _, e := range c.fake.Effects() {
		if e.By == fault.ByRequest && e.Before == nil {
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
		a.Status = asBefore
	case c.sale && has(soldContact), !c.sale && has(newContact):
		a.Status = asDeclared
	default:
		a.Status = otherwise
	}
	return a
}
