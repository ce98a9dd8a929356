package access

import (
	"encoding/base64"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
)

func FuzzSecret(f *testing.F) {
	id, secret := newSecret()
	for _, text := range []string{"", secret, secret[:20], strings.ToUpper(secret), secretPrefix + id, secret + secret, strings.Repeat("a", secretLen)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := idOf(text)
		if ok && (len(text) != secretLen || !isID(got) || !strings.HasPrefix(text, secretPrefix+got+"_")) {
			t.Errorf("%q is taken for a secret with the id %q", text, got)
		}
	})
}

func TestOneLetterMakesNoSecret(t *testing.T) {
	id, secret := newSecret()
	if got, ok := idOf(secret); !ok || got != id {
		t.Fatalf("%q, %v; want %q", got, ok, id)
	}
	for i := range secret {
		for _, other := range "a7b_A \x00" {
			if byte(other) == secret[i] {
				continue
			}
			if _, ok := idOf(secret[:i] + string(other) + secret[i+1:]); ok {
				t.Errorf("with %q in place %d it is still a secret", other, i)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	s, err := newSealed(randomKey(), "test")
	if err != nil {
		f.Fatal(err)
	}
	text, err := s.seal(session{ID: "x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString(make([]byte, 28)))
	f.Fuzz(func(t *testing.T, other string) {
		var into session
		if err := s.open(other, &into); (err == nil) != (other == text) {
			t.Errorf("opening %q: %v", other, err)
		}
	})
}

func TestSealsArePerPurposeAndKey(t *testing.T) {
	key := randomKey()
	one, _ := newSealed(key, "session")
	same, _ := newSealed(key, "session")
	other, _ := newSealed(key, "login attempt")
	foreign, _ := newSealed(randomKey(), "session")
	text, err := one.seal(session{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var into session
	if err := same.open(text, &into); err != nil || into.ID != "x" {
		t.Errorf("another process with the key: %v", err)
	}
	for name, s := range map[string]sealed{"another purpose": other, "another key": foreign} {
		if s.open(text, &into) == nil {
			t.Errorf("%s opens it", name)
		}
	}
	if again, _ := one.seal(session{ID: "x"}); again == text {
		t.Error("two seals of the same are the same")
	}
	if _, err := one.seal(session{Name: strings.Repeat("a", maxCookie)}); err == nil {
		t.Error("a cookie that no browser keeps")
	}
}

func TestLocalPath(t *testing.T) {
	for next, want := range map[string]string{
		"/":                                "/",
		"/writes/abc?x=1&y=a%20":           "/writes/abc?x=1&y=a%20",
		"/search?q=%2F%2Fevil":             "/search?q=%2F%2Fevil",
		"":                                 "/",
		"writes":                           "/",
		"//evil.example.org":               "/",
		"///evil.example.org":              "/",
		`/\evil.example.org`:               "/",
		`\\evil.example.org`:               "/",
		"/%2Fevil.example.org":             "/",
		"/\t/evil.example.org":             "/",
		"/\n/evil.example.org":             "/",
		"/ /evil":                          "/",
		"/é":                               "/",
		"https://evil":                     "/",
		"https:/evil":                      "/",
		"javascript:alert(1)":              "/",
		"/login":                           "/",
		"/login/provider":                  "/",
		"/logout":                          "/",
		"/a#b":                             "/a",
		"/%zz":                             "/",
		"/" + strings.Repeat("a", maxNext): "/",
	} {
		if got := localPath(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

func TestDocumentsAreReadByTheirWholeName(t *testing.T) {
	notes := ledger.NewMemory()
	if _, err := notes.SetNote(t.Context(), ledger.Note{Name: "token/ab", Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	found, err := newRecall(notes, time.Now).get(t.Context(), "token/a")
	if err != nil || found.note.Version != 0 || len(found.note.Value) != 0 {
		t.Errorf("got %+v, %v", found, err)
	}
}

// A caller who guesses from a limited address does not push out cached tokens.
func TestWhatIsMadeUpIsNotRemembered(t *testing.T) {
	tokens := NewTokens(ledger.NewMemory(), nil)
	for range 3 * maxFailures {
		_, secret := newSecret()
		_, _ = tokens.check(t.Context(), "203.0.113.7:1", secret) // is refused
	}
	if n := len(tokens.recall.known); n > maxFailures {
		t.Errorf("%d made-up tokens are remembered, want at most %d", n, maxFailures)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	now := time.Unix(0, 0)
	c := newRecall(ledger.NewMemory(), func() time.Time { return now })
	for i := range 2 * maxRecalled {
		c.keep(strconv.Itoa(i), recalled{asked: now})
		if len(c.known) > maxRecalled {
			t.Fatalf("%d notes are remembered", len(c.known))
		}
	}
	f := newFailures(func() time.Time { return now })
	for i := range 2 * maxAddresses {
		_ = f.count(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}).String()+":1", errSeal)
	}
	if len(f.buckets.young) > maxAddresses {
		t.Errorf("%d addresses are remembered", len(f.buckets.young))
	}
	if err := f.held("192.0.2.1:1"); err == nil {
		t.Error("a caller that comes when it is full is not counted")
	}
}
