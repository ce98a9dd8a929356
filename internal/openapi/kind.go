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
	case d.inside != "":
		guess = "our reference in " + d.inside + ", which is not unique"
	case d.own.name != "" && slices.Contains(references, strings.Join(pieces(d.own.name), "_")):
		guess = "our reference by its name; whether it is unique must be found out"
	case d.own.name == "" && d.op.method == "PUT":
		guess = "the parameters of the path"
	case d.own.name == "":
		guess = "nothing in the request can hold our reference; want a member that records show"
	}
	d.line(2, "key: ["+names(d.key)+"]", guess)
	if len(d.scope) > 0 {
		var all []string
		for _, k := range d.key {
			if d.scope[k] {
				all = append(all, k)
			}
		}
		d.line(2, "scope: ["+names(all)+"]", "it is in the path, and records do not show it")
	}
	d.write()
	d.reads()
	d.recordShown()
	d.unknown(2, "settle, horizon, recheck and irreversible: what is left out is not promised")
	if d.stamp != "" {
		d.line(2, "profile: {stamped: true}", "that records show the stamp as it was sent")
	} else {
		d.line(2, "profile: {}", "")
	}
	d.sample()
}

func names(all []string) string {
	var quoted []string
	for _, n := range all {
		quoted = append(quoted, scalarText(n))
	}
	return strings.Join(quoted, ", ")
}

// path is that of an endpoint, with placeholders. item is what the last one is, such as {ref}.
func (d *drafter) path(e endpoint, item string) string {
	all := hole.FindAllStringSubmatch(e.path, -1)
	n := 0
	path := hole.ReplaceAllStringFunc(e.path, func(string) string {
		name := all[n][1]
		n++
		// Parameters of one place may have different names in different operations.
		if own := d.holes(); n <= len(own) {
			name = own[n-1]
		}
		switch {
		case n == len(all) && item != "":
			return item
		case slices.Contains(d.key, called(name)):
			return "{key." + called(name) + "}"
		}
		if _, ok := d.params[called(name)]; !ok {
			p := parameter{pattern: `[A-Za-z0-9._-]+`, about: name, guess: "the same for all writes of an account, and its pattern"}
			for _, one := range in(d.op, "path") {
				if one.Name == name {
					p = parameterOf(one)
				}
			}
			d.params[called(name)] = p
		}
		return "{param." + called(name) + "}"
	})
	return scalarPathOf(path)
}

// scalarPathOf quotes a path where YAML needs it.
func scalarPathOf(path string) string {
	if strings.Trim(path, "/-._ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == "" {
		return path
	}
	return strconv.Quote(path)
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
	for _, p := range in(d.op, "query") {
		if p.Required {
			d.unknown(4, "query %s, which the operation requires: %s", p.Name, p.Description)
		}
	}
	d.body()
	switch at := d.locationOf(); {
	case d.id != "" && d.record != nil && hasMember(d.record, d.id):
		d.line(4, "ref: "+pathTo(append(slices.Clone(d.within), d.id)...), "by its name")
	case at != "":
		d.line(4, "ref: {header: "+scalarText(at)+`, match: '([^/]+)$'}`, "the last part of the address")
	default:
		d.unknown(4, "ref, where the answer has the id of the record: $.id")
	}
	d.idempotency()
}

func hasMember(s *openapi3.Schema, name string) bool { _, ok := of(membersOf(s), name); return ok }

// locationOf is the header of the answer with the address of the record.
func (d *drafter) locationOf() string {
	if r := answer(d.op.op, "2"); r != nil {
		for name := range r.Headers {
			if strings.EqualFold(name, "Location") {
				return "Location"
			}
		}
	}
	return ""
}

func (d *drafter) body() {
	if d.request == nil {
		if d.op.op.RequestBody != nil {
			d.unknown(4, "the body: the operation takes neither JSON nor a form")
		}
		return
	}
	depth := 5
	if d.form {
		d.line(4, "form:", "")
	} else {
		d.line(4, "body:", "")
		if d.wrapper != "" {
			d.line(5, literal(d.wrapper)+":", "")
			depth = 6
		}
	}
	if d.chosen {
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
	name, field := literal(m.name), called(m.name)
	if field == "" {
		d.unknown(depth, "a field for %q, a name without letters", m.name)
		return
	}
	needed := ""
	if m.required {
		needed = "  # required"
	}
	mine := m.name == d.own.name && d.own.name != ""
	switch {
	case mine && d.inside != "" || d.stamp == m.name && d.stampHow == "object":
		var inner [][2]string
		if mine && d.inside != "" {
			inner = append(inner, [2]string{"reference", `"{key.reference}"`})
		}
		if d.stamp == m.name {
			inner = append(inner, [2]string{"readback", `"{stamp}"`})
		}
		if !d.form {
			var all []string
			for _, i := range inner {
				all = append(all, i[0]+": "+i[1])
			}
			d.line(depth, name+": {"+strings.Join(all, ", ")+"}", "a place for what is ours")
			return
		}
		for _, i := range inner {
			d.line(depth, strconv.Quote(m.name+"["+i[0]+"]")+": "+i[1], "a place for what is ours")
		}
	case mine:
		d.line(depth, name+`: "{key.`+field+`}"`+needed, "")
	case slices.Contains(d.key, field):
		d.line(depth, name+`: "{key.`+field+`}"`, "the same as in the path")
	case d.stamp == m.name && d.stampHow == "list":
		d.line(depth, name+`: [{"...": "{fields.`+field+`}"}, "{stamp}"]`, "a place for the stamp; that it is stored as it is sent")
	case d.stamp == m.name && d.stampHow == "text":
		d.line(depth, name+`: "{fields.`+field+`|} [{stamp}]"`+needed, "a place for the stamp; people see it")
	case d.form && !scalar(m.schema):
		if inner := membersOf(m.schema); is(m.schema, "object") && len(inner) > 0 {
			var names []string
			for _, i := range inner {
				names = append(names, m.name+"["+i.name+"]")
			}
			d.unknown(depth, "how %s is written in a form, probably as %s", m.name, strings.Join(names, ", "))
			return
		}
		d.unknown(depth, "how %s, which is no single value, is written in a form", m.name)
	case len(m.schema.Enum) == 1 && m.required && is(m.schema, "string"):
		d.line(depth, name+": "+literal(fmt.Sprint(m.schema.Enum[0]))+needed, "")
	default:
		d.line(depth, name+`: "{fields.`+field+`}"`+needed, "")
	}
}

func (d *drafter) idempotency() {
	for _, where := range []string{"header", "query"} {
		for _, p := range in(d.op, where) {
			if !isKey(p.Name) {
				continue
			}
			form := ""
			if s := value(p.Schema); s != nil && s.Format == "uuid" {
				form = ", form: uuid4"
			}
			// A key that the API ignores makes a repeat a duplicate, so a person must say that it does not.
			d.unknown(4, "idempotency: {%s: %s%s, window: 1h}, if a repeat within the window answers the first record; the document only names it", where, scalarText(p.Name), form)
			return
		}
	}
	d.unknown(4, "idempotency: the operation names no key in a header or the query; its guide may")
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
	by, item := "ref", "{ref}"
	if d.op.method == "PUT" {
		by, item = "key", ""
	}
	wrapped, _ := enclosed(answered(d.get.op), append(slices.Clone(ids), d.noun[0]+"_id")...)
	to := "$"
	if wrapped != "" {
		to = pathTo(wrapped)
	}
	d.line(3, "- name: get", "")
	d.line(4, "by: "+by, "")
	d.unknown(4, "strength: strong, if it shows at once what was written")
	d.line(4, "path: "+d.path(*d.get, item), "")
	d.line(4, "record: "+to, "")
	lists := ""
	if d.get.op.Responses != nil && d.get.op.Responses.Value("404") != nil {
		lists = ", which the document lists"
	}
	d.unknown(4, "absent: [404]%s; a login without rights may be answered so, too", lists)
}

// limits are names of the parameter for the size of a page.
var limits = []string{"limit", "per_page", "page_size", "size", "max_results", "count", "first", "page_limit"}

func (d *drafter) readList() {
	all := in(*d.list, "query")
	by := "[key, stamp]"
	if d.stamp == "" {
		by = "key"
	}
	var query [][3]string
	own := d.own.name
	if d.inside != "" {
		own = "reference"
	}
	limit, size := "", 100
	filtered := false
	for _, p := range all {
		name := strings.Join(pieces(p.Name), "_")
		switch {
		case own != "" && name == strings.Join(pieces(own), "_"):
			query = append(query, [3]string{p.Name, "{key." + called(own) + "}", "that it compares for equality"})
			by, filtered = "key", true
		case slices.Contains(d.key, called(p.Name)):
			query = append(query, [3]string{p.Name, "{key." + called(p.Name) + "}", "that it compares for equality"})
		case limit == "" && slices.Contains(limits, name):
			if s := value(p.Schema); s != nil && s.Max != nil {
				size = int(*s.Max)
			}
			limit = p.Name
			query = append(query, [3]string{p.Name, strconv.Itoa(size), "the largest page"})
		case p.Required:
			d.params[called(p.Name)] = parameterOf(p)
			query = append(query, [3]string{p.Name, "{param." + called(p.Name) + "}", "required; the same for all"})
		}
	}
	d.line(3, "- name: list", "")
	d.line(4, "by: "+by, "")
	if !filtered {
		d.unknown(4, "a filter by our reference; all records are listed and ours are picked, which an account with many cannot afford")
	}
	d.line(4, "path: "+d.path(*d.list, ""), "")
	if len(query) > 0 {
		d.line(4, "query:", "")
		for _, q := range query {
			text := strconv.Quote(q[1])
			d.line(5, literal(q[0])+": "+text, q[2])
		}
	}
	guess := ""
	if !d.listKnown {
		guess = "the document does not say where the list is"
	}
	d.line(4, "records: "+strconv.Quote(bareJSONPath(d.records...)+"[*]"), guess)
	if d.paging(all, limit, size) || filtered {
		return
	}
	if limit == "" {
		d.unknown(4, "newest, how many records the list shows at the most: a full one proves no absence")
	} else {
		d.line(4, fmt.Sprintf("newest: %d", size), "a full page proves no absence, since the next one is not asked for")
	}
}

// paging writes how the next page is asked for, by the names of parameters; false if that is not known.
func (d *drafter) paging(all []*openapi3.Parameter, limit string, size int) bool {
	s := answered(d.list.op)
	more := ""
	if path := search(s, func(m member) bool {
		return is(m.schema, "boolean") && slices.Contains([]string{"has_more", "has_next", "has_next_page", "more"}, strings.Join(pieces(m.name), "_"))
	}); path != nil {
		more = ", more: " + scalarPath(bareJSONPath(path...))
	}
	parameter := func(names ...string) string {
		for _, n := range names {
			for _, p := range all {
				if strings.Join(pieces(p.Name), "_") == n {
					return p.Name
				}
			}
		}
		return ""
	}
	address := func(m member) bool {
		return m.schema.Format == "uri" || slices.ContainsFunc(pieces(m.name), func(p string) bool { return p == "url" || p == "uri" || p == "link" })
	}
	q := parameter("starting_after", "cursor", "page_token", "next_token", "start_cursor", "page_cursor", "next_cursor", "after")
	if q != "" {
		if next := search(s, func(m member) bool {
			name := pieces(m.name)
			return is(m.schema, "string") && !address(m) && (slices.Contains(name, "next") || strings.EqualFold(m.name, q) || slices.Equal(name, []string{"end", "cursor"}))
		}); next != nil {
			d.line(4, "paging: {next: "+pathTo(next...)+", query: "+scalarText(q)+more+"}", "by the names of the parameter and the member")
			return true
		}
	}
	if next := search(s, func(m member) bool {
		name := pieces(m.name)
		return is(m.schema, "string") && slices.Contains(name, "next") && (address(m) || len(name) == 1 || slices.Contains(name, "page"))
	}); next != nil {
		d.line(4, "paging: {next_url: "+pathTo(next...)+"}", "by the name of the member")
		return true
	}
	switch {
	case q != "" && d.id != "" && len(d.records) > 0:
		last := bareJSONPath(d.records...) + "[-1]" + strings.TrimPrefix(bareJSONPath(d.id), "$")
		d.line(4, "paging: {next: "+strconv.Quote(last)+", query: "+scalarText(q)+more+"}", "by the name of the parameter: it takes the last record's id")
		return true
	case q != "":
		d.unknown(4, "paging: the next page is asked for by %s; where the answer has its value the document does not say", q)
		return false
	}
	if r := answer(d.list.op, "2"); r != nil {
		for name := range r.Headers {
			if strings.EqualFold(name, "Link") {
				d.line(4, "paging: {link: next}", "the answer has the header Link")
				return true
			}
		}
	}
	if q = parameter("page", "page_number"); q != "" {
		if limit == "" {
			d.unknown(4, "paging: {page: %s, size: …}: how many records a full page has", q)
			return false
		}
		d.line(4, fmt.Sprintf("paging: {page: %s, size: %d}", scalarText(q), size), "by the name of the parameter; that the first page is 1")
		return true
	}
	if q = parameter("offset", "skip", "start"); q != "" {
		d.unknown(4, "paging: pages begin at %s, which the format cannot count; want a filter that leaves one page", q)
		return false
	}
	d.unknown(4, "paging: the list names no parameter for a next page")
	return false
}

func (d *drafter) recordShown() {
	if d.get == nil && d.list == nil && len(d.shown) == 0 {
		return
	}
	d.line(2, "record:", "")
	switch last := d.key[len(d.key)-1]; {
	case d.id != "":
		d.line(3, "ref: "+pathTo(d.id), "by its name")
	case d.op.method == "PUT" && hasName(d.shown, last):
		d.line(3, "ref: "+pathTo(last), "the key, since a record shows no id")
	default:
		d.unknown(3, "ref, where a record has its own id")
	}
	switch d.stampHow {
	case "object":
		d.line(3, "stamp: {path: "+strconv.Quote(bareJSONPath(d.stampAt, "readback"))+"}", "")
	case "list":
		d.line(3, "stamp: {path: "+strconv.Quote(bareJSONPath(d.stampAt)+"[*]")+", match: '^(rb-[a-z2-7]{32})$'}", "")
	case "text":
		d.line(3, "stamp: {path: "+strconv.Quote(bareJSONPath(d.stampAt))+`, match: '\[(rb-[a-z2-7]{32})\]$'}`, "")
	default:
		d.unknown(3, "stamp: the request has no member of its own for it that records show")
	}
	d.line(3, "fields:", "")
	if len(d.shown) == 0 {
		d.line(4, `"...": $`, "the document does not say what a record has")
		return
	}
	if d.inside != "" {
		if m, ok := same(d.shown, d.inside); ok {
			d.line(4, "reference: "+pathTo(m.name, "reference"), "")
		} else {
			d.unknown(4, "reference: %s is sent, and no record shows it", d.inside)
		}
	}
	done := map[string]bool{}
	for _, m := range d.shown {
		field := called(m.name)
		if sent, ok := same(d.sends, m.name); ok && !hasName(d.sends, m.name) {
			field = called(sent.name)
		}
		if m.schema.WriteOnly || field == "" || done[field] || d.scope[field] || field == d.inside || m.name == d.stampAt && d.stampHow == "object" || d.inside != "" && field == "reference" {
			continue
		}
		done[field] = true
		switch to := strconv.Quote(bareJSONPath(m.name)); {
		case m.name == d.stampAt && d.stampHow == "list":
			d.line(4, scalarText(field)+": {path: "+strconv.Quote(bareJSONPath(m.name)+"[*]")+", list: true, without: '^rb-[a-z2-7]{32}$'}", "")
		case m.name == d.stampAt && d.stampHow == "text":
			d.line(4, scalarText(field)+": {path: "+to+`, strip: ' \[rb-[a-z2-7]{32}\]$'}`, "")
		case items(m.schema) != nil && is(items(m.schema), "string"):
			d.line(4, scalarText(field)+": {path: "+strconv.Quote(bareJSONPath(m.name)+"[*]")+", list: true}", "")
		default:
			d.line(4, scalarText(field)+": "+pathTo(m.name), "")
		}
	}
	for _, m := range d.sends {
		if _, shows := same(d.shown, m.name); !shows && m.name != d.inside && called(m.name) != "" {
			d.unknown(4, "%s: it is sent, and no record shows it", m.name)
		}
	}
}

func hasName(all []member, name string) bool { _, ok := of(all, name); return ok }

// sample writes a record to measure an account with.
func (d *drafter) sample() {
	d.line(2, "sample:", "")
	var key []string
	for i, k := range d.key {
		v, known := `"readback-sample-{sample}"`, i == len(d.key)-1
		if !known {
			v = `"example"`
			for _, p := range in(d.op, "path") {
				if called(p.Name) == k && p.Example != nil {
					v = literalValue(fmt.Sprint(p.Example))
				}
			}
		}
		key = append(key, scalarText(k)+": "+v)
	}
	guess := ""
	if len(key) > 1 {
		guess = "what is not the last must be there"
	}
	d.line(3, "key: {"+strings.Join(key, ", ")+"}", guess)
	var create []string
	for _, m := range d.sends {
		field := called(m.name)
		if !m.required || field == "" || slices.Contains(d.key, field) || m.name == d.inside || m.name == d.stamp && d.stampHow == "object" ||
			d.form && !scalar(m.schema) || len(m.schema.Enum) == 1 && is(m.schema, "string") {
			continue
		}
		if v, ok := exampleOf(m.schema, 0); ok {
			create = append(create, scalarText(field)+": "+v)
		}
	}
	d.line(3, "create: {"+strings.Join(create, ", ")+"}", "of examples and types")
}

// literalValue is always quoted, so that a text stays one.
func literalValue(s string) string {
	return strconv.Quote(strings.NewReplacer("{", "{{", "}", "}}").Replace(s))
}

// exampleOf is a value of a schema, in YAML's flow style.
func exampleOf(s *openapi3.Schema, depth int) (string, bool) {
	if s == nil || depth > deepest {
		return "", false
	}
	for _, v := range append([]any{s.Example, s.Default}, s.Enum...) {
		switch v := v.(type) {
		case string:
			return literalValue(v), true
		case bool:
			return strconv.FormatBool(v), true
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64), true
		}
	}
	switch {
	case is(s, "integer"), is(s, "number"):
		if s.Min != nil && *s.Min > 1 {
			return strconv.FormatFloat(*s.Min, 'f', -1, 64), true
		}
		return "1", true
	case is(s, "boolean"):
		return "false", true
	case is(s, "string"):
		switch s.Format {
		case "date":
			return `"2030-01-31"`, true
		case "date-time":
			return `"2030-01-31T12:00:00Z"`, true
		case "email":
			return "readback@example.com", true
		case "uri", "url":
			return `"https://example.com/"`, true
		}
		return `"readback sample"`, true
	case is(s, "array"):
		if v, ok := exampleOf(items(s), depth+1); ok {
			return "[" + v + "]", true
		}
		return "[]", true
	}
	var inner []string
	for _, m := range membersOf(s) {
		if v, ok := exampleOf(m.schema, depth+1); ok && m.required {
			inner = append(inner, literal(m.name)+": "+v)
		}
	}
	return "{" + strings.Join(inner, ", ") + "}", true
}
