package rest

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

const (
	// defaultPages and maxPages are how many pages of a list are read. With
	// more to come the read is an error, never a short list.
	defaultPages = 10
	maxPages     = 100
	// maxBulk is how many queries one bulk request may take.
	maxBulk = 1000
	// maxShared is how many queries one list answers: each compares all of its records.
	maxShared = 100
)

// read compiles one way to read.
func (l *loader) read(f *fileRead) *read {
	r := &read{complete: f.Complete, bulk: f.Bulk, absent: f.Absent}
	for _, by := range f.By {
		switch by.Value {
		case "ref":
			r.ref = true
		case "key":
			r.key = true
		case "stamp":
			r.stamp = true
		default:
			l.At(by.Place, "is %q; want ref, key, stamp, or [key, stamp]", yamlfile.Clip(by.Value))
		}
	}
	if len(f.By) == 0 || r.ref && len(f.By) > 1 {
		l.Say(f.At.Line, f.At.Field+".by", "want ref, key, stamp, or [key, stamp]")
	}
	allowed := known{"param": named}
	if r.ref {
		allowed["ref"] = alone
	}
	if r.key || len(l.scope) > 0 {
		allowed["key"] = named
	}
	if r.stamp {
		allowed["stamp"] = alone
	}
	if len(f.By) > 0 {
		allowed["first_sent"] = alone
	}
	r.single, r.list = declared.Records(&l.Reader, f.At, l.path(f.Record), l.path(f.Records.Path))
	l.records(f.At, f.Record, f.Records)
	l.reads(r, f, allowed)
	for _, h := range r.request.holes() {
		if h.path[0] == "key" && len(h.path) == 2 {
			r.asksKey(h.path[1])
			if !r.key && !slices.Contains(l.scope, h.path[1]) {
				l.At(f.At, "has {%s} in its request and is not by key; want key among by, or only what is in scope", h.name)
			}
		}
		if h.optional || h.blank {
			l.At(f.At, "{%s}: nothing of a lookup can be left out", h.name)
		}
	}
	r.stampIsAsked, r.bounded = uses(r.request.holes(), "stamp"), uses(r.request.holes(), "first_sent")
	l.search(r, f)
	if r.newest = f.Newest; r.newest > 0 && (r.list == nil || r.bulk > 0) {
		l.Say(f.At.Line, f.At.Field+".newest", "is set on what is no list by itself; want records, and no bulk")
	}
	if r.onlyRefs = f.OnlyRefs; r.onlyRefs && (r.list == nil || r.ref || r.strong || r.bulk > 0 || !r.asksWithin(l.scope) && !r.stampIsAsked) {
		l.Say(f.At.Line, f.At.Field+".only_refs", "is set on what is no list that asks for {key.…} or {stamp}, or is strong or bulk; each hit is a call, and what an index leaves out is no proof")
	}
	l.shape(r, f)
	r.version = l.version(f.Version)
	return r
}

func (r *read) asksKey(name string) {
	if !slices.Contains(r.keysAsked, name) {
		r.keysAsked = append(r.keysAsked, name)
	}
}

// asksWithin reports whether the request names a member of the key that records show.
func (r *read) asksWithin(scope []string) bool {
	return slices.ContainsFunc(r.keysAsked, func(name string) bool { return !slices.Contains(scope, name) })
}

// reads compiles what reads and lists have in common. The places of the records are known.
func (l *loader) reads(r *read, f *fileRead, allowed known) {
	r.name, r.accept, r.pages = f.Name.Value, f.Accept, f.MaxPages
	l.Required(f.Name, f.At, "name", "a name such as get or list")
	declared.Choice(&l.Reader, f.Strength, "strong", "weak")
	r.strong = f.Strength.Value == "strong"
	r.request = l.newRequest(f.Request, f.At, http.MethodGet, allowed)
	l.readMethod(r, f)
	l.missing(r, f)
	l.absence(r, f)
	l.believed(r, f)
	l.paging(r, f)
	r.must = l.conditions(f.Must)
	if r.request.graphql != nil {
		r.must = append(r.must, l.noErrors(f.Request.GraphQL.At))
	}
	r.strongIf = l.condition(f.StrongIf)
	if r.strongIf != nil && !r.strong {
		l.At(f.StrongIf.At, "is set on what is not strong")
	}
}

func (l *loader) readMethod(r *read, f *fileRead) {
	switch r.request.method {
	case http.MethodGet, http.MethodPost:
	case http.MethodHead:
		if r.list != nil || f.Record.Value != "$" {
			l.At(f.Request.Method.Place, "is HEAD, whose answer has no body; want record: $, and its fields in headers")
		}
		if len(f.Absent) > 0 && !f.AbsentEmpty {
			l.Say(f.At.Line, f.At.Field+".absent_empty", "is missing; the answer to a HEAD never has a body")
		}
	default:
		l.At(f.Request.Method.Place, "is no method to read with; want GET, HEAD where headers show the record, or POST where the API has lookups by POST")
	}
	l.whole(r.request)
}

// whole refuses headers by which an answer is only a part.
func (l *loader) whole(r *request) {
	for _, h := range r.headers {
		if slices.Contains([]string{"If-None-Match", "If-Modified-Since", "Range"}, h.name) {
			l.Say(r.at.Line, r.at.Field+".headers."+h.name, "makes the answer a part, or none; a read must show what is there")
		}
	}
}

// search reads whether a read finds by text, and with the record all that quotes it.
func (l *loader) search(r *read, f *fileRead) {
	declared.Choice(&l.Reader, f.Search, "text")
	if r.search = f.Search.Value != ""; !r.search {
		return
	}
	if r.list == nil || !r.stampIsAsked && !r.asksWithin(l.scope) {
		l.At(f.Search.Place, "is set on a read that searches for nothing; want records, and {key.…} or {stamp} in the request")
	}
	if r.strong {
		l.At(f.Strength.Place, "is strong, and the read is a search of text, whose index may lag; want weak")
	}
}

// shape checks that the records can be found as they are asked for.
func (l *loader) shape(r *read, f *fileRead) {
	if r.ref && r.single == nil && f.Record.Value == "" {
		l.At(f.At, "is by ref; want record, since a ref is of one record")
	}
	if r.single != nil && r.key && !r.asksWithin(l.scope) {
		l.At(f.At, "reads one record and does not ask for the key; want {key.…} in the request, or records")
	}
	if r.single != nil && r.stamp && !r.stampIsAsked {
		l.At(f.At, "reads one record and does not ask for the stamp; want {stamp} in the request, or records")
	}
	if r.ref && !uses(r.request.holes(), "ref") {
		l.At(f.At, "is by ref and does not ask for it; want {ref} in the request")
	}
	if f.Version.Header.Value != "" && r.single == nil {
		l.At(f.Version.At, "is a header; only a read of one record has it")
	}
	if f.Bulk > maxBulk || f.Bulk > 0 && (r.list == nil || r.ref || f.Paging != nil) {
		l.Say(f.At.Line, f.At.Field+".bulk", "want at most %d queries in a request by key or stamp that has records and no paging", maxBulk)
	}
	if (f.Bulk > 0) != r.request.hasEach() {
		l.Say(f.At.Line, f.At.Field+".bulk", "a bulk read has a part that is repeated for each query ([...]), and no other read has")
	}
}

// hasEach reports whether a part is repeated for each query.
func (r *request) hasEach() bool {
	return r.body.hasEach() || slices.ContainsFunc(slices.Concat(r.query, r.form), func(n namedValue) bool { return n.each != nil })
}

func (t *tree) hasEach() bool {
	if t == nil {
		return false
	}
	for _, m := range t.members {
		if m.value.hasEach() {
			return true
		}
	}
	return t.kind == eachTree || slices.ContainsFunc(t.list, (*tree).hasEach)
}

// missing reads whether a list that is not there is an empty one. What it would be in must be there:
// an answer of another shape is no list.
func (l *loader) missing(r *read, f *fileRead) {
	m := f.Records.Missing
	declared.Choice(&l.Reader, m, "none")
	if m.Value == "" || r.list == nil {
		return
	}
	within := r.list.Container.Parent()
	if within == nil {
		l.At(m.Place, "is set on the whole answer, which is never missing; want it on a list that is a member, such as $.items[*]")
		return
	}
	r.list.Within = within
	if within.Parent() == nil && len(f.Must) == 0 {
		l.warn(f.Records.At, "takes every object without %s for an empty list, also an error that is answered with 200; want must, with a member that such an answer always has", r.list.Container.Text())
	}
}

// absence reads which answers mean that nothing is there.
func (l *loader) absence(r *read, f *fileRead) {
	for _, s := range f.Absent {
		switch {
		case (s == http.StatusOK || l.d.shape != nil) && f.AbsentWhere != nil && f.AbsentWhere.Exists != nil && !*f.AbsentWhere.Exists:
			l.At(f.AbsentWhere.At, "is true of any answer that lacks the member, an error included; want equals or contains: what only the absence says")
		case s == http.StatusOK && f.AbsentWhere == nil:
			l.Say(f.At.Line, f.At.Field+".absent", "has 200; want absent_where beside it, which only an answer fulfils that says that nothing is there")
		case s != http.StatusNotFound && s != http.StatusGone && s != http.StatusOK:
			l.Say(f.At.Line, f.At.Field+".absent", "has %d; only 404 and 410 can say that something is not there, and 200 with absent_where", s)
		}
	}
	for _, s := range f.Accept {
		if s == http.StatusNoContent || s == http.StatusResetContent || s > 299 {
			l.Say(f.At.Line, f.At.Field+".accept", "has %d; want another 2xx that has a body", s)
		}
	}
	switch listed := r.list != nil && len(f.Absent) > 0; {
	case listed && (f.AbsentWhere == nil || f.AbsentEmpty || f.Bulk > 0):
		l.Say(f.At.Line, f.At.Field+".absent", "is set on a read of a list, which says that nothing is there by being empty; want absent_where where a status says it too, and no bulk")
	case listed && slices.Contains(f.Absent, http.StatusOK):
		l.Say(f.At.Line, f.At.Field+".absent", "has 200, and is set on a read of a list, which says with 200 that nothing is there by being empty")
	}
	if l.d.shape != nil && len(f.Absent) > 0 && f.AbsentWhere == nil && !f.AbsentEmpty {
		l.Say(f.At.Line, f.At.Field+".absent", "is set, and pages of gateways are XML as well; want absent_where beside it, which only the API's own answer fulfils, or absent_empty")
	}
	r.absentWhere, r.absentEmpty = l.condition(f.AbsentWhere), f.AbsentEmpty
	if r.absentWhere != nil && len(f.Absent) == 0 {
		l.At(f.AbsentWhere.At, "is set without absent")
	}
	if c := r.absentWhere; c != nil && c.place != nil && !c.place.One() {
		c.each = declared.NewList(&l.Reader, l.path(f.AbsentWhere.Path))
	}
	if f.AbsentEmpty && (len(f.Absent) == 0 || f.AbsentWhere != nil) {
		l.Say(f.At.Line, f.At.Field+".absent_empty", "is true; want absent beside it, with the statuses that may have no body, and no absent_where, which no empty body fulfils")
	}
	allowed := l.withScope(known{"param": named})
	switch v := f.Visible; {
	case v != nil && f.AbsentIfVisible.Value != "":
		l.At(v.At, "is set together with absent_if_visible; want one of the two")
	case v != nil:
		r.visible = l.newLook(v, allowed)
	case f.AbsentIfVisible.Value != "":
		r.visible = l.newLook(&fileLook{At: f.AbsentIfVisible.Place, Request: fileRequest{Path: f.AbsentIfVisible}}, allowed)
	}
}

// withScope allows the members of the key that are the scope, in what is read beside records.
func (l *loader) withScope(allowed known) known {
	if len(l.scope) > 0 {
		allowed["key"] = named
	}
	return allowed
}

// believed warns where an absence may have another meaning, and nothing is read that would be
// missing as well then.
func (l *loader) believed(r *read, f *fileRead) {
	if r.visible != nil || len(r.absent) == 0 {
		return
	}
	switch w := f.AbsentWhere; {
	case r.absentEmpty:
		l.warn(f.At, "takes an answer without a body for absence, which a gateway or a wrong path gives as well; want visible, which is then read")
	case w == nil && !r.ref:
		l.warn(f.At, "takes %d for absence, which may also mean that this account may not see the record; want visible, which is then read, or absent_where", r.absent[0])
	case w != nil && strings.HasPrefix(w.Path.Value, "$.errors"):
		l.warn(f.At, "takes an error for absence, which may also mean that this account may not see the record; want visible, which is then read")
	}
}

func (l *loader) paging(r *read, f *fileRead) {
	if r.pages == 0 {
		r.pages = defaultPages
	}
	if r.pages > maxPages {
		l.Say(f.At.Line, f.At.Field+".max_pages", "is %d; want at most %d", r.pages, maxPages)
	}
	p := f.Paging
	if p == nil {
		return
	}
	get := r.request.method == http.MethodGet
	switch {
	case !declared.ExactlyOne(p.Link.Value != "", p.Next.Value != "", p.NextURL.Value != "", p.Page.Value != ""):
		l.At(p.At, "want exactly one of link, next, next_url and page")
	case r.list == nil:
		l.At(p.At, "is set on a read of one record; want records")
	case !get && (p.Link.Value != "" || p.NextURL.Value != ""):
		l.At(p.At, "follows addresses that the API gives, which only a GET may")
	case p.Next.Value != "" && (p.Query.Value == "") == (p.Body.Value == ""):
		l.At(p.At, "want, beside next, exactly one of query and body: where the next request carries it")
	case p.Body.Value != "" && (r.request.body == nil || r.request.body.kind != objectTree):
		l.At(p.At, "puts the next page into a body, which is none")
	case p.Page.Value != "" && p.Size < 1:
		l.At(p.At, "want, beside page, size: how many records a full page has")
	}
	r.paging = &paging{link: p.Link.Value, next: l.singular(p.Next), query: p.Query.Value, body: p.Body.Value,
		more: l.singular(p.More), nextURL: l.singular(p.NextURL), page: p.Page.Value, size: p.Size}
}

// finds reports whether a read can query a key of that form.
func (r *read) finds(form []string, byStampWillDo bool) bool {
	if r.ref || r.bulk > 0 {
		return false
	}
	for _, name := range r.keysAsked {
		if !slices.Contains(form, name) {
			return false
		}
	}
	return r.key || r.stamp && byStampWillDo
}

// record compiles how records are understood.
func (l *loader) record(f *fileRecord) *record {
	l.inRecord = true
	defer func() { l.inRecord = false }()
	r := &record{url: l.singular(f.URL), version: l.singular(f.Version), keep: l.condition(f.Keep), fields: map[string]*field{}}
	if f.Ref.Header.Value != "" || l.Required(f.Ref.Path, f.At, "ref", "where the record's own id is, such as $.id") {
		r.ref = l.taken(f.Ref)
	}
	if f.Keep != nil && f.Keep.Header.Value != "" {
		l.At(f.Keep.At, "looks at a header; want a path into the record")
	}
	if f.Stamp != nil {
		r.stamp = l.field(f.Stamp)
		if r.stampForm = l.keyForm(f.Stamp.Form, formUUID, formHex); r.stampForm != "" && r.stamp.match != nil {
			l.At(f.Stamp.Match.Place, "is set together with form; want the place of the stamp alone")
		}
	}
	r.nulls, r.settles = f.Nulls, l.settles(f.Settles)
	for _, t := range f.Only {
		if p, ok := l.newPattern(t, forAccount); ok {
			r.only = append(r.only, p)
		}
	}
	if len(f.Fields) == 0 {
		l.Say(f.At.Line, f.At.Field+".fields", "is missing; want the fields and where they stand")
	}
	for name := range f.Fields {
		one := f.Fields[name]
		compiled := l.field(&one)
		if one.Form.Value != "" {
			l.At(one.Form.Place, "is for the stamp; want it in record.stamp, or taken out")
		}
		if name != spreadName {
			for _, parameter := range namesIn(one.Path.Value) {
				if compiled.named, _ = l.names.given[parameter].(string); compiled.named == name {
					compiled.named = ""
				}
			}
			r.fields[name] = compiled
			continue
		}
		if compiled != nil && compiled.place != nil {
			r.spread = append(r.spread, compiled.place)
		}
		if l.d.shape != nil {
			l.At(one.At, "spreads an element of XML, of whose members one alone and one of several differ; want each field by its name")
		}
		if one.Match.Value+one.Strip.Value+one.Without.Value != "" || one.Join.There() || one.List {
			l.At(one.At, "spreads an object; want a path alone")
		}
	}
	if len(r.only) > 0 && f.Fields[spreadName].Path.Value == "" {
		l.At(f.Only[0].Place, "says what a spread can show, and none is there; want \"...\" among fields, or only taken out")
	}
	return r
}

func (l *loader) field(f *fileField) *field {
	one := &field{match: l.regexp(f.Match), strip: l.regexp(f.Strip), without: l.regexp(f.Without)}
	if f.Join.There() {
		v, _ := l.Scalar(f.Join, f.At.Field+".join")
		text, isText := v.(string)
		if !isText {
			l.Say(f.Join.Line(), f.At.Field+".join", "has the wrong type; want text")
		}
		one.join = &text
	}
	if f.Header.Value != "" {
		one.header = f.Header.Value
		if f.Path.Value != "" || f.List || one.join != nil || one.without != nil || f.Where != nil || f.Take.Value != "" {
			l.At(f.At, "is in a header, which is one text; want header, and perhaps match or strip")
		}
		l.headerTaken(f.Header, f.Match, one.match)
		return one
	}
	if f.Path.Value == "" {
		if f.Path.Line == 0 {
			l.At(f.At, "has no path; want one such as $.title")
		}
		return one
	}
	if one.match != nil && one.match.NumSubexp() != 1 {
		l.At(f.Match.Place, "has %d groups; want exactly one, around what is meant", one.match.NumSubexp())
	}
	if f.List && one.join != nil {
		l.At(f.At, "is a list and joined; want one of the two")
	}
	if f.Without.Value != "" && !f.List {
		l.At(f.Without.Place, "is set on a field that is no list")
	}
	if f.Where != nil || f.Take.Value != "" {
		l.pick(one, f)
		return one
	}
	several := f.List || one.join != nil
	if p := l.newPlace(f.Path); p != nil && !p.One() && !several && one.match != nil {
		several = true // the first of them that matches
	}
	if several {
		one.list = l.newList(f.Path)
	} else {
		one.place = l.singular(f.Path)
	}
	return one
}

// taken compiles a value that is at a place or in a header.
func (l *loader) taken(f fileTaken) taken {
	t := taken{header: f.Header.Value, match: l.regexp(f.Match)}
	if f.Path.Value != "" && t.header != "" {
		l.At(f.At, "has a path and a header; want one of the two")
	}
	if t.header != "" || t.match != nil {
		l.headerTaken(f.Header, f.Match, t.match)
	}
	t.place = l.singular(f.Path)
	return t
}

func (l *loader) headerTaken(header, match yamlfile.Text, form *regexp.Regexp) {
	if header.Value != "" && !headerName(header.Value) {
		l.At(header.Place, "is no name of a header")
	}
	if form != nil && form.NumSubexp() != 1 {
		l.At(match.Place, "has %d groups; want exactly one, around what is meant", form.NumSubexp())
	}
}

// pick compiles a field that is a member of one element of a list.
func (l *loader) pick(one *field, f *fileField) {
	one.list, one.one = l.newList(f.Path), &picked{take: f.Take.Value}
	if len(f.Where) != 1 || f.Take.Value == "" {
		l.At(f.At, "want where with one member and its value, such as {id: 77}, and take, the member to take of that element")
	}
	if f.List || one.join != nil || one.without != nil {
		l.At(f.At, "takes one value; want no list, join or without beside where")
	}
	if i := strings.LastIndex(f.Path.Value, "[*]"); one.list != nil && i+len("[*]") != len(f.Path.Value) {
		l.At(f.Path.Place, "leads into the elements; want a path that ends with [*], and the member in take")
	}
	for name, n := range f.Where {
		v, ok := l.Scalar(n, f.At.Field+".where."+yamlfile.Clip(name))
		text, isText := v.(string)
		if !ok || v == nil || isText && strings.ContainsAny(strings.NewReplacer("{{", "", "}}", "").Replace(text), "{}") {
			l.Say(n.Line(), f.At.Field+".where."+yamlfile.Clip(name), "is %s; want text, a number, true or false, without placeholders", n.Kind())
		}
		if isText { // a brace of its own is written twice, as elsewhere
			v = strings.NewReplacer("{{", "{", "}}", "}").Replace(text)
		}
		one.one.member, one.one.equals = name, v
		l.textInXML(v, yamlfile.Place{Line: n.Line(), Field: f.At.Field + ".where." + yamlfile.Clip(name)})
	}
	l.pickedInXML(one, f)
}

// has reports whether records show a field.
func (r *record) has(name string) bool { return r.fields[name] != nil || len(r.spread) > 0 }

// mayShow reports whether records of some account can show a field: what a spread shows can be limited.
func (r *record) mayShow(name string) bool {
	limited := len(r.only) > 0 && !slices.ContainsFunc(r.only, func(p pattern) bool { return len(p.holes()) > 0 || p.written() == name })
	return r.has(name) && (r.fields[name] != nil || !limited)
}
