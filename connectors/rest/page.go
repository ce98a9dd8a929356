package rest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/jsonplace"
)

const (
	// maxURL bounds a request's URL in bytes. Servers refuse more than 8 KiB,
	// some after they cut it.
	maxURL = 8 << 10
	// maxMatches is how many records may match one query. Each is compared
	// and kept as evidence.
	maxMatches = 1000
)

// errEndless is wrapped when a list has more pages than the limit. A truncated list must not be
// mistaken for a whole one.
var errEndless = errors.New("the list has more pages than are read")

// errIgnored is the error of a search of text whose hits, all of them, are no answer to it. An API that
// ignores the search lists everything, or the first page of it.
var errIgnored = fmt.Errorf("%w: no hit of the search shows what was searched for; the destination seems to ignore the search", errAnswer)

// askList reads a list to its end.
func (c *Connector) askList(ctx context.Context, m *merge, r *read, d *draft, v values) (result, error) {
	f, shown, quoted, marks := result{strong: r.strong}, 0, !r.search && !r.onlyRefs, m.k.marks(r, m.q.Intent.Key)
	if p := r.paging; p != nil && p.page != "" {
		d.query.Set(p.page, "1")
	}
	u, err := c.url(d.path, d.query)
	if err != nil {
		return f, err
	}
	for page := 1; ; page++ {
		a, doc, err := c.askPage(ctx, r, d, u)
		if err != nil && page == 1 { // a later page ends where records were removed meanwhile
			if gone, said, _ := r.says(a); gone && !notNow(err) {
				return result{strong: r.showsAll(said, a)}, nil
			}
			if r.request.shape == nil && !notNow(err) {
				err = noPath(a, err)
			}
		}
		if err != nil {
			return f, err
		}
		f.strong = f.strong && r.showsAll(doc, a)
		elements, err := r.list.All(doc, errAnswer)
		if err != nil {
			return f, err
		}
		size := len(elements) // of the page
		if r.onlyRefs {
			shown += size
			if elements, err = nil, c.hits(ctx, m, &f, elements, v); err != nil {
				return f, err
			}
		}
		if err := m.k.unlike(r, elements); err != nil {
			return f, err
		}
		shown, quoted = shown+len(elements), quoted || r.quoted(elements, m.k.scope, v)
		for _, e := range elements {
			rec, kept, err := m.k.listed(r, e, v)
			if err != nil {
				return f, err
			}
			if !kept {
				continue
			}
			marks.meet(e)
			ours, err := m.takes(rec.Record)
			if err != nil {
				return f, err
			}
			if ours {
				if r.paging == nil && slices.ContainsFunc(f.records, func(other found) bool { return other.Ref == rec.Ref }) {
					// A list without pages shows nothing twice: what has no id of its own, as a row
					// that its key stands for, is there twice.
					rec.Ref = fmt.Sprintf("%s (%d)", rec.Ref, len(f.records)+1)
				}
				f.records = append(f.records, rec)
			}
		}
		if len(f.records) > maxMatches {
			return f, fmt.Errorf("%w: more than %d records match", errAnswer, maxMatches)
		}
		next, more, err := c.next(r, d, u, a, doc, size, page)
		if err == nil && !more && r.newest > 0 && shown >= r.newest {
			// What is not among the newest may be among those that are not shown.
			if f.strong = false; len(f.records) == 0 {
				return f, fmt.Errorf("%w: it shows the newest %d records only, and ours is not among them: it may be older", errAnswer, r.newest)
			}
		}
		if err == nil && !more && shown > 0 && !quoted && len(f.records) == 0 {
			return f, errIgnored
		}
		if err == nil && !more && len(f.records) == 0 {
			err = marks.unshown()
		}
		if err != nil || !more {
			f.strong = f.strong && !(len(elements) > 0 && len(f.records) == 0 && r.paging.counts())
			return f, err
		}
		if page >= r.pages {
			return f, fmt.Errorf("%w: %w (%d)", errAnswer, errEndless, page)
		}
		u, f.strong = next, f.strong && !r.paging.jumps()
	}
}

// hits reads the records of a list that shows only their refs.
func (c *Connector) hits(ctx context.Context, m *merge, f *result, elements []any, v values) error {
	if len(elements)+len(f.records) > maxCompleted {
		return fmt.Errorf("%w: %d records are found, too many to read one by one", errAnswer, len(elements))
	}
	by := m.k.reads[slices.IndexFunc(m.k.reads, func(r *read) bool { return r.ref })]
	for _, e := range elements {
		ref := m.k.record.ref.of(e, nil)
		if ref == "" {
			return fmt.Errorf("%w: a hit has no ref", errAnswer)
		}
		v := maps.Clone(v)
		v["ref"] = ref
		one, err := c.ask(ctx, m, by, v)
		if err != nil {
			return fmt.Errorf("read %q: %w", by.name, err)
		}
		f.records = append(f.records, one.records...)
	}
	return nil
}

func (c *Connector) askPage(ctx context.Context, r *read, d *draft, u *url.URL) (httpsend.Answer, any, error) {
	return once(ctx, r, d, u, func() (httpsend.Answer, any, error) {
		if err := c.paces[r].wait(ctx); err != nil {
			return httpsend.Answer{}, nil, err
		}
		return c.readAs(ctx, d, u, r.accept, r.must)
	})
}

// noPath is the error of a list that does not exist: an empty one is answered with
// 200. It must be the API's own answer, which is JSON: a gateway returns 404 as well.
func noPath(a httpsend.Answer, err error) error {
	if a.Status != http.StatusNotFound && a.Status != http.StatusMethodNotAllowed {
		return err
	}
	if _, foreign := decode(a); foreign != nil {
		return err
	}
	if message := a.Reply(true).Message; message != "" {
		err = fmt.Errorf("%w (in its own words: %.200q)", err, message)
	}
	return fmt.Errorf("%w: %w", connectors.ErrNoTarget, err)
}

// listed reads one record of a requested list. A record without a place for a field of the
// queried key is an error: the answer then has another shape, and all of its records would be
// mistaken for foreign ones. A record that was not queried is also an error: APIs ignore unknown
// parameters, and the first page of everything would be mistaken for absence.
func (k *kind) listed(r *read, element any, asked ...values) (found, bool, error) {
	var stamps []string
	for _, v := range asked {
		stamps = append(stamps, stampOf(v))
	}
	rec, kept, err := k.record.of(element, nil, stamps...)
	if err != nil || !kept {
		return rec, false, err
	}
	if len(k.scope) > 0 { // all that are asked in one request are of one scope
		key, _ := asked[0]["key"].(map[string]any)
		k.within(rec.Record, key)
	}
	// A hit that has our stamp, or our key, is what was asked for, whatever else it shows.
	ours := slices.ContainsFunc(asked, func(v values) bool {
		key, _ := v["key"].(map[string]any)
		return rec.Stamp != "" && strings.EqualFold(rec.Stamp, stampOf(v)) || len(key) > 0 && k.sameKey(key, rec.Fields)
	})
	for _, name := range r.keysAsked {
		if !slices.Contains(k.scope, name) && !k.record.hasPlace(name, element) {
			if r.search && !ours {
				return rec, false, nil
			}
			return rec, false, fmt.Errorf("%w: a record that was asked for by %s does not show it", errAnswer, name)
		}
	}
	if !slices.ContainsFunc(asked, func(v values) bool { return r.mayAnswer(rec.Record, v) }) {
		if r.search && !ours {
			return rec, false, nil
		}
		return rec, false, fmt.Errorf("%w: it holds a record that was not asked for; the destination seems to ignore what it is asked by", errAnswer)
	}
	return rec, true, nil
}

// unlike refuses the hits of a search of text of which none has the place of the queried key: then
// the answer has another shape, or finds only what is no record of this kind.
func (k *kind) unlike(r *read, elements []any) error {
	if !r.search || len(elements) == 0 {
		return nil
	}
	for _, name := range r.keysAsked {
		has := func(e any) bool { return k.record.hasPlace(name, e) }
		if !slices.Contains(k.scope, name) && !slices.ContainsFunc(elements, has) {
			return fmt.Errorf("%w: no hit of the search shows %s; where hits can be of another kind, record.keep tells them apart", errAnswer, name)
		}
	}
	return nil
}

// quoted reports whether a hit of a search of text shows, in whatever member, all that one of the
// queries searched for. One hit is enough, since an index knows texts, such as comments, that hits do not show.
func (r *read) quoted(hits []any, scope []string, asked ...values) bool {
	shows := func(hit any, v values) bool {
		key, _ := v["key"].(map[string]any)
		for _, name := range r.keysAsked {
			if !slices.Contains(scope, name) && !quotes(hit, key[name]) {
				return false
			}
		}
		return !r.stampIsAsked || quotes(hit, stampOf(v))
	}
	return slices.ContainsFunc(hits, func(hit any) bool {
		return slices.ContainsFunc(asked, func(v values) bool { return shows(hit, v) })
	})
}

// mayAnswer reports whether a record can be the result of a query, if only because the
// destination treats similar values as equal.
func (r *read) mayAnswer(rec connectors.Record, v values) bool {
	if r.stampIsAsked && rec.Stamp != "" && rec.Stamp != stampOf(v) {
		return false
	}
	key, _ := v["key"].(map[string]any)
	for _, name := range r.keysAsked {
		got := rec.Fields[name]
		if got == nil && rec.Stamp != "" && rec.Stamp == stampOf(v) {
			continue // ours, whose key another actor has removed
		}
		// Most records of a system have no key of ours: a page of them means that the filter was
		// ignored.
		if !similar(key[name], got) {
			return false
		}
	}
	return true
}

// next is the address of the next page, where there is more. d is changed where
// the next request has another body.
func (c *Connector) next(r *read, d *draft, u *url.URL, a httpsend.Answer, doc any, size, page int) (*url.URL, bool, error) {
	p := r.paging
	if p == nil {
		if to, err := linked(a.Header, "next"); err == nil && to != "" {
			return nil, false, fmt.Errorf("%w: %w (a link leads to a next one, and the declaration names no paging)", errAnswer, errEndless)
		}
		return nil, false, nil
	}
	more, err := p.saysMore(doc, r.request.shape != nil)
	if err != nil || !more {
		return nil, false, err
	}
	switch {
	case p.page != "":
		if size < p.size {
			return nil, false, nil
		}
		return withQuery(u, p.page, strconv.Itoa(page+1)), true, nil
	case p.link != "":
		return c.follow(u, func() (string, error) { return linked(a.Header, p.link) })
	case p.nextURL != nil:
		return c.follow(u, func() (string, error) { return text(p.nextURL, doc) })
	}
	token, err := text(p.next, doc)
	switch {
	case err != nil:
		return nil, false, err
	case token == "" && p.more != nil:
		return nil, false, fmt.Errorf("%w: there is more of the list, and %s does not say where", errAnswer, p.next.Text())
	case token == "":
		return nil, false, nil
	case p.query != "":
		return withQuery(u, p.query, token), true, nil
	}
	body, _ := d.body.(map[string]any)
	body = maps.Clone(body)
	if variables, ok := body["variables"].(map[string]any); ok && r.request.graphql != nil {
		variables = maps.Clone(variables)
		variables[p.body], body["variables"] = token, variables
	} else {
		body[p.body] = token
	}
	d.body = body
	return u, true, nil
}

// saysMore reports whether the answer announces more pages; true if that is not declared.
func (p *paging) saysMore(doc any, isXML bool) (bool, error) {
	if p.more == nil {
		return true, nil
	}
	v, _ := p.more.Value(doc)
	more, isBool := v.(bool)
	if isXML {
		more, isBool = v == "true", v == "true" || v == "false"
	}
	if !isBool {
		return false, fmt.Errorf("%w: %s is %s, want true or false", errAnswer, p.more.Text(), declared.KindOf(v))
	}
	return more, nil
}

// text is a scalar in an answer, "" for none or null.
func text(p *jsonplace.Place, doc any) (string, error) {
	v, there := p.Value(doc)
	if !there || v == nil {
		return "", nil
	}
	s, ok := scalarText(v)
	if _, isBool := v.(bool); !ok || isBool || len(s) > maxURL {
		return "", fmt.Errorf("%w: %s is %s, want text", errAnswer, p.Text(), declared.KindOf(v))
	}
	return s, nil
}

// follow accepts an address of the API, on a declared host only.
func (c *Connector) follow(u *url.URL, where func() (string, error)) (*url.URL, bool, error) {
	to, err := where()
	if err != nil || to == "" {
		return nil, false, err
	}
	next, err := u.Parse(to)
	if err != nil || strings.ContainsFunc(to, isControl) {
		return nil, false, fmt.Errorf("%w: the address of the next page is none", errAnswer)
	}
	next.Fragment, next.RawFragment = "", ""
	if len(next.String()) > maxURL {
		return nil, false, fmt.Errorf("%w: the address of the next page has more than %d bytes", errAnswer, maxURL)
	}
	return next, true, c.reachable(next)
}

func withQuery(u *url.URL, name, value string) *url.URL {
	next := *u
	q := next.Query()
	q.Set(name, value)
	next.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return &next
}

// linked returns the address of a relation in the Link headers (RFC 8288), ""
// where there is none. What does not have the form of a link is an error: a link
// that was overlooked would end the list too early. So is a link without a relation.
func linked(h http.Header, relation string) (string, error) {
	to := ""
	for _, line := range h.Values("Link") {
		for rest := strings.Trim(line, " \t,"); rest != ""; rest = strings.TrimLeft(rest, " \t,") {
			address, after, closed := strings.Cut(rest, ">")
			address, opened := strings.CutPrefix(address, "<")
			one, others, whole := cutUnquoted(after, ',')
			blank, parameters, _ := cutUnquoted(one, ';')
			if !opened || !closed || !whole || strings.TrimSpace(blank) != "" {
				return "", fmt.Errorf("%w: the header Link cannot be taken apart", errAnswer)
			}
			rest = others
			rel := ""
			for rel == "" && parameters != "" { // of several the first counts
				var parameter string
				parameter, parameters, _ = cutUnquoted(parameters, ';')
				if name, value, _ := strings.Cut(parameter, "="); strings.EqualFold(strings.TrimSpace(name), "rel") {
					rel = strings.Trim(value, " \t\"")
				}
			}
			if rel == "" {
				return "", fmt.Errorf("%w: a link of the header Link has no relation", errAnswer)
			}
			if slices.ContainsFunc(strings.Fields(rel), func(each string) bool { return strings.EqualFold(each, relation) }) {
				to = address
			}
		}
	}
	return to, nil
}

// cutUnquoted cuts a text at the first separator outside of quotes. whole is false
// where a quote does not end.
func cutUnquoted(s string, separator byte) (before, after string, whole bool) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == separator && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", !quoted
}
