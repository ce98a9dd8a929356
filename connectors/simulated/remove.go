package simulated

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// fieldID is the key of a delete of one record by the destination's own id,
// which is never given again. It is no field of an order.
const fieldID = "id"

// Remove builds the delete of one of two orders that w, a create, made: by its
// own id, and requiring all that it shows. An order that was changed since it
// was made is not removed. The error wraps [ErrIrreversible].
func (c *Connector) Remove(w intent.WriteIntent, surplus connectors.Record) (intent.WriteIntent, error) {
	switch {
	case w.Write != intent.Create:
		return intent.WriteIntent{}, fmt.Errorf("%w: a %s makes no surplus record", ErrIrreversible, w.Write)
	case !c.declare.Stamps || surplus.Stamp != w.Stamp():
		return intent.WriteIntent{}, fmt.Errorf("%w: the record does not have the stamp of the create: it may be another actor's", ErrIrreversible)
	case surplus.Version != "" && surplus.Version != "1":
		return intent.WriteIntent{}, fmt.Errorf("%w: somebody has changed the record since it was made", ErrIrreversible)
	}
	sent := fieldsOf(w)
	for name, v := range surplus.Fields {
		was, given := sent[name]
		_, seen := w.Expect[name] // and compared by its own rules
		bySelf := name == fieldUpdated || name == fieldStatus && !given && v == "open"
		if !bySelf && !seen && (!given || !reflect.DeepEqual(v, was)) {
			return intent.WriteIntent{}, fmt.Errorf("%w: the field %s is not as the create made it", ErrIrreversible, name)
		}
	}
	return intent.WriteIntent{
		Destination: w.Destination, Kind: w.Kind, Write: intent.Delete,
		Key: intent.Fields{fieldID: surplus.Ref}, Require: maps.Clone(surplus.Fields),
	}, nil
}

// ownID is the id by which a delete names its record, "" where the key is
// another one.
func ownID(w intent.WriteIntent) string {
	if w.Write != intent.Delete || w.Kind != Kind || len(w.Key) != 1 {
		return ""
	}
	if id, _ := w.Key[fieldID].(string); number(id) > 0 {
		return id
	}
	return ""
}

// one reads the order with an id.
func (c *Connector) one(ctx context.Context, id string) (connectors.Observation, error) {
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/orders/"+url.PathEscape(id), nil)
	if err != nil {
		return connectors.Observation{}, err
	}
	a, err := c.client.Read(req)
	strong := len(c.declare.Lags) == 0 && a.Header.Get(headerSource) == sourcePrimary
	var said refusal
	if a.Status == http.StatusNotFound && a.Decode(&said) == nil && said.Error == "not_found" {
		return c.observe(nil, began, strong, pathGet), nil
	}
	var o Order
	if err == nil {
		err = a.Decode(&o)
	}
	if err != nil {
		return connectors.Observation{}, fmt.Errorf("read order: %w", err)
	}
	if o.ID != id || o.Fields == nil {
		return connectors.Observation{}, fmt.Errorf("%w: order %s was not asked for", ErrRead, o.ID)
	}
	return c.observe([]Order{o}, began, strong, pathGet), nil
}
