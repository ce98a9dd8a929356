package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The tools.
const (
	Create = "create_order"
	Update = "update_order"
	Put    = "put_order"
	Delete = "delete_order"
	Get    = "get_order"
	Find   = "find_orders"
	Notify = "notify_customer" // writes, and nothing can be read back
)

// Server serves the tools of a world. It is safe for concurrent use.
type Server struct {
	World *World
	// MCP is the server of the SDK, for tests that serve it otherwise or change
	// its tools.
	MCP *sdk.Server

	mu       sync.Mutex
	lines    []net.Conn
	notified []string
}

// New makes a server with all its tools.
func New(w *World) *Server {
	s := &Server{World: w, MCP: sdk.NewServer(&sdk.Implementation{Name: "mcptest", Version: "1"}, &sdk.ServerOptions{Logger: slog.New(slog.DiscardHandler)})}
	for _, name := range []string{Create, Update, Put, Delete, Get, Find, Notify} {
		s.MCP.AddTool(s.Tool(name), s.handler(name))
	}
	return s
}

// schemas are those of the arguments.
var schemas = map[string]string{
	Create: `{"type":"object","properties":{"order_id":{"type":"string"},"note":{"type":["string","null"]},"amount_cents":{"type":"number"},"customer":{"type":["object","null"]},"channel":{"type":"string"},"external_id":{"type":"string"}},"required":["order_id"]}`,
	Update: `{"type":"object","properties":{"id":{"type":"string"},"order_id":{"type":"string"},"note":{"type":"string"},"amount_cents":{"type":"number"}},"required":["order_id"]}`,
	Put:    `{"type":"object","properties":{"order_id":{"type":"string"},"note":{"type":"string"},"amount_cents":{"type":"number"}},"required":["order_id"]}`,
	Delete: `{"type":"object","properties":{"id":{"type":"string"},"order_id":{"type":"string"}}}`,
	Get:    `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`,
	Find:   `{"type":"object","properties":{"order_id":{"type":"string"},"external_id":{"type":"string"}}}`,
	Notify: `{"type":"object","properties":{"order_id":{"type":"string"},"text":{"type":"string"}},"required":["order_id"]}`,
}

// Tool is a tool as it is listed.
func (s *Server) Tool(name string) *sdk.Tool {
	return &sdk.Tool{Name: name, Description: "The tool " + name + " of a shop.", InputSchema: json.RawMessage(schemas[name]),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}} // a lie where it writes
}

// Replace makes another tool of one: as when a server changes what its users
// agreed to.
func (s *Server) Replace(name, description string) {
	t := s.Tool(name)
	t.Description = description
	s.MCP.AddTool(t, s.handler(name))
}

// Notified lists the notifications to customers.
func (s *Server) Notified() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.notified...)
}

// errRefused: no connection can be had.
var errRefused = errors.New("connection refused")

// Transport makes a connection in memory.
func (s *Server) Transport(context.Context) (sdk.Transport, error) {
	if s.World.refuses() {
		return nil, errRefused
	}
	ours, theirs := net.Pipe()
	if _, err := s.MCP.Connect(context.Background(), &sdk.IOTransport{Reader: ours, Writer: ours}, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.lines = append(s.lines, ours)
	s.mu.Unlock()
	return &sdk.IOTransport{Reader: theirs, Writer: theirs}, nil
}

// Cut ends all connections at once, as a process that dies does.
func (s *Server) Cut() {
	s.mu.Lock()
	all := s.lines
	s.lines = nil
	s.mu.Unlock()
	for _, line := range all {
		_ = line.Close() // a pipe in memory
	}
}
