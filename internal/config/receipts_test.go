package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/signing"
)

func newKey(t *testing.T) (private, public string) {
	t.Helper()
	a, b, err := signing.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return string(a), string(b)
}

func keep(t *testing.T, beside, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(beside), name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBadReceipts(t *testing.T) {
	private, public := newKey(t)
	for name, c := range map[string]struct {
		reason, text string
		want         []string
	}{
		"good":              {"", "  key_file: k\n  trusted: [k.pub]\n", nil},
		"from the variable": {"", "  key_env: K\n", nil},
		"only trusted":      {"who issues none may hand out the keys of others", "  trusted: [k.pub]\n", nil},
		"nothing":           {"commented out", "", nil},
		"empty":             {"the section is empty", "  {}\n", []string{":2: receipts: has none of key_env, key_file and key_command, nor trusted; want the private key that signs (`readback key new` makes one), or the section left out"}},
		"both":              {"which one?", "  key_env: A\n  key_file: b\n", []string{":4: receipts.key_file: is given beside receipts.key_env; want one of them"}},
		"unknown":           {"a misspelt word must not be overlooked", "  key_fle: k\n", []string{":3: receipts.key_fle: is not known; did you mean key_file?"}},
		"not there":         {"nothing could be signed", "  key_file: none\n", []string{":2: receipts: key_file: open none: no such file or directory"}},
		"not set":           {"nothing could be signed", "  key_env: NONE\n", []string{":2: receipts: key_env: the environment variable NONE is not set, or empty"}},
		"the key itself":    {"it is never written here, nor repeated", "  key_env: '-----BEGIN PRIVATE KEY----- hunter2'\n", []string{":2: receipts: key_env: is not the name of an environment variable; want one such as MAIL_PASSWORD, which holds the secret"}},
		"the public half":   {"it cannot sign", "  key_file: k.pub\n", []string{":2: receipts: wrong key: this is a public key, and the private one is wanted: the public half cannot sign"}},
		"no key":            {"another file", "  key_file: word\n", []string{`:2: receipts: wrong key: there is text outside the PEM block; a block of type "PRIVATE KEY" and nothing else is wanted`}},
		"trusted: private":  {"it would be handed out", "  key_file: k\n  trusted: [k]\n", []string{":4: receipts.trusted[0]: public key 1 of 1: wrong key: this is a private key, and the public one is wanted (`readback key show` prints it); only the signer may have a private key"}},
		"trusted: missing":  {"receipts of it would not pass", "  key_file: k\n  trusted: [k.pub, gone]\n", []string{":4: receipts.trusted[1]: open gone: no such file or directory"}},
		"trusted: empty":    {"no file has that name", "  key_file: k\n  trusted: ['']\n", []string{":4: receipts.trusted[0]: is empty; want text"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "ledger: a.db\nreceipts:\n"+c.text)
			keep(t, path, "k", private)
			keep(t, path, "k.pub", public)
			keep(t, path, "word", "secret\n")
			cfg, err := config.Load(path)
			if err == nil {
				_, err = cfg.Signing(environment("K", private))
			}
			var got []string
			if invalid := (&config.InvalidError{}); errors.As(err, &invalid) {
				for _, p := range invalid.Problems {
					got = append(got, strings.ReplaceAll(p.String(), filepath.Dir(path)+string(filepath.Separator), ""))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", c.reason, diff, err)
			}
		})
	}
}

func TestSigning(t *testing.T) {
	private, public := newKey(t)
	_, former := newKey(t)
	path := write(t, "ledger: a.db\nreceipts: {key_file: k, trusted: [former]}\n")
	keep(t, path, "k", private)
	keep(t, path, "former", former)
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Signing(environment())
	if err != nil {
		t.Fatal(err)
	}
	all := s.Trusted.List()
	if len(all) != 2 || all[0].PEM != public || all[0].ID != s.Signer.ID() || all[1].PEM != former {
		t.Errorf("signs as %s, trusts %+v; want the one that signs first", s.Signer.ID(), all)
	}
	c, err = config.Load(write(t, "ledger: a.db\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := c.Signing(environment()); err != nil || s.Signer != nil || len(s.Trusted.List()) != 0 {
		t.Errorf("without the section: %+v, %v", s, err)
	}
}
