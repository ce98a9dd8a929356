package rest

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

const (
	// maxSecretName is how long the name of a secret may be. Secrets
	// themselves are longer, which is how one in its place is noticed.
	maxSecretName = 32
	// maxSecretDigits is how many digits it may have, for the same reason.
	maxSecretDigits = 4
)

// auth is how a request authenticates.
type auth struct {
	scheme   string // "", bearer, basic, header, oauth2, session, sigv4
	secret   string // the name of the secret
	username *pattern
	header   string
	prefix   string
	tokenURL *pattern
	clientID *pattern
	scopes   []string
	inParams bool
	refresh  string // the name of the secret that is the refresh token; "": another grant
	rotates  bool   // each use of the refresh token gives a new one
	signs    bool   // the secret is a private key, which signs a statement of who logs in
	subject  *pattern
	audience *pattern
	keyID    *pattern // of the key that signs
	service  string
	region   *pattern
	session  *session
}

// noLogin stands for what is not part of one login among several.
const noLogin = -1

// logins reads the logins of which an account has one. Its secrets choose it.
func (l *loader) logins(from fileAuths) {
	for i := range from {
		a := &auth{}
		if len(from) > 1 {
			l.login = i
		}
		l.auth(a, &from[i])
		l.login = noLogin
		for n, other := range l.d.auths {
			if slices.Equal(slices.Sorted(slices.Values(a.secrets())), slices.Sorted(slices.Values(other.secrets()))) {
				l.At(from[i].At, "has the same secrets as %s, and they choose the login; want other names", from[n].At.Field)
			}
		}
		l.d.auths = append(l.d.auths, a)
	}
}

// ofLogins notes which parameters only some of several logins use.
func (l *loader) ofLogins() {
	for name, p := range l.d.parameters {
		if used := l.uses[name]; len(used) > 0 && !slices.Contains(used, noLogin) {
			slices.Sort(used)
			p.Logins = slices.Compact(used)
			l.d.parameters[name] = p
		}
	}
}

func (l *loader) auth(a *auth, f *fileAuth) {
	if f.Bearer != nil {
		a.scheme, a.secret = "bearer", l.secretName(f.Bearer.Secret, f.Bearer.At)
	}
	if f.Basic != nil {
		a.scheme, a.secret = "basic", l.secretName(f.Basic.Secret, f.Basic.At)
		if l.Required(f.Basic.Username, f.Basic.At, "username", "the name to log in with") {
			a.username = l.accountText(f.Basic.Username)
		}
	}
	if f.Header != nil {
		a.scheme, a.secret = "header", l.secretName(f.Header.Secret, f.Header.At)
		a.header, a.prefix = f.Header.Name.Value, f.Header.Prefix
		if l.Required(f.Header.Name, f.Header.At, "name", "the name of the header") && !headerName(a.header) {
			l.At(f.Header.Name.Place, "is no name of a header")
		}
		l.prefix(a.prefix, f.Header.At)
	}
	if f.OAuth2 != nil {
		l.oauth2(a, f.OAuth2)
	}
	if f.SigV4 != nil {
		l.sigV4(a, f.SigV4)
	}
	if f.Session != nil {
		l.session(a, f.Session)
	}
	if !declared.ExactlyOne(f.Bearer != nil, f.Basic != nil, f.Header != nil, f.OAuth2 != nil, f.Session != nil, f.SigV4 != nil) {
		l.At(f.At, "want exactly one of bearer, basic, header, oauth2, session and sigv4")
	}
}

// prefix refuses what cannot be before a secret in a header.
func (l *loader) prefix(text string, in yamlfile.Place) {
	if strings.ContainsFunc(text, isControl) || len(text) > maxSecretName {
		l.Say(in.Line, in.Field+".prefix", "is no prefix; want a word such as \"Token \"")
	}
}

// secrets lists the names of the secrets that a login needs.
func (a *auth) secrets() []string {
	if a == nil {
		return nil
	}
	all := []string{a.secret, a.refresh}
	if a.session != nil {
		all = append(all, a.session.secrets...)
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

func (l *loader) oauth2(a *auth, f *fileOAuth2) {
	a.scheme, a.secret = "oauth2", l.secretName(f.Secret, f.At)
	a.header, a.prefix = "Authorization", "Bearer "
	if l.Required(f.ClientID, f.At, "client_id", "the id of the client, such as {param.client_id}") {
		a.clientID = l.accountText(f.ClientID)
	}
	if l.Required(f.TokenURL, f.At, "token_url", "a path below base_url, or an address") {
		a.tokenURL = l.accountText(f.TokenURL)
		l.tokenURL(f.TokenURL, a.tokenURL)
	}
	declared.Choice(&l.Reader, f.Grant, "client_credentials", "refresh_token", "jwt_bearer")
	switch byRefresh := f.Grant.Value == "refresh_token"; {
	case byRefresh && f.Refresh.Value == "":
		l.Say(f.At.Line, f.At.Field+".refresh", "is missing; want the name of the secret that is the refresh token")
	case byRefresh:
		a.refresh = l.secretName(f.Refresh, yamlfile.Place{Line: f.At.Line, Field: f.At.Field + ".refresh"})
		if a.rotates = f.Rotates; f.Rotates && a.refresh == a.secret {
			l.At(f.At, "rotates its refresh token, which has the name of the client's secret; want a name of its own, such as refresh_token")
		}
	case f.Refresh.Value != "" || f.Rotates:
		l.At(f.At, "has refresh or rotates without grant: refresh_token")
	}
	a.signs = f.Grant.Value == "jwt_bearer"
	for _, t := range []yamlfile.Text{f.Subject, f.Audience, f.KeyID, f.Style} {
		if t.Value != "" && a.signs == (t == f.Style) {
			l.At(t.Place, "%s", map[bool]string{true: "is set with grant: jwt_bearer, which sends no secret; want it left out", false: "is set without grant: jwt_bearer; want it left out"}[a.signs])
		}
	}
	if f.Subject.Value != "" {
		a.subject = l.accountText(f.Subject)
	}
	if f.Audience.Value != "" {
		a.audience = l.accountText(f.Audience)
	}
	if f.KeyID.Value != "" {
		a.keyID = l.accountText(f.KeyID)
	}
	a.scopes = yamlfile.Values(f.Scopes)
	declared.Choice(&l.Reader, f.Style, "header", "params")
	a.inParams = f.Style.Value == "params"
}

// tokenURL checks where the client's secret would be sent.
func (l *loader) tokenURL(t yamlfile.Text, p *pattern) {
	if p == nil || strings.HasPrefix(t.Value, "/") && !strings.HasPrefix(t.Value, "//") {
		return
	}
	u, err := l.d.origin(p.sketch())
	if err != nil {
		l.At(t.Place, "%s", err)
		return
	}
	base, err := url.Parse(l.d.base.sketch())
	if err == nil && u.Host != base.Host && !l.named(u.Host) {
		l.At(t.Place, "is on a host that is not declared; want it among hosts")
	}
}

func (l *loader) named(host string) bool {
	for _, h := range l.d.hosts {
		if strings.EqualFold(h, host) {
			return true
		}
	}
	return false
}

func (l *loader) accountText(t yamlfile.Text) *pattern {
	p, ok := l.newPattern(t, forAccount)
	if !ok {
		return nil
	}
	return &p
}

var secretNameForm = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// secretName is the name of a secret. An invalid name is not repeated: users write the secret
// itself there.
func (l *loader) secretName(t yamlfile.Text, in yamlfile.Place) string {
	if !l.Required(t, in, "secret", "the name of a secret, such as token") {
		return ""
	}
	digits := len(t.Value) - len(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, t.Value))
	if !secretNameForm.MatchString(t.Value) || len(t.Value) > maxSecretName || digits > maxSecretDigits {
		l.At(t.Place, "is not the name of a secret; want one such as token (lower-case letters, digits and underscores), for which the configuration says where the secret is")
		return ""
	}
	return t.Value
}
