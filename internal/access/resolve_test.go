package access_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

func TestTokenIsKnown(t *testing.T) {
	tokens := access.NewTokens(newFlaky(), nil)
	made, secret := create(t, tokens, bot)
	want := access.Identity{Tenant: "acme", Name: "billing bot", Role: engine.RoleAgent, Via: "token", ID: made.ID}
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER "} {
		r := with(secret)
		r.Header.Set("Authorization", scheme+secret)
		if diff := cmp.Diff(want, resolve(t, tokens, r, nil)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestTokenAsPassword: clients of the gate send HTTP Basic and nothing else. Whatever the
// user name is, the token identifies the caller.
func TestTokenAsPassword(t *testing.T) {
	tokens := access.NewTokens(newFlaky(), nil)
	made, secret := create(t, tokens, bot)
	want := access.Identity{Tenant: "acme", Name: "billing bot", Role: engine.RoleAgent, Via: "token", ID: made.ID}
	for _, user := range []string{"", "client-1", "root"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(user, secret)
		if diff := cmp.Diff(want, resolve(t, tokens, r, nil)); diff != "" {
			t.Error(diff)
		}
	}
	for password, bad := range map[string]error{secret[:len(secret)-1] + "!": access.ErrUnknown, unknownToken(t): access.ErrUnknown,
		"hunter2": access.ErrNoCredentials, "": access.ErrNoCredentials} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(secret, password)
		resolve(t, tokens, r, bad)
	}
}

func TestBadCredentials(t *testing.T) {
	notes := newFlaky()
	tokens := access.NewTokens(notes, nil)
	_, secret := create(t, tokens, bot)
	_, other := create(t, tokens, bot)
	last := secret[len(secret)-1:]
	for name, c := range map[string]struct {
		headers []string
		want    error
		reason  string
	}{
		"none":            {nil, access.ErrNoCredentials, "there are none"},
		"basic":           {[]string{"Basic YTpi"}, access.ErrNoCredentials, "is for others"},
		"empty":           {[]string{""}, access.ErrUnknown, "a header that says nothing"},
		"no scheme":       {[]string{secret}, access.ErrUnknown, "it is no bearer token"},
		"scheme alone":    {[]string{"Bearer"}, access.ErrUnknown, "there is no token"},
		"nothing":         {[]string{"Bearer "}, access.ErrUnknown, "there is no token"},
		"other scheme":    {[]string{"Token " + secret}, access.ErrUnknown, "it is no bearer token"},
		"like a scheme":   {[]string{"Вearer " + secret}, access.ErrUnknown, "the first letter is Cyrillic"},
		"folded scheme":   {[]string{"Ba\u017fic YTpi"}, access.ErrUnknown, "the long s folds to the other"},
		"two blanks":      {[]string{"Bearer  " + secret}, access.ErrUnknown, "it is written otherwise"},
		"tab":             {[]string{"Bearer\t" + secret}, access.ErrUnknown, "it is written otherwise"},
		"twice":           {[]string{"Bearer " + secret, "Bearer " + secret}, access.ErrUnknown, "who reads which one is not known"},
		"with another":    {[]string{"Bearer " + other, "Bearer " + secret}, access.ErrUnknown, "who reads which one is not known"},
		"with basic":      {[]string{"Basic YTpi", "Bearer " + secret}, access.ErrUnknown, "who reads which one is not known"},
		"in one line":     {[]string{"Bearer " + secret + ", Bearer " + secret}, access.ErrUnknown, "proxies join headers so"},
		"cut off":         {[]string{"Bearer " + secret[:len(secret)-1]}, access.ErrUnknown, "a letter is missing"},
		"too much":        {[]string{"Bearer " + secret + last}, access.ErrUnknown, "a letter too many"},
		"oversized":       {[]string{"Bearer " + secret + strings.Repeat("a", 1<<20)}, access.ErrUnknown, "it is not even hashed"},
		"NUL":             {[]string{"Bearer " + secret + "\x00"}, access.ErrUnknown, "some would cut it off there"},
		"NUL inside":      {[]string{"Bearer " + secret[:30] + "\x00" + secret[31:]}, access.ErrUnknown, "it is no letter of ours"},
		"capitals":        {[]string{"Bearer " + strings.ToUpper(secret)}, access.ErrUnknown, "there is one way to write it"},
		"wide letters":    {[]string{"Bearer " + strings.Replace(secret, "rbk_", "ｒbk_", 1)}, access.ErrUnknown, "it looks alike"},
		"wide underscore": {[]string{"Bearer " + strings.Replace(secret, "_", "＿", 1)}, access.ErrUnknown, "it looks alike"},
		"other letters":   {[]string{"Bearer " + secret[:40] + strings.Repeat("а", 20)}, access.ErrUnknown, "they are Cyrillic"},
		"bad checksum":    {[]string{"Bearer " + secret[:len(secret)-7] + "aaaaaaa"}, access.ErrUnknown, "it was mistyped"},
		"its id alone":    {[]string{"Bearer " + secret[4:20]}, access.ErrUnknown, "that is no secret"},
	} {
		t.Run(name, func(t *testing.T) {
			tokens, asked := access.NewTokens(notes, nil), notes.count()
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header["Authorization"] = c.headers
			_, err := tokens.Resolve(r)
			if !errors.Is(err, c.want) || errors.Is(err, access.ErrNoCredentials) != errors.Is(c.want, access.ErrNoCredentials) {
				t.Errorf("%s: got %v, want %v", c.reason, err, c.want)
			}
			if strings.Contains(err.Error(), secret[21:40]) {
				t.Errorf("the error repeats the secret: %v", err)
			}
			if notes.count() != asked {
				t.Error("the ledger was asked about what can be no token")
			}
		})
	}
}

// unknownToken is a secret of the right form, of another ledger.
func unknownToken(t *testing.T) string {
	t.Helper()
	_, secret := create(t, access.NewTokens(newFlaky(), nil), bot)
	return secret
}

func TestUnknownTokens(t *testing.T) {
	notes := newFlaky()
	tokens := access.NewTokens(notes, nil)
	made, secret := create(t, tokens, bot)
	resolve(t, tokens, with(unknownToken(t)), access.ErrUnknown)

	all, _, err := notes.Notes(t.Context(), "token/"+made.ID)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for name, c := range map[string]struct{ value, reason string }{
		"other hash": {strings.Replace(string(all[0].Value), `"hash":"`, `"hash":"0`, 1), "it is another secret's"},
		"no hash":    {`{"id":"` + made.ID + `","tenant":"acme","name":"x","role":"agent","expires":"2999-01-01T00:00:00Z"}`, "no token has the empty secret"},
		"no end":     {strings.Replace(string(all[0].Value), `"expires"`, `"ends"`, 1), "none is good for ever"},
		"no role":    {strings.Replace(string(all[0].Value), `"agent"`, `""`, 1), "it may do nothing"},
		"other role": {strings.Replace(string(all[0].Value), `"agent"`, `"root"`, 1), "there is no such role"},
		"no tenant":  {strings.Replace(string(all[0].Value), `"acme"`, `""`, 1), "it would be in all of them"},
		"other id":   {strings.ReplaceAll(string(all[0].Value), made.ID, strings.Repeat("a", 16)), "it is another token's note"},
		"garbage":    {"{", "it is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			own := ledger.NewMemory()
			if _, err := own.SetNote(t.Context(), ledger.Note{Name: all[0].Name, Value: []byte(c.value)}); err != nil {
				t.Fatal(err)
			}
			if _, err := access.NewTokens(own, nil).Resolve(with(secret)); !errors.Is(err, access.ErrUnknown) {
				t.Errorf("%s: %v", c.reason, err)
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := access.NewTokens(newFlaky(), nil)
		_, secret := create(t, tokens, bot)
		time.Sleep(time.Hour - time.Second)
		resolve(t, tokens, with(secret), nil)
		time.Sleep(time.Second)
		resolve(t, tokens, with(secret), access.ErrUnknown)
	})
}

func TestRevocationIsSeenInFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := newFlaky()
		here, there := access.NewTokens(notes, nil), access.NewTokens(notes, nil)
		made, secret := create(t, here, bot)
		resolve(t, here, with(secret), nil)
		resolve(t, there, with(secret), nil)
		if err := here.Revoke(t.Context(), "acme", made.ID, "alice"); err != nil {
			t.Fatal(err)
		}
		resolve(t, here, with(secret), access.ErrUnknown)
		time.Sleep(5 * time.Second)
		resolve(t, there, with(secret), access.ErrUnknown)
	})
}

func TestLedgerIsAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := newFlaky()
		tokens := access.NewTokens(notes, nil)
		_, secret := create(t, tokens, bot)
		before := notes.count()
		for range 10 {
			for range 100 {
				go func() { _, _ = tokens.Resolve(with(secret)) }()
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if asked := notes.count() - before; asked < 3 || asked > 5 {
			t.Errorf("the ledger was asked %d times in ten seconds of a thousand requests; want once in three", asked)
		}
	})
}

func TestLedgerIsAway(t *testing.T) {
	for _, how := range []string{"down", "hangs"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				notes := newFlaky()
				tokens := access.NewTokens(notes, nil)
				_, known := create(t, tokens, bot)
				_, late := create(t, tokens, bot)
				revoked, ended := create(t, tokens, bot)
				if err := tokens.Revoke(t.Context(), "acme", revoked.ID, "alice"); err != nil {
					t.Fatal(err)
				}
				foreign := unknownToken(t)
				resolve(t, tokens, with(known), nil)
				resolve(t, tokens, with(ended), access.ErrUnknown)
				resolve(t, tokens, with(foreign), access.ErrUnknown)
				notes.is(how)
				time.Sleep(50 * time.Second)
				resolve(t, tokens, with(known), nil)
				resolve(t, tokens, with(ended), access.ErrUnknown) // it stays so
				resolve(t, tokens, with(late), access.ErrUnavailable)
				resolve(t, tokens, with(foreign), access.ErrUnavailable) // it may have been made meanwhile
				time.Sleep(11 * time.Second)
				resolve(t, tokens, with(known), access.ErrUnavailable)
				notes.is("")
				time.Sleep(2 * time.Second)
				resolve(t, tokens, with(known), nil)
				resolve(t, tokens, with(late), nil)
				resolve(t, tokens, with(foreign), access.ErrUnknown)
			})
		})
	}
}

func TestLedgerThatHangsIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := newFlaky()
		tokens := access.NewTokens(notes, nil)
		_, known := create(t, tokens, bot)
		resolve(t, tokens, with(known), nil)
		notes.is("hangs")
		time.Sleep(4 * time.Second)
		began := time.Now()
		resolve(t, tokens, with(known), nil)
		waited := time.Since(began)
		for range 50 {
			resolve(t, tokens, with(known), nil)
		}
		if again := time.Since(began) - waited; again != 0 {
			t.Errorf("fifty more requests waited %s for a ledger that does not answer", again)
		}
	})
}

func TestCallerWhoGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := newFlaky()
		tokens := access.NewTokens(notes, nil)
		_, secret := create(t, tokens, bot)
		notes.is("hangs")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		resolve(t, tokens, with(secret).WithContext(ctx), context.DeadlineExceeded)
		time.Sleep(time.Minute) // the question ends by itself
	})
}

func TestTooManyFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := newFlaky()
		tokens := access.NewTokens(notes, nil)
		_, secret := create(t, tokens, bot)
		_, other := create(t, tokens, bot)
		bad := unknownToken(t)
		resolve(t, tokens, with(secret), nil)
		from := func(addr, secret string) *http.Request {
			r := with(secret)
			r.RemoteAddr = addr
			return r
		}
		const attacker = "203.0.113.7:1"
		for range 20 {
			resolve(t, tokens, from(attacker, bad), access.ErrUnknown)
		}
		asked := notes.count()
		_, err := tokens.Resolve(from(attacker, bad))
		var many *access.TooManyError
		if !errors.As(err, &many) || many.After < time.Second || many.After > time.Minute {
			t.Fatalf("got %v", err)
		}
		status, header := access.Refused(err)
		if status != http.StatusTooManyRequests || header.Get("Retry-After") != "3" {
			t.Errorf("%d, %v", status, header)
		}
		resolve(t, tokens, from(attacker, "short"), access.ErrTooMany)
		resolve(t, tokens, from("203.0.113.7:2", unknownToken(t)), access.ErrTooMany)
		if notes.count() > asked+1 {
			t.Error("the ledger is asked more than once for each that may be good")
		}
		resolve(t, tokens, from(attacker, secret), nil) // who is known shares its address
		resolve(t, tokens, from(attacker, other), nil)  // and so does an unknown caller
		resolve(t, tokens, from("203.0.113.8:1", other), nil)
		time.Sleep(many.After)
		resolve(t, tokens, from(attacker, unknownToken(t)), access.ErrUnknown)
		resolve(t, tokens, from(attacker, unknownToken(t)), access.ErrTooMany)
		time.Sleep(2 * time.Minute)
		for range 20 {
			resolve(t, tokens, from(attacker, bad), access.ErrUnknown)
		}
	})
}

// Attempts from a limited address wait in a queue, so that a caller who guesses causes
// few reads of the ledger.
func TestThrottledAddressesCauseFewLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := newFlaky()
		tokens := access.NewTokens(notes, nil)
		for range 20 {
			resolve(t, tokens, with("bad"), access.ErrUnknown)
		}
		notes.is("hangs")
		asked := notes.count()
		for range 10 {
			go func() {
				if _, err := tokens.Resolve(with(unknownToken(t))); !errors.Is(err, access.ErrTooMany) && !errors.Is(err, access.ErrUnavailable) {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if got := notes.count() - asked; got != 2 {
			t.Errorf("the ledger is asked %d questions at once; want 2", got)
		}
		time.Sleep(time.Minute)
	})
}

func TestFailuresOfManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := access.NewTokens(newFlaky(), nil)
		bad := func(addr string, want error) {
			r := with("bad")
			r.RemoteAddr = addr
			resolve(t, tokens, r, want)
		}
		for i := range 30 { // one machine has a whole network of them
			want := access.ErrUnknown
			if i >= 20 {
				want = access.ErrTooMany
			}
			bad("[2001:db8:0:1::"+string(rune('a'+i%6))+"]:443", want)
		}
		bad("[2001:db8:0:2::1]:443", access.ErrUnknown)
		bad("", access.ErrUnknown) // no address at all
		bad("@", access.ErrUnknown)
	})
}

func TestNothingSecretIsLogged(t *testing.T) {
	var log bytes.Buffer
	notes := newFlaky()
	tokens := access.NewTokens(notes, &access.TokenOptions{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	made, secret := create(t, tokens, bot)
	resolve(t, tokens, with(secret), nil)
	resolve(t, tokens, with(secret+"x"), access.ErrUnknown)
	kept, _, _ := notes.Notes(t.Context(), "token/"+made.ID)
	kept[0].Value = []byte(`{"hash":`)
	if _, err := notes.SetNote(t.Context(), kept[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.List(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if log.Len() == 0 || strings.Contains(log.String(), secret[21:30]) {
		t.Errorf("the log is empty, or has the secret:\n%s", log.String())
	}
}
