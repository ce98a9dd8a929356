package orders

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// ErrRead is wrapped by errors about an answer to a read that cannot be trusted.
var ErrRead = errors.New("orders answered a read with something else")

// incoming is a page as it comes: a list that is missing is not an empty one.
type incoming struct {
	Orders *[]Order `json:"orders"`
	Next   string   `json:"next"`
}

// Read returns every order with the order_id of the key or with the stamp. It is strong when the
// options declare strong reads and every page says that it comes from the primary. If the list
// does not show the record of the create's answer, Read reads it by its id.
func (c *Connector) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	orderID, err := orderIDOf(q.Intent)
	if err != nil {
		return connectors.Observation{}, err
	}
	began := time.Now()
	var found []Order
	strong := len(c.declare.Lags) == 0
	v := url.Values{"order_id": {orderID}}
	if q.Stamp != "" {
		v.Set("stamp", q.Stamp)
	}
	for range maxPages {
		p, primary, err := c.page(ctx, "/orders?", v)
		if err != nil {
			return connectors.Observation{}, fmt.Errorf("read order: %w", err)
		}
		strong = strong && primary
		if err := expected(*p.Orders, orderID, q.Stamp); err != nil {
			return connectors.Observation{}, err
		}
		found = append(found, *p.Orders...)
		if p.Next == "" {
			return c.withAnswered(ctx, q, c.observe(found, began, strong, pathList))
		}
		v.Set("after", p.Next)
	}
	return connectors.Observation{}, fmt.Errorf("%w: more than %d pages for one key", ErrRead, maxPages)
}

// withAnswered adds the record that the create's answer named.
func (c *Connector) withAnswered(ctx context.Context, q connectors.Query, o connectors.Observation) (connectors.Observation, error) {
	if q.Ref == "" || q.Intent.Write != intent.Create || slices.ContainsFunc(o.Records, func(r connectors.Record) bool { return r.Ref == q.Ref }) {
		return o, nil
	}
	named, err := c.one(ctx, q.Ref)
	if err != nil {
		return connectors.Observation{}, err
	}
	o.Records = append(o.Records, named.Records...)
	return o, nil
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
	var body refusal
	if a.Status == http.StatusNotFound && a.Decode(&body) == nil && body.Error == "not_found" {
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

func (c *Connector) page(ctx context.Context, path string, v url.Values) (incoming, bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path+v.Encode(), nil)
	if err != nil {
		return incoming{}, false, err
	}
	a, err := c.client.Read(req)
	if err != nil {
		return incoming{}, false, err
	}
	var p incoming
	if err := a.Decode(&p); err != nil {
		return incoming{}, false, fmt.Errorf("%w: %w", ErrRead, err)
	}
	if p.Orders == nil {
		return incoming{}, false, fmt.Errorf("%w: it holds no list of orders", ErrRead)
	}
	return p, a.Header.Get(headerSource) == sourcePrimary, nil
}

// expected refuses orders that were not queried: otherwise a destination that ignores a filter
// would turn foreign records into duplicates.
func expected(found []Order, orderID, stamp string) error {
	for _, o := range found {
		if o.ID == "" || o.Fields == nil {
			return fmt.Errorf("%w: an order has no id or no fields", ErrRead)
		}
		if o.Fields[fieldOrderID] != orderID && (stamp == "" || o.Stamp != stamp) {
			return fmt.Errorf("%w: order %s was not asked for", ErrRead, o.ID)
		}
	}
	return nil
}

// ReadMany implements [connectors.BulkReader] where Options.Bulk is on. An answer of more than
// one page is read separately.
func (c *Connector) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	if len(qs) > BulkLimit {
		return nil, fmt.Errorf("%w: %d queries in one bulk read; want at most %d", ErrIntent, len(qs), BulkLimit)
	}
	out := make([]connectors.BulkAnswer, len(qs))
	var asked []int
	var send struct {
		Questions []question `json:"questions"`
	}
	for i, q := range qs {
		orderID, err := orderIDOf(q.Intent)
		if out[i].Err = err; err == nil {
			asked = append(asked, i)
			send.Questions = append(send.Questions, question{OrderID: orderID, Stamp: q.Stamp})
		}
	}
	if len(asked) == 0 {
		return out, nil
	}
	began := time.Now()
	answers, primary, err := c.lookup(ctx, send, len(asked))
	if err != nil {
		return nil, fmt.Errorf("bulk read: %w", err)
	}
	for n, i := range asked {
		p, q := answers[n], send.Questions[n]
		switch {
		case p.Orders == nil:
			out[i].Err = fmt.Errorf("%w: an answer holds no list of orders", ErrRead)
		case p.Next != "":
			out[i].Observation, out[i].Err = c.Read(ctx, qs[i])
		default:
			if out[i].Err = expected(*p.Orders, q.OrderID, q.Stamp); out[i].Err == nil {
				out[i].Observation, out[i].Err = c.withAnswered(ctx, qs[i], c.observe(*p.Orders, began, primary && len(c.declare.Lags) == 0, pathLookup))
			}
		}
	}
	return out, nil
}

func (c *Connector) lookup(ctx context.Context, send any, want int) ([]incoming, bool, error) {
	body, err := json.Marshal(send)
	if err != nil {
		return nil, false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/orders/lookup", bytes.NewReader(body))
	if err != nil {
		return nil, false, err
	}
	a, err := c.client.Read(req)
	if err != nil {
		return nil, false, err
	}
	var all struct {
		Answers []incoming `json:"answers"`
	}
	if err := a.Decode(&all); err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrRead, err)
	}
	if len(all.Answers) != want {
		return nil, false, fmt.Errorf("%w: %d answers to %d questions", ErrRead, len(all.Answers), want)
	}
	return all.Answers, a.Header.Get(headerSource) == sourcePrimary, nil
}
