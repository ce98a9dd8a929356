package config

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/internal/yamlfile"
)

type restSettings struct {
	Type        string               `yaml:"type"`
	Declaration string               `yaml:"declaration"`
	BaseURL     string               `yaml:"base_url"`
	Parameters  map[string]parameter `yaml:"parameters"`
	Secrets     map[string]Secret    `yaml:"secrets"`
	Connection  connection           `yaml:",inline"`
	Promises    promises             `yaml:",inline"`
}

// parameter is a value of a declared API's account; a number is used as it is written.
type parameter struct{ value string }

// FillYAML reads it.
func (p *parameter) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	if v, ok := r.Scalar(n, at.Field); ok {
		p.value = fmt.Sprint(v)
	}
}

func (s *restSettings) promises() promises { return s.Promises }

func (s *restSettings) destination(from origin) (connectors.Destination, error) {
	d, err := Declaration(from.dir, s.Declaration)
	if err != nil {
		return connectors.Destination{}, fmt.Errorf("declaration: %w", err)
	}
	if strings.Contains(s.BaseURL, "@") {
		return connectors.Destination{}, errors.New("base_url: holds a user name or a password; want https://host")
	}
	o := rest.Options{BaseURL: s.BaseURL, Parameters: map[string]string{}}
	for name, p := range s.Parameters {
		o.Parameters[name] = p.value
	}
	if o.Secrets, err = sources("secrets", s.Secrets, from); err != nil {
		return connectors.Destination{}, err
	}
	o.Rotate = map[string]func(context.Context, func(string) (string, error)) error{}
	for _, name := range d.Rotating() {
		if o.Secrets[name] == nil {
			continue // which is reported below
		}
		if o.Rotate[name], err = s.Secrets[name].as("").rotate(from); err != nil {
			return connectors.Destination{}, fmt.Errorf("secrets.%s: %w", name, err)
		}
	}
	if o.Transport, err = s.Connection.transport(s.Promises.Egress, s.BaseURL, from); err != nil {
		return connectors.Destination{}, err
	}
	c, err := rest.New(d, o)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// Declaration loads a declared API: a built-in one by its name, or a file, whose path is
// relative to dir and contains a dot or a slash.
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
