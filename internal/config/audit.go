package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/readback-go/readback/audit"
	"github.com/readback-go/readback/internal/objects"
	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/signing"
)

// Audit configures whether the events of the ledger are chained, and which keys and
// places sign and keep the heads. The zero value: they are not.
type Audit struct {
	// Seal is how often new events are sealed, Every how often a head is signed; 0 for
	// the defaults of package audit.
	Seal, Every time.Duration
	// Key is the source of the private key that signs heads: Ed25519, PKCS #8 in PEM.
	// Default none: no heads.
	Key Secret
	// Line is its line in the file, 0 if it is not set: then nothing is sealed.
	Line int
}

// On reports whether the events are to be chained.
func (a Audit) On() bool { return a.Line != 0 }

type auditSettings struct {
	Seal  yamlfile.Span `yaml:"seal"`
	Heads headSettings  `yaml:"heads"`
}

type headSettings struct {
	Every yamlfile.Span  `yaml:"every"`
	Key   keySettings    `yaml:",inline"`
	Keep  []keepSettings `yaml:"keep"`
}

// keepSettings is one place for heads.
type keepSettings struct {
	At         yamlfile.Place
	File       yamlfile.Text   `yaml:"file"`
	HTTP       yamlfile.Text   `yaml:"http"`
	Bearer     yamlfile.Text   `yaml:"bearer_env"`
	BearerFile yamlfile.Text   `yaml:"bearer_file"`
	BearerArgv argv            `yaml:"bearer_command"`
	Objects    *objectSettings `yaml:"objects"`
}

type objectSettings struct {
	Endpoint   yamlfile.Text `yaml:"endpoint"`
	Bucket     yamlfile.Text `yaml:"bucket"`
	Prefix     string        `yaml:"prefix"`
	Region     string        `yaml:"region"`
	AccessEnv  yamlfile.Text `yaml:"access_key_env"`
	AccessFile yamlfile.Text `yaml:"access_key_file"`
	AccessArgv argv          `yaml:"access_key_command"`
	SecretEnv  yamlfile.Text `yaml:"secret_key_env"`
	SecretFile yamlfile.Text `yaml:"secret_key_file"`
	SecretArgv argv          `yaml:"secret_key_command"`
	Insecure   bool          `yaml:"plaintext"`
}

func (r *reader) audit(e yamlfile.Entry) (Audit, []keepSettings) {
	var s auditSettings
	a := Audit{Line: max(e.Line, 1)}
	if e.Value.IsNull() {
		return Audit{}, nil // an empty section, with everything below it commented out
	}
	if !r.Fill(e.Value, e.Name, &s) {
		return a, nil
	}
	h := s.Heads
	a.Key = h.Key.secret(r)
	if len(h.Keep) > 0 && !a.Key.Given() {
		r.Say(e.Line, e.Name+".heads", "says where heads are kept, and has none of key_env, key_file and key_command; want the private key that signs them (`readback key new` makes one)")
	}
	for _, k := range h.Keep {
		r.checkKeep(k)
	}
	a.Seal, a.Every = time.Duration(s.Seal), time.Duration(h.Every)
	return a, h.Keep
}

// bearer is the source of the token that is sent with each head.
func (k keepSettings) bearer() source {
	return Secret{k.Bearer.Value, k.BearerFile.Value, k.BearerArgv}.as("bearer")
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
	} else if k.bearer().Given() {
		r.At(cmp.Or(k.Bearer.Place, k.BearerFile.Place, k.At), "is for http alone")
	}
	if k.Objects != nil {
		r.checkObjects(k.At, *k.Objects)
	}
}

// checkPost checks a place that heads are posted to. Problems do not repeat its address.
func (r *reader) checkPost(k keepSettings) {
	switch u, err := url.Parse(k.HTTP.Value); {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		r.At(k.HTTP.Place, "is not the address of a place for heads; want https://host/path")
	case u.User != nil:
		r.At(k.HTTP.Place, "holds a password, which does not belong there; want a token in bearer_env")
	case k.Bearer.Value != "" && !variableName.MatchString(k.Bearer.Value):
		r.At(k.Bearer.Place, "is not the name of an environment variable; want one such as HEADS_TOKEN, which holds the secret")
	case k.bearer().Given() && readable(k.HTTP.Value):
		r.At(k.HTTP.Place, "can be read on the way to another machine, and the token with it; want https")
	}
}

func (r *reader) checkObjects(at yamlfile.Place, o objectSettings) {
	if o.Endpoint.Value == "" || o.Bucket.Value == "" {
		r.At(at, "names an object store without endpoint or bucket; want both, such as s3.eu-central-1.amazonaws.com and heads")
	}
	for _, name := range []yamlfile.Text{o.AccessEnv, o.SecretEnv} {
		if name.Value != "" && !variableName.MatchString(name.Value) { // and not repeated: users write the secret itself here
			r.At(name.Place, "is not the name of an environment variable; want one such as HEADS_SECRET_KEY, which holds the secret")
		}
	}
}

// HeadSigner signs heads, nil if none is configured. It fails with [InvalidError]. Unlike
// [Config.Sealing] it opens no place for them.
func (c Config) HeadSigner(env func(string) string) (s *signing.Signer, err error) {
	a := c.Audit
	text, err := a.Key.as("key").once(c.origin(env))
	if err == nil && text != "" {
		s, err = signing.ReadSigner([]byte(text))
	}
	if err != nil {
		return nil, invalid(c.Path, []Problem{{Line: a.Line, Field: "audit.heads", Problem: err.Error()}})
	}
	return s, nil
}

// HeadFiles are the files in which heads are kept: the places that can be read here.
func (c Config) HeadFiles() (paths []string) {
	for _, k := range c.keepers {
		if k.File.Value != "" {
			paths = append(paths, beside(filepath.Dir(c.Path), k.File.Value))
		}
	}
	return paths
}

// Sealing is the configuration of chaining the ledger's events, with the keepers of heads
// opened. It fails with [InvalidError].
func (c Config) Sealing(env func(string) string) (audit.Options, error) {
	a := c.Audit
	o := audit.Options{Every: a.Seal, Heads: a.Every, HeadStores: make(map[string]audit.HeadStore)}
	var problems []Problem
	var err error
	o.Signer, err = c.HeadSigner(env)
	if of, bad := errors.AsType[*InvalidError](err); bad {
		problems = of.Problems
	}
	for i, k := range c.keepers {
		name, store, err := k.open(c.origin(env))
		if err != nil {
			problems = append(problems, Problem{Line: k.At.Line, Field: k.At.Field, Problem: err.Error()})
			continue
		}
		if _, twice := o.HeadStores[name]; twice {
			name = fmt.Sprintf("%s (%d)", name, i+1)
		}
		o.HeadStores[name] = store
	}
	return o, invalid(c.Path, problems)
}

// open opens the store for heads, and names it for logs and counts.
func (k keepSettings) open(from origin) (name string, store audit.HeadStore, err error) {
	switch {
	case k.File.Value != "":
		store, err = audit.NewFile(beside(from.dir, k.File.Value))
		return "file " + filepath.Base(k.File.Value), store, err
	case k.HTTP.Value != "":
		token, err := k.bearer().openIfGiven(from)
		if err != nil {
			return "", nil, err
		}
		header := func(ctx context.Context) (http.Header, error) {
			h := http.Header{}
			if token != nil {
				secret, err := token(ctx)
				if err != nil {
					return nil, err
				}
				h.Set("Authorization", "Bearer "+secret)
			}
			return h, nil
		}
		host := ""
		if u, err := url.Parse(k.HTTP.Value); err == nil {
			host = u.Host
		}
		store, err = audit.NewHTTP(k.HTTP.Value, header)
		return "http " + host, refetched{store, from.refused()}, err
	}
	o := k.Objects
	into := objects.Options{Endpoint: o.Endpoint.Value, Bucket: o.Bucket.Value, Prefix: o.Prefix, Region: o.Region, Insecure: o.Insecure}
	access, err := Secret{o.AccessEnv.Value, o.AccessFile.Value, o.AccessArgv}.as("access_key").openIfGiven(from)
	if err != nil {
		return "", nil, err
	}
	secret, err := Secret{o.SecretEnv.Value, o.SecretFile.Value, o.SecretArgv}.as("secret_key").openIfGiven(from)
	switch {
	case err != nil:
		return "", nil, err
	case (access == nil) != (secret == nil):
		return "", nil, errors.New("objects: want an access key and a secret key, or neither")
	case access != nil:
		into.Keys = func(ctx context.Context) (a, s string, err error) {
			if a, err = access(ctx); err == nil {
				s, err = secret(ctx)
			}
			return a, s, err
		}
	}
	store, err = objects.New(into)
	return "objects " + o.Bucket.Value, refetched{store, from.refused()}, err
}

// refetched is a store whose credentials are fetched again after a failure: only some of the
// stores report that the login failed.
type refetched struct {
	audit.HeadStore
	refused func()
}

// Keep implements [audit.HeadStore].
func (r refetched) Keep(ctx context.Context, head signing.Envelope) error {
	err := r.HeadStore.Keep(ctx, head)
	if err != nil && r.refused != nil {
		r.refused()
	}
	return err
}
