package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Options are the choices of a [Connector].
type Options struct {
	// Server is how the server is reached; [Client] is used instead where it is
	// set, and stays its owner's to close.
	Server Server
	Client *Client
	// WriteOnly adds the kind [WriteOnlyKind], for tools without a contract. Default
	// false: they cannot be called.
	WriteOnly bool
	// Logger receives the begin and end of sessions. Default none.
	Logger *slog.Logger
}

// Connector is a destination with a server of the Model Context Protocol. It is safe for
// concurrent use.
type Connector struct {
	contract  *Contract
	client    *Client
	writeOnly bool
	// writing is held by the one call that writes, where the contract declares that the server
	// loses one of two concurrent calls.
	writing chan struct{}

	mu      sync.Mutex
	waiters map[string]*waiter // by stamp
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Checker   = (*Connector)(nil)
	_ connectors.Inverter  = (*Connector)(nil)
	_ connectors.Prober    = (*Connector)(nil)
)

// New makes a connector of a contract; nothing is started yet.
func New(c *Contract, o Options) (*Connector, error) {
	client := o.Client
	if client == nil {
		var err error
		if client, err = NewClient(o.Server, o.Logger); err != nil {
			return nil, err
		}
	}
	return &Connector{contract: c, client: client, writeOnly: o.WriteOnly, writing: make(chan struct{}, 1), waiters: map[string]*waiter{}}, nil
}

// Contract is the contract that it was made of.
func (c *Connector) Contract() *Contract { return c.contract }

// Client is the session with the server.
func (c *Connector) Client() *Client { return c.client }

// WriteOnly reports whether tools without a contract can be called.
func (c *Connector) WriteOnly() bool { return c.writeOnly }

// Close ends the session, and the process that it runs on.
func (c *Connector) Close() error { return c.client.Close() }

// Profiles is what the destination can do, by kind of record.
func (c *Connector) Profiles() map[string]connectors.Profile {
	all := c.contract.Profiles()
	if c.writeOnly {
		all[WriteOnlyKind] = writeOnlyProfile()
	}
	return all
}

// Probe begins a session and checks that the tools of the contract are there, and are those that
// it was written for.
func (c *Connector) Probe(ctx context.Context) error {
	for _, tool := range c.contract.Writes() {
		if _, err := c.trusted(ctx, tool); err != nil {
			return err
		}
		for _, proof := range c.contract.Proofs(tool) {
			if _, err := c.trusted(ctx, proof); err != nil {
				return err
			}
		}
	}
	return nil
}

// Before reads the record of a call, for the calls whose intent needs it; nil for the others. The
// error says why it cannot be read.
func (c *Connector) Before(ctx context.Context, tool string, args intent.Fields) (*connectors.Observation, error) {
	in, needed, err := c.contract.ReadsBack(tool, args)
	if err != nil || !needed {
		return nil, err
	}
	o, err := c.Read(ctx, connectors.Query{Intent: in})
	if err != nil {
		return nil, err
	}
	return &o, nil
}

// trusted is a tool as the server lists it, where it is the one that the
// contract was written for.
func (c *Connector) trusted(ctx context.Context, name string) (*sdk.Tool, error) {
	tools, err := c.client.Tools(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, t := range tools {
		if t.Name == name {
			return t, c.contract.Trusts(t)
		}
	}
	return nil, fmt.Errorf("%w: %w: the server has no tool %s any more", ErrWithdrawn, connectors.ErrNoTarget, name)
}
