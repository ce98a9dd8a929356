package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Read calls the reading tools of the contract. An answer that does not match the contract is an
// error, and never absence.
func (c *Connector) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	began := time.Now()
	if q.Intent.Workflow != "" { // that of a call whose intent is not made yet is in ctx
		ctx = For(ctx, q.Intent.Tenant, q.Intent.Workflow)
	}
	if c.writeOnly && q.Intent.Kind == WriteOnlyKind {
		return connectors.Observation{}, connectors.ErrWriteOnly
	}
	k, err := c.kindOf(q.Intent)
	if err != nil {
		return connectors.Observation{}, err
	}
	if err := k.checkKey(q.Intent); err != nil {
		return connectors.Observation{}, err
	}
	o := connectors.Observation{At: began, Records: []connectors.Record{}}
	l := &reading{c: c, k: k, q: q, strong: true}
	switch {
	case k.each:
		o.Records, err = l.several(ctx)
	case k.parts:
		o.Records, err = l.inParts(ctx)
	default:
		o.Records, err = l.one(ctx)
	}
	if err != nil {
		return connectors.Observation{}, hidden(err)
	}
	o.Path = l.path
	if l.strong && l.path != "" {
		o.Strength = connectors.Strong
	}
	return o, nil
}

// reading is one read in progress.
type reading struct {
	c *Connector
	k *kind
	q connectors.Query
	// strong means that every call was strong; path is that of the first call.
	strong bool
	path   string
}

// result is a record of an answer, with its outer element.
type result struct {
	doc, outer any
}

// ask calls one reading tool. A nil list and no error mean that the tool reports no record.
func (l *reading) ask(ctx context.Context, r *read, values map[string]any) ([]result, error) {
	l.strong = l.strong && r.strong
	if l.path == "" {
		l.path = r.name
	}
	args := map[string]any{}
	for name, t := range r.arguments {
		v, err := t.fill(values)
		if err != nil {
			return nil, err
		}
		args[name] = v
	}
	if _, err := l.c.trusted(ctx, r.tool); err != nil {
		return nil, err
	}
	res, err := l.c.client.Call(ctx, r.tool, args, nil)
	if err != nil {
		return nil, err
	}
	all, err := r.understand(res)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.label(), err)
	}
	return all, nil
}

// understand parses an answer.
func (r *read) understand(res *sdk.CallToolResult) ([]result, error) {
	if res.IsError {
		if matching(r.absent, textOf(res)) != nil {
			return nil, nil
		}
		return nil, answer("it is an error, and none by which the contract knows that something is not there")
	}
	if r.saysNone(res) {
		return nil, nil
	}
	doc, err := document(res, r.form)
	if err != nil {
		return nil, err
	}
	if r.single != nil {
		one, there := r.single.Value(doc)
		if !there {
			return nil, answer("there is no %s in it", r.single.Text())
		}
		return []result{{doc: one}}, nil
	}
	list, err := r.list.All(doc, errAnswer)
	if err != nil {
		return nil, err
	}
	if len(list) > maxRecords {
		return nil, answer("it shows more than %d records", maxRecords)
	}
	if r.limit > 0 && len(list) >= r.limit {
		return nil, answer("it shows %d records, which is where the tool cuts its answers; others may be missing", len(list))
	}
	return r.inner(list)
}

// saysNone reports whether an answer states in words that there is nothing. JSON is not matched:
// a record may contain the same words.
func (r *read) saysNone(res *sdk.CallToolResult) bool {
	text := textOf(res)
	return matching(r.empty, text) != nil && (r.form == "text" || !json.Valid([]byte(text)))
}

// inner descends one level where the contract says so.
func (r *read) inner(list []any) ([]result, error) {
	var all []result
	for _, e := range list {
		if r.within == nil {
			all = append(all, result{doc: e})
			continue
		}
		v, there := r.within.Value(e)
		inner, ok := v.([]any)
		if !there || !ok {
			return nil, answer("an element of %s has no list %s", r.list.Text, r.within.Text())
		}
		for _, i := range inner {
			all = append(all, result{doc: i, outer: e})
		}
		if len(all) > maxRecords {
			return nil, answer("it shows more than %d records", maxRecords)
		}
	}
	return all, nil
}

// record understands one record. A field that its path does not lead to is not
// there.
func (k *kind) recordOf(f result, key intent.Fields) connectors.Record {
	r := connectors.Record{Ref: scalar(k.record.ref, f.doc), URL: scalar(k.record.url, f.doc), Version: scalar(k.record.version, f.doc),
		Fields: intent.Fields{}}
	if k.record.stamp != nil {
		v, _ := k.record.stamp.value(f, key)
		r.Stamp, _ = v.(string)
	}
	for name, field := range k.record.fields {
		if v, there := field.value(f, key); there {
			r.Fields[name] = v
		}
	}
	return r
}

func (f *field) value(from result, key intent.Fields) (any, bool) {
	if f.key != "" {
		v, there := key[f.key]
		return v, there
	}
	doc := from.doc
	if f.outer {
		doc = from.outer
	}
	v, there := f.place.Value(doc)
	if !there || f.match == nil {
		return v, there
	}
	s, ok := v.(string)
	if !ok {
		return nil, false
	}
	m := f.match.FindAllStringSubmatch(s, 2)
	if len(m) != 1 { // none, or ambiguous
		return nil, false
	}
	return m[0][1], true
}
