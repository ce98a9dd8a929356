package mcpgate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lossy loses calls of tools that write and their responses, by a seed. It counts what
// reaches the server.
type lossy struct {
	mu        sync.Mutex
	rng       *rand.Rand
	writes    map[string]bool // tools
	begin     func() sdk.Transport
	reached   map[string]int // by tool and arguments
	lost      int
	faultless bool
	plan      []fate // of the first calls; the others are kept
}

func newLossy(seed uint64, begin func() sdk.Transport, writes ...string) *lossy {
	l := &lossy{rng: rand.New(rand.NewPCG(seed, 1)), begin: begin, writes: map[string]bool{}, reached: map[string]int{}}
	for _, w := range writes {
		l.writes[w] = true
	}
	return l
}

// fate is what becomes of one call.
type fate int

const (
	kept     fate = iota
	muted         // it is carried out, and its response is dropped
	cut           // it is carried out, and the connection is cut in place of its response
	vanished      // it never arrives
)

func (l *lossy) fate() fate {
	if l.faultless {
		return kept
	}
	if l.plan != nil {
		f := kept
		if len(l.plan) > 0 {
			f, l.plan = l.plan[0], l.plan[1:]
		}
		return f
	}
	return []fate{kept, kept, muted, muted, cut, cut, vanished}[l.rng.IntN(7)]
}

// Transport begins a session.
func (l *lossy) Transport(context.Context) (sdk.Transport, error) { return lossyTransport{l}, nil }

type lossyTransport struct{ l *lossy }

func (t lossyTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := t.l.begin().Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lossyConn{Connection: c, l: t.l, fates: map[any]fate{}}, nil
}

type lossyConn struct {
	sdk.Connection
	l     *lossy
	fates map[any]fate // by the id of the call
}

func (c *lossyConn) Write(ctx context.Context, m jsonrpc.Message) error {
	r, ok := m.(*jsonrpc.Request)
	if !ok || r.Method != "tools/call" {
		return c.Connection.Write(ctx, m)
	}
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return err
	}
	c.l.mu.Lock()
	f := kept
	if c.l.writes[p.Name] {
		f = c.l.fate()
		c.fates[r.ID.Raw()] = f
		if f != kept {
			c.l.lost++
		}
		if f != vanished {
			c.l.reached[fmt.Sprintf("%s %s", p.Name, p.Arguments)]++
		}
	}
	c.l.mu.Unlock()
	if f == vanished {
		return nil
	}
	return c.Connection.Write(ctx, m)
}

func (c *lossyConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		r, ok := m.(*jsonrpc.Response)
		if err != nil || !ok {
			return m, err
		}
		c.l.mu.Lock()
		f := c.fates[r.ID.Raw()]
		c.l.mu.Unlock()
		switch f {
		case muted:
			continue
		case cut:
			return nil, io.EOF
		}
		return m, nil
	}
}
