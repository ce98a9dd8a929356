package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	neturl "net/url"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/intent"
)

// maxCompleted is how many records found by other reads are read again one by one: one
// observation may not cost more calls.
const maxCompleted = 10

// Read returns every record that has the stamp or the business key: by all declared lookups that
// are possible, and by the ref where one is known, except those that can show nothing more. It
// merges their results by the records' refs.
func (c *Connector) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	k, err := c.kindOf(q.Intent)
	if err != nil {
		return connectors.Observation{}, err
	}
	if k.profile.WriteOnly {
		return connectors.Observation{}, connectors.ErrWriteOnly
	}
	stamp, first := q.Stamp, q.FirstSent
	q = k.asked(q)
	m := newMerge(k, q)
	v := c.readValues(q)
	for _, r := range k.lookups(q) {
		if m.suffices(r) {
			continue
		}
		found, err := c.ask(ctx, m, r, k.bounded(v, r, k.floor(r, q)))
		if err != nil {
			return connectors.Observation{}, fmt.Errorf("read %q: %w", r.name, err)
		}
		m.add(r, found)
	}
	if !m.queried {
		return connectors.Observation{}, fmt.Errorf("%w: /key: no lookup can be made by it", errIntent)
	}
	if err := c.readRefs(ctx, m, v); err != nil {
		return connectors.Observation{}, err
	}
	seen := m.observation()
	if len(seen.Records) == 0 && first.IsZero() { // asked last, and only where absence may rest on it
		seen.Unused = c.unused(ctx, k, q, v)
	}
	c.shown(k, &seen, stamp)
	seen.Independent = c.independence(ctx, k)
	return seen, nil
}

// lookups returns those that can be made for a query. Those by stamp alone are last: what a look-up
// by key shows often makes them needless.
func (k *kind) lookups(q connectors.Query) (all []*read) {
	var byStamp []*read
	for _, r := range k.reads {
		switch {
		case !r.asks(q):
		case r.key:
			all = append(all, r)
		default:
			byStamp = append(byStamp, r)
		}
	}
	return append(all, byStamp...)
}

// asks reports whether a lookup by key or stamp can be made for a query.
func (r *read) asks(q connectors.Query) bool {
	if r.ref || r.bulk > 0 || r.stampIsAsked && q.Stamp == "" {
		return false
	}
	for _, name := range r.keysAsked {
		if _, there := q.Intent.Key[name]; !there {
			return false
		}
	}
	return r.key || q.Stamp != ""
}

func (c *Connector) readValues(q connectors.Query) values {
	v := c.given()
	v["key"] = map[string]any(q.Intent.Key)
	if q.Stamp != "" {
		v["stamp"] = q.Stamp
	}
	return v
}

// readRefs reads by refs: the one that is known, and those of the records found
// where the declaration completes them so.
func (c *Connector) readRefs(ctx context.Context, m *merge, v values) error {
	i := slices.IndexFunc(m.k.reads, func(r *read) bool { return r.ref })
	if i < 0 {
		return nil
	}
	r := m.k.reads[i]
	var refs []string
	if r.complete {
		refs = m.refs()
	}
	if m.q.Ref != "" && !slices.Contains(refs, m.q.Ref) && !m.shows(m.q.Ref, r) && r.canAsk(m.q.Ref, v) {
		refs = append(refs, m.q.Ref)
	}
	if len(refs) > maxCompleted {
		return fmt.Errorf("read %q: %w: %d records are found, too many to read one by one", r.name, errAnswer, len(refs))
	}
	for _, ref := range refs {
		v["ref"] = ref
		found, err := c.ask(ctx, m, r, v)
		if err != nil {
			return fmt.Errorf("read %q: %w", r.name, err)
		}
		m.addRef(r, ref, found)
	}
	return nil
}

// canAsk reports whether the request can contain a ref from a receipt. A receipt is evidence; an
// unusable ref must not prevent all reads.
func (r *read) canAsk(ref string, v values) bool {
	asked := maps.Clone(v)
	asked["ref"] = ref
	_, err := r.request.fill(filling{values: asked, guarded: true})
	return err == nil
}

// result is the result of one declared read.
type result struct {
	// records are those that match the query; others are not kept.
	records []found
	// strong means that the read showed everything that was applied before.
	strong bool
	// elements are the records of a bulk read, as the answer shows them.
	elements []any
}

// ask makes one declared read. An answer that is not as declared is an error.
func (c *Connector) ask(ctx context.Context, m *merge, r *read, v values) (result, error) {
	d, err := r.request.fill(filling{values: v, guarded: true})
	if err != nil {
		return result{}, err
	}
	var f result
	if r.single != nil {
		f, err = c.askOne(ctx, m, r, d, v)
	} else {
		f, err = c.askList(ctx, m, r, d, v)
	}
	if err == nil && len(f.records) == 0 {
		err = c.see(ctx, r, v)
	}
	return f, err
}

// see reads the container of the records, so that "may not see it" is not mistaken for "is not
// there".
//
// Where the account has other names than the declaration, the probe is made once, if it asks for one of
// them: under a wrong name nothing is found either.
func (c *Connector) see(ctx context.Context, r *read, v values) error {
	if c.otherNames && slices.ContainsFunc(c.d.names, c.d.probe.asksFor) {
		if err := c.probeOnce(ctx); err != nil {
			return fmt.Errorf("nothing was found, and whether the account has what its parameters name is unknown: the probe: %w", err)
		}
	}
	if r.visible == nil {
		return nil
	}
	if err := c.fetch(ctx, r.visible, v); err != nil {
		return fmt.Errorf("nothing was found, and what it would be in cannot be read: %w", err)
	}
	return nil
}

// fetch makes a request whose answer must be as declared.
func (c *Connector) fetch(ctx context.Context, l *look, v values) error {
	d, err := l.request.fill(filling{values: v, guarded: true})
	if err != nil {
		return err
	}
	u, err := c.url(d.path, d.query)
	if err != nil {
		return err
	}
	_, _, err = once(ctx, l, d, u, func() (httpsend.Answer, any, error) { return c.readAs(ctx, d, u, nil, l.must) })
	return err
}

// get makes a read that is a draft.
func (c *Connector) get(ctx context.Context, d *draft) (httpsend.Answer, error) {
	u, err := c.url(d.path, d.query)
	if err != nil {
		return httpsend.Answer{}, err
	}
	return c.read(ctx, d, u)
}

// read makes the request of a draft at an address.
func (c *Connector) read(ctx context.Context, d *draft, u *neturl.URL) (httpsend.Answer, error) {
	by := c.reads
	if ctx.Value(asWriterKey{}) != nil {
		by = c.writes
	}
	a, err := c.readBy(ctx, by, d, u)
	if errors.Is(err, errEnded) { // once more, by a new session
		a, err = c.readBy(ctx, by, d, u)
	}
	if err != nil { // errors may quote what the destination says
		a.Body = []byte(c.masks.Text(string(a.Body)))
	}
	return a, err
}

func (c *Connector) readBy(ctx context.Context, by *login, d *draft, u *neturl.URL) (httpsend.Answer, error) {
	req, used, err := c.request(ctx, by, d, u)
	if err != nil {
		return httpsend.Answer{}, err
	}
	a, err := c.client.Read(req)
	err = by.auth.ofRead(a, c.d.shape, c.d.throttle.ofRead(a, c.d.shape, err))
	by.heed(ctx, used, a.Status, err)
	return a, err
}

// readAs makes the request of a draft and takes its answer apart, which must be as declared: a
// success, or one of the accepted statuses.
func (c *Connector) readAs(ctx context.Context, d *draft, u *neturl.URL, accept []int, must []*condition) (httpsend.Answer, any, error) {
	a, err := c.read(ctx, d, u)
	if err = accepted(accept, a, err); err != nil {
		return a, nil, err
	}
	doc, err := c.d.shape.decode(a)
	if err == nil {
		err = met(must, doc, a.Header)
	}
	return a, doc, err
}

// notNow reports whether an API asked to wait, or refused the login: its answer says nothing of records.
func notNow(err error) bool {
	fate := connectors.FateOf(err)
	return fate == connectors.FateThrottled || fate == connectors.FateLogin
}

// accepted takes the further statuses that are read like 200.
func accepted(accept []int, a httpsend.Answer, err error) error {
	if err != nil && slices.Contains(accept, a.Status) && !notNow(err) {
		return a.BodyErr
	}
	return err
}

// askOne reads the one record that the request addresses.
func (c *Connector) askOne(ctx context.Context, m *merge, r *read, d *draft, v values) (result, error) {
	if err := c.paces[r].wait(ctx); err != nil {
		return result{}, err
	}
	a, err := c.get(ctx, d)
	if err = accepted(r.accept, a, err); notNow(err) {
		return result{}, err // whatever else the answer says
	} else if err != nil {
		gone, doc, unclear := r.says(a)
		if gone || unclear != nil {
			return result{strong: r.showsAll(doc, a)}, unclear
		}
		return result{}, err
	}
	doc, err := r.parse(a)
	if err != nil {
		return result{}, err
	}
	if slices.Contains(r.absent, a.Status) && r.absentWhere.all(doc, true, a.Header) {
		// A record beside what is said about its absence: something else is absent. Where the whole
		// answer is the record, it says so of itself.
		if one, there := r.single.Value(doc); there && one != nil && r.single.Text() != "$" {
			return result{}, fmt.Errorf("%w: it has %s, and says that nothing is there", errAnswer, r.single.Text())
		}
		return result{strong: r.showsAll(doc, a)}, nil
	}
	if err := met(r.must, doc, a.Header); err != nil {
		return result{}, err
	}
	one, there := r.single.Value(doc)
	if !there {
		return result{}, fmt.Errorf("%w: there is no %s in it", errAnswer, r.single.Text())
	}
	f := result{strong: r.showsAll(doc, a)}
	rec, kept, err := m.k.record.of(one, a.Header, stampOf(v))
	if err != nil || !kept {
		return f, err
	}
	m.k.within(rec.Record, m.q.Intent.Key)
	if r.version.header != "" || r.version.place != nil {
		rec.Version = r.version.of(doc, a.Header)
	}
	ours, err := m.takes(rec.Record)
	if err != nil {
		return f, err
	}
	if ours {
		f.records = []found{rec}
	}
	return f, r.answersWith(m.k, rec.Record, v)
}

// showsAll reports whether an answer shows everything that was applied before.
func (r *read) showsAll(doc any, a httpsend.Answer) bool {
	if !r.strong || r.strongIf == nil {
		return r.strong
	}
	holds, known := r.strongIf.holds(doc, true, a.Header)
	return holds && known
}

// parse takes the answer to a read apart. That to a HEAD is its headers.
func (r *read) parse(a httpsend.Answer) (any, error) {
	if r.request.method == http.MethodHead {
		return map[string]any{}, a.BodyErr
	}
	return r.request.shape.decode(a)
}

// says reports whether an answer states that the record does not exist. It must be the API's own
// answer, which is JSON, or empty where that is declared: a gateway returns 404 as well.
func (r *read) says(a httpsend.Answer) (gone bool, doc any, err error) {
	if !slices.Contains(r.absent, a.Status) {
		return false, nil, nil
	}
	if r.absentEmpty && a.BodyErr == nil && len(bytes.TrimSpace(a.Body)) == 0 {
		return true, nil, nil
	}
	if doc, err = r.request.shape.decode(a); err != nil {
		return false, nil, fmt.Errorf("the destination answered %d: %w", a.Status, err)
	}
	if r.absentWhere == nil { // a page of a gateway is no JSON, and may be XML
		return r.request.shape == nil, doc, nil
	}
	return r.absentWhere.all(doc, true, a.Header), doc, nil
}

func stampOf(v values) string {
	s, _ := v["stamp"].(string)
	return s
}

// answersWith refuses a record other than the queried one: the destination then treats different
// keys as equal, and whether a record exists under ours is unknown.
func (r *read) answersWith(k *kind, rec connectors.Record, v values) error {
	key, _ := v["key"].(map[string]any)
	for _, name := range r.keysAsked {
		if !k.sameField(name, key, rec.Fields) {
			return fmt.Errorf("%w: the record has another %s than was asked for, or it is not shown: the destination does not compare it exactly", errAnswer, name)
		}
	}
	if r.stampIsAsked && rec.Stamp != stampOf(v) {
		return fmt.Errorf("%w: the record has another stamp than was asked for", errAnswer)
	}
	return nil
}

// within puts the scope, which a record does not show, among its fields: it is that of the request
// that the record answers.
func (k *kind) within(rec connectors.Record, key map[string]any) {
	for _, name := range k.scope {
		if v, there := key[name]; there && rec.Fields != nil {
			rec.Fields[name] = v
		}
	}
}

// sameNames reports whether fields are exactly those of the names.
func sameNames(names []string, fields intent.Fields) bool {
	for _, name := range names {
		if _, there := fields[name]; !there {
			return false
		}
	}
	return len(names) == len(fields)
}

// sameField reports whether a record has a field of the business key.
func (k *kind) sameField(name string, key map[string]any, fields intent.Fields) bool {
	got, there := fields[name]
	return there && sameKey(key[name], got, k.profile.Compare["/"+name])
}

// sameKey reports whether a record has the business key.
func (k *kind) sameKey(key, fields intent.Fields) bool {
	for name := range key {
		if !k.sameField(name, key, fields) {
			return false
		}
	}
	return len(key) > 0
}
