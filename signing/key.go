package signing

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"strings"
)

// maxKeyFile bounds one PEM text that is read, in bytes. A key has some hundred; a list of all
// keys ever used fits.
const maxKeyFile = 64 << 10

// The supported types of PEM blocks.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// PublicKey is a public key for distribution: its ID, and its PEM.
type PublicKey struct {
	ID  string `json:"id" jsonschema:"the SHA-256 of the key in DER (SPKI), in hex; receipts name it"`
	PEM string `json:"pem" jsonschema:"Ed25519, SPKI in PEM"`
}

// Generate makes a new key: the private half as PKCS #8 and the public one as SPKI, both in PEM.
// The private half is not encrypted; encrypt it where you store it.
func Generate() (privatePEM, publicPEM []byte, err error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	key, err := newPublic(public)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der}), []byte(key.shown.PEM), nil
}

// public is a public key for checks.
type public struct {
	key   ed25519.PublicKey
	shown PublicKey
}

func newPublic(key ed25519.PublicKey) (public, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return public{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	sum := sha256.Sum256(der)
	text := pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: der})
	return public{key: key, shown: PublicKey{ID: hex.EncodeToString(sum[:]), PEM: string(text)}}, nil
}

// readPrivate reads the one private key of a text.
func readPrivate(text []byte) (ed25519.PrivateKey, error) {
	blocks, err := blocks(text, privateBlock)
	if err != nil {
		return nil, err
	}
	if len(blocks) > 1 {
		return nil, fmt.Errorf("%w: %d private keys in one text; one signs, so give one", ErrKey, len(blocks))
	}
	key, err := x509.ParsePKCS8PrivateKey(blocks[0])
	if err != nil {
		return nil, fmt.Errorf("%w: the private key is no PKCS #8: %w", ErrKey, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: the private key is %s, and an Ed25519 key is wanted (`readback key new` makes one)", ErrKey, kindOf(key))
	}
	return private, nil
}

// readPublic reads the public keys of a text, at least one.
func readPublic(text []byte) ([]public, error) {
	blocks, err := blocks(text, publicBlock)
	if err != nil {
		return nil, err
	}
	var keys []public
	for _, der := range blocks {
		parsed, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			return nil, fmt.Errorf("%w: the public key is no SPKI: %w", ErrKey, err)
		}
		key, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("%w: the public key is %s, and an Ed25519 key is wanted", ErrKey, kindOf(parsed))
		}
		one, err := newPublic(key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, one)
	}
	return keys, nil
}

// blocks are the contents of the PEM blocks of a text, which must all be of one type and have
// only white space around them.
func blocks(text []byte, want string) ([][]byte, error) {
	if len(text) > maxKeyFile {
		return nil, fmt.Errorf("%w: the text has %d bytes, and a key has at most %d", ErrKey, len(text), maxKeyFile)
	}
	var found [][]byte
	for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		if !bytes.HasPrefix(rest, []byte("-----BEGIN ")) {
			return nil, fmt.Errorf("%w: there is text outside the PEM block; a block of type %q and nothing else is wanted", ErrKey, want)
		}
		block, after := pem.Decode(rest)
		if block == nil {
			return nil, fmt.Errorf("%w: the PEM cannot be read; a block of type %q is wanted", ErrKey, want)
		}
		if skipped := bytes.Count(rest[:len(rest)-len(after)], []byte("-----BEGIN ")); skipped > 1 {
			return nil, fmt.Errorf("%w: a PEM block before the last one cannot be read; a block of type %q is wanted", ErrKey, want)
		}
		if block.Type != want {
			return nil, wrongBlock(block.Type, want)
		}
		if len(block.Headers) > 0 {
			return nil, fmt.Errorf("%w: the PEM block has headers (an encrypted key?); one without is wanted", ErrKey)
		}
		found, rest = append(found, block.Bytes), after
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: there is no PEM block; one of type %q is wanted", ErrKey, want)
	}
	return found, nil
}

func wrongBlock(got, want string) error {
	switch {
	case want == privateBlock && got == publicBlock:
		return fmt.Errorf("%w: this is a public key, and the private one is wanted: the public half cannot sign", ErrKey)
	case want == publicBlock && strings.HasSuffix(got, privateBlock):
		return fmt.Errorf("%w: this is a private key, and the public one is wanted (`readback key show` prints it); only the signer may have a private key", ErrKey)
	case got == "ENCRYPTED PRIVATE KEY":
		return fmt.Errorf("%w: the private key is encrypted; one that is not is wanted, in a file that only its signer reads", ErrKey)
	case strings.HasSuffix(got, privateBlock):
		return fmt.Errorf("%w: the PEM block is of type %s, and PKCS #8 (%q) with an Ed25519 key is wanted", ErrKey, clip(got), want)
	}
	return fmt.Errorf("%w: the PEM block is of type %s, and %q is wanted", ErrKey, clip(got), want)
}

// kindOf names the kind of a key other than Ed25519, for display.
func kindOf(key any) string {
	name := fmt.Sprintf("%T", key)
	for _, kind := range []string{"rsa", "ecdsa", "ecdh"} {
		if strings.Contains(name, kind) {
			return "an " + strings.ToUpper(kind) + " key"
		}
	}
	return "a key of another kind (" + name + ")"
}
