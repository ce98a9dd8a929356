package openapi

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:embed draft.yaml.tmpl
var layout string

// drafts is the text of a draft. Lines that are left empty are taken out.
var drafts = template.Must(template.New("draft").Delims("<<", ">>").Funcs(template.FuncMap{
	"quote": strconv.Quote, "guess": guess, "list": func(all []string) string { return listOf(all, quoted) },
}).Parse(layout))

// drafter makes a draft of one operation. What the text shows is exported.
type drafter struct {
	endpoint
	doc    *openapi3.T
	all    []endpoint
	Params map[string]string // of the account

	Title, Name, Kind, System, Address, Auth, TokenHost, Probe, Path, KeyGuess, Idempotency string
	Made, GetPath, ListPath, Wrapped, Records, Paging, ID, StampShown, SampleKey, Sample    string
	Headers, Key, Scope, Body, Query, Fields                                                []string
	Form, TakesBody, Filtered                                                               bool
	Size                                                                                    int
	Get, List                                                                               *endpoint

	body    *openapi3.Schema
	wrapper string // the member of the body that encloses all others, if one does
	sends   []member
	shown   []member // by a record
	id      string
	own     member // the member of the request that has our reference; none if its name is empty
	inside  bool   // own is an object, metadata, of which our reference is a member
	Stamp   struct {
		sent, shown string // the member, and its name in records
		How         string // of stampForms
	}
}

func (d *drafter) draft() (string, error) {
	info, kinds := d.doc.Info, []string{"record"}
	for _, s := range segments(d.path) {
		if words := pieces(s); !strings.Contains(s, "{") && len(words) > 0 {
			kinds = words
		}
	}
	kinds[len(kinds)-1] = singular(kinds[len(kinds)-1])
	d.Kind = slug(strings.Join(kinds, " "))
	d.Title = plain(fmt.Sprintf("%s %s: %s, %s", info.Title, info.Version, d.name(), d.place()))
	d.Name, d.System = slug(info.Title+" "+d.Kind), plain(info.Title)
	for _, part := range []func(){d.look, d.keys, d.stamps, d.server, d.login, d.headers, d.probe, d.write, d.reads, d.record, d.sample} {
		part()
	}
	var b strings.Builder
	if err := drafts.Execute(&b, d); err != nil {
		return "", err
	}
	return blank.ReplaceAllString(b.String(), ""), nil
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

// look finds what the draft is made of: the request, the GET of one record and that of all, and records.
func (d *drafter) look() {
	if body := d.op.RequestBody; body != nil && body.Value != nil {
		d.TakesBody = true
		if d.body, d.Form = content(body.Value.Content); d.body != nil {
			if !d.Form {
				d.wrapper, d.body = enclosed(d.body)
			}
			d.sends = slices.DeleteFunc(members(d.body), func(m member) bool { return m.schema.ReadOnly })
		}
	}
	here := segments(d.path)
	for _, e := range d.all {
		switch there := segments(e.path); {
		case e.Method != "GET":
		case slices.Equal(there, here) && d.Method == "PUT", d.Method == "POST" && slices.Equal(there, append(here[:len(here):len(here)], "{}")):
			d.Get = &e
		case slices.Equal(there, here):
			d.List = &e
		}
	}
	wanted := append(slices.Clone(ids), strings.ReplaceAll(d.Kind, "-", "_")+"_id")
	answered, headers := d.answers()
	if headers["Location"] != nil {
		d.Made = `{header: Location, match: '([^/]+)$'}` + guess("the last part of the address")
	}
	wrapper, record := enclosed(answered, wanted...)
	d.shown = members(record)
	if m, ok := first(d.shown, wanted...); ok {
		d.id, d.Made = m.name, quoted("$"+step(wrapper)+step(m.name))+guess("by its name")
	}
	if d.List != nil {
		s, _ := d.List.answers()
		path, m := search(s, func(m member) bool { return kind(items(m.schema)) == "object" })
		if kind(s) == "array" {
			path, m.schema = "$", s
		}
		if path != "" {
			d.Records, d.shown = path, members(items(m.schema))
		}
	}
	if d.Get != nil {
		s, _ := d.Get.answers()
		wrapper, record := enclosed(s, wanted...)
		d.Wrapped = quoted("$" + step(wrapper))
		if len(members(record)) > 0 {
			d.shown = members(record)
		}
	}
	if m, ok := first(d.shown, wanted...); ok {
		d.id = cmp.Or(d.id, m.name)
	}
}

// references are names of members that many APIs leave to the caller, the likeliest first.
var references = []string{"external_id", "external_reference", "external_reference_id", "client_reference_id", "client_reference", "reference_id", "reference",
	"reference_number", "merchant_reference", "custom_id", "client_id", "correlation_id", "request_id", "order_id", "ref", "iid", "unique_id", "nonce"}

// accounts are words of names of what is likely the same for all writes.
var accounts = []string{"account", "tenant", "org", "organization", "workspace", "subdomain", "shop", "store", "company", "owner", "repo", "version", "region", "realm", "instance", "environment"}

// keys chooses the business key.
func (d *drafter) keys() {
	for _, m := range hole.FindAllStringSubmatch(d.path, -1) {
		if slices.ContainsFunc(pieces(m[1]), func(p string) bool { return slices.Contains(accounts, singular(p)) }) {
			continue
		}
		name := called(m[1])
		d.Key = append(d.Key, name)
		// A read by ref names it, too, and of the key it can name only the scope.
		if _, ok := same(d.shown, name); !ok || d.Method == "POST" {
			d.Scope = append(d.Scope, name)
		}
	}
	if d.Method == "PUT" && len(d.Key) > len(d.Scope) {
		d.KeyGuess = "the parameters of the path"
		return
	}
	ours := slices.DeleteFunc(slices.Clone(d.sends), func(m member) bool {
		_, shows := same(d.shown, m.name)
		return !shows || !m.required || !scalar(m) || len(m.schema.Enum) > 0 || kind(m.schema) == "boolean"
	})
	name := "reference"
	d.KeyGuess = "nothing in the request can hold our reference; want a member that records show"
	if m, ok := first(d.sends, references...); ok {
		d.own, name, d.KeyGuess = m, called(m.name), "our reference by its name; whether it is unique must be found out"
	} else if m, ok := first(d.sends, "metadata"); ok && kind(m.schema) == "object" {
		d.own, d.inside, d.KeyGuess = m, true, "our reference in "+m.name+", which is not unique"
	} else if len(ours) > 0 {
		d.own, name, d.KeyGuess = ours[0], called(ours[0].name), "no member of the request is surely ours: two records may have one"
	}
	d.Key = append(d.Key, name)
}

// stampForms are how a member holds the stamp: as it is sent, where a record shows it, and how the
// record's field is read without it.
var stampForms = map[string]struct{ sent, guess, shown, match, field string }{
	"object": {"", "", ".readback", "", ""},
	"array":  {`[{"...": "{fields.%s}"}, "{stamp}"]`, "a place for the stamp; that it is stored as it is sent", "[*]", `, match: '^(rb-[a-z2-7]{32})$'`, `, list: true, without: '^rb-[a-z2-7]{32}$'`},
	"string": {`"{fields.%s|} [{stamp}]"`, "a place for the stamp; people see it", "", `, match: '\[(rb-[a-z2-7]{32})\]$'`, `, strip: ' \[rb-[a-z2-7]{32}\]$'`},
}

// stamps chooses where the stamp goes: a place that a record shows again.
func (d *drafter) stamps() {
	for _, name := range []string{"metadata", "tags", "labels", "description", "memo", "notes", "note", "comment", "body", "text", "content"} {
		m, _ := first(d.sends, name)
		at, shows := same(d.shown, m.name)
		if !shows || m.name == d.own.name && !d.inside {
			continue
		}
		how := kind(m.schema)
		if how == "string" || how == "object" && name == "metadata" || !d.Form && kind(items(m.schema)) == "string" {
			d.Stamp.sent, d.Stamp.shown, d.Stamp.How = m.name, at.name, how
			return
		}
	}
}

// server writes the address.
func (d *drafter) server() {
	s, why := &openapi3.Server{URL: "https://api.example.com"}, "an example, since the document names no address that is complete"
	if all := d.doc.Servers; len(all) > 0 && all[0] != nil && strings.Contains(all[0].URL, "://") {
		s, why = all[0], ""
	}
	d.Address = strconv.Quote(hole.ReplaceAllStringFunc(strings.TrimSuffix(s.URL, "/"), func(h string) string {
		v, pattern := s.Variables[h[1:len(h)-1]], simple
		if v == nil {
			v = &openapi3.ServerVariable{}
		}
		if len(v.Enum) > 0 {
			pattern = strings.ReplaceAll(regexp.QuoteMeta(strings.Join(v.Enum, "\n")), "\n", "|")
		}
		return d.param(h[1:len(h)-1], pattern, v.Description, "example", v.Default)
	})) + guess(why)
}

// simple is the pattern of what a request has that is the same for all writes of an account.
const simple = `[A-Za-z0-9._-]+`

// param notes a parameter of the account, unless it is known, and returns its placeholder. A value that
// the document gives is a default or an example.
func (d *drafter) param(name, pattern, about, what string, value any) string {
	text := fmt.Sprintf("%s: {pattern: %s, about: %s", called(name), strconv.Quote(pattern), strconv.Quote(plain(cmp.Or(about, name))))
	if v, ok := value.(string); ok && v != "" && regexp.MustCompile(`\A(?:`+pattern+`)\z`).MatchString(v) {
		text += ", " + what + ": " + strconv.Quote(v)
	}
	if _, known := d.Params[called(name)]; !known {
		d.Params[called(name)] = text + "}" + guess("the pattern, and that it is the same for all writes of an account")
	}
	return "{param." + called(name) + "}"
}

// login writes the first login that the operation takes and the format has.
func (d *drafter) login() {
	if d.doc.Components == nil {
		return
	}
	for _, need := range *cmp.Or(d.op.Security, &d.doc.Security) {
		for _, name := range slices.Sorted(maps.Keys(need)) {
			if ref := d.doc.Components.SecuritySchemes[name]; ref != nil && ref.Value != nil && d.Auth == "" {
				d.Auth = d.loginBy(ref.Value, need[name])
			}
		}
	}
}

func (d *drafter) loginBy(s *openapi3.SecurityScheme, scopes []string) string {
	switch {
	case s.Type == "http" && strings.EqualFold(s.Scheme, "basic"):
		return `basic: {username: "` + d.param("username", `[^\s:]+`, "the user of the login", "", nil) + `", secret: password}`
	case s.Type == "apiKey" && s.In == "header" && !strings.EqualFold(s.Name, "Authorization"):
		return "header: {name: " + quoted(s.Name) + ", secret: key}"
	case s.Type == "oauth2" && s.Flows != nil && s.Flows.ClientCredentials != nil && s.Flows.ClientCredentials.TokenURL != "":
		token := s.Flows.ClientCredentials.TokenURL
		if u, err := url.Parse(token); err == nil && !strings.HasPrefix(d.Address, `"`+u.Scheme+"://"+u.Host) {
			d.TokenHost = u.Host
		}
		auth := `oauth2: {token_url: ` + literal(token) + `, client_id: "` + d.param("client_id", `\S+`, "the client's id", "", nil) + `", secret: client_secret`
		if len(scopes) > 0 {
			auth += ", scopes: [" + listOf(scopes, literal) + "]"
		}
		return auth + "}"
	case s.Type == "apiKey" && s.In == "header", s.Type == "http" && strings.EqualFold(s.Scheme, "bearer"), s.Type == "oauth2", s.Type == "openIdConnect":
		return "bearer: {secret: token}" + guess("that something else gets the token, where it must be renewed")
	}
	return ""
}

// isKey reports whether a parameter is named as the key of a repeat.
func isKey(m member) bool {
	return slices.ContainsFunc(pieces(m.name), func(p string) bool { return slices.Contains([]string{"idempotency", "idempotent", "deduplication"}, p) })
}

// headers writes those that each request needs, such as a version.
func (d *drafter) headers() {
	for _, m := range d.takes("header") {
		low := strings.ToLower(m.name)
		if !isKey(m) && (m.required || strings.Contains(low, "version")) && !slices.Contains([]string{"accept", "content-type", "authorization"}, low) {
			d.Headers = append(d.Headers, quoted(m.name)+`: "`+d.param(snake(m.name), simple, m.name, "default", m.schema.Default)+`"`)
		}
	}
}

// probe finds a GET that needs the login and no record.
func (d *drafter) probe() {
	for _, e := range d.all {
		parts := segments(e.path)
		usual := slices.Contains([]string{"me", "whoami", "self", "user", "account", "profile"}, parts[len(parts)-1])
		if usual && d.Probe == "" && e.Method == "GET" && !strings.Contains(e.path, "{") && !slices.ContainsFunc(e.takes("query"), func(m member) bool { return m.required }) {
			d.Probe = quoted(e.path)
		}
	}
}
