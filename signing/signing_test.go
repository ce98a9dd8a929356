package signing_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/signing"
)

const kind = "application/vnd.example+json"

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

type pair struct{ private, public []byte }

func newPair(t *testing.T) pair {
	t.Helper()
	private, public, err := signing.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return pair{private, public}
}

func (p pair) signer(t *testing.T) *signing.Signer {
	t.Helper()
	return must(signing.ReadSigner(p.private))(t)
}

func (p pair) keys(t *testing.T) signing.Keys {
	t.Helper()
	return must(signing.ReadKeys(p.public))(t)
}

func TestWhatIsSignedIsGivenOut(t *testing.T) {
	key, other := newPair(t), newPair(t)
	signer := key.signer(t)
	for name, payload := range map[string][]byte{
		"text": []byte(`{"a":1}`), "empty": {}, "any bytes": {0, 255, '\n', '"'}, "the largest": bytes.Repeat([]byte("x"), signing.MaxPayload),
	} {
		t.Run(name, func(t *testing.T) {
			text := must(must(signer.Sign(t.Context(), kind, payload))(t).Encode())(t)
			e := must(signing.ReadEnvelope(text))(t)
			got, id, err := must(signing.ReadKeys(other.public, key.public))(t).Open(e, kind)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, payload) || id != signer.ID() {
				t.Errorf("payload of %d bytes by %s, want %d by %s", len(got), id, len(payload), signer.ID())
			}
		})
	}
}

func TestTheIDFollowsFromThePublicKey(t *testing.T) {
	key := newPair(t)
	block, rest := pem.Decode(key.public)
	if block == nil || len(rest) > 0 {
		t.Fatalf("the public key is no PEM: %q", key.public)
	}
	sum := sha256.Sum256(block.Bytes)
	want := signing.PublicKey{ID: hex.EncodeToString(sum[:]), PEM: string(key.public)}
	signer := key.signer(t)
	if diff := cmp.Diff([]signing.PublicKey{want}, key.keys(t).List()); diff != "" {
		t.Error(diff)
	}
	if signer.ID() != want.ID || !bytes.Equal(signer.Public(), key.public) {
		t.Errorf("the signer says %s %q", signer.ID(), signer.Public())
	}
	twice := must(signing.ReadKeys(key.public, newPair(t).public, append(bytes.Clone(key.public), key.public...)))(t)
	if n := len(twice.List()); n != 2 || twice.List()[0] != want {
		t.Errorf("%d keys, want the two different ones, in order", n)
	}
}

func TestASignerIsNeverPrinted(t *testing.T) {
	key := newPair(t)
	block, _ := pem.Decode(key.private)
	secret := block.Bytes[len(block.Bytes)-ed25519.SeedSize:]
	signer := key.signer(t)
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%b"} {
		for name, what := range map[string]any{"it": signer, "a copy": *signer, "what has it": struct{ S *signing.Signer }{signer}, "what has a copy": []signing.Signer{*signer}} {
			if text := fmt.Sprintf(form, what); strings.Contains(text, hex.EncodeToString(secret)) || strings.Contains(text, fmt.Sprint(secret)[1:40]) {
				t.Errorf("%s prints the key of %s: %s", form, name, text)
			}
		}
	}
	if text, err := json.Marshal(signer); err != nil || string(text) != "{}" { //nolint:staticcheck // that nothing of it is exported is what is tested
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

func pkcs8(t *testing.T, key any) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))(t)})
}

func spki(t *testing.T, key any) []byte {
	t.Helper()
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(key))(t)})
}

func TestKeysOfTheWrongKind(t *testing.T) {
	key := newPair(t)
	curve := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	big := must(rsa.GenerateKey(rand.Reader, 2048))(t)
	private := func(b []byte) error { _, err := signing.ReadSigner(b); return err }
	public := func(b []byte) error { _, err := signing.ReadKeys(b); return err }
	retype := func(text []byte, to string) []byte {
		block, _ := pem.Decode(text)
		block.Type = to
		return pem.EncodeToMemory(block)
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		err    error
		reason string
	}{
		"nothing":                     {private(nil), `there is no PEM block; one of type "PRIVATE KEY" is wanted`},
		"a word":                      {private([]byte("secret")), "text outside the PEM block"},
		"a public key to sign":        {private(key.public), "this is a public key, and the private one is wanted"},
		"a private key to trust":      {public(key.private), "this is a private key, and the public one is wanted"},
		"an RSA key to sign":          {private(pkcs8(t, big)), "the private key is an RSA key, and an Ed25519 key is wanted"},
		"an ECDSA key to trust":       {public(spki(t, &curve.PublicKey)), "the public key is an ECDSA key, and an Ed25519 key is wanted"},
		"another block of a private":  {private(retype(key.private, "EC PRIVATE KEY")), `and PKCS #8 ("PRIVATE KEY")`},
		"an encrypted key":            {private(retype(key.private, "ENCRYPTED PRIVATE KEY")), "is encrypted"},
		"a certificate":               {public(retype(key.public, "CERTIFICATE")), `of type "CERTIFICATE", and "PUBLIC KEY" is wanted`},
		"two private keys":            {private(join(key.private, newPair(t).private)), "2 private keys in one text"},
		"a private after a public":    {public(join(key.public, key.private)), "this is a private key"},
		"text after":                  {private(join(key.private, []byte("x"))), "text outside the PEM block"},
		"text before":                 {public(join([]byte("x\n"), key.public)), "text outside the PEM block"},
		"a torn block before a good":  {public(join(key.public[:60], []byte("\n"), key.public)), "cannot be read"},
		"no PKCS #8":                  {private(retype(key.public, "PRIVATE KEY")), "no PKCS #8"},
		"no SPKI":                     {public(retype(key.private, "PUBLIC KEY")), "no SPKI"},
		"more than any key":           {public(bytes.Repeat(key.public, 2000)), "a key has at most"},
		"more than are trusted":       {tooMany(t), "at most 100 are trusted"},
		"headers":                     {private(bytes.Replace(key.private, []byte("KEY-----\n"), []byte("KEY-----\nA: b\n\n"), 1)), "has headers"},
		"the second of two is no key": {second(key), "public key 2 of 2"},
		"a zero signer":               {unmade(), "a signer without a key"},
		"a signer that is not there":  {unmadePointer(), "a signer without a key"},
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(c.err, signing.ErrKey) || !strings.Contains(c.err.Error(), c.reason) {
				t.Errorf("%v\nwant %v with: %s", c.err, signing.ErrKey, c.reason)
			}
			if c.err != nil && bytes.Contains([]byte(c.err.Error()), key.private[40:60]) {
				t.Errorf("the error holds a part of the key: %v", c.err)
			}
		})
	}
}

func tooMany(t *testing.T) error {
	var all [][]byte
	for range 101 {
		all = append(all, newPair(t).public)
	}
	_, err := signing.ReadKeys(all...)
	return err
}

func second(key pair) error {
	_, err := signing.ReadKeys(key.public, []byte("no key"))
	return err
}

func unmade() error {
	_, err := new(signing.Signer).Sign(context.Background(), kind, nil)
	return err
}

func unmadePointer() error {
	var s *signing.Signer
	_, err := s.Sign(context.Background(), kind, nil)
	return err
}

func TestEnvelopesThatAreRefused(t *testing.T) {
	key, other := newPair(t), newPair(t)
	good := must(key.signer(t).Sign(t.Context(), kind, []byte(`{"n":1}`)))(t)
	foreign := must(other.signer(t).Sign(t.Context(), kind, []byte(`{"n":1}`)))(t)
	with := func(change func(*signing.Envelope)) signing.Envelope {
		e := good
		e.Signatures = append(e.Signatures[:0:0], good.Signatures...)
		change(&e)
		return e
	}
	for name, c := range map[string]struct {
		e      signing.Envelope
		keys   signing.Keys
		is     error
		reason string
	}{
		"no key is trusted": {good, signing.Keys{}, signing.ErrKey, "(trusted: none)"},
		"an unknown key":    {foreign, key.keys(t), signing.ErrKey, "which is not trusted here (trusted: " + key.signer(t).ID() + ")"},
		"no key id":         {with(func(e *signing.Envelope) { e.Signatures[0].KeyID = "" }), key.keys(t), signing.ErrKey, "not trusted"},
		"another's key id": {with(func(e *signing.Envelope) { e.Signatures[0].KeyID = other.signer(t).ID() }),
			must(signing.ReadKeys(key.public, other.public))(t), signing.ErrSignature, "altered"},
		"another payload": {with(func(e *signing.Envelope) { e.Payload = base64.StdEncoding.EncodeToString([]byte(`{"n":2}`)) }),
			key.keys(t), signing.ErrSignature, "altered"},
		"another type":   {with(func(e *signing.Envelope) { e.PayloadType = "text/plain" }), key.keys(t), signing.ErrType, `"text/plain", and "` + kind},
		"no type":        {with(func(e *signing.Envelope) { e.PayloadType = "" }), key.keys(t), signing.ErrType, "is wanted"},
		"no signature":   {with(func(e *signing.Envelope) { e.Signatures = nil }), key.keys(t), signing.ErrEnvelope, "0 signatures"},
		"two signatures": {with(func(e *signing.Envelope) { e.Signatures = append(e.Signatures, foreign.Signatures...) }), key.keys(t), signing.ErrEnvelope, "2 signatures"},
		"a broken line":  {with(func(e *signing.Envelope) { e.Payload = e.Payload[:4] + "\n" + e.Payload[4:] }), key.keys(t), signing.ErrEnvelope, "payload is no base64"},
		"other base64": {with(func(e *signing.Envelope) {
			raw, _ := base64.StdEncoding.DecodeString(e.Signatures[0].Sig)
			e.Signatures[0].Sig = base64.RawURLEncoding.EncodeToString(raw)
		}), key.keys(t), signing.ErrEnvelope, "signature is no base64"},
		"a short signature": {with(func(e *signing.Envelope) { e.Signatures[0].Sig = "AAAA" }), key.keys(t), signing.ErrSignature, "altered"},
		"a long signature":  {with(func(e *signing.Envelope) { e.Signatures[0].Sig = strings.Repeat("A", 400) }), key.keys(t), signing.ErrEnvelope, "longer than 64"},
		"a long payload": {with(func(e *signing.Envelope) { e.Payload = strings.Repeat("A", signing.MaxPayload*2) }),
			key.keys(t), signing.ErrEnvelope, "payload is longer"},
		"not even a zero value": {signing.Envelope{}, key.keys(t), signing.ErrType, "is wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			payload, id, err := c.keys.Open(c.e, kind)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%v\nwant %v with: %s", err, c.is, c.reason)
			}
			if payload != nil || id != "" {
				t.Errorf("a refused envelope gave out %q of %q", payload, id)
			}
		})
	}
}

func TestEnvelopesThatCannotBeRead(t *testing.T) {
	key := newPair(t)
	good := string(must(must(key.signer(t).Sign(t.Context(), kind, []byte(`{}`)))(t).Encode())(t))
	for name, text := range map[string]string{
		"nothing":             "",
		"a list":              "[" + good + "]",
		"something after":     good + "{}",
		"cut off":             good[:len(good)-1],
		"an unknown member":   strings.Replace(good, `{"payloadType"`, `{"note":"approved","payloadType"`, 1),
		"an unknown inside":   strings.Replace(good, `{"keyid"`, `{"cert":"x","keyid"`, 1),
		"a member twice":      strings.Replace(good, `{"payloadType"`, `{"payloadType":"a","payloadType"`, 1),
		"another case":        strings.Replace(good, `"payloadType"`, `"PayloadType"`, 1),
		"no UTF-8":            strings.Replace(good, `"payloadType":"`, "\"payloadType\":\"\xff", 1),
		"a number for a text": strings.Replace(good, `"`+kind+`"`, "1", 1),
		"more than is read":   good + strings.Repeat(" ", signing.MaxEnvelope),
	} {
		t.Run(name, func(t *testing.T) {
			if e, err := signing.ReadEnvelope([]byte(text)); !errors.Is(err, signing.ErrEnvelope) {
				t.Errorf("%+v, %v; want %v", e, err, signing.ErrEnvelope)
			}
		})
	}
	if _, err := key.signer(t).Sign(t.Context(), "", nil); !errors.Is(err, signing.ErrType) {
		t.Errorf("signed without a type: %v", err)
	}
	if _, err := key.signer(t).Sign(t.Context(), kind, make([]byte, signing.MaxPayload+1)); !errors.Is(err, signing.ErrEnvelope) {
		t.Errorf("signed more than is read: %v", err)
	}
}

// No single changed byte of an envelope passes, wherever it is.
func TestEveryByteCounts(t *testing.T) {
	key := newPair(t)
	good := must(must(key.signer(t).Sign(t.Context(), kind, []byte(`{"amount":10}`)))(t).Encode())(t)
	keys := key.keys(t)
	for i := range good {
		for _, change := range []byte{1, 0x20, 0x80} {
			bad := bytes.Clone(good)
			bad[i] ^= change
			e, err := signing.ReadEnvelope(bad)
			if err == nil {
				_, _, err = keys.Open(e, kind)
			}
			if err == nil {
				t.Errorf("byte %d changed from %q to %q, and the envelope passes: %s", i, good[i], bad[i], bad)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	private, public, err := signing.Generate()
	if err != nil {
		f.Fatal(err)
	}
	signer, err := signing.ReadSigner(private)
	if err != nil {
		f.Fatal(err)
	}
	keys, err := signing.ReadKeys(public)
	if err != nil {
		f.Fatal(err)
	}
	const payload = `{"amount":10}`
	e, err := signer.Sign(context.Background(), kind, []byte(payload))
	if err != nil {
		f.Fatal(err)
	}
	text, err := e.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"payloadType":"","payload":"","signatures":[{"keyid":"","sig":""}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := signing.ReadEnvelope(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if back, err := signing.ReadEnvelope(again); err != nil || !cmp.Equal(e, back) {
			t.Fatalf("read, written and read again it is %+v, %v; was %+v", back, err, e)
		}
		if got, _, err := keys.Open(e, kind); err == nil && string(got) != payload {
			t.Fatalf("gave out %q, which was never signed", got)
		}
	})
}

// remote is a key that is kept elsewhere.
type remote struct {
	private ed25519.PrivateKey
	sign    func(ctx context.Context, data []byte) ([]byte, error)
}

func (k remote) Public() ed25519.PublicKey {
	half, _ := k.private.Public().(ed25519.PublicKey)
	return half
}

func (k remote) Sign(ctx context.Context, data []byte) ([]byte, error) { return k.sign(ctx, data) }

// TestAKeyKeptElsewhere: its signatures equal those of a key file; if it fails, hangs or returns
// another signature there is an error in bounded time, and no envelope.
func TestAKeyKeptElsewhere(t *testing.T) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := errors.New("the HSM is out of order")
	forever := make(chan struct{})
	for name, tt := range map[string]struct {
		sign func(ctx context.Context, data []byte) ([]byte, error)
		want string // in the error, "" for an envelope
	}{
		"signs":             {func(_ context.Context, data []byte) ([]byte, error) { return ed25519.Sign(private, data), nil }, ""},
		"fails":             {func(context.Context, []byte) ([]byte, error) { return nil, out }, out.Error()},
		"hangs":             {func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }, "did not sign within 10s"},
		"hangs for ever":    {func(context.Context, []byte) ([]byte, error) { <-forever; return nil, nil }, "did not sign within 10s"},
		"panics":            {func(context.Context, []byte) ([]byte, error) { panic("no session") }, "the key panicked"},
		"signs as another":  {func(_ context.Context, data []byte) ([]byte, error) { return ed25519.Sign(other, data), nil }, "not the signature of this key"},
		"returns nothing":   {func(context.Context, []byte) ([]byte, error) { return nil, nil }, "not the signature of this key"},
		"signs other bytes": {func(_ context.Context, data []byte) ([]byte, error) { return ed25519.Sign(private, data[1:]), nil }, "not the signature of this key"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				forever = make(chan struct{})
				defer func() { close(forever); synctest.Wait() }()
				s, err := signing.NewSigner(remote{private, tt.sign})
				if err != nil {
					t.Fatal(err)
				}
				keys := must(signing.ReadKeys(s.Public()))(t)
				for range 20 { // more than may hang at once
					begun := time.Now()
					e, err := s.Sign(t.Context(), kind, []byte(`{}`))
					if d := time.Since(begun); d > 10*time.Second {
						t.Fatalf("it took %s", d)
					}
					if tt.want != "" {
						if !errors.Is(err, signing.ErrKey) || !strings.Contains(err.Error(), tt.want) || len(e.Signatures) > 0 {
							t.Fatalf("%v, %v; want an error with %q and no envelope", e, err, tt.want)
						}
						continue
					}
					if _, id, err := keys.Open(e, kind); err != nil || id != s.ID() {
						t.Fatalf("%q, %v; want what a file would have signed", id, err)
					}
				}
			})
		})
	}
	if _, err := signing.NewSigner(nil); !errors.Is(err, signing.ErrKey) {
		t.Errorf("no key: %v", err)
	}
	if _, err := signing.NewSigner(short{}); !errors.Is(err, signing.ErrKey) {
		t.Errorf("a key of another kind: %v", err)
	}
}

// short is a key whose public half is not Ed25519.
type short struct{ remote }

func (short) Public() ed25519.PublicKey { return make([]byte, 16) }
