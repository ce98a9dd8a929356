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

	"github.com/go-json-experiment/json"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// Envelope is a DSSE envelope: a payload in base64, its type, and signatures
// over both. Nothing in it is to be believed before [Keys.Open] gave it out.
type Envelope dsse.Envelope

// Encode is the envelope as JSON, on one line.
func (e Envelope) Encode() ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEnvelope, err)
	}
	return text, nil
}

// ReadEnvelope reads an envelope in JSON, strictly: no unknown and no repeated
// members, nothing after the object, at most [MaxEnvelope] bytes. It checks no
// signature; [Keys.Open] does. Errors wrap [ErrEnvelope].
//
// The DSSE format tells readers to overlook members that they do not know. Here
// they are refused: they are not signed, and somebody would believe them.
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

// Signer signs with a private key. Make it with [ReadSigner].
type Signer struct {
	private ed25519.PrivateKey
	public  public
}

// ReadSigner reads a private key: one PEM block of type PRIVATE KEY (PKCS #8)
// with an Ed25519 key, and nothing else. Errors wrap [ErrKey] and never hold a
// part of the key.
func ReadSigner(pem []byte) (*Signer, error) {
	private, err := readPrivate(pem)
	if err != nil {
		return nil, err
	}
	half, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: the private key has no public half", ErrKey)
	}
	key, err := newPublic(half)
	if err != nil {
		return nil, err
	}
	return &Signer{private: private, public: key}, nil
}

// ID is the id of the key: the SHA-256 of the SPKI DER of its public half, in
// hex.
func (s *Signer) ID() string { return s.public.shown.ID }

// Public is the public half, as SPKI in PEM.
func (s *Signer) Public() []byte { return []byte(s.public.shown.PEM) }

// String names the key by its id.
func (s *Signer) String() string {
	if s == nil {
		return "no signer"
	}
	return "signer " + s.public.shown.ID
}

// Format is String whatever is asked for, of a copy too, so that no message and no
// log ever holds the key itself.
func (s Signer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// Sign puts a payload of a type into an envelope with one signature. The type
// is a media type of at most 255 bytes, the payload has at most [MaxPayload].
func (s *Signer) Sign(payloadType string, payload []byte) (Envelope, error) {
	if s == nil || len(s.private) == 0 {
		return Envelope{}, fmt.Errorf("%w: a signer without a key signs nothing; ReadSigner makes one", ErrKey)
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
	e, err := signer.SignPayload(context.Background(), payloadType, payload)
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

// seal is a signer as the library of the envelopes wants it.
type seal struct{ s *Signer }

func (k seal) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.s.private, data), nil
}

func (k seal) KeyID() (string, error) { return k.s.ID(), nil }

// Keys are public keys that are trusted. The zero value trusts nobody. Make
// them with [ReadKeys].
type Keys struct{ list []public }

// ReadKeys reads public keys: texts of PEM blocks of type PUBLIC KEY (SPKI) with
// Ed25519 keys, at least one in each, and nothing else. A key that comes twice
// counts once; the order stays. Errors wrap [ErrKey].
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

// List are the keys in the order in which they were read.
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

// Open checks the one signature of an envelope and gives its payload out, and
// the id of the key that signed it. The payload must be of the type that is
// wanted. Errors wrap [ErrEnvelope], [ErrType], [ErrKey] (the key is none of
// those trusted) or [ErrSignature]; with an error there is no payload.
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

// checkBase64 refuses what has more than one spelling: an envelope whose bytes
// changed must not pass because its meaning did not.
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

// lens is a public key as the library of the envelopes wants it.
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
