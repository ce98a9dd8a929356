package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/simulated"
	"github.com/readback-go/readback/internal/yamlfile"
)

type simulatedSettings struct {
	Type     string   `yaml:"type"`
	URL      string   `yaml:"url"`
	Class    string   `yaml:"class"`
	Promises promises `yaml:",inline"`
}

func (s *simulatedSettings) promises() promises { return s.Promises }

func (s *simulatedSettings) destination(string, func(string) string) (connectors.Destination, error) {
	class := simulated.Class(s.Class)
	if !slices.Contains(simulated.Classes(), class) {
		return connectors.Destination{}, fmt.Errorf("class: is %q; want one of %v", yamlfile.Clip(s.Class), simulated.Classes())
	}
	if strings.Contains(s.URL, "@") { // also where it is no URL, which the connector would repeat
		return connectors.Destination{}, errors.New("url: holds a user name or a password; want http://host:port")
	}
	c, err := simulated.NewConnector(s.URL, class.Options(), nil)
	if err != nil {
		return connectors.Destination{}, fmt.Errorf("url: %w", err)
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}
