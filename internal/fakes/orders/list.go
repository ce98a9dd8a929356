package orders

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/readbacktest/fault"
)

// span selects orders: those after an id, with a stamp of some kind if required, created or
// changed in a time.
type span struct {
	after       string
	stamped     bool
	from, until time.Time
}

// all answers it by pages, as list does: in the order of ids, which only grow, so that an order
// that is created between two pages comes at the end.
func (w *World) all(s span, at func(*row) *Order) page {
	p := page{Orders: []Order{}}
	for n := number(s.after) + 1; n <= w.lastID; n++ {
		r := w.rows[idOf(n)]
		if r == nil {
			continue
		}
		o := at(r)
		if o == nil || s.stamped && o.Stamp == "" || !s.holds(r) {
			continue
		}
		if len(p.Orders) == PageSize {
			p.Next = p.Orders[PageSize-1].ID
			break
		}
		seen := w.view(*o)
		seen.Fields = maps.Clone(o.Fields)
		p.Orders = append(p.Orders, seen)
	}
	return p
}

// holds reports whether any change of a record lies in the span.
func (s span) holds(r *row) bool {
	return slices.ContainsFunc(r.versions, func(v fault.State[*Order]) bool {
		return connectors.Scope{From: s.from, Until: s.until}.Holds(v.At)
	})
}

func (w *World) serveAll(rw http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	s := span{after: v.Get("after"), stamped: v.Get("stamped") == "true"}
	for name, into := range map[string]*time.Time{"from": &s.from, "until": &s.until} {
		if text := v.Get(name); text != "" {
			t, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				problem(http.StatusBadRequest, "not_understood", name+": want a time of RFC 3339").writeTo(rw)
				return
			}
			*into = t
		}
	}
	w.serveRead(rw, r, question{}, func(at func(*row) *Order) answer {
		return answer{status: http.StatusOK, body: w.all(s, at)}
	})
}

var _ connectors.Lister = (*Connector)(nil)

// List reads all orders of a scope. It is strong as Read is, and complete: orders are numbered in
// the order of their creation, and each page starts after a number.
func (c *Connector) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	if s.Kind != Kind || len(s.Within) > 0 {
		return connectors.Listing{}, fmt.Errorf("%w: kind %q within %v; want kind %q, and no place within", connectors.ErrScope, s.Kind, s.Within, Kind)
	}
	s.Stamped = s.Stamped && c.declare.Stamps // without stamps ours cannot be recognised
	l := connectors.Listing{At: time.Now(), Path: pathAll, Stamped: s.Stamped, Timed: !s.From.IsZero() || !s.Until.IsZero()}
	strong := len(c.declare.Lags) == 0
	v := url.Values{}
	if s.Stamped {
		v.Set("stamped", "true")
	}
	for name, t := range map[string]time.Time{"from": s.From, "until": s.Until} {
		if !t.IsZero() {
			v.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	for {
		p, primary, err := c.page(ctx, "/orders/all?", v)
		if err != nil {
			return connectors.Listing{}, fmt.Errorf("list orders: %w", err)
		}
		strong = strong && primary
		for _, o := range *p.Orders {
			if o.ID == "" || o.Fields == nil || number(o.ID) <= number(v.Get("after")) {
				return connectors.Listing{}, fmt.Errorf("%w: an order has no id, no fields, or was shown before", ErrRead)
			}
			v.Set("after", o.ID)
			if s.Each == nil {
				l.Records = append(l.Records, c.listed(o))
			} else if err := s.Each(c.listed(o)); err != nil {
				return connectors.Listing{}, err
			}
		}
		if l.Complete = p.Next == ""; l.Complete {
			break
		}
		if len(l.Records) >= connectors.MaxListed || len(*p.Orders) == 0 {
			l.Why = fmt.Sprintf("there are more than %d orders", len(l.Records))
			break
		}
	}
	if strong {
		l.Strength = connectors.Strong
	}
	return l, nil
}

func (c *Connector) listed(o Order) connectors.Listed {
	one := connectors.Listed{Record: connectors.Record{
		Ref: o.ID, URL: c.url(o.ID), Version: revision(o.Version), Stamp: o.Stamp, Fields: o.Fields,
	}}
	if text, ok := o.Fields[fieldUpdated].(string); ok {
		one.Changed, _ = time.Parse(time.RFC3339Nano, text) // zero: unknown
	}
	return one
}
