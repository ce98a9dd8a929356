package rest

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// maxFile bounds a declaration in bytes: the largest shipped one is a
// tenth of it.
const maxFile = 256 << 10

// loader compiles a file into a declaration and collects its errors.
type loader struct {
	yamlfile.Reader
	d *Declaration
	// keys are the fields of the business keys of the kind that is being
	// read.
	keys map[string]bool
	// scope are those of them that records do not show.
	scope []string
	// timed means that the kind says how {first_sent} is written.
	timed bool
	// prepares means that the write has prepare, so that {prepared} is known.
	prepares bool
	// uses are, of each parameter, the logins that use it, and noLogin for all else that does.
	uses  map[string][]int
	login int
	// ofRecords are the places in records of the kind, where answers are XML; inRecord while they are read.
	ofRecords []placeInXML
	inRecord  bool
	// looksByPost are the probe and what must be visible, where they are a POST of no query of GraphQL.
	looksByPost []*request
	names       names
}

// Load reads a declaration strictly. file is its name for problems. The error wraps
// [ErrInvalid] and lists everything that is wrong, with the lines.
func Load(text []byte, file string) (*Declaration, error) { return load(text, file, nil) }

// load is Load for an account, whose parameters are given.
func load(text []byte, file string, account map[string]string) (*Declaration, error) {
	l := &loader{Reader: yamlfile.Reader{
		Empty:   "want a declaration; see the package's documentation",
		Secrets: "write auth with the name of a secret, which the configuration says where to find, and take it out here",
	}, d: &Declaration{}, uses: map[string][]int{}, login: noLogin}
	var f fileDeclaration
	if err := declared.Load(&l.Reader, text, maxFile, file, ErrInvalid, &f, func() { l.declaration(&f, account) }); err != nil {
		return nil, err
	}
	if len(l.d.names) > 0 {
		l.d.text, l.d.file = slices.Clone(text), file
	}
	return l.d, nil
}

// word is a name of a kind, a parameter or a field that placeholders use.
var word = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

func (l *loader) declaration(f *fileDeclaration, account map[string]string) {
	if f.Declaration != 1 {
		l.Say(f.At.Line, "declaration", "is %d; want 1, the version of the format", f.Declaration)
	}
	declared.Name(&l.Reader, f.Name, f.At, "a name such as github-issues")
	l.Required(f.System, f.At, "system", "the name of the API for people")
	l.d.name, l.d.system = f.Name.Value, f.System.Value
	l.parameters(f.Parameters)
	l.givenBy(account)
	if declared.Choice(&l.Reader, f.ReadAs, "json", "xml"); f.ReadAs.Value == "xml" {
		l.d.shape = &shape{}
	}
	l.account(f)
	if f.Probe == nil {
		l.Say(f.At.Line, "probe", "is missing; want a request that needs the credentials and changes nothing: {path: /me}")
	} else {
		f.Probe.Look.At = f.Probe.At
		l.d.probe, l.d.probeFirst = l.newLook(&f.Probe.Look, forAccount), f.Probe.First
	}
	l.d.throttle = l.throttle(f.Throttle)
	if at := f.readsGraphQL(); at != nil {
		l.d.throttle = append(l.d.throttle, l.graphqlThrottle(*at))
	}
	if f.Refusal != nil {
		l.d.refusal = l.newRefusal(f.Refusal)
	}
	if len(f.Kinds) == 0 {
		l.Say(f.At.Line, "kinds", "is missing; want at least one kind of record")
	}
	l.d.kinds = map[string]*kind{}
	for _, name := range slices.Sorted(maps.Keys(f.Kinds)) {
		if k := f.Kinds[name]; k != nil {
			l.kind(name, k)
		}
	}
	if len(l.Problems) == 0 {
		l.warnOfPosts()
		l.warnOfWords(f.ReadAs.Place)
	}
	l.ofLogins()
	l.sortWarnings()
	if f.Rate != nil {
		if f.Rate.Calls < 1 || f.Rate.Per <= 0 {
			l.At(f.Rate.At, "want calls (1 or more) and per (a duration such as 1h)")
		}
		for _, k := range l.d.kinds {
			k.profile.Rate = connectors.Rate{Calls: f.Rate.Calls, Per: time.Duration(f.Rate.Per)}
		}
	}
}

func (l *loader) parameters(from map[string]fileParameter) {
	l.d.parameters = map[string]Parameter{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		f := from[name]
		if !word.MatchString(name) {
			l.At(f.At, "has a name with other characters than letters, digits and underscores")
		}
		p := Parameter{Name: name, Pattern: f.Pattern.Value, About: f.About.Value, Default: f.Default.Value, Example: f.Example.Value}
		l.Required(f.About, f.At, "about", "a word on what it is")
		if l.Required(f.Pattern, f.At, "pattern", "a regular expression that the whole value must match") {
			p.form = l.anchored(f.Pattern)
		}
		for _, given := range []yamlfile.Text{f.Default, f.Example} {
			if given.Value != "" && p.form != nil && !p.form.MatchString(given.Value) {
				l.At(given.Place, "does not match the pattern")
			}
		}
		l.d.parameters[name] = p
	}
}

// anchored is a regular expression for a whole value. It must be valid by itself, or "a)|(b"
// would escape the anchors.
func (l *loader) anchored(t yamlfile.Text) *regexp.Regexp {
	if l.regexp(t) == nil {
		return nil
	}
	return l.regexp(yamlfile.Text{Value: `\A(?:` + t.Value + `)\z`, Place: t.Place})
}

func (l *loader) regexp(t yamlfile.Text) *regexp.Regexp { return declared.Regexp(&l.Reader, t) }

func (l *loader) parameterKnown(name string, at yamlfile.Place) bool {
	if _, ok := l.d.parameters[name]; ok {
		l.uses[name] = append(l.uses[name], l.login)
		return true
	}
	l.At(at, "{param.%s} is not declared; want one of the parameters (%s)", yamlfile.Clip(name), yamlfile.Names(l.d.parameters))
	return false
}

func (l *loader) keyKnown(name string, at yamlfile.Place) bool {
	if l.keys[name] {
		return true
	}
	l.At(at, "{key.%s} is in no form of the key; want one of %s", yamlfile.Clip(name), yamlfile.Names(l.keys))
	return false
}

// account reads where the API is and how to get in.
func (l *loader) account(f *fileDeclaration) {
	if l.Required(f.BaseURL, f.At, "base_url", "the address of the API, such as https://api.example.com") {
		var ok bool
		if l.d.base, ok = l.newPattern(f.BaseURL, forAccount); ok {
			if _, err := l.d.origin(l.d.base.sketch()); err != nil {
				l.At(f.BaseURL.Place, "%s", err)
			}
		}
	}
	for _, h := range f.Hosts {
		if u, err := url.Parse("https://" + h.Value); err != nil || u.Host != h.Value || u.Hostname() == "" {
			l.At(h.Place, "is no host; want one such as login.example.com, or with a port")
		}
	}
	l.d.hosts = yamlfile.Values(f.Hosts)
	l.d.headers = l.newHeaders(f.Headers, forAccount)
	l.logins(f.Auth)
	if f.ReadAuth != nil {
		l.d.readAuth = &auth{}
		l.auth(l.d.readAuth, f.ReadAuth)
		for _, a := range l.d.auths {
			if slices.ContainsFunc(l.d.readAuth.secrets(), func(name string) bool { return slices.Contains(a.secrets(), name) }) {
				l.At(f.ReadAuth.At, "has the secret of auth; want one of its own, such as read_token")
				break
			}
		}
		if f.Auth == nil {
			l.At(f.ReadAuth.At, "is set without auth; want the login of writes as well")
		}
	}
}

// written is a pattern as it is in the file.
func (p pattern) written() string { return p.with(func(h *hole) string { return "{" + h.name + "}" }) }

// sketch is a pattern with a letter for each placeholder.
func (p pattern) sketch() string { return p.with(func(*hole) string { return "x" }) }

func (p pattern) with(value func(*hole) string) string {
	text := ""
	for _, piece := range p.pieces {
		if piece.hole != nil {
			text += value(piece.hole)
		} else {
			text += piece.literal
		}
	}
	return text
}

// hostName is a host and perhaps a port.
var hostName = regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?$`)

// origin is a base URL: https, or http on this machine; only a host and a path. Errors do not
// repeat it, since users write passwords into URLs.
func (d *Declaration) origin(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || (u.Scheme != "https" && u.Scheme != "http"):
		return nil, fmt.Errorf("is no address; want one such as https://api.example.com")
	case u.User != nil:
		return nil, fmt.Errorf("holds a user name or a password; want auth with the name of a secret")
	case !hostName.MatchString(u.Host):
		return nil, fmt.Errorf("has no host as hosts are written; want one such as https://api.example.com")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("has a query or a fragment; want a host and perhaps a path")
	case u.Scheme == "http" && !declared.Loopback(u.Hostname()):
		return nil, fmt.Errorf("is http, where credentials cross a network in the clear; want https (http only for this machine)")
	}
	if err := plainSegments("/" + strings.Trim(u.EscapedPath(), "/")); err != nil {
		return nil, fmt.Errorf("has a path that means another place")
	}
	return u, nil
}
