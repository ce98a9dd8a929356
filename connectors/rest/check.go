package rest

import (
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Check refuses an intent that the declaration can never serve: one whose lookups are impossible,
// whose fields cannot be written or shown, or that fits no request.
func (c *Connector) Check(in intent.WriteIntent) error {
	k, err := c.kindOf(in)
	if err != nil {
		return err
	}
	w := k.writes[in.Write]
	if w == nil {
		return unserved("/write", "/write: there is no %s of this kind", in.Write)
	}
	if err := c.canQuery(k, connectors.Query{Intent: in, Stamp: in.Stamp()}); err != nil && !k.profile.WriteOnly {
		return err
	}
	if in.Write != intent.Create { // what else it takes, the read before it has
		return w.serves(in, nil)
	}
	r := connectors.Request{Intent: in, Stamp: in.Stamp(), IdempotencyKey: in.Stamp(), FirstSent: time.Now()}
	v, err := c.writeValues(k, w, r)
	if err != nil {
		return err
	}
	if w.prepare != nil {
		if _, err := w.prepare.draft(r, v); err != nil {
			return err
		}
		v["prepared"] = "0" // what it will be is not known yet
	}
	_, err = w.draft(r, v)
	return err
}

// canQuery reports whether there are lookups for a query, and all of them are possible.
func (c *Connector) canQuery(k *kind, q connectors.Query) error {
	asked, v := false, c.readValues(q)
	for _, r := range k.reads {
		if !r.asks(q) {
			continue
		}
		asked = true
		if _, err := r.request.fill(filling{values: k.bounded(v, r, time.Time{}), guarded: true}); err != nil {
			return fmt.Errorf("read %q: %w", r.name, err)
		}
	}
	if !asked {
		return unserved("/key", "/key: no lookup can be made by it")
	}
	return nil
}
