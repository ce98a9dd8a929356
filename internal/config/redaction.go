package config

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/redact"
)

// Redaction configures the keys that seal sensitive values, and which values are
// sensitive in any field. The zero value: none are.
type Redaction struct {
	// Keys are the redaction keys: the first seals, all open what was sealed with them.
	Keys []RedactionKey
	// Patterns are sensitive in any field. Default none.
	Patterns []RedactionPattern
	// Line is its line in the file, 0 if it is not set.
	Line int
}

// RedactionKey is the source of a key.
type RedactionKey struct {
	// ID is stored with what it seals. Letters, digits, - and _; at most 32.
	ID string
	// Key is its source: 32 random bytes, in base64 or hex.
	Key Secret
	// Line is its line in the file.
	Line int
}

// RedactionPattern is a pattern of sensitive values.
type RedactionPattern struct {
	// Name is for display.
	Name string
	// Regexp matches sensitive values, in the syntax of package regexp.
	Regexp *regexp.Regexp
}

type redactionSettings struct {
	Keys []struct {
		At  yamlfile.Place
		ID  yamlfile.Text `yaml:"id"`
		Key keySettings   `yaml:",inline"`
	} `yaml:"keys"`
	Patterns []struct {
		At     yamlfile.Place
		Name   yamlfile.Text `yaml:"name"`
		Regexp yamlfile.Text `yaml:"regexp"`
	} `yaml:"patterns"`
}

var (
	keyID       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	patternName = regexp.MustCompile(`^[ -~]{1,64}$`)
)

// makeKey is how to make a key.
const makeKey = "want 32 random bytes, as `openssl rand -base64 32` prints them"

func (r *reader) redaction(e yamlfile.Entry) Redaction {
	var s redactionSettings
	o := Redaction{Line: e.Line}
	if !r.Fill(e.Value, e.Name, &s) {
		return o
	}
	seen := map[string]int{}
	for _, k := range s.Keys {
		id := k.ID.Value
		key := k.Key.secret(r)
		switch before, twice := seen[id]; {
		case id == "":
			r.At(k.At, "has no id; want a name that stays, such as 2026-11: sealed values contain it, and it names the key that opens them")
		case !keyID.MatchString(id):
			r.At(k.ID.Place, "is no id; want 1 to 32 letters, digits, - and _")
		case twice:
			r.At(k.ID.Place, "is that of the key in line %d too; want another one: sealed values name their key by it", before)
		case !key.Given():
			r.At(k.At, "has none of key_env, key_file and key_command; want one of them")
		}
		seen[id] = k.At.Line
		o.Keys = append(o.Keys, RedactionKey{ID: id, Key: key, Line: k.At.Line})
	}
	names := map[string]int{}
	for _, p := range s.Patterns {
		name := p.Name.Value
		switch before, twice := names[name]; {
		case name == "":
			r.At(p.At, "has no name; want one for people, such as e-mail")
		case !patternName.MatchString(name):
			r.At(p.Name.Place, "is no name; want 1 to 64 printable ASCII characters")
		case twice:
			r.At(p.Name.Place, "is that of the pattern in line %d too; want another one", before)
		}
		names[name] = p.At.Line
		if x := r.pattern(p.At, p.Regexp); x != nil {
			o.Patterns = append(o.Patterns, RedactionPattern{Name: name, Regexp: x})
		}
	}
	if len(o.Patterns) > maxPatterns {
		r.Say(e.Line, "redaction.patterns", "has %d of them; want at most %d: each is searched in all text that is kept and shown", len(o.Patterns), maxPatterns)
	}
	return o
}

// pattern reads one regular expression, nil for an invalid one. Problems may repeat it:
// it reveals only what is searched for.
func (r *reader) pattern(at yamlfile.Place, text yamlfile.Text) *regexp.Regexp {
	if text.Value == "" {
		r.At(at, `has no regexp; want what is sensitive, such as '\b\d{16}\b'`)
		return nil
	}
	if len(text.Value) > maxPattern {
		r.At(text.Place, "has %d bytes; want at most %d", len(text.Value), maxPattern)
		return nil
	}
	x, err := regexp.Compile(text.Value)
	switch {
	case err != nil:
		r.At(text.Place, "is no regular expression: %s; want the syntax of Go's package regexp, without lookaround and back references", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		return nil
	case x.MatchString(""):
		r.At(text.Place, "fits a text that is empty, and so every text; want at least one character that it needs")
		return nil
	}
	return x
}

// checkRedaction checks settings that depend on the rest of the configuration: what
// cannot be sealed must not pass for sealed.
func (r *reader) checkRedaction(c Config) {
	sealing := len(c.Redaction.Keys) > 0
	if len(c.Redaction.Patterns) > 0 && !sealing {
		r.Say(c.Redaction.Line, "redaction.patterns", "is set without redaction.keys, and nothing can be sealed without a key; want at least one, with an id, and key_env, key_file or key_command")
	}
	for _, d := range c.Destinations {
		if d.settings == nil {
			continue
		}
		for i, path := range d.settings.promises().Sensitive {
			if !fieldPath(path.Value) {
				r.At(path.Place, `is %q; want the path of a field, a JSON Pointer such as /card/number`, yamlfile.Clip(path.Value))
			}
			if i == 0 && !sealing {
				r.At(path.Place, "marks fields as sensitive, and there is no key to seal them with; want redaction.keys, with an id, and key_env, key_file or key_command")
			}
		}
	}
}

// fieldPath reports whether a text is the path of a field.
func fieldPath(text string) bool {
	p := intent.Pointer(text)
	if !p.IsValid() || !strings.HasPrefix(text, "/") || len(text) > intent.MaxPointer {
		return false
	}
	for token := range p.Tokens() {
		if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return false
		}
	}
	return true
}

// keyBytes decodes a key: in base64, with or without its padding, or in hex.
func keyBytes(text string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if hexed, err := hex.DecodeString(text); err == nil && len(hexed) == redactionKeyBytes {
		return hexed, nil
	}
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	switch {
	case err != nil: // and not repeated: it is the secret
		return nil, errors.New("the key is no base64; " + makeKey)
	case len(key) != redactionKeyBytes:
		return nil, fmt.Errorf("the key has %d bytes; %s", len(key), makeKey)
	case !slices.ContainsFunc(key, func(b byte) bool { return b != key[0] }):
		return nil, errors.New("the key is one byte again and again; " + makeKey)
	}
	return key, nil
}

// keys fetches the keys, in the order of the file, and returns what is wrong with them.
func (o Redaction) keys(from origin) (keys [][]byte, problems []Problem) {
	for i, k := range o.Keys {
		key, err := k.fetch(from)
		if err != nil {
			problems = append(problems, Problem{Line: k.Line, Field: fmt.Sprintf("redaction.keys[%d]", i), Problem: err.Error()})
		}
		keys = append(keys, key)
	}
	return keys, problems
}

func (k RedactionKey) fetch(from origin) ([]byte, error) {
	text, err := k.Key.as("key").once(from)
	if err != nil {
		return nil, err
	}
	return keyBytes(text)
}

// Vault seals sensitive values, nil where no keys are configured. It fails with
// [InvalidError].
func (c Config) Vault(env func(string) string) (*redact.Vault, error) {
	if len(c.Redaction.Keys) == 0 {
		return nil, nil
	}
	secrets, problems := c.Redaction.keys(c.origin(env))
	if len(problems) > 0 {
		return nil, invalid(c.Path, problems)
	}
	var keys []redact.Key
	for i, k := range c.Redaction.Keys {
		keys = append(keys, redact.Key{ID: k.ID, Secret: secrets[i]})
	}
	var o redact.Options
	for _, p := range c.Redaction.Patterns {
		o.Patterns = append(o.Patterns, redact.Pattern{Name: p.Name, Regexp: p.Regexp})
	}
	v, err := redact.New(keys, o)
	if err != nil {
		return nil, invalid(c.Path, []Problem{{Line: c.Redaction.Line, Field: "redaction", Problem: err.Error()}})
	}
	return v, nil
}
