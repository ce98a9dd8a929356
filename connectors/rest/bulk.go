package rest

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

// ReadMany reads for many queries with few requests: by the bulk reads that are declared, or by
// lists that are the same for all queries. A query that none of them can serve gets an error of
// its own.
func (c *Connector) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	answers := make([]connectors.BulkAnswer, len(qs))
	type group struct {
		k *kind
		r *read
		// which are the places of the queries.
		which []int
	}
	var groups []*group
	began := time.Now()
	same := context.WithValue(ctx, answeredKey{}, answered{})
	shared := together(qs)
	given := qs
	qs = slices.Clone(qs)
	for i, q := range given {
		k, err := c.kindOf(q.Intent)
		if err != nil {
			answers[i].Err = err
			continue
		}
		if k.shared() {
			answers[i].Observation, answers[i].Err = c.Read(same, shared[i])
			answers[i].Observation.At = began // an answer may be from before this query's turn
			continue
		}
		r := k.bulkFor(q)
		if r == nil {
			answers[i].Err = fmt.Errorf("%w: /key: no bulk read can be made by it", errIntent)
			continue
		}
		at := slices.IndexFunc(groups, func(g *group) bool {
			return g.r == r && len(g.which) < r.bulk && k.sameScope(qs[g.which[0]].Intent.Key, q.Intent.Key)
		})
		if at < 0 {
			at, groups = len(groups), append(groups, &group{k: k, r: r})
		}
		groups[at].which = append(groups[at].which, i)
		qs[i] = k.asked(q)
	}
	for _, g := range groups {
		c.readGroup(ctx, g.k, g.r, qs, g.which, answers)
		way := c.independence(ctx, g.k)
		for _, i := range g.which {
			if answers[i].Err == nil {
				answers[i].Observation.Independent = way
			}
			c.shown(g.k, &answers[i].Observation, given[i].Stamp)
		}
	}
	return answers, nil
}

// shared reports whether all reads of a kind are lists that ask for nothing of a query but its
// scope: what one of them shows answers every query of that scope.
func (k *kind) shared() bool {
	return !slices.ContainsFunc(k.reads, func(r *read) bool {
		return r.list == nil || r.bulk > 0 || r.stampIsAsked || r.asksWithin(k.scope)
	})
}

// sameScope reports whether two queries may share a request.
func (k *kind) sameScope(a, b intent.Fields) bool {
	return !slices.ContainsFunc(k.scope, func(name string) bool { return !declared.Same(a[name], b[name]) })
}

// common are the values that all queries of one request share.
func (c *Connector) common(k *kind, key intent.Fields) values {
	v := c.given()
	scope := map[string]any{}
	for _, name := range k.scope {
		scope[name] = key[name]
	}
	v["key"] = scope
	return v
}

// answered are the answers that one bulk read had, each taken apart once. A failure is shared as
// well: each query would meet it again.
type answered map[asking]answerOrError

type answeredKey struct{}

// asking is a request of a bulk read: of is the part of the declaration that makes it. What its
// pages, and the queries of several scopes, differ by is the address, a header or the body.
type asking struct {
	of        any
	url, rest string
}

type answerOrError struct {
	httpsend.Answer
	doc any
	err error
}

// once makes a request, or returns the answer that the same request of the same bulk read had.
func once(ctx context.Context, of any, d *draft, u *url.URL, ask func() (httpsend.Answer, any, error)) (httpsend.Answer, any, error) {
	all, ok := ctx.Value(answeredKey{}).(answered)
	if !ok {
		return ask()
	}
	body, _, err := d.encoded()
	if err != nil {
		return ask()
	}
	key := asking{of, u.String(), fmt.Sprint(d.header) + string(body)}
	got, known := all[key]
	if !known {
		got.Answer, got.doc, got.err = ask()
		all[key] = got
	}
	return got.Answer, got.doc, got.err
}

// bulkFor is the bulk read that can serve a query, nil when there is none.
func (k *kind) bulkFor(q connectors.Query) *read {
	for _, r := range k.reads {
		able := r.bulk > 0 && (q.Stamp != "" || r.key && !r.stampIsAsked)
		for _, name := range r.keysAsked {
			_, there := q.Intent.Key[name]
			able = able && there
		}
		if able {
			return r
		}
	}
	return nil
}

// readGroup answers several queries with one request.
func (c *Connector) readGroup(ctx context.Context, k *kind, r *read, qs []connectors.Query, which []int, answers []connectors.BulkAnswer) {
	merges := map[int]*merge{}
	var each []values
	for _, i := range which {
		v := c.readValues(qs[i])
		k.bounded(v, r, k.floor(r, qs[i]))
		// What spoils the request spoils it for its own query alone.
		if _, err := r.request.fill(filling{values: k.bounded(c.common(k, qs[i].Intent.Key), r, k.floor(r, qs[i])), each: []values{v}, guarded: true}); err != nil {
			answers[i].Err = err
			continue
		}
		merges[i], each = newMerge(k, qs[i]), append(each, v)
	}
	if len(merges) == 0 {
		return
	}
	common := k.bounded(c.common(k, qs[which[0]].Intent.Key), r, k.floorOf(r, qs, which))
	f, err := c.askMany(ctx, k, r, common, each)
	for _, i := range which {
		m := merges[i]
		if m == nil {
			continue
		}
		if err != nil {
			answers[i].Err = fmt.Errorf("read %q: %w", r.name, err)
			continue
		}
		answers[i] = m.answer(r, f)
	}
	if err == nil && slices.ContainsFunc(which, func(i int) bool { return answers[i].Err == nil && len(answers[i].Observation.Records) == 0 }) {
		err = c.see(ctx, r, common)
		for _, i := range which {
			if err != nil && answers[i].Err == nil && len(answers[i].Observation.Records) == 0 {
				answers[i] = connectors.BulkAnswer{Err: fmt.Errorf("read %q: %w", r.name, err)}
			}
		}
	}
}

// answer is one query's part of the records of a shared request.
func (m *merge) answer(r *read, f result) connectors.BulkAnswer {
	mine := result{strong: f.strong}
	for _, rec := range f.records {
		ours, err := m.takes(rec.Record)
		if err != nil {
			return connectors.BulkAnswer{Err: err}
		}
		if ours {
			mine.records = append(mine.records, rec)
		}
	}
	if len(mine.records) == 0 {
		marks := m.k.marks(r, m.q.Intent.Key)
		for _, e := range f.elements {
			marks.meet(e)
		}
		if err := marks.unshown(); err != nil {
			return connectors.BulkAnswer{Err: fmt.Errorf("read %q: %w", r.name, err)}
		}
	}
	m.add(r, mine)
	return connectors.BulkAnswer{Observation: m.observation()}
}

// askMany makes one bulk request.
func (c *Connector) askMany(ctx context.Context, k *kind, r *read, common values, each []values) (result, error) {
	d, err := r.request.fill(filling{values: common, each: each, guarded: true})
	if err != nil {
		return result{}, err
	}
	u, err := c.url(d.path, d.query)
	if err != nil {
		return result{}, err
	}
	a, doc, err := c.askPage(ctx, r, d, u)
	if err != nil {
		return result{}, err
	}
	elements, err := r.list.All(doc, errAnswer)
	if err != nil {
		return result{}, err
	}
	if _, _, err := c.next(r, d, u, a, doc, len(elements), 1); err != nil {
		return result{}, err // it has more pages
	}
	if err := k.unlike(r, elements); err != nil {
		return result{}, err
	}
	f := result{strong: r.showsAll(doc, a)}
	for _, e := range elements {
		rec, kept, err := k.listed(r, e, each...)
		if err != nil {
			return result{}, err
		}
		if kept {
			f.elements = append(f.elements, e)
			f.records = append(f.records, rec)
		}
	}
	if r.search && len(elements) > 0 && !r.quoted(elements, k.scope, each...) {
		return result{}, errIgnored
	}
	return f, nil
}
