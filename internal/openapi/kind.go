package openapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// kind writes the kind of record that the operation makes.
func (d *drafter) kind() {
	guess := "no member of the request is surely ours: two records may have one"
	switch {
	case d.inside:
		guess = "our reference in " + d.own.name + ", which is not unique"
	case slices.Contains(references, snake(d.own.name)):
		guess = "our reference by its name; whether it is unique must be found out"
	case d.own.name == "" && d.op.method == "PUT":
		guess = "the parameters of the path"
	case d.own.name == "":
		guess = "nothing in the request can hold our reference; want a member that records show"
	}
	d.line(2, "key: ["+listOf(d.key, quoted)+"]", guess)
	if len(d.scope) > 0 {
		d.line(2, "scope: ["+listOf(slices.DeleteFunc(slices.Clone(d.key), func(k string) bool { return !d.scope[k] }), quoted)+"]", "it is in the path, and records do not show it")
	}
	d.write()
	d.reads()
	d.record()
	d.unknown(2, "settle, horizon, recheck and irreversible: what is left out is not promised")
	if d.stamp.sent != "" {
		d.line(2, "profile: {stamped: true}", "that records show the stamp as it was sent")
	} else {
		d.line(2, "profile: {}", "")
	}
	d.sample()
}

// path is that of an endpoint, with placeholders. item is what the last one is, such as {ref}.
func (d *drafter) path(e endpoint, item string) string {
	own, given := d.holes(), e.takes("path")
	all, n := strings.Count(e.path, "{"), 0
	return quoted(hole.ReplaceAllStringFunc(e.path, func(h string) string {
		name := h[1 : len(h)-1]
		if n++; n == all && item != "" {
			return item
		}
		m, ok := first(given, snake(name))
		if !ok {
			m = member{schema: &openapi3.Schema{}, about: name}
		}
		// Parameters of one place may have different names in different operations.
		if n <= len(own) {
			name = own[n-1]
		}
		if slices.Contains(d.key, called(name)) {
			return "{key." + called(name) + "}"
		}
		return d.param(name, account(m))
	}))
}

func (d *drafter) write() {
	d.line(2, "writes:", "")
	if d.op.method == "PUT" {
		d.line(3, "upsert:", "a PUT makes the record or replaces it")
	} else {
		d.line(3, "create:", "")
	}
	d.line(4, "method: "+d.op.method, "")
	d.line(4, "path: "+d.path(d.op, ""), "")
	for _, p := range d.op.takes("query") {
		if p.required {
			d.unknown(4, "query %s, which the operation requires: %s", p.name, p.about)
		}
	}
	d.request()
	switch _, located := d.op.answers("Location"); {
	case d.found != "":
		d.line(4, "ref: "+quoted(d.found), "by its name")
	case located:
		d.line(4, `ref: {header: Location, match: '([^/]+)$'}`, "the last part of the address")
	default:
		d.unknown(4, "ref, where the answer has the id of the record: $.id")
	}
	for _, where := range []string{"header", "query"} {
		for _, m := range d.op.takes(where) {
			form := ""
			if m.schema.Format == "uuid" {
				form = ", form: uuid4"
			}
			if isKey(m) {
				// A key that the API ignores makes a repeat a duplicate, so a person must say that it does not.
				d.unknown(4, "idempotency: {%s: %s%s, window: 1h}, if a repeat within the window answers the first record; the document only names it", where, quoted(m.name), form)
				return
			}
		}
	}
	d.unknown(4, "idempotency: the operation names no key in a header or the query; its guide may")
}

func (d *drafter) request() {
	if d.body == nil {
		if d.op.op.RequestBody != nil {
			d.unknown(4, "the body: the operation takes neither JSON nor a form")
		}
		return
	}
	depth := 5
	d.line(4, map[bool]string{true: "form:", false: "body:"}[d.form], "")
	if d.wrapper != "" {
		d.line(5, literal(d.wrapper)+":", "")
		depth = 6
	}
	if len(d.body.OneOf) > 1 || len(d.body.AnyOf) > 1 {
		d.unknown(depth, "which of several forms of the body is wanted; the first is here")
	}
	if len(d.sends) == 0 {
		d.line(depth, `"...": "{fields}"`, "the document names no members")
	}
	for _, m := range d.sends {
		d.sent(depth, m)
	}
}

// sent writes one member of the body.
func (d *drafter) sent(depth int, m member) {
	name, field, needed := literal(m.name), called(m.name), ""
	if m.required {
		needed = "  # required"
	}
	mine := m.name == d.own.name
	switch marked := d.stamp.sent == m.name; {
	case field == "":
		d.unknown(depth, "a field for %q, a name without letters", m.name)
	case mine && d.inside:
		ours := []string{"reference"}
		if marked {
			ours = append(ours, "readback")
		}
		value := map[string]string{"reference": `"{key.reference}"`, "readback": `"{stamp}"`}
		if d.form {
			for _, one := range ours {
				d.line(depth, strconv.Quote(m.name+"["+one+"]")+": "+value[one], "a place for what is ours")
			}
			return
		}
		d.line(depth, name+": {"+listOf(ours, func(s string) string { return s + ": " + value[s] })+"}", "a place for what is ours")
	case mine:
		d.line(depth, name+`: "{key.`+field+`}"`+needed, "")
	case slices.Contains(d.key, field):
		d.line(depth, name+`: "{key.`+field+`}"`, "the same as in the path")
	case marked && d.stamp.how == "object":
		d.line(depth, name+`: {readback: "{stamp}"}`, "a place for the stamp")
	case marked && d.stamp.how == "list":
		d.line(depth, name+`: [{"...": "{fields.`+field+`}"}, "{stamp}"]`, "a place for the stamp; that it is stored as it is sent")
	case marked:
		d.line(depth, name+`: "{fields.`+field+`|} [{stamp}]"`+needed, "a place for the stamp; people see it")
	case d.form && !scalar(m):
		d.unknown(depth, "how %s, which is no single value, is written in a form", m.name)
	case d.fixed(m):
		d.line(depth, name+": "+literal(fmt.Sprint(m.schema.Enum[0]))+needed, "")
	default:
		d.line(depth, name+`: "{fields.`+field+`}"`+needed, "")
	}
}

// fixed reports whether a member has the same value in each request.
func (d *drafter) fixed(m member) bool {
	return m.required && len(m.schema.Enum) == 1 && kind(m.schema) == "string"
}

func (d *drafter) reads() {
	if d.get == nil && d.list == nil {
		d.unknown(2, "reads: the document has no GET beside the operation; want one by key, or profile: {write_only: true}")
		return
	}
	d.line(2, "reads:", "")
	if d.get != nil {
		d.readOne()
	}
	if d.list != nil {
		d.readList()
	} else if d.op.method == "POST" {
		d.unknown(3, "a read by key: the document has no list of these; without one no record is found after a lost answer")
	}
}

func (d *drafter) readOne() {
	by, item, to := "ref", "{ref}", "$"
	if d.op.method == "PUT" {
		by, item = "key", ""
	}
	if d.wrapped != "" {
		to = pathTo(d.wrapped)
	}
	d.line(3, "- name: get", "")
	d.line(4, "by: "+by, "")
	d.unknown(4, "strength: strong, if it shows at once what was written")
	d.line(4, "path: "+d.path(*d.get, item), "")
	d.line(4, "record: "+to, "")
	d.unknown(4, "absent: [404]; a login without rights may be answered so, too")
}

func (d *drafter) readList() {
	all, own := d.list.takes("query"), d.own.name
	if d.inside {
		own = "reference"
	}
	var query [][3]string
	filtered := false
	limit, limited := first(all, "limit", "per_page", "page_size", "size", "max_results", "count", "first", "page_limit")
	size := 100
	if limited && limit.schema.Max != nil {
		size = int(*limit.schema.Max)
	}
	for _, p := range all {
		ours := own != "" && snake(p.name) == snake(own)
		switch {
		case ours, slices.Contains(d.key, called(p.name)):
			filtered = filtered || ours
			name := called(p.name)
			if ours {
				name = called(own)
			}
			query = append(query, [3]string{p.name, "{key." + name + "}", "that it compares for equality"})
		case limited && p.name == limit.name:
			query = append(query, [3]string{p.name, strconv.Itoa(size), "the largest page"})
		case p.required:
			query = append(query, [3]string{p.name, d.param(p.name, account(p)), "required; the same for all"})
		}
	}
	d.line(3, "- name: list", "")
	if d.stamp.sent == "" || filtered {
		d.line(4, "by: key", "")
	} else {
		d.line(4, "by: [key, stamp]", "")
	}
	if !filtered {
		d.unknown(4, "a filter by our reference; all records are listed and ours are picked, which an account with many cannot afford")
	}
	d.line(4, "path: "+d.path(*d.list, ""), "")
	if len(query) > 0 {
		d.line(4, "query:", "")
		for _, q := range query {
			d.line(5, literal(q[0])+": "+strconv.Quote(q[1]), q[2])
		}
	}
	if d.records == "" {
		d.line(4, `records: "$.items[*]"`, "the document does not say where the list is")
	} else {
		d.line(4, "records: "+strconv.Quote(d.records+"[*]"), "")
	}
	switch how, guess := d.paging(all, limit.name, size); {
	case how != "":
		d.line(4, "paging: "+how, guess)
	case filtered:
		d.unknown(4, "paging: how the next page is asked for")
	default:
		d.unknown(4, "paging: how the next page is asked for; a full page proves no absence")
		d.line(4, fmt.Sprintf("newest: %d", size), "that a page is no longer")
	}
}

// paging is how the next page is asked for, by the names of parameters and members; "" if that is not known.
func (d *drafter) paging(all []member, limit string, size int) (how, guess string) {
	s, linked := d.list.answers("Link")
	more, _ := search(s, false, named("boolean", "has_more", "has_next", "has_next_page", "more"))
	if more != "" {
		more = ", more: " + quoted(more)
	}
	cursor, asked := first(all, "starting_after", "cursor", "page_token", "next_token", "start_cursor", "page_cursor", "next_cursor", "after")
	next, m := search(s, false, func(m member) bool {
		return kind(m.schema) == "string" && (slices.Contains(pieces(m.name), "next") || asked && snake(m.name) == snake(cursor.name) || snake(m.name) == "end_cursor")
	})
	address := m.schema != nil && m.schema.Format == "uri" || slices.ContainsFunc(pieces(m.name), func(p string) bool { return p == "url" || p == "uri" || p == "link" })
	page, counted := first(all, "page", "page_number")
	switch {
	case next != "" && (address || !asked):
		return "{next_url: " + quoted(next) + "}", "by the name of the member"
	case next != "":
		return "{next: " + quoted(next) + ", query: " + quoted(cursor.name) + more + "}", "by the names of the parameter and the member"
	case asked && d.id != "" && d.records != "":
		return "{next: " + quoted(d.records+"[-1]"+step(d.id)) + ", query: " + quoted(cursor.name) + more + "}", "by the name of the parameter: it takes the last record's id"
	case linked:
		return "{link: next}", "the answer has the header Link"
	case counted && limit != "":
		return fmt.Sprintf("{page: %s, size: %d}", quoted(page.name), size), "by the name of the parameter; that the first page is 1"
	}
	return "", ""
}

func (d *drafter) record() {
	if d.get == nil && d.list == nil && len(d.shown) == 0 {
		return
	}
	d.line(2, "record:", "")
	last, ok := same(d.shown, d.key[len(d.key)-1])
	switch {
	case d.id != "":
		d.line(3, "ref: "+pathTo(d.id), "by its name")
	case d.op.method == "PUT" && ok:
		d.line(3, "ref: "+pathTo(last.name), "the key, since a record shows no id")
	default:
		d.unknown(3, "ref, where a record has its own id")
	}
	at := "$" + step(d.stamp.shown)
	switch d.stamp.how {
	case "object":
		d.line(3, "stamp: {path: "+strconv.Quote(at+".readback")+"}", "")
	case "list":
		d.line(3, "stamp: {path: "+strconv.Quote(at+"[*]")+", match: '^(rb-[a-z2-7]{32})$'}", "")
	case "text":
		d.line(3, "stamp: {path: "+strconv.Quote(at)+`, match: '\[(rb-[a-z2-7]{32})\]$'}`, "")
	default:
		d.unknown(3, "stamp: the request has no member of its own for it that records show")
	}
	d.line(3, "fields:", "")
	if len(d.shown) == 0 {
		d.line(4, `"...": $`, "the document does not say what a record has")
		return
	}
	done := map[string]bool{}
	if d.inside {
		if m, ok := same(d.shown, d.own.name); ok {
			d.line(4, "reference: "+quoted("$"+step(m.name)+".reference"), "")
			done["reference"], done[called(m.name)] = true, true
		}
	}
	for _, m := range d.shown {
		d.field(m, done)
	}
	for _, m := range d.sends {
		if _, shows := same(d.shown, m.name); !shows && called(m.name) != "" {
			d.unknown(4, "%s: it is sent, and no record shows it", m.name)
		}
	}
}

// field writes how one member of a record is read.
func (d *drafter) field(m member, done map[string]bool) {
	name := m.name
	if sent, ok := same(d.sends, m.name); ok {
		name = sent.name
	}
	field, marked := called(name), m.name == d.stamp.shown
	if m.schema.WriteOnly || field == "" || done[field] || d.scope[field] || marked && d.stamp.how == "object" {
		return
	}
	done[field] = true
	each := strconv.Quote("$" + step(m.name) + "[*]")
	switch e := items(m.schema); {
	case marked && d.stamp.how == "list":
		d.line(4, quoted(field)+": {path: "+each+", list: true, without: '^rb-[a-z2-7]{32}$'}", "")
	case marked:
		d.line(4, quoted(field)+": {path: "+strconv.Quote("$"+step(m.name))+`, strip: ' \[rb-[a-z2-7]{32}\]$'}`, "")
	case e != nil && kind(e) == "string":
		d.line(4, quoted(field)+": {path: "+each+", list: true}", "")
	default:
		d.line(4, quoted(field)+": "+pathTo(m.name), "")
	}
}

// sample writes a record to measure an account with.
func (d *drafter) sample() {
	d.line(2, "sample:", "")
	var key, create []string
	for i, k := range d.key {
		v, guess := "readback-sample-{sample}", ""
		if i < len(d.key)-1 {
			v = "example"
			if m, ok := first(d.op.takes("path"), snake(k)); ok && m.schema.Example != nil {
				v = unbraced.Replace(fmt.Sprint(m.schema.Example))
			}
		}
		key = append(key, quoted(k)+": "+strconv.Quote(v)+guess)
	}
	guess := ""
	if len(key) > 1 {
		guess = "what is not the last must be there"
	}
	d.line(3, "key: {"+strings.Join(key, ", ")+"}", guess)
	for _, m := range d.sends {
		field := called(m.name)
		if !m.required || field == "" || slices.Contains(d.key, field) || m.name == d.own.name || m.name == d.stamp.sent && d.stamp.how == "object" || d.fixed(m) {
			continue
		}
		if v := example(m.schema); v != "" {
			create = append(create, quoted(field)+": "+v)
		} else {
			d.unknown(3, "an example of %s", m.name)
		}
	}
	d.line(3, "create: {"+strings.Join(create, ", ")+"}", "of examples and types")
}

// example is a single value of a schema, in YAML's flow style; "" for anything else.
func example(s *openapi3.Schema) string {
	for _, v := range append([]any{s.Example, s.Default}, s.Enum...) {
		switch v := v.(type) {
		case string:
			return strconv.Quote(unbraced.Replace(v))
		case bool, float64:
			return fmt.Sprint(v)
		}
	}
	formats := map[string]string{"date": "2030-01-31", "date-time": "2030-01-31T12:00:00Z", "email": "readback@example.com", "uri": "https://example.com/"}
	switch kind(s) {
	case "integer", "number":
		if s.Min != nil && *s.Min > 1 {
			return fmt.Sprint(*s.Min)
		}
		return "1"
	case "boolean":
		return "false"
	case "string":
		if v, ok := formats[s.Format]; ok {
			return strconv.Quote(v)
		}
		return `"readback sample"`
	}
	return ""
}
