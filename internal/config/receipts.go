package config

import (
	"path/filepath"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/signing"
)

// Receipts configures the keys that sign receipts, and those that are trusted. The zero
// value: none are issued here.
type Receipts struct {
	// Key is the source of the private key: Ed25519, PKCS #8 in PEM.
	Key Secret
	// Trusted are files with public keys, SPKI in PEM: earlier keys, or those of other
	// servers. Default only the one that signs.
	Trusted []yamlfile.Text
	// Line is its line in the file, 0 if it is not set.
	Line int
}

type receiptSettings struct {
	Key     keySettings     `yaml:",inline"`
	Trusted []yamlfile.Text `yaml:"trusted"`
}

func (r *reader) receipts(e yamlfile.Entry) Receipts {
	var s receiptSettings
	o := Receipts{Line: e.Line}
	if e.Value.IsNull() || !r.Fill(e.Value, e.Name, &s) {
		return o
	}
	o.Key, o.Trusted = s.Key.secret(r), s.Trusted
	if !o.Key.Given() && len(s.Trusted) == 0 {
		r.Say(e.Line, e.Name, "has none of key_env, key_file and key_command, nor trusted; want the private key that signs (`readback key new` makes one), or the section left out")
	}
	for _, path := range s.Trusted {
		if path.Value == "" {
			r.At(path.Place, "is empty; want the file of a public key")
		}
	}
	return o
}

// Signing is the signer of receipts, and the trusted keys.
type Signing struct {
	// Signer is nil where none are issued.
	Signer *signing.Signer
	// Trusted are the signing key, and those that the file names, in its order.
	Trusted signing.Keys
}

// Signing reads the keys of receipts. It fails with [InvalidError].
func (c Config) Signing(env func(string) string) (Signing, error) {
	o, dir := c.Receipts, filepath.Dir(c.Path)
	var (
		s        Signing
		problems []Problem
		pems     [][]byte
	)
	text, err := o.Key.as("key").once(c.origin(env))
	if err == nil && text != "" {
		s.Signer, err = signing.ReadSigner([]byte(text))
	}
	if err != nil {
		problems = append(problems, Problem{Line: o.Line, Field: "receipts", Problem: err.Error()})
	}
	if s.Signer != nil {
		pems = append(pems, s.Signer.Public())
	}
	for _, file := range o.Trusted {
		text, err := yamlfile.ReadBounded(beside(dir, file.Value), maxSecret)
		if err == nil {
			_, err = signing.ReadKeys(text)
		}
		if err != nil {
			problems = append(problems, Problem{Line: file.Line, Field: file.Field, Problem: err.Error()})
			continue
		}
		pems = append(pems, text)
	}
	if len(problems) == 0 {
		if s.Trusted, err = signing.ReadKeys(pems...); err != nil {
			problems = append(problems, Problem{Line: o.Line, Field: "receipts.trusted", Problem: err.Error()})
		}
	}
	return s, invalid(c.Path, problems)
}
