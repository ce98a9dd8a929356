package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/intent"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/readbacktest/fault"
)

// pinned is a contract with the digests of the fake's tools.
func pinned(t *testing.T, text string) *mcp.Contract {
	t.Helper()
	c, err := mcp.Load([]byte(withDigests(t, text)), "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func withDigests(t *testing.T, text string) string {
	t.Helper()
	s := fakemcp.New(fakemcp.NewWorld())
	text += "digests:\n"
	for _, name := range []string{fakemcp.Create, fakemcp.Update, fakemcp.Put, fakemcp.Delete, fakemcp.Get, fakemcp.Find} {
		d, err := mcp.Digest(s.Tool(name))
		if err != nil {
			t.Fatal(err)
		}
		text += "  " + name + ": " + d + "\n"
	}
	return text
}

// A tool that the server does not have is not there for the next read either.
func TestNoTool(t *testing.T) {
	c, err := mcp.Load([]byte(strings.ReplaceAll(withDigests(t, fakemcp.Contract), fakemcp.Find, "mistyped")), "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, fakemcp.New(fakemcp.NewWorld()), c)
	_, err = conn.Read(t.Context(), connectors.Query{Intent: order(intent.Create, 1)})
	if !errors.Is(err, connectors.ErrNoTarget) || !errors.Is(err, mcp.ErrWithdrawn) || !strings.Contains(err.Error(), "mistyped") {
		t.Errorf("%v; want that there is no tool mistyped", err)
	}
}

// connect makes a connector to a fake.
func connect(t *testing.T, s *fakemcp.Server, c *mcp.Contract) *mcp.Connector {
	t.Helper()
	conn, err := mcp.New(c, mcp.Options{Server: mcp.Server{Transport: s.Transport}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		s.Cut()
	})
	return conn
}

var lacks = map[string]string{}

func variants() map[fault.Kind][]string {
	return map[fault.Kind][]string{
		fault.UnreadableRead:  fakemcp.Forms[fault.UnreadableRead],
		fault.NormalisedField: fakemcp.Forms[fault.NormalisedField],
	}
}

var allWrites = []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete}

// TestConnector runs the suite in fake time.
func TestConnector(t *testing.T) {
	connectortest.Run(t, connectortest.Harness{
		Open: func(t *testing.T) *connectortest.Fixture {
			s := fakemcp.New(fakemcp.NewWorld())
			return fixture(t, s, connect(t, s, pinned(t, fakemcp.Contract)))
		},
		Writes: allWrites, Variants: variants(), Lacks: lacks,
	})
}

// Every call of a tool is counted.
func TestCallsOfARead(t *testing.T) {
	s := fakemcp.New(fakemcp.NewWorld())
	conn := connect(t, s, pinned(t, fakemcp.Contract))
	ctx := connectors.CountCalls(t.Context())
	if _, err := conn.Read(ctx, connectors.Query{Intent: order(intent.Create, 1), Stamp: "stamp-1"}); err != nil {
		t.Fatal(err)
	}
	if n := connectors.Calls(ctx); n != 2 || n != s.World.Calls(fakemcp.Find, fakemcp.Get) { // by key and by stamp
		t.Errorf("%d calls were counted, and %d made; want 2", n, s.World.Calls(fakemcp.Find, fakemcp.Get))
	}
}

func fixture(t *testing.T, s *fakemcp.Server, conn *mcp.Connector) *connectortest.Fixture {
	w := s.World
	id := func(key intent.Fields) string { return fmt.Sprint(key["order_id"]) }
	return &connectortest.Fixture{
		Connector: conn, Profile: conn.Profiles()["order"], Intent: order, Near: near, NullField: "customer",
		Set: func(v fault.Kind, how string) error {
			f := fault.Fault{Kind: v, How: how, Times: 1}
			if v == fault.LaggingRead {
				f.Times = 2 // by key and by stamp
			}
			if err := w.Set(f); err != nil || v != fault.Unreachable {
				return err
			}
			s.Cut()
			return hangUp(t, conn)
		},
		Seed: func(in intent.WriteIntent) {
			all := map[string]any{}
			for _, part := range []intent.Fields{in.Key, in.Expect} {
				maps.Copy(all, part)
			}
			w.Put(all, "")
		},
		Change: func(key intent.Fields) { w.Alter(id(key), map[string]any{"note": "another actor's"}) },
		Put: func(fields intent.Fields, stamp string) error {
			w.Put(fields, stamp)
			return nil
		},
		Alter: func(key, fields intent.Fields) error {
			w.Alter(id(key), fields)
			return nil
		},
		Records: func(key intent.Fields) []connectors.Record {
			var all []connectors.Record
			for _, o := range w.Orders(id(key)) {
				all = append(all, connectors.Record{Ref: o.ID, Stamp: o.Stamp, Fields: o.Fields})
			}
			return all
		},
		Effects: func(key intent.Fields) int { return w.Effects(id(key)) },
		Sends: func() int {
			return w.Calls(fakemcp.Create, fakemcp.Update, fakemcp.Put, fakemcp.Delete)
		},
	}
}

// hangUp waits until the connector has noticed that its connection is gone: a
// session that is dead and not known to be makes a send of unknown fate.
func hangUp(t *testing.T, conn *mcp.Connector) error {
	return conn.Client().Gone(t.Context())
}

func order(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: "order", Write: w, Key: intent.Fields{"order_id": fmt.Sprintf("Order-%03d", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{"note": " Two \"Words\" {{ ", "amount_cents": json.Number(fmt.Sprint(1000 + n)), "customer": map[string]any{"name": "Ada", "tags": []any{"a"}}}
	case intent.Update:
		in.Expect = intent.Fields{"note": "changed", "amount_cents": json.Number("2000")}
	case intent.Upsert:
		in.Expect = intent.Fields{"note": "set", "amount_cents": json.Number("3000")}
	}
	return in
}

func near(n int) []intent.WriteIntent {
	id := fmt.Sprintf("Order-%03d", n)
	return connectortest.Near(order, "order_id", strings.ToLower(id), id[:len(id)-1], id+"0", " "+id, id+" ", "1")
}
