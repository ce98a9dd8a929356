package config

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
)

// Type is a type of destination that a program adds to the built-in ones.
type Type struct {
	name  string
	empty func() settings
}

// Account is what the connector of an added type is built with besides its own settings.
type Account struct {
	// Secrets are those of the setting "secrets", by name.
	Secrets map[string]func(context.Context) (string, error)
	// Transport returns a transport for an address, as egress, ca_file and client_certificate demand.
	Transport func(address string) (http.RoundTripper, error)
	// Dial connects to the hosts that egress allows.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is the configuration that ca_file and client_certificate make; nil: the system's.
	TLS *tls.Config
	// SendTimeout and ReadTimeout are how long one call may take; 0: the connector's default.
	SendTimeout, ReadTimeout time.Duration
}

// added are the settings of a destination of an added type.
type added[S any] struct {
	Type       string            `yaml:"type"`
	Own        S                 `yaml:",inline"`
	Secrets    map[string]Secret `yaml:"secrets"`
	Connection connection        `yaml:",inline"`
	Promises   promises          `yaml:",inline"`

	connect func(S, Account) (connectors.Destination, error)
}

func (s *added[S]) promises() promises { return s.Promises }

func (s *added[S]) destination(from origin) (connectors.Destination, error) {
	a := Account{SendTimeout: time.Duration(s.Promises.SendTimeout), ReadTimeout: time.Duration(s.Promises.ReadTimeout)}
	a.Transport = func(address string) (http.RoundTripper, error) {
		t, err := s.Connection.transport(s.Promises.Egress, address, from)
		if t == nil && err == nil {
			t = httpsend.NewTransport(nil, nil)
		}
		return t, err
	}
	if a.Dial = s.Promises.Egress.dial(); a.Dial == nil {
		a.Dial = new(net.Dialer).DialContext
	}
	var err error
	if a.TLS, err = s.Connection.tls(from); err != nil {
		return connectors.Destination{}, err
	}
	if a.Secrets, err = sources("secrets", s.Secrets, from); err != nil {
		return connectors.Destination{}, err
	}
	return s.connect(s.Own, a)
}

// NewType makes a type from what connects a destination of it.
func NewType[S any](name string, connect func(S, Account) (connectors.Destination, error)) Type {
	if reflect.TypeFor[S]().Kind() != reflect.Struct {
		panic(fmt.Sprintf("the settings of the type %q are no struct", name))
	}
	return Type{name, func() settings { return &added[S]{connect: connect} }}
}

// Add adds types to the built-in ones, for all configurations of this process. It is not safe while
// one is read.
func Add(all ...Type) {
	for _, t := range all {
		if _, taken := types[t.name]; taken || t.name == "" {
			panic(fmt.Sprintf("the type of destination %q exists already, or has no name", t.name))
		}
		types[t.name] = t.empty
	}
}
