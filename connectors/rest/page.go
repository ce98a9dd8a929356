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

	"github.com/tomnomnom/linkheader"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/jsonplace"
)

// errEndless is wrapped when a list goes on beyond the bound. A list that is cut
// must not look like a whole one.
var errEndless = errors.New("the list has more pages than are read")

// askList reads a list to its end.
func (c *Connector) askList(ctx context.Context, m *merge, r *read, d *draft, v values) (found, error) {
	f := found{strong: r.strong}
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
			err = noPath(a, err)
		}
		if err != nil {
			return f, err
		}
		f.strong = f.strong && r.showsAll(doc, a)
		elements, err := r.list.all(doc)
		if err != nil {
			return f, err
		}
		for _, e := range elements {
			rec, kept, err := m.k.listed(r, e, v)
			if err != nil {
				return f, err
			}
			if !kept {
				continue
			}
			ours, err := m.takes(rec)
			if err != nil {
				return f, err
			}
			if ours {
				f.records = append(f.records, rec)
			}
		}
		if len(f.records) > maxMatches {
			return f, fmt.Errorf("%w: more than %d records match", ErrAnswer, maxMatches)
		}
		next, more, err := c.next(r, d, u, a, doc, len(elements), page)
		if err != nil || !more {
			f.strong = f.strong && !(len(elements) > 0 && len(f.records) == 0 && r.paging.counts())
			return f, err
		}
		if page >= r.pages {
			return f, fmt.Errorf("%w: %w (%d)", ErrAnswer, errEndless, page)
		}
		u, f.strong = next, f.strong && !r.paging.jumps()
	}
}

func (c *Connector) askPage(ctx context.Context, r *read, d *draft, u *url.URL) (httpsend.Answer, any, error) {
	req, used, err := c.request(ctx, d, u)
	if err != nil {
		return httpsend.Answer{}, nil, err
	}
	a, err := c.client.Read(req)
	if a.Status == http.StatusUnauthorized && used != nil {
		c.tokens.drop(ctx, used)
	}
	if err = r.accepts(a, err); err != nil {
		return a, nil, err
	}
	doc, err := decode(a)
	if err == nil {
		err = met(r.must, doc, a.Header)
	}
	return a, doc, err
}

// noPath is the error of a list that is not there: an empty one is answered with
// 200. It must be the API's own answer, which is JSON: a gateway says 404 as well.
func noPath(a httpsend.Answer, err error) error {
	if a.Status != http.StatusNotFound && a.Status != http.StatusMethodNotAllowed {
		return err
	}
	if _, foreign := decode(a); foreign != nil {
		return err
	}
	if said := a.Said(true).Message; said != "" {
		err = fmt.Errorf("%w (in its own words: %.200q)", err, said)
	}
	return fmt.Errorf("%w: %w", connectors.ErrNoTarget, err)
}

// listed reads one record of a list that was asked for. One that has no place
// for a field of the key by which it was asked for is an error: the answer has
// another shape then, and all of its records would look like strangers. So is
// one that nobody asked for: APIs ignore parameters that they do not know, and
// the first page of everything would look like absence.
func (k *kind) listed(r *read, element any, asked ...values) (connectors.Record, bool, error) {
	var stamps []string
	for _, v := range asked {
		stamps = append(stamps, stampOf(v))
	}
	rec, kept, err := k.record.of(element, stamps...)
	if err != nil || !kept {
		return rec, false, err
	}
	for _, name := range r.keysAsked {
		if !k.record.hasPlace(name, element) {
			return rec, false, fmt.Errorf("%w: a record that was asked for by %s does not show it", ErrAnswer, name)
		}
	}
	if !slices.ContainsFunc(asked, func(v values) bool { return r.mayAnswer(rec, v) }) {
		return rec, false, fmt.Errorf("%w: it holds a record that was not asked for; the destination seems to ignore what it is asked by", ErrAnswer)
	}
	return rec, true, nil
}

// mayAnswer reports whether a record can be the answer to a question, if only
// because the destination takes what is similar for the same.
func (r *read) mayAnswer(rec connectors.Record, v values) bool {
	if r.stampIsAsked && rec.Stamp != "" && rec.Stamp != stampOf(v) {
		return false
	}
	key, _ := v["key"].(map[string]any)
	for _, name := range r.keysAsked {
		got := rec.Fields[name]
		if got == nil && rec.Stamp != "" && rec.Stamp == stampOf(v) {
			continue // ours, of which somebody took the key
		}
		// Most records of a system have no key of ours: a first page of them is
		// what a filter that is ignored answers.
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
			return nil, false, fmt.Errorf("%w: %w (a link leads to a next one, and the declaration names no paging)", ErrAnswer, errEndless)
		}
		return nil, false, nil
	}
	more, err := p.saysMore(doc)
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
		return nil, false, fmt.Errorf("%w: there is more of the list, and %s does not say where", ErrAnswer, p.next.Text())
	case token == "":
		return nil, false, nil
	case p.query != "":
		return withQuery(u, p.query, token), true, nil
	}
	body, _ := d.body.(map[string]any)
	body = maps.Clone(body)
	body[p.body] = token
	d.body = body
	return u, true, nil
}

// saysMore is what the answer says of more pages; true where it is not asked.
func (p *paging) saysMore(doc any) (bool, error) {
	if p.more == nil {
		return true, nil
	}
	v, _ := p.more.Value(doc)
	more, isBool := v.(bool)
	if !isBool {
		return false, fmt.Errorf("%w: %s is %s, want true or false", ErrAnswer, p.more.Text(), kindOfValue(v))
	}
	return more, nil
}

// text is a scalar in an answer, "" where there is none or null.
func text(p *jsonplace.Place, doc any) (string, error) {
	v, there := p.Value(doc)
	if !there || v == nil {
		return "", nil
	}
	s, ok := scalarText(v)
	if _, isBool := v.(bool); !ok || isBool || len(s) > maxURL {
		return "", fmt.Errorf("%w: %s is %s, want text", ErrAnswer, p.Text(), kindOfValue(v))
	}
	return s, nil
}

// follow takes an address that the API gives, on a declared host alone.
func (c *Connector) follow(u *url.URL, where func() (string, error)) (*url.URL, bool, error) {
	to, err := where()
	if err != nil || to == "" {
		return nil, false, err
	}
	next, err := u.Parse(to)
	if err != nil || strings.ContainsFunc(to, isControl) {
		return nil, false, fmt.Errorf("%w: the address of the next page is none", ErrAnswer)
	}
	next.Fragment, next.RawFragment = "", ""
	if len(next.String()) > maxURL {
		return nil, false, fmt.Errorf("%w: the address of the next page has more than %d bytes", ErrAnswer, maxURL)
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

// linked finds a link of a relation in the Link headers (RFC 8288), "" when
// there is none. The parser splits at every comma and semicolon, so those
// within an address are hidden from it; what it cannot take apart all the same
// is an error, since a link that was overlooked would end the list too early.
func linked(h http.Header, relation string) (string, error) {
	to := ""
	for _, line := range h.Values("Link") {
		links := linkheader.Parse(hidden(line))
		if len(links) != strings.Count(line, "<") {
			return "", fmt.Errorf("%w: the header Link cannot be taken apart", ErrAnswer)
		}
		for _, l := range links {
			if l.Rel == "" {
				return "", fmt.Errorf("%w: a link of the header Link has no relation", ErrAnswer)
			}
			for _, rel := range strings.Fields(l.Rel) {
				if strings.EqualFold(rel, relation) {
					to = unhidden.Replace(l.URL)
				}
			}
		}
	}
	return to, nil
}

// hidden puts other characters in the place of commas and semicolons between
// angle brackets; unhidden brings them back.
func hidden(line string) string {
	inside := false
	return strings.Map(func(r rune) rune {
		switch {
		case r == '<' || r == '>':
			inside = r == '<'
		case inside && r == ',':
			return '\x01'
		case inside && r == ';':
			return '\x02'
		}
		return r
	}, line)
}

var unhidden = strings.NewReplacer("\x01", ",", "\x02", ";")
