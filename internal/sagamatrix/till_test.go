package sagamatrix

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// till stores the order. In the plan "sale" it is a payment service that deduplicates by our key,
// in "welcome" a shop whose reads lag.
type till struct{ world *orders.World }

const orderID = "A-1"

func newTill(p plan) (place, error) {
	w, err := orders.New(p.till())
	return &till{w}, err
}

// till is what the order's destination can do.
func (p plan) till() orders.Options {
	if p.sale {
		return orders.Native.Options()
	}
	return orders.Lagging.Options()
}

func (t *till) handler() http.Handler { return orders.Handler(t.world) }

func (t *till) close() error { return nil }

func (t *till) reach() connectors.Destination { return t.world.Destination() }

func (t *till) declare() intent.WriteIntent {
	return intent.WriteIntent{
		Tool: "charge", Kind: orders.Kind, Write: intent.Create, Key: intent.Fields{"order_id": orderID},
		Expect: intent.Fields{"amount_cents": json.Number("1999"), "currency": "USD"},
	}
}

var tillFaults = map[faultKind]orders.Fault{
	lostAnswer:  {Kind: orders.LostAnswer},
	gateway:     {Kind: orders.BadGateway},
	late:        {Kind: orders.LateCommit},
	dropped:     {Kind: orders.DroppedBefore},
	phantom:     {Kind: orders.PhantomSuccess},
	unreachable: {Kind: orders.Unreachable},
	throttled:   {Kind: orders.Throttled, Delay: 10 * time.Second},
	refused:     {Kind: orders.Refused},
	noField:     {Kind: orders.DroppedField, Field: "currency"},
	otherForm:   {Kind: orders.NormalisedField, Field: "currency", How: "lower"},
	duplicate:   {Kind: orders.DuplicateByOthers},
	rollback:    {Kind: orders.Rollback},
	unreadable:  {Kind: orders.UnreadableRead, Times: 3},
	hanging:     {Kind: orders.UnreadableRead, How: "hang"},
}

func ofTill() []faultKind { return slices.Collect(maps.Keys(tillFaults)) }

func (t *till) meet(v faultKind) error {
	f, ok := tillFaults[v]
	if !ok {
		return unknown(v)
	}
	f.Times = max(f.Times, 1)
	return t.world.Set(f)
}

// alwaysRefuses makes it take no order any more.
func (t *till) alwaysRefuses() error { return t.world.Set(orders.Fault{Kind: orders.Refused}) }

func (t *till) account() account {
	var a account
	for _, e := range t.world.Effects() {
		if e.Applied() && e.By == orders.ByRequest && e.Op == orders.OpCreate {
			a.Made++
		}
	}
	there := t.world.Records(orderID)
	a.Live, a.What, a.Status = len(there), fmt.Sprint(there), otherwise
	switch {
	case len(there) == 0:
		a.Status = asBefore
	case len(there) == 1 && there[0].AmountCents() == 1999 && there[0].Fields["currency"] == "USD":
		a.Status = asDeclared
	}
	return a
}
