package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// canaries are confidential values, by where they were planted. Each occurs nowhere else,
// so that a leaked one names its source.
type canaries struct {
	all map[string]string // by name
	// reached are those that the destination must have got as they are.
	reached []string
}

func (c *canaries) plant(name, value string) string {
	if have, ok := c.all[name]; ok && have != value {
		panic(name + " is planted twice")
	}
	c.all[name] = value
	return value
}

func number(name string, digits int) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%020d", binary.BigEndian.Uint64(sum[:])>>1)[20-digits:]
}

// word is a value that is sensitive since something marks its field.
func (c *canaries) word(name string) string {
	return c.plant(name, "Hot-"+strings.ReplaceAll(name, " ", "-")+"-"+number(name, 9))
}

// odd is one that every encoding writes in another way.
func (c *canaries) odd(name string) string {
	return c.plant(name, `Hot "`+number(name, 9)+`" <`+number(name+"2", 9)+`> & ü/+`)
}

// digits is a number that is sensitive since something marks its field.
func (c *canaries) digits(name string) string { return c.plant(name, "7"+number(name, 11)) }

// mail and card are sensitive since they match one of the patterns.
func (c *canaries) mail(name string) string {
	return c.plant(name+", a mail", "hot."+strings.ReplaceAll(name, " ", ".")+"@hot.example")
}
func (c *canaries) card(name string) string { return c.plant(name+", a card", "4929"+number(name, 12)) }

// password is one of the configuration.
func (c *canaries) password(name string) string {
	return c.plant(name, "hot-secret-"+strings.ReplaceAll(name, " ", "-")+"-"+number(name, 12))
}

// sent requires that a destination gets the last values unchanged.
func (c *canaries) sent(values ...string) {
	c.reached = append(c.reached, values...)
}

// forms are the ways in which a value can be encoded in a text. Base64 has three, by how
// many bytes precede it.
func forms(value string) map[string]string {
	written, _ := json.Marshal(value) // a string always can be
	inner := string(written[1 : len(written)-1])
	twice, _ := json.Marshal(inner)
	var plainJSON bytes.Buffer
	enc := json.NewEncoder(&plainJSON)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // into memory
	all := map[string]string{
		"as it is": value, "JSON": inner, "JSON in JSON": string(twice[1 : len(twice)-1]), "JSON without HTML": strings.Trim(plainJSON.String(), "\"\n"),
		"a query": url.QueryEscape(value), "a path": url.PathEscape(value), "HTML": html.EscapeString(value),
		"hex": hex.EncodeToString([]byte(value)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(value))), "quoted": strings.Trim(fmt.Sprintf("%+q", value), `"`),
		"bytes": strings.Trim(fmt.Sprint([]byte(value)), "[]"), "a page of others": otherPage(value), "a page of others with JSON": otherPage(inner),
		"a query of others": otherQuery(value), "a query of others with JSON": otherQuery(inner),
	}
	for before := range 3 {
		for name, enc := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			all[fmt.Sprintf("%s behind %d", name, before)] = text[(before*8+5)/6 : len(text)-1] // without the characters that its neighbours influence
		}
	}
	return all
}

// otherPage and otherQuery are a text as others than Go write it in HTML and in
// URLs.
func otherPage(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "ü", "&uuml;").Replace(text)
}

func otherQuery(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// sieve finds canaries in texts.
type sieve struct {
	t      *testing.T
	forms  map[string]map[string]string
	bytes  int
	places map[string]int
}

func (c *canaries) sieve(t *testing.T) *sieve {
	s := &sieve{t: t, forms: map[string]map[string]string{}, places: map[string]int{}}
	for name, value := range c.all {
		s.forms[name] = forms(value)
	}
	return s
}

// check fails for every canary in a text. own names canaries that the reader of this text
// planted there, and needs back.
func (s *sieve) check(place, text string, own ...string) {
	s.t.Helper()
	s.bytes += len(text)
	s.places[place] += len(text)
	for _, name := range slices.Sorted(maps.Keys(s.forms)) {
		for how, form := range s.forms[name] {
			at := strings.Index(text, form)
			if at < 0 || slices.Contains(own, name) {
				continue
			}
			s.t.Errorf("the canary of %q is in %s, as %s: …%q…", name, place, how, text[max(0, at-120):min(len(text), at+len(form)+40)])
			break
		}
	}
}

// found reports whether a text holds a value in any form.
func found(text, value string) bool {
	for _, form := range forms(value) {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// mine is a fort in which values are sealed, with canaries in all that is said.
type mine struct {
	*fort
	*canaries
	// behind is all that the destination received; echoed makes it repeat the content of
	// some orders.
	received *lines
	replies  *lines // responses of all APIs
	gave     *lines // what a caller got back that it had planted there
	ids      map[string]string
	exported *collector
	// headsKey is the public key of heads.
	headsKey string
}

const mineRedaction = `notifications:
  - {name: reviewers, destination: "webhook:ops", window: 1s, lines: 50}
redaction:
  keys:
    - {id: now, key_env: REDACTION_KEY}
    - {id: before, key_env: REDACTION_KEY_BEFORE}
  patterns:
    - {name: mail, regexp: '[a-z0-9.]+@hot\.example'}
    - {name: card, regexp: '\b4929\d{12}\b'}
` + mineEvidence

// newMine builds one.
func newMine(t *testing.T) *mine {
	m := &mine{canaries: &canaries{all: map[string]string{}}, received: &lines{}, replies: &lines{}, gave: &lines{}, ids: map[string]string{}, exported: newCollector(t)}
	upstream := regexp.MustCompile(`orders: \{type: simulated, url: (\S+), class: plain, tenants: \[acme, umbrella\]\}`)
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte(mineRules), 0o600); err != nil {
		t.Fatal(err)
	}
	change := func(text string) string {
		at := upstream.FindStringSubmatch(text)
		echo := m.echo(t, at[1])
		text = strings.Replace(text, at[0], "orders: {type: simulated, url: "+echo+", class: plain, tenants: [acme, umbrella], sensitive: [/pin]}", 1)
		return strings.Replace(text, "destinations:\n", fmt.Sprintf(mineRedaction, m.exported.url, rules), 1)
	}
	key := func(name string) string {
		sum := sha256.Sum256([]byte(name))
		return m.plant(name, base64.StdEncoding.EncodeToString(sum[:]))
	}
	m.fort = newFort(t, change, append(m.evidence(t), "REDACTION_KEY", key("the key"), "REDACTION_KEY_BEFORE", key("the key before"),
		"SHOP_SECRET", m.password("header of the shop"), "DB_PASSWORD", m.password("password of a database"))...)
	private, err := os.ReadFile(filepath.Join(m.p.dir, "receipts.pem"))
	if err != nil {
		t.Fatal(err)
	}
	m.plant("the private key of receipts", bare(string(private)))
	for name, secret := range m.fortSecrets() {
		m.plant(name, secret)
	}
	return m
}

// fortSecrets are the secrets of every fort.
func (m *mine) fortSecrets() map[string]string {
	all := map[string]string{"secret of the webhook": hookSecret[6:], "key of sessions": sessionKey, "secret in the hook's address": "canary-in-the-hook"}
	for who, token := range m.fort.secret {
		all["token of "+who] = token[len(token)-66:]
	}
	return all
}

// echo is a proxy to the destination. It records requests, and answers writes of some
// orders with their own content: 422 for those that are refused, 500 for those with an
// unknown fate, and in other words than ours, as careless servers do.
func (m *mine) echo(t *testing.T, upstream string) string {
	to, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(to)
	through.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // a lost response stays lost
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // a client that disconnected sent nothing
		}
		_, _ = m.received.Write(append(body, '\n'))
		for word, code := range map[string]int{"echo-422": 422, "echo-500": 500, "echo-409": 409} {
			if r.Method != http.MethodGet && bytes.Contains(body, []byte(word)) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = fmt.Fprintf(w, `{"error":"this was not understood","you_said":%s}`, body)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		for word, tell := range map[string]func(string) string{"echo as a page": otherPage, "echo as a query": otherQuery} {
			if r.Method != http.MethodGet && bytes.Contains(body, []byte(word)) {
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(w, "you said "+tell(string(body)))
				return
			}
		}
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// ledgerFiles are the files of the ledger, byte by byte, and a vacuumed copy: deleted
// data is in the first, stored data in both.
func (m *mine) ledgerFiles() map[string]string {
	m.t.Helper()
	names, err := filepath.Glob(m.p.ledger + "*")
	if err != nil || len(names) < 2 {
		m.t.Fatalf("%v %v; want the ledger and its log of writes", names, err)
	}
	again := filepath.Join(m.t.TempDir(), "again.db")
	conn, err := sqlite.OpenConn(m.p.ledger, sqlite.OpenReadWrite)
	if err == nil {
		err = sqlitex.ExecuteTransient(conn, "VACUUM INTO '"+again+"'", nil)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		m.t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range append(names, again) {
		text, err := os.ReadFile(name)
		if err != nil {
			m.t.Fatal(err)
		}
		all["the ledger's file "+filepath.Base(name)] = string(text)
	}
	return all
}

var sealedToken = regexp.MustCompile(`rbs1:[A-Za-z0-9_-]{1,32}:[0-9a-f]{64}:[A-Za-z0-9_-]{38,}`)

// TestCanaries plants a value in every input of readback, runs every story, and searches
// for the values in every output. Only the destination may get one, and it must.
func TestCanaries(t *testing.T) {
	t.Parallel()
	m := newMine(t)
	m.stories()
	m.compared()
	m.guesses()
	s := m.sieve(t)
	for place, text := range m.outputs() {
		if least := leastOf(place); len(text) < least {
			t.Errorf("%s has %d bytes, want at least %d: nothing was looked through", place, len(text), least)
		}
		s.check(place, text)
		// A token is only for the ledger: what it seals can be opened with the key.
		if at := sealedToken.FindString(text); at != "" && !strings.HasPrefix(place, "the ledger's file") {
			t.Errorf("a sealed value is in %s: %s", place, at)
		}
	}
	if len(m.all) < 60 || s.bytes < 200_000 {
		t.Errorf("%d canaries and %d bytes of output: the test has shrunk", len(m.all), s.bytes)
	}
	received := m.received.String()
	for _, value := range m.reached {
		if !found(received, value) {
			t.Errorf("the destination was never told %q: redaction broke the write", value)
		}
	}
	t.Logf("%d canaries, %d of them at the destination; %d bytes of %d outputs", len(m.all), len(m.reached), s.bytes, len(s.places))
}

// TestTheSieveFinds: a canary in any form and any place is found. Otherwise finding none
// would prove nothing.
func TestTheSieveFinds(t *testing.T) {
	c := &canaries{all: map[string]string{}}
	for _, value := range []string{c.word("a"), c.odd("b"), c.digits("c"), c.mail("d e"), c.card("f"), c.password("g")} {
		quoted, err := json.Marshal(map[string]any{"a": []string{value}})
		if err != nil {
			t.Fatal(err)
		}
		for how, text := range map[string]string{
			"plain": "xx" + value + "yy", "JSON": string(quoted), "query": url.Values{"q": {value}}.Encode(), "HTML": "<p>" + html.EscapeString(value) + "</p>",
			"base64": base64.StdEncoding.EncodeToString([]byte("x" + value + "yyy")), "base64 of JSON": base64.URLEncoding.EncodeToString(append([]byte("xy"), value...)),
			"hex": hex.EncodeToString([]byte("x" + value)), "bytes": fmt.Sprint([]byte(value)), "Go": fmt.Sprintf("%+q", value),
		} {
			if !found(text, value) {
				t.Errorf("%q as %s is not found in %q", value, how, text)
			}
		}
		if found("nothing of the kind", value) {
			t.Errorf("%q is found where it is not", value)
		}
	}
}
