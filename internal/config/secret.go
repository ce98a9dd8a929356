package config

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
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

// origin is what the secrets of one configuration are fetched with: the folder of
// relative paths, the environment, and the settings of commands.
type origin struct {
	dir      string
	env      func(string) string
	commands Commands
	// opened are the commands of the secrets that were opened with it.
	opened *[]*command
}

// origin is the origin of a configuration's secrets.
func (c Config) origin(env func(string) string) origin {
	return origin{dir: filepath.Dir(c.Path), env: env, commands: c.Commands, opened: new([]*command)}
}

// refused makes the commands of all opened secrets run before their next use; nil where
// there is none.
func (o origin) refused() func() {
	all := slices.Clone(*o.opened)
	if len(all) == 0 {
		return nil
	}
	return func() {
		for _, c := range all {
			c.refused()
		}
	}
}

// Secret is the source of a secret: an environment variable, a file, or a command's
// output. The zero value is none.
type Secret struct {
	Env     string `yaml:"env"`
	File    string `yaml:"file"`
	Command argv   `yaml:"command"`
}

// Given reports whether there is a secret at all.
func (s Secret) Given() bool { return s.Env != "" || s.File != "" || len(s.Command) > 0 }

// as is the secret with the prefix of its settings, such as password for password_env,
// password_file and password_command; "" for env, file, command.
func (s Secret) as(name string) source { return source{name, s} }

// keySettings configure the source of a key.
type keySettings struct {
	Env     yamlfile.Text `yaml:"key_env"`
	File    yamlfile.Text `yaml:"key_file"`
	Command argv          `yaml:"key_command"`
}

// secret is the configured source.
func (k keySettings) secret(r *reader) Secret {
	r.oneOf(k.Env, k.File, k.Command)
	return Secret{k.Env.Value, k.File.Value, k.Command}
}

// source is a secret and the prefix of its settings.
type source struct {
	name string
	Secret
}

// setting is the name of one of its settings.
func (s source) setting(last string) string {
	if s.name == "" {
		return last
	}
	return s.name + "_" + last
}

// open returns a function that fetches the secret for each use, so that it can be changed
// while the process runs: a file is read again, a command runs as often as [Commands]
// says. The environment of a process does not change. The secret is fetched once here as
// a check.
func (s source) open(from origin) (func(context.Context) (string, error), error) {
	var fetch func(context.Context) (string, error)
	name := s.Env // of the source, for [secrets]
	given := 0
	for _, is := range []bool{s.Env != "", s.File != "", len(s.Command) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, fmt.Errorf("want exactly one of %s (the name of an environment variable), %s (a path) and %s (a program and its arguments)", s.setting("env"), s.setting("file"), s.setting("command"))
	case s.Env != "" && !variableName.MatchString(s.Env): // and not repeated: users write the secret itself here
		return nil, fmt.Errorf("%s: is not the name of an environment variable; want one such as MAIL_PASSWORD, which holds the secret", s.setting("env"))
	case s.Env != "":
		fetch = func(context.Context) (string, error) {
			if v := from.env(s.Env); v != "" {
				return v, nil
			}
			return "", fmt.Errorf("%s: the environment variable %s is not set, or empty", s.setting("env"), yamlfile.Clip(s.Env))
		}
	case s.File != "":
		name = beside(from.dir, s.File)
		fetch = func(context.Context) (string, error) { return s.read(name) }
	case from.commands.Off:
		name = s.Command.key(from.dir)
		fetch = func(context.Context) (string, error) { return from.env(strings.Join(s.Command, " ")), nil }
	default:
		c := commandOf(s.Command, from)
		name = s.Command.key(from.dir)
		*from.opened = append(*from.opened, c)
		fetch = func(ctx context.Context) (string, error) {
			secret, err := c.fetch(ctx)
			if err != nil {
				err = fmt.Errorf("%s: %w", s.setting("command"), err)
			}
			return secret, err
		}
	}
	noted := func(ctx context.Context) (string, error) {
		secret, err := fetch(ctx)
		if err == nil {
			known.add(name, secret)
		}
		return secret, err
	}
	_, err := noted(context.Background())
	return noted, err
}

// openIfGiven is open for an optional secret; nil if it is not set.
func (s source) openIfGiven(from origin) (func(context.Context) (string, error), error) {
	if !s.Given() {
		return nil, nil
	}
	return s.open(from)
}

// once is a secret that is used once, "" if none is set.
func (s source) once(from origin) (string, error) {
	fetch, err := s.openIfGiven(from)
	if err != nil || fetch == nil {
		return "", err
	}
	return fetch(context.Background())
}

func (s source) read(path string) (string, error) {
	text, err := yamlfile.ReadBounded(path, maxSecret)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.setting("file"), err)
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty", s.setting("file"), path)
	}
	return secret, nil
}
