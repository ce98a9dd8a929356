package openapi

import (
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
	doc *openapi3.T
	op  endpoint

	params map[string]parameter // of the account
	// The request.
	request  *openapi3.Schema // nil where there is no body
	form     bool
	wrapper  string // the member that encloses all others, if one does
	sends    []member
	chosen   bool
	key      []string        // the members of the business key
	scope    map[string]bool // those of them that come from the path
	own      member          // the member of the request that has our reference; none if its name is empty
	inside   string          // "metadata", where our reference is a member of an object of ours
	stamp    string          // the member that has the stamp
	stampAt  string          // its name in records
	stampHow string          // object, list or text

	// How the record is found again.
	get, list *endpoint
	within    []string // what encloses the record in the answer to the write
	record    *openapi3.Schema
	shown     []member
	id        string
	records   []string
	element   *openapi3.Schema
	listKnown bool
	noun      []string
}

// parameter is what an account gives.
type parameter struct{ pattern, about, fallback, example, guess string }

func (d *drafter) draft() string {
	d.look()
	info := d.doc.Info
	d.line(0, plain(fmt.Sprintf("# A draft, from %s %s: %s, %s %s.", info.Title, info.Version, d.op.name(), d.op.method, d.op.path)), "")
	d.line(0, `# Each "guess" must be proven or changed, and each "not known" answered.`, "")
	d.line(0, "declaration: 1", "")
	kind := d.kindName()
	d.line(0, "name: "+slug(info.Title+" "+kind), "of the title and the path")
	d.line(0, "system: "+strconv.Quote(plain(info.Title)), "")
	host := d.server()
	head := d.text // what follows finds parameters, which come before it
	d.text = ""
	d.login(host)
	d.versions()
	d.probe()
	d.refusal()
	d.line(0, "kinds:", "")
	d.line(1, kind+":", "of the path")
	d.kind()
	tail := d.text
	d.text = head
	d.parameters()
	return d.text + tail
}

func slug(name string) string {
	words := pieces(name)
	for i := len(words) - 1; i > 0; i-- {
		if words[i] == words[i-1] {
			words = slices.Delete(words, i, i+1)
		}
	}
	s := strings.Join(words[:min(len(words), 6)], "-")
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		s = "api-" + s
	}
	return strings.Trim(s, "-")
}

// segments are the parts of a path, without an ending such as .json, and no parameter's name.
func segments(path string) []string {
	all := strings.Split(strings.Trim(strings.TrimSuffix(path, ".json"), "/"), "/")
	for i, s := range all {
		all[i] = hole.ReplaceAllString(s, "{}")
	}
	return all
}

func singular(word string) string {
	switch {
	case strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "ses"), strings.HasSuffix(word, "xes"):
		return strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return strings.TrimSuffix(word, "s")
	}
	return word
}

func (d *drafter) kindName() string {
	name := "record"
	for _, s := range segments(d.op.path) {
		if s != "{}" && !strings.Contains(s, "{") {
			name = s
		}
	}
	words := pieces(name)
	if len(words) == 0 {
		return "record"
	}
	words[len(words)-1] = singular(words[len(words)-1])
	return slug(strings.Join(words, " "))
}

// look finds what the draft is made of.
func (d *drafter) look() {
	noun := d.kindName()
	d.noun = []string{strings.ReplaceAll(noun, "-", "_"), strings.ReplaceAll(noun, "-", "_") + "s"}
	if last := segments(d.op.path); len(last) > 0 {
		d.noun = append(d.noun, strings.Join(pieces(last[len(last)-1]), "_"))
	}
	if body := d.op.op.RequestBody; body != nil && body.Value != nil {
		s, kind := content(body.Value.Content)
		d.form = kind == "form"
		if s != nil {
			d.wrapper, d.request = "", s
			if !d.form {
				d.wrapper, d.request = enclosed(s)
			}
			all, chosen := members(d.request)
			d.chosen = chosen
			for _, m := range all {
				if !m.schema.ReadOnly {
					d.sends = append(d.sends, m)
				}
			}
		}
	}
	d.related()
	if s := answered(d.op.op); s != nil {
		wrapped, record := enclosed(s, append(slices.Clone(ids), d.noun[0]+"_id")...)
		if wrapped != "" {
			d.within = []string{wrapped}
		}
		d.record = record
	}
	if d.list != nil {
		d.records, d.element, d.listKnown = listed(answered(d.list.op), d.noun)
	}
	shown := d.element
	if d.get != nil {
		if _, record := enclosed(answered(d.get.op), ids...); record != nil {
			shown = record
		}
	}
	if shown == nil {
		shown = d.record
	}
	d.shown, _ = members(shown)
	for _, s := range [][]member{membersOf(d.record), d.shown} {
		if m, ok := first(s, append(slices.Clone(ids), d.noun[0]+"_id")...); ok && d.id == "" {
			d.id = m.name
		}
	}
	d.keys()
	d.stamps()
}

func membersOf(s *openapi3.Schema) []member { all, _ := members(s); return all }

// related finds the GET of one record and the GET of all, by the path.
func (d *drafter) related() {
	here := segments(d.op.path)
	for _, e := range endpoints(d.doc) {
		there := segments(e.path)
		switch {
		case e.method != "GET":
		case d.op.method == "PUT" && slices.Equal(there, here):
			d.get = &e
		case d.op.method == "PUT" && len(here) > 1 && here[len(here)-1] == "{}" && slices.Equal(there, here[:len(here)-1]):
			d.list = &e
		case d.op.method == "POST" && slices.Equal(there, here):
			d.list = &e
		case d.op.method == "POST" && len(there) == len(here)+1 && there[len(here)] == "{}" && slices.Equal(there[:len(here)], here):
			d.get = &e
		}
	}
}

// references are names of members that many APIs leave to the caller, the likeliest first.
var references = []string{"external_id", "external_reference", "external_reference_id", "client_reference_id", "client_reference", "reference_id", "reference",
	"reference_number", "merchant_reference", "custom_id", "client_id", "correlation_id", "correlation", "request_id", "order_id", "ref", "iid", "unique_id", "nonce"}

// tellings are names of members by which people tell records apart.
var tellings = []string{"email", "sku", "code", "slug", "name", "title", "subject"}

// keys chooses the business key.
func (d *drafter) keys() {
	for _, name := range d.holes() {
		if d.ofAccount(name) {
			continue
		}
		d.key = append(d.key, called(name))
		// A read by ref names it, too, and of the key it can name only the scope.
		if _, ok := same(d.shown, name); !ok || d.op.method == "POST" {
			d.scope[called(name)] = true
		}
	}
	if d.op.method == "PUT" && len(d.key) > 0 && len(d.scope) < len(d.key) {
		return // the path names the record
	}
	if m, ok := first(d.sends, references...); ok {
		d.own = m
		d.key = append(d.key, called(m.name))
		return
	}
	if m, ok := first(d.sends, "metadata"); ok && is(m.schema, "object") {
		d.own, d.inside = m, m.name
		d.key = append(d.key, "reference")
		return
	}
	likely := slices.DeleteFunc(slices.Clone(d.sends), func(m member) bool {
		_, shows := same(d.shown, m.name)
		return !shows || !m.required || !scalar(m.schema) || len(m.schema.Enum) > 0 || is(m.schema, "boolean")
	})
	m, ok := first(likely, tellings...)
	if !ok && len(likely) > 0 {
		m, ok = likely[0], true
	}
	if ok {
		d.own = m
		d.key = append(d.key, called(m.name))
		return
	}
	d.key = append(d.key, "reference")
}

// holes are the names of the path's parameters.
func (d *drafter) holes() []string {
	var names []string
	for _, m := range hole.FindAllStringSubmatch(d.op.path, -1) {
		names = append(names, m[1])
	}
	return names
}

// ofAccount reports whether a parameter of a path is likely the same for all writes.
func (d *drafter) ofAccount(name string) bool {
	for _, p := range pieces(name) {
		if slices.Contains([]string{"account", "accounts", "tenant", "org", "organization", "organisation", "workspace", "subdomain", "shop", "store",
			"company", "owner", "repo", "version", "region", "realm", "instance", "environment"}, p) {
			return true
		}
	}
	return false
}

// stamps chooses where the stamp goes: a place that a record shows again.
func (d *drafter) stamps() {
	for _, name := range []string{"metadata", "tags", "labels", "description", "memo", "notes", "note", "comment", "body", "text", "content"} {
		m, ok := first(d.sends, name)
		if !ok {
			continue
		}
		at, shows := same(d.shown, m.name)
		if !shows || m.name == d.own.name && d.inside == "" {
			continue
		}
		switch {
		case name == "metadata" && is(m.schema, "object"):
			d.stamp, d.stampHow = m.name, "object"
		case (name == "tags" || name == "labels") && !d.form && items(m.schema) != nil && is(items(m.schema), "string"):
			d.stamp, d.stampHow = m.name, "list"
		case is(m.schema, "string"):
			d.stamp, d.stampHow = m.name, "text"
		default:
			continue
		}
		d.stampAt = at.name
		return
	}
}

// server writes the address, and returns its host.
func (d *drafter) server() string {
	servers := d.doc.Servers
	if len(d.op.item.Servers) > 0 {
		servers = d.op.item.Servers
	}
	if d.op.op.Servers != nil && len(*d.op.op.Servers) > 0 {
		servers = *d.op.op.Servers
	}
	if len(servers) == 0 || servers[0] == nil || !strings.Contains(servers[0].URL, "://") {
		d.unknown(0, "the address: the document names none that is complete")
		d.line(0, "base_url: https://api.example.com", "an example")
		return "api.example.com"
	}
	s, guess := servers[0], ""
	if len(servers) > 1 {
		guess = fmt.Sprintf("the first of %d servers", len(servers))
	}
	address := strings.TrimSuffix(s.URL, "/")
	if strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "http://localhost") && !strings.HasPrefix(address, "http://127.") {
		address, guess = "https"+strings.TrimPrefix(address, "http"), "the document says http"
	}
	for _, m := range hole.FindAllStringSubmatch(address, -1) {
		p := parameter{pattern: `[A-Za-z0-9.-]+`, about: "the server's " + m[1], guess: "the pattern"}
		if v := s.Variables[m[1]]; v != nil {
			if v.Description != "" {
				p.about = v.Description
			}
			if len(v.Enum) > 0 {
				var all []string
				for _, e := range v.Enum {
					all = append(all, regexp.QuoteMeta(e))
				}
				p.pattern, p.guess = strings.Join(all, "|"), ""
			}
			p.example = v.Default
		}
		d.params[called(m[1])] = p
	}
	address = hole.ReplaceAllStringFunc(address, func(h string) string { return "{param." + called(h[1:len(h)-1]) + "}" })
	d.line(0, "base_url: "+strconv.Quote(address), guess)
	if u, err := url.Parse(s.URL); err == nil {
		return u.Host
	}
	return ""
}

func (d *drafter) parameters() {
	if len(d.params) == 0 {
		return
	}
	d.line(0, "parameters:", "")
	for _, name := range slices.Sorted(maps.Keys(d.params)) {
		p := d.params[name]
		text := fmt.Sprintf("%s: {pattern: %s, about: %s", name, strconv.Quote(p.pattern), strconv.Quote(plain(p.about)))
		form, err := regexp.Compile(`\A(?:` + p.pattern + `)\z`)
		fits := func(s string) bool { return s != "" && err == nil && form.MatchString(s) }
		if fits(p.fallback) {
			text += ", default: " + strconv.Quote(p.fallback)
		}
		if fits(p.example) {
			text += ", example: " + strconv.Quote(p.example)
		}
		d.line(1, text+"}", p.guess)
	}
}

// login writes the first login that the operation takes and the format has.
func (d *drafter) login(host string) {
	needs := d.doc.Security
	if d.op.op.Security != nil {
		needs = *d.op.op.Security
	}
	var schemes openapi3.SecuritySchemes
	if d.doc.Components != nil {
		schemes = d.doc.Components.SecuritySchemes
	}
	ways := 0
	var names []string
	for _, need := range needs {
		if ways++; len(need) > 0 {
			names = append(names, slices.Sorted(maps.Keys(need))...)
		}
	}
	guess := ""
	if len(needs) == 0 {
		names, guess = slices.Sorted(maps.Keys(schemes)), "the operation names no login; this is one of the document's"
	}
	if ways > 1 || len(names) > 1 {
		guess = "one of several: " + strings.Join(names, ", ")
	}
	for _, name := range names {
		ref := schemes[name]
		if ref == nil || ref.Value == nil {
			continue
		}
		var scopes []string
		for _, need := range needs {
			scopes = append(scopes, need[name]...)
		}
		if d.loginBy(ref.Value, scopes, guess, host) {
			return
		}
	}
	d.unknown(0, "auth, the login: the document has none that the format can say")
}

func (d *drafter) loginBy(s *openapi3.SecurityScheme, scopes []string, guess, host string) bool {
	auth := func(text, more string) {
		d.line(0, "auth:", "")
		d.line(1, text, strings.Trim(guess+"; "+more, "; "))
	}
	switch {
	case s.Type == "http" && strings.EqualFold(s.Scheme, "bearer"):
		auth("bearer: {secret: token}", "")
	case s.Type == "http" && strings.EqualFold(s.Scheme, "basic"):
		d.params["username"] = parameter{pattern: `[^\s:]+`, about: "the user of the login", guess: "the pattern"}
		auth(`basic: {username: "{param.username}", secret: password}`, "")
	case s.Type == "apiKey" && s.In == "header" && strings.EqualFold(s.Name, "Authorization"):
		auth("bearer: {secret: token}", "the document says a key in Authorization, and not with which word before it")
	case s.Type == "apiKey" && s.In == "header":
		auth("header: {name: "+scalarText(s.Name)+", secret: key}", "")
	case s.Type == "oauth2" && s.Flows != nil && s.Flows.ClientCredentials != nil && s.Flows.ClientCredentials.TokenURL != "":
		flow := s.Flows.ClientCredentials
		if u, err := url.Parse(flow.TokenURL); err == nil && u.Host != "" && u.Host != host {
			d.line(0, "hosts: ["+strconv.Quote(u.Host)+"]", "")
		}
		d.params["client_id"] = parameter{pattern: `\S+`, about: "the client's id", guess: "the pattern"}
		text := `oauth2: {token_url: ` + literal(flow.TokenURL) + `, client_id: "{param.client_id}", secret: client_secret`
		if len(scopes) > 0 {
			var all []string
			for _, one := range slices.Compact(slices.Sorted(slices.Values(scopes))) {
				all = append(all, literal(one))
			}
			text += ", scopes: [" + strings.Join(all, ", ") + "]"
		}
		auth(text+"}", "")
	case s.Type == "oauth2", s.Type == "openIdConnect":
		auth("bearer: {secret: token}", "a token of "+s.Type+" that something else gets and renews")
	default:
		return false
	}
	return true
}

var idempotencyWords = []string{"idempotency", "idempotent", "deduplication"}

// in are the parameters of an operation that are there, of its path item too.
func in(e endpoint, where string) []*openapi3.Parameter {
	var all []*openapi3.Parameter
	for _, refs := range []openapi3.Parameters{e.op.Parameters, e.item.Parameters} {
		for _, ref := range refs {
			if p := ref.Value; p != nil && p.In == where && !slices.ContainsFunc(all, func(o *openapi3.Parameter) bool { return o.Name == p.Name }) {
				all = append(all, p)
			}
		}
	}
	return all
}

func isKey(name string) bool {
	return slices.ContainsFunc(pieces(name), func(p string) bool { return slices.Contains(idempotencyWords, p) })
}

// versions writes the headers that each request needs.
func (d *drafter) versions() {
	var lines []string
	for _, p := range in(d.op, "header") {
		low := strings.ToLower(p.Name)
		if isKey(p.Name) || !p.Required && !strings.Contains(low, "version") || slices.Contains([]string{"accept", "content-type", "authorization"}, low) {
			continue
		}
		name := strings.Join(pieces(p.Name), "_")
		d.params[name] = parameterOf(p)
		lines = append(lines, scalarText(p.Name)+`: "{param.`+name+`}"`)
	}
	if len(lines) > 0 {
		d.line(0, "headers:", "")
		for _, l := range lines {
			d.line(1, l, "the operation takes it; every request gets it")
		}
	}
}

// parameterOf makes a parameter of the account of one of a request.
func parameterOf(p *openapi3.Parameter) parameter {
	made := parameter{pattern: `[A-Za-z0-9._-]+`, about: p.Description, guess: "the same for all writes of an account, and its pattern"}
	if made.about == "" {
		made.about = p.Name
	}
	s := value(p.Schema)
	if s != nil && s.Default != nil {
		made.fallback = fmt.Sprint(s.Default)
	} else if s != nil && len(s.Enum) == 1 {
		made.fallback = fmt.Sprint(s.Enum[0])
	} else if p.Example != nil {
		made.example = fmt.Sprint(p.Example)
	}
	return made
}

// probe writes a GET that needs the login and no record.
func (d *drafter) probe() {
	for _, wanted := range []string{"me", "whoami", "self", "user", "account", "profile"} {
		for _, e := range endpoints(d.doc) {
			parts := segments(e.path)
			if e.method == "GET" && !strings.Contains(e.path, "{") && parts[len(parts)-1] == wanted && !needs(e) {
				d.line(0, "probe: {path: "+literal(e.path)+"}", "it needs the login, and changes nothing")
				return
			}
		}
	}
	if d.list != nil && len(d.scope) == 0 && d.op.method == "POST" && !needs(*d.list) {
		d.line(0, "probe: {path: "+d.path(*d.list, "")+"}", "the list of all, which needs the login")
		return
	}
	d.unknown(0, "probe, a GET that needs the login and changes nothing: {path: /me}")
}

// needs reports whether a query is incomplete without a parameter.
func needs(e endpoint) bool {
	return slices.ContainsFunc(in(e, "query"), func(p *openapi3.Parameter) bool { return p.Required })
}

// refusal writes where an error says what is wrong.
func (d *drafter) refusal() {
	r := answer(d.op.op, "4")
	if r == nil && d.op.op.Responses != nil {
		if ref := d.op.op.Responses.Default(); ref != nil {
			r = ref.Value
		}
	}
	if r == nil {
		d.unknown(0, "refusal, where an error says its code and its text: the usual members are tried")
		return
	}
	s, _ := content(r.Content)
	all, prefix := membersOf(s), "$"
	if m, ok := first(all, "error", "errors"); ok {
		deeper, to := membersOf(m.schema), bareJSONPath(m.name)
		if e := items(m.schema); e != nil {
			deeper, to = membersOf(e), to+"[0]"
		}
		if len(said(deeper, to)) > 0 {
			all, prefix = deeper, to
		}
	}
	parts := said(all, prefix)
	if len(parts) == 0 {
		d.unknown(0, "refusal, where an error says its code and its text: the usual members are tried")
		return
	}
	d.line(0, "refusal: {"+strings.Join(parts, ", ")+"}", "by the names of the error's members")
}

// said are the members of an error that are its code and its text.
func said(all []member, prefix string) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(m member) bool { return !scalar(m.schema) })
	var parts []string
	if m, ok := first(all, "code", "error_code", "type", "name", "status", "error"); ok {
		parts = append(parts, "code: "+scalarPath(prefix+strings.TrimPrefix(bareJSONPath(m.name), "$")))
	}
	if m, ok := first(all, "message", "detail", "error_description", "description", "text", "title", "error_message"); ok {
		parts = append(parts, "text: "+scalarPath(prefix+strings.TrimPrefix(bareJSONPath(m.name), "$")))
	}
	return parts
}
