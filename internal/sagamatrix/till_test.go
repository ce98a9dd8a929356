package sagamatrix

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/intent"
)

// till keeps the order. In the plan "sale" it is a payment service that
// deduplicates by our key, in "welcome" a shop whose reads lag.
type till struct{ world *simulated.World }

const orderID = "A-1"

func newTill(p plan) (place, error) {
	w, err := simulated.New(p.till())
	return &till{w}, err
}

// till is what the order's destination can do.
func (p plan) till() simulated.Options {
	if p.sale {
		return simulated.Native.Options()
	}
	return simulated.Lagging.Options()
}

func (t *till) handler() http.Handler { return simulated.Handler(t.world) }

func (t *till) close() error { return nil }

func (t *till) reach() connectors.Destination { return t.world.Destination() }

func (t *till) declare() intent.WriteIntent {
	return intent.WriteIntent{
		Tool: "charge", Kind: simulated.Kind, Write: intent.Create, Key: intent.Fields{"order_id": orderID},
		Expect: intent.Fields{"amount_cents": json.Number("1999"), "currency": "USD"},
	}
}

var tillVices = map[vice]simulated.Fault{
	lostAnswer:  {Vice: simulated.LostAnswer},
	gateway:     {Vice: simulated.BadGateway},
	late:        {Vice: simulated.LateCommit},
	dropped:     {Vice: simulated.DroppedBefore},
	phantom:     {Vice: simulated.PhantomSuccess},
	unreachable: {Vice: simulated.Unreachable},
	throttled:   {Vice: simulated.Throttled, Delay: 10 * time.Second},
	refused:     {Vice: simulated.Refused},
	noField:     {Vice: simulated.DroppedField, Field: "currency"},
	otherForm:   {Vice: simulated.NormalisedField, Field: "currency", How: "lower"},
	duplicate:   {Vice: simulated.DuplicateBehindOurBack},
	rollback:    {Vice: simulated.Rollback},
	unreadable:  {Vice: simulated.UnreadableRead, Times: 3},
	hanging:     {Vice: simulated.UnreadableRead, How: "hang"},
}

func ofTill() []vice { return slices.Collect(maps.Keys(tillVices)) }

func (t *till) meet(v vice) error {
	f, ok := tillVices[v]
	if !ok {
		return unknown(v)
	}
	f.Times = max(f.Times, 1)
	return t.world.Set(f)
}

// alwaysRefuses makes it take no order any more.
func (t *till) alwaysRefuses() error { return t.world.Set(simulated.Fault{Vice: simulated.Refused}) }

func (t *till) account() account {
	var a account
	for _, e := range t.world.Effects() {
		if e.Applied() && e.By == simulated.ByRequest && e.Op == simulated.OpCreate {
			a.Made++
		}
	}
	there := t.world.Records(orderID)
	a.Live, a.What, a.Stands = len(there), fmt.Sprint(there), otherwise
	switch {
	case len(there) == 0:
		a.Stands = asBefore
	case len(there) == 1 && there[0].AmountCents() == 1999 && there[0].Fields["currency"] == "USD":
		a.Stands = asDeclared
	}
	return a
}
