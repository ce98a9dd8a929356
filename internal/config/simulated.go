package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/yamlfile"
)

type simulatedSettings struct {
	Type     string   `yaml:"type"`
	URL      string   `yaml:"url"`
	Class    string   `yaml:"class"`
	Promises promises `yaml:",inline"`
}

func (s *simulatedSettings) promises() promises { return s.Promises }

func (s *simulatedSettings) destination(from origin) (connectors.Destination, error) {
	class := orders.Class(s.Class)
	if !slices.Contains(orders.Classes(), class) {
		return connectors.Destination{}, fmt.Errorf("class: is %q; want one of %v", yamlfile.Clip(s.Class), orders.Classes())
	}
	if strings.Contains(s.URL, "@") { // also where it is no URL, which the connector would repeat
		return connectors.Destination{}, errors.New("url: holds a user name or a password; want http://host:port")
	}
	transport, err := connection{}.transport(s.Promises.Egress, s.URL, from)
	if err != nil {
		return connectors.Destination{}, err
	}
	c, err := orders.NewConnector(s.URL, class.Options(), transport)
	if err != nil {
		return connectors.Destination{}, fmt.Errorf("url: %w", err)
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}
