package openapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// drafter makes a draft of one operation.
type drafter struct {
	page
	doc    *openapi3.T
	all    []endpoint
	op     endpoint
	host   string
	params map[string]parameter // of the account

	// The request.
	body    *openapi3.Schema // nil where there is none
	form    bool
	wrapper string // the member that encloses all others, if one does
	sends   []member
	key     []string        // the members of the business key
	scope   map[string]bool // those of them that come from the path
	own     member          // the member of the request that has our reference; none if its name is empty
	inside  bool            // own is an object, metadata, of which our reference is a member
	stamp   struct {
		sent, shown string // the member, and its name in records
		how         string // object, list or text
	}

	// How the record is found again.
	get, list *endpoint
	found     string // the JSONPath of its id in the answer to the write
	wrapped   string // the member that encloses a record that is read alone
	records   string // the JSONPath of the records of the list
	shown     []member
	id        string
}

// parameter is what an account gives.
type parameter struct{ pattern, about, fallback, example, guess string }

func (d *drafter) draft() string {
	d.look()
	info := d.doc.Info
	d.line(0, plain(fmt.Sprintf("# A draft, from %s %s: %s, %s.", info.Title, info.Version, d.op.name(), d.op.place())), "")
	d.line(0, `# Each "guess" must be proven or changed, and each "not known" answered.`, "")
	d.line(0, "declaration: 1", "")
	d.line(0, "name: "+slug(info.Title+" "+d.kindName()), "of the title and the path")
	d.line(0, "system: "+strconv.Quote(plain(info.Title)), "")
	d.server()
	head := d.text // what follows finds parameters, which come before it
	d.text = ""
	d.login()
	d.headers()
	d.probe()
	d.refusal()
	d.line(0, "kinds:", "")
	d.line(1, d.kindName()+":", "of the path")
	d.kind()
	tail := d.text
	d.text = head
	d.parameters()
	return d.text + tail
}

func slug(name string) string {
	words := slices.Compact(pieces(name))
	s := strings.Join(words[:min(len(words), 6)], "-")
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		s = "api-" + s
	}
	return strings.Trim(s, "-")
}

// segments are the parts of a path, without an ending such as .json, and no parameter's name.
func segments(path string) []string {
	return strings.Split(strings.Trim(strings.TrimSuffix(hole.ReplaceAllString(path, "{}"), ".json"), "/"), "/")
}

func (d *drafter) kindName() string {
	name := "record"
	for _, s := range segments(d.op.path) {
		if !strings.Contains(s, "{") && len(pieces(s)) > 0 {
			name = s
		}
	}
	words := pieces(name)
	words[len(words)-1] = singular(words[len(words)-1])
	return slug(strings.Join(words, " "))
}

// look finds what the draft is made of.
func (d *drafter) look() {
	if body := d.op.op.RequestBody; body != nil && body.Value != nil {
		if d.body, d.form = content(body.Value.Content); d.body != nil {
			if !d.form {
				d.wrapper, d.body = enclosed(d.body)
			}
			d.sends = slices.DeleteFunc(members(d.body), func(m member) bool { return m.schema.ReadOnly })
		}
	}
	d.related()
	wanted := append(slices.Clone(ids), strings.ReplaceAll(d.kindName(), "-", "_")+"_id")
	answered, _ := d.op.answers("")
	wrapper, record := enclosed(answered, wanted...)
	made := members(record)
	if m, ok := first(made, wanted...); ok {
		d.id, d.found = m.name, "$"+step(m.name)
		if wrapper != "" {
			d.found = "$" + step(wrapper) + step(m.name)
		}
	}
	d.shown = made
	if d.list != nil {
		s, _ := d.list.answers("")
		if list, m := d.listed(s); list != "" {
			d.records, d.shown = list, members(m)
		}
	}
	if d.get != nil {
		s, _ := d.get.answers("")
		if d.wrapped, record = enclosed(s, wanted...); len(members(record)) > 0 {
			d.shown = members(record)
		}
	}
	if m, ok := first(d.shown, wanted...); ok {
		d.id = cmp.Or(d.id, m.name)
	}
	d.keys()
	d.stamps()
}

// related finds the GET of one record and the GET of all, by the path.
func (d *drafter) related() {
	here := segments(d.op.path)
	for _, e := range d.all {
		there := segments(e.path)
		switch n := len(here); {
		case e.method != "GET":
		case slices.Equal(there, here) && d.op.method == "PUT", d.op.method == "POST" && slices.Equal(there, append(here[:n:n], "{}")):
			d.get = &e
		case slices.Equal(there, here):
			d.list = &e
		}
	}
}

// listed is where the records of an answer are, and one of them.
func (d *drafter) listed(s *openapi3.Schema) (string, *openapi3.Schema) {
	if e := items(s); e != nil {
		return "$", e
	}
	objects := func(m member) bool { e := items(m.schema); return e != nil && kind(e) == "object" }
	usual := []string{"data", "items", "results", "records", "entries", snake(d.kindName()) + "s"}
	path, m := search(s, false, func(m member) bool { return objects(m) && slices.Contains(usual, snake(m.name)) })
	if path == "" {
		path, m = search(s, false, objects)
	}
	if path == "" {
		return "", nil
	}
	return path, items(m.schema)
}

// references are names of members that many APIs leave to the caller, the likeliest first.
var references = []string{"external_id", "external_reference", "external_reference_id", "client_reference_id", "client_reference", "reference_id", "reference",
	"reference_number", "merchant_reference", "custom_id", "client_id", "correlation_id", "correlation", "request_id", "order_id", "ref", "iid", "unique_id", "nonce"}

// accounts are words of names of what is likely the same for all writes.
var accounts = []string{"account", "accounts", "tenant", "org", "organization", "organisation", "workspace", "subdomain", "shop", "store",
	"company", "owner", "repo", "version", "region", "realm", "instance", "environment"}

// keys chooses the business key.
func (d *drafter) keys() {
	for _, name := range d.holes() {
		if slices.ContainsFunc(pieces(name), func(p string) bool { return slices.Contains(accounts, p) }) {
			continue
		}
		d.key = append(d.key, called(name))
		// A read by ref names it, too, and of the key it can name only the scope.
		if _, ok := same(d.shown, name); !ok || d.op.method == "POST" {
			d.scope[called(name)] = true
		}
	}
	if d.op.method == "PUT" && len(d.key) > len(d.scope) {
		return // the path names the record
	}
	telling := slices.DeleteFunc(slices.Clone(d.sends), func(m member) bool {
		_, shows := same(d.shown, m.name)
		return !shows || !m.required || !scalar(m) || len(m.schema.Enum) > 0 || kind(m.schema) == "boolean"
	})
	var ok bool
	if d.own, ok = first(d.sends, references...); !ok {
		if d.own, ok = first(d.sends, "metadata"); ok && kind(d.own.schema) == "object" {
			d.inside = true
		} else if d.own, ok = first(telling, "email", "sku", "code", "slug", "name", "title", "subject"); !ok && len(telling) > 0 {
			d.own = telling[0]
		}
	}
	if d.inside || d.own.name == "" {
		d.key = append(d.key, "reference")
	} else {
		d.key = append(d.key, called(d.own.name))
	}
}

// holes are the names of the path's parameters.
func (d *drafter) holes() []string {
	var names []string
	for _, m := range hole.FindAllStringSubmatch(d.op.path, -1) {
		names = append(names, m[1])
	}
	return names
}

// stamps chooses where the stamp goes: a place that a record shows again.
func (d *drafter) stamps() {
	for _, name := range []string{"metadata", "tags", "labels", "description", "memo", "notes", "note", "comment", "body", "text", "content"} {
		m, _ := first(d.sends, name)
		at, shows := same(d.shown, m.name)
		if !shows || m.name == d.own.name && !d.inside {
			continue
		}
		switch e := items(m.schema); {
		case name == "metadata" && kind(m.schema) == "object":
			d.stamp.how = "object"
		case (name == "tags" || name == "labels") && !d.form && e != nil && kind(e) == "string":
			d.stamp.how = "list"
		case kind(m.schema) == "string":
			d.stamp.how = "text"
		default:
			continue
		}
		d.stamp.sent, d.stamp.shown = m.name, at.name
		return
	}
}

// server writes the address.
func (d *drafter) server() {
	servers := d.doc.Servers
	if len(d.op.item.Servers) > 0 {
		servers = d.op.item.Servers
	}
	if d.op.op.Servers != nil && len(*d.op.op.Servers) > 0 {
		servers = *d.op.op.Servers
	}
	s, guess := &openapi3.Server{URL: "https://api.example.com"}, "an example, since the document names no address that is complete"
	if len(servers) > 0 && servers[0] != nil && strings.Contains(servers[0].URL, "://") {
		s, guess = servers[0], ""
	}
	if len(servers) > 1 {
		guess = fmt.Sprintf("the first of %d servers", len(servers))
	}
	address := strings.TrimSuffix(s.URL, "/")
	u, err := url.Parse(hole.ReplaceAllString(address, "x"))
	if err == nil && u.Scheme == "http" && u.Hostname() != "localhost" && !strings.HasPrefix(u.Hostname(), "127.") {
		address, guess = "https"+strings.TrimPrefix(address, "http"), "the document says http"
	}
	if err == nil {
		d.host = u.Host
	}
	address = hole.ReplaceAllStringFunc(address, func(h string) string {
		name := h[1 : len(h)-1]
		p := parameter{pattern: `[A-Za-z0-9.-]+`, about: "the server's " + name, guess: "the pattern"}
		if v := s.Variables[name]; v != nil {
			p.about, p.example = cmp.Or(v.Description, p.about), v.Default
			var all []string
			for _, e := range v.Enum {
				all = append(all, regexp.QuoteMeta(e))
			}
			if len(all) > 0 {
				p.pattern, p.guess = strings.Join(all, "|"), ""
			}
		}
		return d.param(name, p)
	})
	d.line(0, "base_url: "+strconv.Quote(address), guess)
}

// param notes a parameter of the account, unless it is known, and returns its placeholder.
func (d *drafter) param(name string, p parameter) string {
	if _, known := d.params[called(name)]; !known {
		d.params[called(name)] = p
	}
	return "{param." + called(name) + "}"
}

// account makes a parameter of the account of one of a request.
func account(m member) parameter {
	p := parameter{pattern: `[A-Za-z0-9._-]+`, about: m.about, guess: "the same for all writes of an account, and its pattern"}
	switch s := m.schema; {
	case s.Default != nil:
		p.fallback = fmt.Sprint(s.Default)
	case len(s.Enum) == 1:
		p.fallback = fmt.Sprint(s.Enum[0])
	case s.Example != nil:
		p.example = fmt.Sprint(s.Example)
	}
	return p
}

func (d *drafter) parameters() {
	if len(d.params) > 0 {
		d.line(0, "parameters:", "")
	}
	for _, name := range slices.Sorted(maps.Keys(d.params)) {
		p := d.params[name]
		text := fmt.Sprintf("%s: {pattern: %s, about: %s", name, strconv.Quote(p.pattern), strconv.Quote(plain(p.about)))
		form, err := regexp.Compile(`\A(?:` + p.pattern + `)\z`)
		for _, one := range [][2]string{{"default", p.fallback}, {"example", p.example}} {
			if one[1] != "" && err == nil && form.MatchString(one[1]) {
				text += ", " + one[0] + ": " + strconv.Quote(one[1])
			}
		}
		d.line(1, text+"}", p.guess)
	}
}

// login writes the first login that the operation takes and the format has.
func (d *drafter) login() {
	needs, guess := d.doc.Security, ""
	if d.op.op.Security != nil {
		needs = *d.op.op.Security
	}
	var schemes openapi3.SecuritySchemes
	if d.doc.Components != nil {
		schemes = d.doc.Components.SecuritySchemes
	}
	if len(needs) == 0 {
		guess = "the operation names no login; this is one of the document's"
		for _, name := range slices.Sorted(maps.Keys(schemes)) {
			needs = append(needs, openapi3.SecurityRequirement{name: nil})
		}
	}
	for i, need := range needs {
		if len(needs) > 1 || len(need) > 1 {
			guess = fmt.Sprintf("number %d of several", i+1)
		}
		for _, name := range slices.Sorted(maps.Keys(need)) {
			if ref := schemes[name]; ref == nil || ref.Value == nil {
				continue
			} else if auth, why := d.loginBy(ref.Value, need[name]); auth != "" {
				d.line(0, "auth:", "")
				d.line(1, auth, strings.Trim(guess+"; "+why, "; "))
				return
			}
		}
	}
	d.unknown(0, "auth, the login: the document has none that the format can say")
}

func (d *drafter) loginBy(s *openapi3.SecurityScheme, scopes []string) (auth, guess string) {
	const bearer = "bearer: {secret: token}"
	switch {
	case s.Type == "http" && strings.EqualFold(s.Scheme, "bearer"):
		return bearer, ""
	case s.Type == "http" && strings.EqualFold(s.Scheme, "basic"):
		return `basic: {username: "` + d.param("username", parameter{pattern: `[^\s:]+`, about: "the user of the login", guess: "the pattern"}) + `", secret: password}`, ""
	case s.Type == "apiKey" && s.In == "header" && strings.EqualFold(s.Name, "Authorization"):
		return bearer, "the document says a key in Authorization, and not with which word before it"
	case s.Type == "apiKey" && s.In == "header":
		return "header: {name: " + quoted(s.Name) + ", secret: key}", ""
	case s.Type == "oauth2" && s.Flows != nil && s.Flows.ClientCredentials != nil && s.Flows.ClientCredentials.TokenURL != "":
		token := s.Flows.ClientCredentials.TokenURL
		if u, err := url.Parse(token); err == nil && u.Host != "" && u.Host != d.host {
			d.line(0, "hosts: ["+strconv.Quote(u.Host)+"]", "")
		}
		auth = `oauth2: {token_url: ` + literal(token) + `, client_id: "` + d.param("client_id", parameter{pattern: `\S+`, about: "the client's id", guess: "the pattern"}) + `", secret: client_secret`
		if len(scopes) > 0 {
			auth += ", scopes: [" + listOf(scopes, literal) + "]"
		}
		return auth + "}", ""
	case s.Type == "oauth2", s.Type == "openIdConnect":
		return bearer, "a token of " + s.Type + " that something else gets and renews"
	}
	return "", ""
}

// listOf writes a list of YAML, without its brackets.
func listOf(all []string, how func(string) string) string {
	var texts []string
	for _, one := range all {
		texts = append(texts, how(one))
	}
	return strings.Join(texts, ", ")
}

// isKey reports whether a parameter is named as the key of a repeat.
func isKey(m member) bool {
	return slices.ContainsFunc(pieces(m.name), func(p string) bool { return slices.Contains([]string{"idempotency", "idempotent", "deduplication"}, p) })
}

// headers writes those that each request needs, such as a version.
func (d *drafter) headers() {
	title := "headers:"
	for _, m := range d.op.takes("header") {
		low := strings.ToLower(m.name)
		if isKey(m) || !m.required && !strings.Contains(low, "version") || slices.Contains([]string{"accept", "content-type", "authorization"}, low) {
			continue
		}
		if title != "" {
			d.line(0, title, "")
			title = ""
		}
		d.line(1, quoted(m.name)+`: "`+d.param(snake(m.name), account(m))+`"`, "the operation takes it; every request gets it")
	}
}

// probe writes a GET that needs the login and no record.
func (d *drafter) probe() {
	for _, wanted := range []string{"me", "whoami", "self", "user", "account", "profile"} {
		for _, e := range d.all {
			if e.method == "GET" && !strings.Contains(e.path, "{") && strings.HasSuffix(e.path, "/"+wanted) && !e.needs() {
				d.line(0, "probe: {path: "+quoted(e.path)+"}", "it needs the login, and changes nothing")
				return
			}
		}
	}
	d.unknown(0, "probe, a GET that needs the login and changes nothing: {path: /me}")
}

// refusal writes where an error says what is wrong.
func (d *drafter) refusal() {
	var parts []string
	if r := d.op.answer("4", true); r != nil {
		if s, _ := content(r.Content); s != nil {
			for _, one := range [][]string{{"code", "code", "error_code", "type", "name", "status", "error"}, {"text", "message", "detail", "error_description", "description", "error_message"}} {
				if path, _ := search(s, true, named("", one[1:]...)); path != "" {
					parts = append(parts, one[0]+": "+quoted(path))
				}
			}
		}
	}
	if len(parts) == 0 {
		d.unknown(0, "refusal, where an error says its code and its text: the usual members are tried")
		return
	}
	d.line(0, "refusal: {"+strings.Join(parts, ", ")+"}", "by the names of the error's members")
}
