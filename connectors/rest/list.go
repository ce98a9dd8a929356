package rest

import (
	"context"
	"fmt"
	neturl "net/url"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/jsonplace"
	"github.com/readback-go/readback/internal/yamlfile"
)

// fileList is how all records of a kind are listed.
type fileList struct {
	At       yamlfile.Place
	Name     yamlfile.Text   `yaml:"name"`
	Strength yamlfile.Text   `yaml:"strength"`
	StrongIf *fileCondition  `yaml:"strong_if"`
	Request  fileRequest     `yaml:",inline"`
	Records  fileRecords     `yaml:"records"`
	Must     []fileCondition `yaml:"must"`
	Accept   fileStatuses    `yaml:"accept"`
	Visible  *fileLook       `yaml:"visible"`
	Paging   *filePaging     `yaml:"paging"`
	MaxPages int             `yaml:"max_pages"`
	Stable   bool            `yaml:"stable"`
	Changed  yamlfile.Text   `yaml:"changed"`
	Created  yamlfile.Text   `yaml:"created"`
	Cut      yamlfile.Span   `yaml:"cut"`
}

// everything is how all records of a kind are listed.
type everything struct {
	*read
	// stable means that pages do not shift while they are read: new records come at the end, and
	// none is removed.
	stable bool
	// changed is where a record has the time of its creation or last change; created, that of its
	// creation.
	changed, created *jsonplace.Place
	// cut is to what these times are cut down, 0 where they are not.
	cut time.Duration
}

// everything compiles it.
func (l *loader) everything(f *fileList) *everything {
	as := &fileRead{At: f.At, Name: f.Name, Strength: f.Strength, StrongIf: f.StrongIf, Request: f.Request, Records: f.Records,
		Must: f.Must, Accept: f.Accept, Visible: f.Visible, Paging: f.Paging, MaxPages: f.MaxPages}
	if as.MaxPages == 0 {
		as.MaxPages = maxPages
	}
	l.Required(f.Records.Path, f.At, "records", "where the records stand, such as $.items[*]")
	r := &read{list: declared.NewList(&l.Reader, l.path(f.Records.Path))}
	l.records(f.At, yamlfile.Text{}, f.Records)
	l.reads(r, as, l.withScope(known{"param": named, "from": alone, "until": alone}))
	for _, h := range r.request.holes() {
		if h.path[0] == "key" && len(h.path) == 2 {
			r.asksKey(h.path[1])
		}
	}
	if r.asksWithin(l.scope) {
		l.At(f.At, "asks for one record; want no member of the key in the request that is not in scope")
	}
	l.inRecord = true
	defer func() { l.inRecord = false }()
	return &everything{read: r, stable: f.Stable, changed: l.singular(f.Changed), created: l.singular(f.Created), cut: time.Duration(f.Cut)}
}

var _ connectors.Lister = (*Connector)(nil)

// List reads every record of a kind, where the declaration defines a list. From and Until go into
// the request where it names them; the time of a record's last change is compared as well.
func (c *Connector) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	k := c.d.kinds[s.Kind]
	switch {
	case k == nil:
		return connectors.Listing{}, fmt.Errorf("%w: /kind: %q is not known; want one of %s", connectors.ErrScope, yamlfile.Clip(s.Kind), strings.Join(c.d.Kinds(), ", "))
	case k.all == nil:
		return connectors.Listing{}, fmt.Errorf("%w: the declaration names no list of %q", connectors.ErrScope, s.Kind)
	case len(k.scope) == 0 && len(s.Within) > 0:
		return connectors.Listing{}, fmt.Errorf("%w: within %v; a declared API lists the whole kind", connectors.ErrScope, s.Within)
	case !sameNames(k.scope, s.Within):
		return connectors.Listing{}, fmt.Errorf("%w: within %v; want one %s", connectors.ErrScope, s.Within, strings.Join(k.scope, " and "))
	}
	v := c.given()
	if len(k.scope) > 0 {
		v["key"] = map[string]any(s.Within)
	}
	for name, t := range map[string]time.Time{"from": s.From, "until": s.Until} {
		if !t.IsZero() {
			v[name] = t.UTC().Format(time.RFC3339)
			if name == "until" { // to the next second: what is in the last one belongs to it
				v[name] = t.UTC().Add(time.Second - 1).Format(time.RFC3339)
			}
		}
	}
	d, err := k.all.request.fill(filling{values: v, guarded: true})
	if err != nil {
		return connectors.Listing{}, fmt.Errorf("list %q: %w", k.all.name, err)
	}
	w := &pager{c: c, k: k, scope: s, seen: map[string]bool{}, l: connectors.Listing{
		At: time.Now(), Path: k.all.name, Stamped: s.Stamped && k.profile.Stamped && k.record.stampForm == "",
		Timed: k.all.changed != nil && !(s.From.IsZero() && s.Until.IsZero()),
	}}
	if err := w.pages(ctx, d); err != nil {
		return connectors.Listing{}, fmt.Errorf("list %q: %w", k.all.name, err)
	}
	if len(w.seen) == 0 {
		err = c.see(ctx, k.all.read, v)
	}
	return w.l, err
}

// pager is one list in progress.
type pager struct {
	c     *Connector
	k     *kind
	scope connectors.Scope
	seen  map[string]bool
	l     connectors.Listing
}

// pages reads all pages.
func (w *pager) pages(ctx context.Context, d *draft) error {
	all := w.k.all
	if p := all.paging; p != nil && p.page != "" {
		d.query.Set(p.page, "1")
	}
	u, err := w.c.url(d.path, d.query)
	if err != nil {
		return err
	}
	strong := all.strong
	for page := 1; ; page++ {
		a, doc, err := w.page(ctx, d, u)
		if err != nil {
			return err
		}
		strong = strong && all.showsAll(doc, a)
		elements, err := all.list.All(doc, errAnswer)
		if err != nil {
			return err
		}
		for _, e := range elements {
			if err := w.take(e); err != nil {
				return err
			}
		}
		next, more, err := w.c.next(all.read, d, u, a, doc, len(elements), page)
		if err != nil {
			return err
		}
		switch {
		case !more && page > 1 && all.paging.jumps() && !all.stable:
			w.l.Why = fmt.Sprintf("it has %d pages, between which records can slip while they are turned", page)
		case !more:
			w.l.Why = w.beyond(ctx, d, u, len(elements), page)
			w.l.Complete = w.l.Why == ""
		case page >= all.pages || len(w.seen) >= connectors.MaxListed:
			w.l.Why = fmt.Sprintf("it has more than %d pages", page)
		default:
			u = next
			continue
		}
		if strong && w.l.Complete {
			w.l.Strength = connectors.Strong
		}
		return nil
	}
}

// beyond reads the page after a short one, where pages are counted, and says why the short page
// may not be the last: if an API returns fewer per page than is declared, its list seems to end
// with the first page.
func (w *pager) beyond(ctx context.Context, d *draft, u *neturl.URL, size, page int) (why string) {
	p := w.k.all.paging
	if !p.counts() || p.more != nil || size == 0 {
		return ""
	}
	_, doc, err := w.page(ctx, d, withQuery(u, p.page, strconv.Itoa(page+1)))
	if err != nil {
		return fmt.Sprintf("whether there is a page %d is unknown: %v", page+1, err)
	}
	behind, err := w.k.all.list.All(doc, errAnswer)
	if err != nil || len(behind) > 0 {
		return fmt.Sprintf("its pages have fewer records than size: says (%d), so the last page cannot be recognized", p.size)
	}
	return ""
}

func (w *pager) page(ctx context.Context, d *draft, u *neturl.URL) (httpsend.Answer, any, error) {
	return w.c.askPage(ctx, w.k.all.read, d, u)
}

// take takes one record in, once.
func (w *pager) take(element any) error {
	rec, kept, err := w.k.record.of(element, nil)
	w.k.within(rec.Record, w.scope.Within)
	if err != nil || !kept || w.seen[rec.Ref] {
		return err
	}
	w.seen[rec.Ref] = true
	if w.k.record.stampForm != "" { // whether it is one of ours is not known by its form
		rec.Stamp = ""
	}
	rec.URL = w.c.Mask(rec.URL)
	one := connectors.Listed{Record: rec.Record}
	if one.Changed, err = timeAt(w.k.all.changed, element); err != nil {
		return err
	}
	if one.Created, err = timeAt(w.k.all.created, element); err != nil {
		return err
	}
	if cut := w.k.all.cut; one.Changed.Before(w.scope.From) && !one.Changed.Add(cut).Before(w.scope.From) {
		one.Changed = time.Time{} // it may have been changed within the scope
	}
	in, sure := w.scope.Of(one)
	if !in || w.l.Stamped && !connectors.IsStamp(rec.Stamp) {
		return nil
	}
	w.l.Timed = w.l.Timed && sure
	w.l.Records = append(w.l.Records, one)
	return nil
}

// timeAt is the time at a place of a record, zero if there is none.
func timeAt(at *jsonplace.Place, element any) (time.Time, error) {
	if at == nil {
		return time.Time{}, nil
	}
	text := scalar(at, element)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("%w: a record says %q at %s, which is no time", errAnswer, yamlfile.Clip(text), at.Text())
	}
	return t, nil
}
