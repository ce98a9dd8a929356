package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/internal/yamlfile"
)

type restSettings struct {
	Type        string                    `yaml:"type"`
	Declaration string                    `yaml:"declaration"`
	BaseURL     string                    `yaml:"base_url"`
	Parameters  map[string]parameter      `yaml:"parameters"`
	Secrets     map[string]secretSettings `yaml:"secrets"`
	Promises    promises                  `yaml:",inline"`
}

// secretSettings say where one secret is.
type secretSettings struct {
	Env  string `yaml:"env"`
	File string `yaml:"file"`
}

// parameter is a value of a declared API's account; a number is taken as it is
// written.
type parameter struct{ value string }

// FillYAML reads it.
func (p *parameter) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	if v, ok := r.Scalar(n, at.Field); ok {
		p.value = fmt.Sprint(v)
	}
}

func (s *restSettings) promises() promises { return s.Promises }

func (s *restSettings) destination(dir string, env func(string) string) (connectors.Destination, error) {
	d, err := Declaration(dir, s.Declaration)
	if err != nil {
		return connectors.Destination{}, fmt.Errorf("declaration: %w", err)
	}
	if strings.Contains(s.BaseURL, "@") {
		return connectors.Destination{}, errors.New("base_url: holds a user name or a password; want https://host")
	}
	o := rest.Options{BaseURL: s.BaseURL, Parameters: map[string]string{}, Secrets: map[string]func(context.Context) (string, error){}}
	for name, p := range s.Parameters {
		o.Parameters[name] = p.value
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		from := source{asVariable: "env", asFile: "file", variable: s.Secrets[name].Env, file: s.Secrets[name].File}
		if o.Secrets[name], err = from.open(dir, env); err != nil {
			return connectors.Destination{}, fmt.Errorf("secrets.%s: %w", yamlfile.Clip(name), err)
		}
	}
	c, err := rest.New(d, o)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// Declaration loads a declared API: one that comes with readback by its name,
// or a file, whose path is relative to dir and holds a dot or a slash.
func Declaration(dir, named string) (*rest.Declaration, error) {
	if !strings.ContainsAny(named, `./\`) {
		return rest.ShippedDeclaration(named)
	}
	text, err := yamlfile.ReadBounded(beside(dir, named), maxFile)
	if err != nil {
		return nil, err
	}
	return rest.Load(text, named)
}
