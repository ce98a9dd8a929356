package config

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/readback-go/readback/internal/yamlfile"
)

func beside(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// source is where a secret is: in an environment variable or in a file.
type source struct {
	// asVariable and asFile are the settings that name them.
	asVariable, asFile string
	variable, file     string
}

// open fetches the secret anew for each use, so that it can be changed under a
// running process. It is tried once here.
func (s source) open(dir string, env func(string) string) (func(context.Context) (string, error), error) {
	var fetch func() (string, error)
	switch {
	case (s.variable == "") == (s.file == ""):
		return nil, fmt.Errorf("want exactly one of %s (the name of an environment variable) and %s (a path)", s.asVariable, s.asFile)
	case s.variable != "" && !variableName.MatchString(s.variable): // and not repeated: people write the secret itself here
		return nil, fmt.Errorf("%s: is not the name of an environment variable; want one such as MAIL_PASSWORD, which holds the secret", s.asVariable)
	case s.variable != "":
		fetch = func() (string, error) {
			if v := env(s.variable); v != "" {
				return v, nil
			}
			return "", fmt.Errorf("%s: the environment variable %s is not set, or empty", s.asVariable, yamlfile.Clip(s.variable))
		}
	default:
		fetch = func() (string, error) { return s.read(beside(dir, s.file)) }
	}
	noted := func() (string, error) {
		secret, err := fetch()
		if err == nil {
			known.add(secret)
		}
		return secret, err
	}
	_, err := noted()
	return func(context.Context) (string, error) { return noted() }, err
}

// given reports whether there is a secret at all.
func (s source) given() bool { return s.variable != "" || s.file != "" }

// openIfGiven is open where the secret may be left out; nil then.
func (s source) openIfGiven(dir string, env func(string) string) (func(context.Context) (string, error), error) {
	if !s.given() {
		return nil, nil
	}
	return s.open(dir, env)
}

func (s source) read(path string) (string, error) {
	text, err := yamlfile.ReadBounded(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.asFile, err)
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty", s.asFile, path)
	}
	return secret, nil
}
