package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/audit/objects"
	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/signing"
)

// Audit says whether the events of the ledger are chained, and who signs and keeps
// the heads. The zero value: they are not.
type Audit struct {
	// Seal is how often what is new is sealed, Every how often a head is signed; 0
	// for the defaults of package audit.
	Seal, Every time.Duration
	// KeyEnv or KeyFile is where the private key is that signs heads: Ed25519, PKCS
	// #8 in PEM. Default none: no heads.
	KeyEnv, KeyFile string
	// Line is where it stands in the file, 0 when it does not: then nothing is
	// sealed.
	Line int
}

// On says that the events are to be chained.
func (a Audit) On() bool { return a.Line != 0 }

type auditSettings struct {
	Seal  yamlfile.Span `yaml:"seal"`
	Heads headSettings  `yaml:"heads"`
}

type headSettings struct {
	Every   yamlfile.Span  `yaml:"every"`
	KeyEnv  yamlfile.Text  `yaml:"key_env"`
	KeyFile yamlfile.Text  `yaml:"key_file"`
	Keep    []keepSettings `yaml:"keep"`
}

// keepSettings is one place for heads.
type keepSettings struct {
	At      yamlfile.Place
	File    yamlfile.Text   `yaml:"file"`
	HTTP    yamlfile.Text   `yaml:"http"`
	Bearer  yamlfile.Text   `yaml:"bearer_env"`
	Objects *objectSettings `yaml:"objects"`
}

type objectSettings struct {
	Endpoint  yamlfile.Text `yaml:"endpoint"`
	Bucket    yamlfile.Text `yaml:"bucket"`
	Prefix    string        `yaml:"prefix"`
	Region    string        `yaml:"region"`
	AccessEnv yamlfile.Text `yaml:"access_key_env"`
	SecretEnv yamlfile.Text `yaml:"secret_key_env"`
	Insecure  bool          `yaml:"plaintext"`
}

func (r *reader) audit(e yamlfile.Entry) (Audit, []keepSettings) {
	var s auditSettings
	a := Audit{Line: max(e.Line, 1)}
	if e.Value.IsNull() {
		return Audit{}, nil // the word alone, with everything below it commented out
	}
	if !r.Fill(e.Value, e.Name, &s) {
		return a, nil
	}
	h := s.Heads
	r.oneOf(h.KeyEnv, h.KeyFile)
	if len(h.Keep) > 0 && h.KeyEnv.Value == "" && h.KeyFile.Value == "" {
		r.Say(e.Line, e.Name+".heads", "says where heads are kept, and has neither key_env nor key_file; want the private key that signs them (`readback key new` makes one)")
	}
	for _, k := range h.Keep {
		r.checkKeep(k)
	}
	a.Seal, a.Every = time.Duration(s.Seal), time.Duration(h.Every)
	a.KeyEnv, a.KeyFile = h.KeyEnv.Value, h.KeyFile.Value
	return a, h.Keep
}

func (r *reader) checkKeep(k keepSettings) {
	ways := 0
	for _, given := range []bool{k.File.Value != "", k.HTTP.Value != "", k.Objects != nil} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		r.At(k.At, "names %d places; want exactly one of file, http and objects", ways)
		return
	}
	if k.HTTP.Value != "" {
		r.checkPost(k)
	} else if k.Bearer.Value != "" {
		r.At(k.Bearer.Place, "is for http alone")
	}
	if k.Objects != nil {
		r.checkObjects(k.At, *k.Objects)
	}
}

// checkPost says what is wrong with a place that heads are posted to. Its address
// is not repeated.
func (r *reader) checkPost(k keepSettings) {
	switch u, err := url.Parse(k.HTTP.Value); {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		r.At(k.HTTP.Place, "is not the address of a place for heads; want https://host/path")
	case u.User != nil:
		r.At(k.HTTP.Place, "holds a password, which does not belong there; want a token in bearer_env")
	case k.Bearer.Value != "" && !variableName.MatchString(k.Bearer.Value):
		r.At(k.Bearer.Place, "is not the name of an environment variable; want one such as HEADS_TOKEN, which holds the secret")
	case k.Bearer.Value != "" && readable(k.HTTP.Value):
		r.At(k.HTTP.Place, "can be read on the way to another machine, and the token of bearer_env with it; want https")
	}
}

func (r *reader) checkObjects(at yamlfile.Place, o objectSettings) {
	if o.Endpoint.Value == "" || o.Bucket.Value == "" {
		r.At(at, "names an object store without endpoint or bucket; want both, such as s3.eu-central-1.amazonaws.com and heads")
	}
	for _, name := range []yamlfile.Text{o.AccessEnv, o.SecretEnv} {
		if name.Value != "" && !variableName.MatchString(name.Value) { // and not repeated: people write the secret itself here
			r.At(name.Place, "is not the name of an environment variable; want one such as HEADS_SECRET_KEY, which holds the secret")
		}
	}
}

// HeadSigner is who signs heads, nil where nobody does. It fails with
// [InvalidError]. Unlike [Config.Sealing] it opens no place for them.
func (c Config) HeadSigner(env func(string) string) (s *signing.Signer, err error) {
	a := c.Audit
	text, err := secretFrom(source{asVariable: "key_env", asFile: "key_file", variable: a.KeyEnv, file: a.KeyFile}, filepath.Dir(c.Path), env)
	if err == nil && text != "" {
		s, err = signing.ReadSigner([]byte(text))
	}
	if err != nil {
		return nil, invalid(c.Path, []Problem{{Line: a.Line, Field: "audit.heads", Problem: err.Error()}})
	}
	return s, nil
}

// HeadFiles are the files in which heads are kept: of all places the ones that can
// be read here.
func (c Config) HeadFiles() (paths []string) {
	for _, k := range c.keepers {
		if k.File.Value != "" {
			paths = append(paths, beside(filepath.Dir(c.Path), k.File.Value))
		}
	}
	return paths
}

// Sealing is how the events of the ledger are chained, with the keepers of heads
// opened. It fails with [InvalidError].
func (c Config) Sealing(env func(string) string) (audit.Options, error) {
	a, dir := c.Audit, filepath.Dir(c.Path)
	o := audit.Options{Every: a.Seal, Heads: a.Every, Keepers: make(map[string]audit.Keeper)}
	var problems []Problem
	var err error
	o.Signer, err = c.HeadSigner(env)
	if of, bad := errors.AsType[*InvalidError](err); bad {
		problems = of.Problems
	}
	for i, k := range c.keepers {
		name, keeper, err := k.open(dir, env)
		if err != nil {
			problems = append(problems, Problem{Line: k.At.Line, Field: k.At.Field, Problem: err.Error()})
			continue
		}
		if _, twice := o.Keepers[name]; twice {
			name = fmt.Sprintf("%s (%d)", name, i+1)
		}
		o.Keepers[name] = keeper
	}
	return o, invalid(c.Path, problems)
}

// open is the keeper, and what it is called in logs and counts.
func (k keepSettings) open(dir string, env func(string) string) (name string, keeper audit.Keeper, err error) {
	switch {
	case k.File.Value != "":
		keeper, err = audit.NewFile(beside(dir, k.File.Value))
		return "file " + filepath.Base(k.File.Value), keeper, err
	case k.HTTP.Value != "":
		header := http.Header{}
		if k.Bearer.Value != "" {
			token := env(k.Bearer.Value)
			if token == "" {
				return "", nil, fmt.Errorf("bearer_env: the environment variable %s is not set, or empty", yamlfile.Clip(k.Bearer.Value))
			}
			known.add(token)
			header.Set("Authorization", "Bearer "+token)
		}
		host := ""
		if u, err := url.Parse(k.HTTP.Value); err == nil {
			host = u.Host
		}
		keeper, err = audit.NewHTTP(k.HTTP.Value, header)
		return "http " + host, keeper, err
	}
	o := k.Objects
	keys := [2]string{}
	for i, variable := range []string{o.AccessEnv.Value, o.SecretEnv.Value} {
		if keys[i] = env(cmp.Or(variable, "-")); variable != "" && keys[i] == "" {
			return "", nil, fmt.Errorf("the environment variable %s is not set, or empty", yamlfile.Clip(variable))
		}
		known.add(keys[i])
	}
	keeper, err = objects.New(objects.Options{Endpoint: o.Endpoint.Value, Bucket: o.Bucket.Value, Prefix: o.Prefix, Region: o.Region,
		AccessKey: keys[0], SecretKey: keys[1], Insecure: o.Insecure})
	return "objects " + o.Bucket.Value, keeper, err
}
