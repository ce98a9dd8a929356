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
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/intent"
)

// ErrIntent is wrapped by errors about an intent that this destination cannot
// serve. They are of fate not sent.
var ErrIntent = errors.New("orders cannot serve this intent")

// Connector reaches the orders of one destination over HTTP.
//
// The business key is {"order_id": "…"}, and nothing else. What is written is
// the key, what is expected and the payload; of an object inside, an update
// changes only the members that are named, and it removes what the intent wants
// absent. Updates and deletes address the one record that [connectors.Request.Before] shows, so they need
// it; an upsert does where order_id is not unique.
type Connector struct {
	base    string
	declare Options
	client  *httpsend.Client
}

// NewConnector makes a connector to the destination at a base URL
// ("http://127.0.0.1:8080"), which declares what is given. A nil transport
// means a network.
func NewConnector(base string, declare Options, transport http.RoundTripper) (*Connector, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("orders: base URL %q: want http://host:port", base)
	}
	return &Connector{
		base:    strings.TrimSuffix(base, "/"),
		declare: declare,
		client:  httpsend.New(&httpsend.Options{Transport: transport}),
	}, nil
}

// Connector returns a connector to the world in this process, which declares
// the world's own options.
func (w *World) Connector() *Connector {
	return &Connector{
		base:    "http://orders.invalid",
		declare: w.options,
		client:  httpsend.New(&httpsend.Options{Transport: Transport(w)}),
	}
}

// Destination returns the world as a registry wants it.
func (w *World) Destination() connectors.Destination {
	c := w.Connector()
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}
}

// Profiles returns what the destination declares, by kind of record.
func (c *Connector) Profiles() map[string]connectors.Profile {
	return map[string]connectors.Profile{Kind: c.declare.Profile()}
}

// Probe checks that the destination answers.
func (c *Connector) Probe(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/health", nil)
	if err != nil {
		return err
	}
	a, err := c.client.Read(req)
	if a.Status == http.StatusNoContent {
		return nil
	}
	return err
}

// Write sends once.
func (c *Connector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	a, err := c.client.Write(req)
	receipt := connectors.Receipt{Replay: a.Header.Get("Idempotent-Replayed") == "true"}
	if a.Status != 0 {
		receipt.Code, receipt.Reply = a.Code(), a.Reply(false)
	}
	if err != nil {
		return receipt, explain(err, a, r.Intent.Write)
	}
	// The destination accepted. An unreadable body does not change that.
	var o Order
	if r.Intent.Write != intent.Delete && a.Decode(&o) == nil && o.ID != "" {
		receipt.Ref, receipt.URL = o.ID, c.url(o.ID)
		receipt.Version = revision(o.Version)
	}
	return receipt, nil
}

// explain adds what this destination means by a refusal.
func explain(err error, a httpsend.Answer, write intent.WriteType) error {
	var e *connectors.Error
	if !errors.As(err, &e) {
		return err
	}
	gone := a.Status == http.StatusNotFound || a.Status == http.StatusGone
	if write == intent.Delete && gone {
		e.Conflict = true
	}
	var r refusal
	if a.Status >= 400 && a.Decode(&r) == nil && plain(r.Error) {
		e.Err = fmt.Errorf("%w (%s)", e.Err, r.Error)
	}
	return err
}

// plain reports whether a code of the destination is fit for display.
func plain(code string) bool {
	return code != "" && len(code) <= 40 && strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") == ""
}

func (c *Connector) url(id string) string { return c.base + "/orders/" + url.PathEscape(id) }

func revision(v int64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatInt(v, 10)
}

// request builds the one request of a write.
func (c *Connector) request(ctx context.Context, r connectors.Request) (*http.Request, error) {
	w := r.Intent
	orderID, err := orderIDOf(w)
	if err != nil {
		return nil, err
	}
	d := document{Order: fieldsOf(w), Stamp: r.Stamp}
	if w.Write == intent.Update || w.Write == intent.Upsert {
		d.Unset = w.Absent
	}
	method, path, before := http.MethodPost, "/orders", beforeOf(r)
	switch {
	case w.Write == intent.Create:
	case w.Write == intent.Upsert && c.declare.Unique:
		method, path = http.MethodPut, "/orders/by-key/"+url.PathEscape(orderID)
	case w.Write == intent.Upsert && r.Before != nil && len(r.Before.Records) == 0:
		// Without a unique key an upsert is a read and then a create.
	case before == nil:
		return nil, fmt.Errorf("%w: /write: %s needs exactly one record in the read before it", ErrIntent, w.Write)
	case w.Write == intent.Delete:
		method, path = http.MethodDelete, "/orders/"+url.PathEscape(before.Ref)
	case w.Write == intent.Update, w.Write == intent.Upsert:
		method, path = http.MethodPatch, "/orders/"+url.PathEscape(before.Ref)
	default:
		return nil, fmt.Errorf("%w: /write: unknown write type %q", ErrIntent, w.Write)
	}
	return c.build(ctx, method, path, d, r)
}

func (c *Connector) build(ctx context.Context, method, path string, d document, r connectors.Request) (*http.Request, error) {
	var body []byte
	if method != http.MethodDelete {
		var err error
		if body, err = json.Marshal(d); err != nil {
			return nil, fmt.Errorf("%w: /expect: %w", ErrIntent, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodDelete && r.Stamp != "" {
		req.Header.Set(headerStamp, r.Stamp)
	}
	// Only where it is honoured; see connectors.Request.
	if c.declare.Window > 0 && r.IdempotencyKey != "" {
		req.Header.Set("Idempotency-Key", r.IdempotencyKey)
	}
	if !r.Conditional {
		return req, nil
	}
	if !slices.Contains(c.declare.Profile().Conditional, r.Intent.Write) {
		return nil, fmt.Errorf("%w: /write: %s cannot be conditional here", ErrIntent, r.Intent.Write)
	}
	before := beforeOf(r)
	switch {
	case before != nil && before.Version != "":
		req.Header.Set("If-Match", strconv.Quote(before.Version))
	case method == http.MethodPut && r.Before != nil && len(r.Before.Records) == 0:
		req.Header.Set("If-None-Match", "*")
	default:
		return nil, fmt.Errorf("%w: a conditional %s needs one record with a version in the read before it", ErrIntent, r.Intent.Write)
	}
	return req, nil
}

// beforeOf is the one record that was there, nil when there was another number.
func beforeOf(r connectors.Request) *connectors.Record {
	if r.Before == nil || len(r.Before.Records) != 1 || r.Before.Records[0].Ref == "" {
		return nil
	}
	return &r.Before.Records[0]
}

// Check refuses an intent that names no order. The error wraps [ErrIntent].
func (c *Connector) Check(w intent.WriteIntent) error {
	_, err := orderIDOf(w)
	return err
}

func orderIDOf(w intent.WriteIntent) (string, error) {
	if w.Kind != Kind {
		return "", fmt.Errorf("%w: /kind: %q is not known; want %q", ErrIntent, w.Kind, Kind)
	}
	for name := range w.Key {
		if name != fieldOrderID {
			return "", connectors.WrongField("/key/"+name, fmt.Errorf("%w: /key/%s: orders are found by %s alone", ErrIntent, name, fieldOrderID))
		}
	}
	id, isText := w.Key[fieldOrderID].(string)
	if id == "" || len(id) > maxOrderID || id == "." || id == ".." {
		err := fmt.Errorf("%w: /key/%s: want a string of 1 to %d bytes", ErrIntent, fieldOrderID, maxOrderID)
		if isText {
			return "", connectors.WrongValue("/key/"+fieldOrderID, "x", err)
		}
		return "", connectors.WrongField("/key/"+fieldOrderID, err)
	}
	for _, m := range []struct {
		path   string
		fields intent.Fields
	}{{"/expect", w.Expect}, {"/payload", w.Payload}} {
		if v, ok := m.fields[fieldOrderID]; ok && v != id {
			return "", fmt.Errorf("%w: %s/%s: want the same as in /key", ErrIntent, m.path, fieldOrderID)
		}
	}
	return id, nil
}

// fieldsOf is what gets written.
func fieldsOf(w intent.WriteIntent) intent.Fields {
	if w.Write == intent.Delete {
		return nil
	}
	all := intent.Fields{}
	for _, m := range []intent.Fields{w.Payload, w.Expect, w.Key} {
		for name, v := range m {
			all[name] = v
		}
	}
	return all
}

// observe makes an observation of what a read found.
func (c *Connector) observe(found []Order, began time.Time, strong bool, path string) connectors.Observation {
	o := connectors.Observation{At: began, Path: path, Records: []connectors.Record{}}
	if strong {
		o.Strength = connectors.Strong
	}
	for _, f := range found {
		o.Records = append(o.Records, connectors.Record{
			Ref: f.ID, URL: c.url(f.ID), Version: revision(f.Version), Stamp: f.Stamp, Fields: f.Fields,
		})
	}
	return o
}
