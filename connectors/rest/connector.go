package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// maxHeader bounds the value of a header that we send; servers refuse
// 8 KiB of headers together.
const maxHeader = 4 << 10

// Options select the account of an API. What the declaration requires is required.
type Options struct {
	// BaseURL is where the API is, instead of the declaration's base URL (a
	// sandbox, a server of one's own). Default the declaration's.
	BaseURL string
	// Parameters are those of the declaration, by name. Default each one's
	// default.
	Parameters map[string]string
	// Secrets fetch the secrets of the declaration, by name, again for each call. Default none.
	Secrets map[string]func(ctx context.Context) (string, error)
	// Rotate replaces a secret of [Declaration.Rotating], by name. It calls exchange with the secret as
	// it is kept, alone among all processes that use it, and keeps what exchange returns, durably, before
	// it returns. Where exchange fails, it keeps the secret. Default none.
	Rotate map[string]func(ctx context.Context, exchange func(secret string) (string, error)) error
	// Transport carries the requests. Default an http.Transport of the
	// connector's own.
	Transport http.RoundTripper
	// MaxBody is how many bytes of an answer are read. Default [httpsend.DefaultMaxBody].
	MaxBody int64
}

// Connector is one account of a declared API. It is safe for concurrent use.
type Connector struct {
	d      *Declaration
	base   *url.URL
	hosts  map[string]bool
	params map[string]any
	// secrets fetch those of the declaration, by name.
	secrets map[string]func(ctx context.Context) (string, error)
	rotate  map[string]func(ctx context.Context, exchange func(string) (string, error)) error
	// writes and reads are the logins of these, perhaps the same.
	writes, reads *login
	auth          *auth // of writes
	client        *httpsend.Client
	paces         map[*read]*pace
	masks         declared.Masks
	// otherNames means that the account names a member otherwise than the declaration does by default.
	otherNames bool
	// probed means that the probe succeeded once.
	probed atomic.Bool
}

var (
	_ connectors.Connector  = (*Connector)(nil)
	_ connectors.BulkReader = (*Connector)(nil)
	_ connectors.Checker    = (*Connector)(nil)
	_ connectors.Inverter   = (*Connector)(nil)
	_ connectors.Prober     = (*Connector)(nil)
	_ connectors.Sampler    = (*Connector)(nil)
)

// New checks the options against the declaration. It does no I/O. The error
// names the option; it holds no secret.
func New(d *Declaration, o Options) (*Connector, error) {
	if d == nil {
		return nil, fmt.Errorf("%w: there is no declaration", errOptions)
	}
	c := &Connector{d: d, hosts: map[string]bool{}, params: map[string]any{}}
	if err := c.configure(o); err != nil {
		return nil, fmt.Errorf("%w: %w", errOptions, err)
	}
	d = c.d
	c.paces = d.paces()
	transport := o.Transport
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	c.client = httpsend.New(&httpsend.Options{Transport: transport, MaxBody: o.MaxBody})
	var err error
	if c.writes, err = c.newLogin(c.auth, transport); err != nil {
		return nil, fmt.Errorf("%w: %w", errOptions, err)
	}
	if c.reads = c.writes; d.readAuth != nil {
		if c.reads, err = c.newLogin(d.readAuth, transport); err != nil {
			return nil, fmt.Errorf("%w: %w", errOptions, err)
		}
	}
	return c, nil
}

func (c *Connector) configure(o Options) error {
	i, err := c.d.chosen(o.Secrets)
	if err != nil {
		return err
	}
	if err := c.account(o.Parameters, i); err != nil {
		return err
	}
	if c.auth = (&auth{}); len(c.d.auths) > 0 {
		c.auth = c.d.auths[i]
	}
	text := o.BaseURL
	if text == "" {
		text, _, _ = c.d.base.expand(c.given(), false) // all parameters are there
	}
	base, err := c.d.origin(text)
	if err != nil {
		return fmt.Errorf("the option BaseURL %w", err)
	}
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/"), strings.TrimSuffix(base.RawPath, "/")
	c.base = base
	c.hosts[strings.ToLower(base.Host)] = true
	for _, h := range c.d.hosts {
		c.hosts[strings.ToLower(h)] = true
	}
	for _, name := range rotating(c.auth, c.d.readAuth) {
		if o.Rotate[name] == nil {
			return fmt.Errorf("the option Rotate.%s is missing; want a function that keeps the next secret", name)
		}
	}
	c.secrets, c.rotate = o.Secrets, o.Rotate
	return nil
}

// chosen is the login whose secrets an account has: all of them, and no others.
func (d *Declaration) chosen(given map[string]func(context.Context) (string, error)) (int, error) {
	logins, names := d.Logins(), d.Secrets()
	for name := range given {
		if !slices.Contains(names, name) {
			return 0, fmt.Errorf("the option Secrets has one that the declaration does not name; want %v", names)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return given[name] == nil })
	if i := slices.IndexFunc(logins, func(one []string) bool { return slices.Equal(one, names) }); i >= 0 {
		return i, nil
	}
	for _, name := range logins[0] {
		if len(logins) == 1 && given[name] == nil {
			return 0, fmt.Errorf("the option Secrets.%s is missing; want a function that fetches it", name)
		}
	}
	return 0, fmt.Errorf("the option Secrets has %s; want those of exactly one login: %s", cmp.Or(strings.Join(names, ", "), "none"), d.choice())
}

// choice names the secrets of each login.
func (d *Declaration) choice() string {
	var all []string
	for _, one := range d.Logins() {
		all = append(all, strings.Join(one, " and "))
	}
	return strings.Join(all, ", or ")
}

// account takes the parameters; those of other logins than the i-th are not required.
func (c *Connector) account(given map[string]string, i int) error {
	for name := range given {
		if _, ok := c.d.parameters[name]; !ok {
			return fmt.Errorf("the option Parameters.%s is not known; want one of %s", yamlfile.Clip(name), yamlfile.Names(c.d.parameters))
		}
	}
	for _, p := range c.d.Parameters() {
		value, ok := given[p.Name]
		if !ok {
			value = p.Default
		}
		if len(p.Logins) > 0 && !slices.Contains(p.Logins, i) && !ok {
			continue
		}
		switch {
		case value == "":
			return fmt.Errorf("the option Parameters.%s is missing; want %s", p.Name, p.About)
		case !p.form.MatchString(value), strings.ContainsFunc(value, isControl), !utf8.ValidString(value):
			return fmt.Errorf("the option Parameters.%s does not match %s; want %s", p.Name, p.Pattern, p.About)
		}
		c.params[p.Name] = value
	}
	return c.named()
}

// named puts the names that the account gives to members into the declaration.
func (c *Connector) named() error {
	account, other := map[string]string{}, false
	for _, p := range c.d.Parameters() {
		account[p.Name], _ = c.params[p.Name].(string) // "": it is of another login
		other = other || slices.Contains(c.d.names, p.Name) && account[p.Name] != cmp.Or(p.Default, p.Example)
	}
	if !other {
		return nil
	}
	d, err := load(c.d.text, c.d.file, account)
	if err != nil {
		return fmt.Errorf("with the option Parameters: %w", err)
	}
	c.d, c.otherNames = d, true
	return nil
}

// Declaration is the declaration with the names that the account gives to members.
func (c *Connector) Declaration() *Declaration { return c.d }

// given are the values that every request has.
func (c *Connector) given() values { return values{"param": c.params} }

// Profiles is what the API can do, by kind of record.
func (c *Connector) Profiles() map[string]connectors.Profile { return c.d.Profiles() }

// reachable refuses addresses that the declaration does not name, even if the API itself returns
// them.
func (c *Connector) reachable(u *url.URL) error {
	switch {
	case u.User != nil, !c.hosts[strings.ToLower(u.Host)]:
		return fmt.Errorf("%w: want one of %s", errHost, yamlfile.Names(c.hosts))
	case u.Scheme != "https" && !(u.Scheme == "http" && declared.Loopback(u.Hostname())):
		return fmt.Errorf("%w: it would be reached without TLS", errHost)
	}
	return nil
}

// url is the address of a path below the base URL.
func (c *Connector) url(path string, query url.Values) (*url.URL, error) {
	u, err := url.Parse(c.base.String() + path)
	if err != nil {
		return nil, fmt.Errorf("%w: the values make no URL", errIntent)
	}
	// A blank as %20 is understood everywhere, as + only in forms.
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
	if len(u.String()) > maxURL {
		return nil, fmt.Errorf("%w: the URL would have %d bytes; want at most %d", errIntent, len(u.String()), maxURL)
	}
	return u, c.reachable(u)
}

// errCredentials is wrapped when there are no credentials to send.
var errCredentials = errors.New("the credentials cannot be had")

// request makes the HTTP request of a draft. The second result is the token
// that it carries, nil when it carries none.
func (c *Connector) request(ctx context.Context, by *login, d *draft, u *url.URL) (*http.Request, *token, error) {
	body, contentType, err := d.encoded()
	if err != nil {
		return nil, nil, err
	}
	if u, err = c.withSecrets(ctx, by, u); err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, d.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the values make no request", errIntent)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", "application/json")
	if c.d.shape != nil {
		req.Header.Set("Accept", "application/xml, text/xml")
	}
	all := &draft{header: req.Header}
	if err := all.addHeaders(c.d.headers, filling{values: c.given()}); err != nil {
		return nil, nil, err
	}
	for name, v := range d.header {
		req.Header[name] = v
	}
	t, err := c.authorize(ctx, by, req)
	return req, t, err
}

// authorize adds the credentials.
func (c *Connector) authorize(ctx context.Context, by *login, req *http.Request) (*token, error) {
	a := by.auth
	if a.scheme == "" {
		return nil, nil
	}
	if by.tokens != nil {
		t, err := by.tokens.get(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errCredentials, err)
		}
		by.used.Add(t.value)
		if t.cookie != nil {
			req.AddCookie(t.cookie)
		} else {
			req.Header.Set(a.header, a.prefix+t.value)
		}
		return t, nil
	}
	secret, err := c.fetchSecret(ctx, a.secret)
	if err != nil {
		return nil, err
	}
	by.used.Add(secret)
	switch a.scheme {
	case "bearer":
		req.Header.Set("Authorization", "Bearer "+secret)
	case "basic":
		name, _, err := a.username.expand(c.given(), false)
		if err != nil || strings.Contains(name, ":") {
			return nil, fmt.Errorf("%w: the user name has a colon", errCredentials)
		}
		req.SetBasicAuth(name, secret)
		c.masks.Add(strings.TrimPrefix(req.Header.Get("Authorization"), "Basic "))
	case "header":
		req.Header.Set(a.header, a.prefix+secret)
		if plain, err := base64.StdEncoding.DecodeString(secret); err == nil && a.prefix == "Basic " {
			for _, part := range strings.SplitN(string(plain), ":", 2) { // some APIs have the key as the name
				c.masks.Add(part)
			}
		}
	case "sigv4":
		return nil, a.sign(req, c.given(), secret, time.Now())
	}
	return nil, nil
}

// fetchSecret fetches a secret. Errors do not contain it.
func (c *Connector) fetchSecret(ctx context.Context, name string) (string, error) {
	secret, err := c.secrets[name](ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", errCredentials, name, err)
	}
	return secret, c.usable(name, secret)
}

// usable refuses a secret that no header could carry, and remembers another one to be masked.
func (c *Connector) usable(name, secret string) error {
	if secret == "" || len(secret) > maxHeader || strings.ContainsFunc(secret, isControl) {
		return fmt.Errorf("%w: %s is empty, longer than %d bytes, or has a control character", errCredentials, name, maxHeader)
	}
	c.masks.Add(secret)
	return nil
}
