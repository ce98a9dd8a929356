package signing

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

const (
	// MaxPayload bounds what is signed, in bytes: a statement with all values of an observation,
	// which has at most a few megabytes, and some reserve.
	MaxPayload = 8 << 20
	// MaxEnvelope bounds an envelope that is read, in bytes: the largest payload in base64, and
	// space for the rest.
	MaxEnvelope = MaxPayload/3*4 + 64<<10
	// maxKeys bounds how many public keys are trusted at once: years of rotation.
	maxKeys = 100
	// maxType bounds the name of a payload type, in bytes: a media type.
	maxType = 255
	// signTimeout bounds one signature: a key on another machine may hang.
	signTimeout = 10 * time.Second
	// maxCalls bounds the calls under way at one key, including those that hang.
	maxCalls = 16
)

// Envelope is a DSSE envelope: a payload in base64, its type, and signatures over both. Do not
// trust its content before [Keys.Open] has returned it.
type Envelope dsse.Envelope

// Encode returns the envelope as JSON, on one line.
func (e Envelope) Encode() ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEnvelope, err)
	}
	return text, nil
}

// ReadEnvelope reads an envelope in JSON, strictly: no unknown and no repeated members, nothing
// after the object, at most [MaxEnvelope] bytes. It checks no signature; [Keys.Open] does. Errors
// wrap [ErrEnvelope].
//
// The DSSE format tells readers to ignore unknown members. Here they are refused: they are not
// signed, and a reader would believe them.
func ReadEnvelope(data []byte) (Envelope, error) {
	if len(data) > MaxEnvelope {
		return Envelope{}, fmt.Errorf("%w: it has %d bytes, at most %d are read", ErrEnvelope, len(data), MaxEnvelope)
	}
	var e Envelope
	if err := json.Unmarshal(data, &e, json.RejectUnknownMembers(true)); err != nil {
		return Envelope{}, fmt.Errorf("%w: a JSON object with payloadType, payload and signatures is wanted: %w", ErrEnvelope, err)
	}
	return e, nil
}

// Key is a private Ed25519 key, wherever it is: in memory, or in a KMS or an HSM that never
// exports it. It is called from several goroutines at once.
type Key interface {
	// Public is the public half. It never changes.
	Public() ed25519.PublicKey
	// Sign returns the signature of data (RFC 8032, not prehashed), which it must not
	// change. It should end when ctx does.
	Sign(ctx context.Context, data []byte) ([]byte, error)
}

// Signer signs with a private key. Create it with [ReadSigner] or [NewSigner].
type Signer struct {
	key    Key
	public public
	calls  chan struct{} // under way at the key
}

// inMemory is a private key that was read.
type inMemory struct{ private ed25519.PrivateKey }

func (k inMemory) Public() ed25519.PublicKey {
	half, _ := k.private.Public().(ed25519.PublicKey)
	return half
}

func (k inMemory) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.private, data), nil
}

// NewSigner returns a signer with a key that is kept elsewhere. Errors wrap [ErrKey].
func NewSigner(k Key) (*Signer, error) {
	if k == nil {
		return nil, fmt.Errorf("%w: there is none", ErrKey)
	}
	half := k.Public()
	if len(half) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: its public half has %d bytes; want the %d of an Ed25519 key", ErrKey, len(half), ed25519.PublicKeySize)
	}
	shown, err := newPublic(half)
	if err != nil {
		return nil, err
	}
	return &Signer{key: k, public: shown, calls: make(chan struct{}, maxCalls)}, nil
}

// ReadSigner reads a private key: one PEM block of type PRIVATE KEY (PKCS #8) with an Ed25519
// key, and nothing else. Errors wrap [ErrKey] and never hold a part of the key.
func ReadSigner(pem []byte) (*Signer, error) {
	private, err := readPrivate(pem)
	if err != nil {
		return nil, err
	}
	return NewSigner(inMemory{private})
}

// ID is the ID of the key: the SHA-256 of the SPKI DER of its public half, in hex.
func (s *Signer) ID() string { return s.public.shown.ID }

// Public is the public half, as SPKI in PEM.
func (s *Signer) Public() []byte { return []byte(s.public.shown.PEM) }

// String names the key by its ID.
func (s *Signer) String() string {
	if s == nil {
		return "no signer"
	}
	return "signer " + s.public.shown.ID
}

// Format is String for every verb, also of a copy, so that no message and no log ever holds the
// key itself.
func (s Signer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// Sign puts a payload of a type into an envelope with one signature. The type is a media type of
// at most 255 bytes, the payload has at most [MaxPayload]. It waits for the key no longer than
// ctx, and 10 s.
func (s *Signer) Sign(ctx context.Context, payloadType string, payload []byte) (Envelope, error) {
	if s == nil || s.key == nil {
		return Envelope{}, fmt.Errorf("%w: a signer without a key signs nothing; ReadSigner and NewSigner make one", ErrKey)
	}
	if err := checkType(payloadType); err != nil {
		return Envelope{}, err
	}
	if len(payload) > MaxPayload {
		return Envelope{}, fmt.Errorf("%w: the payload has %d bytes, at most %d are signed", ErrEnvelope, len(payload), MaxPayload)
	}
	signer, err := dsse.NewEnvelopeSigner(seal{s})
	if err != nil {
		return Envelope{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	e, err := signer.SignPayload(ctx, payloadType, payload)
	if err != nil {
		return Envelope{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return Envelope(*e), nil
}

func checkType(payloadType string) error {
	if payloadType == "" || len(payloadType) > maxType {
		return fmt.Errorf("%w: %s; a media type of at most %d bytes is wanted", ErrType, clip(payloadType), maxType)
	}
	return nil
}

// seal adapts a signer to the envelope library.
type seal struct{ s *Signer }

// Sign calls the key, in bounded time even if the key does not end with its context, and refuses
// a signature that is not the key's.
func (k seal) Sign(ctx context.Context, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, signTimeout, errSlowKey)
	defer cancel()
	select {
	case k.s.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	type result struct {
		signature []byte
		err       error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: errPanicked}
		defer func() {
			_ = recover() // not logged: it may hold what the key was given
			<-k.s.calls
			done <- r
		}()
		r.signature, r.err = k.s.key.Sign(ctx, data)
	}()
	select {
	case r := <-done:
		if r.err == nil && !ed25519.Verify(k.s.public.key, data, r.signature) {
			r.err = errNotOurs
		}
		return r.signature, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var errPanicked = errors.New("the key panicked")

var errSlowKey = fmt.Errorf("the key did not sign within %s", signTimeout)

func (k seal) KeyID() (string, error) { return k.s.ID(), nil }

// Keys are trusted public keys. The zero value trusts none. Create them with [ReadKeys].
type Keys struct{ list []public }

// ReadKeys reads public keys: texts of PEM blocks of type PUBLIC KEY (SPKI) with Ed25519 keys, at
// least one in each, and nothing else. A repeated key counts once; the order stays. Errors wrap
// [ErrKey].
func ReadKeys(pems ...[]byte) (Keys, error) {
	var k Keys
	for i, text := range pems {
		found, err := readPublic(text)
		if err != nil {
			return Keys{}, fmt.Errorf("public key %d of %d: %w", i+1, len(pems), err)
		}
		for _, one := range found {
			if _, known := k.find(one.shown.ID); !known {
				k.list = append(k.list, one)
			}
		}
	}
	if len(k.list) > maxKeys {
		return Keys{}, fmt.Errorf("%w: %d public keys, at most %d are trusted at once", ErrKey, len(k.list), maxKeys)
	}
	return k, nil
}

// List returns the keys in the order in which they were read.
func (k Keys) List() []PublicKey {
	all := make([]PublicKey, 0, len(k.list))
	for _, one := range k.list {
		all = append(all, one.shown)
	}
	return all
}

func (k Keys) find(id string) (public, bool) {
	for _, one := range k.list {
		if one.shown.ID == id {
			return one, true
		}
	}
	return public{}, false
}

func (k Keys) ids() string {
	if len(k.list) == 0 {
		return "none"
	}
	var ids []string
	for _, one := range k.list {
		ids = append(ids, one.shown.ID)
	}
	return strings.Join(ids, ", ")
}

// Open checks the one signature of an envelope and returns its payload, and the ID of the key
// that signed it. The payload must have the given type. Errors wrap [ErrEnvelope], [ErrType],
// [ErrKey] (the key is not trusted) or [ErrSignature]; with an error there is no payload.
func (k Keys) Open(e Envelope, payloadType string) (payload []byte, keyID string, err error) {
	if err := checkType(payloadType); err != nil {
		return nil, "", err
	}
	if e.PayloadType != payloadType {
		return nil, "", fmt.Errorf("%w: %s, and %q is wanted", ErrType, clip(e.PayloadType), payloadType)
	}
	if len(e.Signatures) != 1 {
		return nil, "", fmt.Errorf("%w: it has %d signatures, and one is wanted", ErrEnvelope, len(e.Signatures))
	}
	if err := checkBase64("payload", e.Payload, MaxPayload); err != nil {
		return nil, "", err
	}
	if err := checkBase64("signature", e.Signatures[0].Sig, ed25519.SignatureSize); err != nil {
		return nil, "", err
	}
	id := e.Signatures[0].KeyID
	key, known := k.find(id)
	if !known {
		return nil, "", fmt.Errorf("%w: it is signed by key %s, which is not trusted here (trusted: %s)", ErrKey, clip(id), k.ids())
	}
	payload, err = check(key, e)
	if err != nil {
		return nil, "", err
	}
	return payload, id, nil
}

func check(key public, e Envelope) ([]byte, error) {
	verifier, err := dsse.NewEnvelopeVerifier(lens(key))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	inner := dsse.Envelope(e)
	_, payload, err := verifier.VerifyAndDecode(context.Background(), &inner)
	if err != nil {
		return nil, fmt.Errorf("%w: it is not that of key %s over this payload and type: something was altered since", ErrSignature, key.shown.ID)
	}
	return payload, nil
}

// checkBase64 refuses non-canonical base64: an envelope with changed bytes must not pass because
// its meaning is the same.
func checkBase64(what, text string, most int) error {
	if base64.StdEncoding.DecodedLen(len(text)) > most+2 {
		return fmt.Errorf("%w: the %s is longer than %d bytes", ErrEnvelope, what, most)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(raw) != text {
		return fmt.Errorf("%w: the %s is no base64 in its standard spelling", ErrEnvelope, what)
	}
	return nil
}

// lens adapts a public key to the envelope library.
type lens public

var errNotOurs = errors.New("not the signature of this key")

func (l lens) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(l.key, data, sig) {
		return errNotOurs
	}
	return nil
}

func (l lens) KeyID() (string, error) { return l.shown.ID, nil }

func (l lens) Public() crypto.PublicKey { return l.key }
