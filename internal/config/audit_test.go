package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
)

func TestAudit(t *testing.T) {
	private, public := newKey(t)
	for name, c := range map[string]struct {
		reason, text string
		want         []string // problems
		keepers      []string
	}{
		"nothing":       {"commented out", "", nil, nil},
		"on":            {"a chain without heads", "  seal: 2s\n", nil, nil},
		"heads":         {"all that there is", "  heads:\n    every: 5m\n    key_file: k\n    keep:\n      - {file: heads.jsonl}\n      - {http: 'https://notary.test/x', bearer_env: TOKEN}\n      - objects: {endpoint: 's3.test', bucket: b, access_key_env: TOKEN, secret_key_env: TOKEN}\n", nil, []string{"file heads.jsonl", "http notary.test", "objects b"}},
		"from variable": {"", "  heads: {key_env: K}\n", nil, nil},
		"unknown":       {"a misspelt word must not be overlooked", "  heds: {}\n", []string{":3: audit.heds: is not known; did you mean heads?"}, nil},
		"no key":        {"nothing would be kept", "  heads:\n    keep: [{file: x}]\n", []string{":2: audit.heads: says where heads are kept, and has none of key_env, key_file and key_command; want the private key that signs them (`readback key new` makes one)"}, nil},
		"two keys":      {"which one?", "  heads:\n    key_env: A\n    key_file: k\n", []string{":5: audit.heads.key_file: is given beside audit.heads.key_env; want one of them"}, nil},
		"not there":     {"nothing could be signed", "  heads: {key_file: none}\n", []string{":2: audit.heads: key_file: open none: no such file or directory"}, nil},
		"public":        {"it cannot sign", "  heads: {key_file: k.pub}\n", []string{":2: audit.heads: wrong key: this is a public key, and the private one is wanted: the public half cannot sign"}, nil},
		"no Ed25519":    {"another file", "  heads: {key_file: word}\n", []string{`:2: audit.heads: wrong key: there is text outside the PEM block; a block of type "PRIVATE KEY" and nothing else is wanted`}, nil},
		"nowhere":       {"a place that is none", "  heads:\n    key_file: k\n    keep: [{}]\n", []string{":5: audit.heads.keep[0]: names 0 places; want exactly one of file, http and objects"}, nil},
		"two places":    {"which one?", "  heads:\n    key_file: k\n    keep: [{file: a, http: 'https://x/y'}]\n", []string{":5: audit.heads.keep[0]: names 2 places; want exactly one of file, http and objects"}, nil},
		"no URL":        {"there is no address", "  heads:\n    key_file: k\n    keep: [{http: notary}]\n", []string{":5: audit.heads.keep[0].http: is not the address of a place for heads; want https://host/path"}, nil},
		"a token":       {"it is never written here, nor repeated", "  heads:\n    key_file: k\n    keep: [{http: 'https://x/y', bearer_env: 'hunter 2'}]\n", []string{":5: audit.heads.keep[0].bearer_env: is not the name of an environment variable; want one such as HEADS_TOKEN, which holds the secret"}, nil},
		"a password":    {"nor is the address repeated, which holds it", "  heads:\n    key_file: k\n    keep: [{http: 'https://a:hunter2@x/y'}]\n", []string{":5: audit.heads.keep[0].http: holds a password, which does not belong there; want a token in bearer_env"}, nil},
		"a key itself":  {"people write it where its place should be", "  heads:\n    key_file: k\n    keep: [{objects: {endpoint: x, bucket: b, access_key_env: ID, secret_key_env: wJalr/hunter2}}]\n", []string{":5: audit.heads.keep[0].objects.secret_key_env: is not the name of an environment variable; want one such as HEADS_SECRET_KEY, which holds the secret"}, nil},
		"in the clear":  {"the network could read the token", "  heads:\n    key_file: k\n    keep: [{http: 'http://notary/y', bearer_env: TOKEN}]\n", []string{":5: audit.heads.keep[0].http: can be read on the way to another machine, and the token with it; want https"}, nil},
		"no token":      {"it would be asked without", "  heads:\n    key_file: k\n    keep: [{http: 'https://x/y', bearer_env: NONE}]\n", []string{":5: audit.heads.keep[0]: bearer_env: the environment variable NONE is not set, or empty"}, nil},
		"half the keys": {"it would be asked without any", "  heads:\n    key_file: k\n    keep: [{objects: {endpoint: x, bucket: b, access_key_env: TOKEN}}]\n", []string{":5: audit.heads.keep[0]: objects: want an access key and a secret key, or neither"}, nil},
		"no bucket":     {"nowhere to put it", "  heads:\n    key_file: k\n    keep: [{objects: {endpoint: x}}]\n", []string{":5: audit.heads.keep[0]: names an object store without endpoint or bucket; want both, such as s3.eu-central-1.amazonaws.com and heads"}, nil},
		"read-only":     {"a file that cannot be written keeps nothing", "  heads:\n    key_file: k\n    keep: [{file: gone/heads.jsonl}]\n", []string{":5: audit.heads.keep[0]: audit: heads cannot be kept: open gone/heads.jsonl: no such file or directory"}, nil},
		"zero":          {"as if all the time", "  seal: 0s\n", []string{":3: audit.seal: is 0; want a duration such as 10s"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "ledger: a.db\naudit:\n"+c.text)
			keep(t, path, "k", private)
			keep(t, path, "k.pub", public)
			keep(t, path, "word", "secret\n")
			env := func(name string) string { return map[string]string{"K": private, "TOKEN": "x"}[name] }
			cfg, err := config.Load(path)
			var keepers []string
			if err == nil {
				o, failed := cfg.Sealing(env)
				for name := range o.HeadStores {
					keepers = append(keepers, name)
				}
				if err = failed; name == "heads" && (o.Heads != 5*time.Minute || o.Signer == nil) || name == "on" && o.Every != 2*time.Second {
					t.Errorf("options %+v", o)
				}
			}
			var got []string
			if invalid, is := errors.AsType[*config.InvalidError](err); is {
				for _, p := range invalid.Problems {
					got = append(got, strings.ReplaceAll(p.String(), filepath.Dir(path)+string(os.PathSeparator), ""))
				}
			} else if err != nil {
				t.Fatal(err)
			}
			slices.Sort(keepers)
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], filepath.Base(path))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("problems (-want +got); reason: %s\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.keepers, keepers); diff != "" && c.want == nil {
				t.Errorf("keepers (-want +got):\n%s", diff)
			}
			if cfg.Audit.On() != (c.text != "") && c.want == nil {
				t.Errorf("on: %v", cfg.Audit.On())
			}
		})
	}
}
