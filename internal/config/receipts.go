package config

import (
	"path/filepath"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/signing"
)

// Receipts says who signs receipts, and whose are trusted. The zero value: none
// are issued here.
type Receipts struct {
	// KeyEnv or KeyFile is where the private key is: Ed25519, PKCS #8 in PEM.
	KeyEnv, KeyFile string
	// Trusted are files with public keys, SPKI in PEM: those that signed before, or
	// elsewhere. Default none but the one that signs.
	Trusted []yamlfile.Text
	// Line is where it stands in the file, 0 when it does not.
	Line int
}

type receiptSettings struct {
	KeyEnv  yamlfile.Text   `yaml:"key_env"`
	KeyFile yamlfile.Text   `yaml:"key_file"`
	Trusted []yamlfile.Text `yaml:"trusted"`
}

func (r *reader) receipts(e yamlfile.Entry) Receipts {
	var s receiptSettings
	o := Receipts{Line: e.Line}
	if e.Value.IsNull() || !r.Fill(e.Value, e.Name, &s) {
		return o
	}
	r.oneOf(s.KeyEnv, s.KeyFile)
	if s.KeyEnv.Value == "" && s.KeyFile.Value == "" && len(s.Trusted) == 0 {
		r.Say(e.Line, e.Name, "has neither key_env nor key_file, nor trusted; want the private key that signs (`readback key new` makes one), or the section left out")
	}
	for _, path := range s.Trusted {
		if path.Value == "" {
			r.At(path.Place, "is empty; want the file of a public key")
		}
	}
	o.KeyEnv, o.KeyFile, o.Trusted = s.KeyEnv.Value, s.KeyFile.Value, s.Trusted
	return o
}

// Signing is what signs receipts, and whose are trusted.
type Signing struct {
	// Signer is nil where none are issued.
	Signer *signing.Signer
	// Trusted are the key that signs, and those that the file names, in its order.
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
	from := source{asVariable: "key_env", asFile: "key_file", variable: o.KeyEnv, file: o.KeyFile}
	text, err := secretFrom(from, dir, env)
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
