package mcpapi_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/mcpapi/tool"
	"github.com/readback-go/readback/ledger"
)

// versions are a version of the protocol in which the server asks in a request of its own,
// and the newest, in which it asks in the result of the call.
var versions = []string{"2025-11-25", ""}

// opens is a client that opens addresses, and answers with do.
func opens(do func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Capabilities:       &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}},
		ElicitationHandler: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return do(ctx, r.Params) },
	}
}

// A client is asked once about a write that a reviewer must decide about. Its answer
// changes neither the write nor the result.
func TestTheUserIsShownThePageOfAHeldWrite(t *testing.T) {
	for _, version := range versions {
		for _, action := range []string{"accept", "decline", "cancel"} {
			t.Run(action+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, orders.Unique.Options(), nil)
					var shown []*mcp.ElicitParams
					s := b.stdioIn(version, agent("bot"), opens(func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
						shown = append(shown, p)
						return &mcp.ElicitResult{Action: action, Content: map[string]any{"decision": "approve"}}, nil
					}))
					meta := mcp.Meta{"readback/step": "order"}
					r, _ := b.call(s, "create_order_held", order("A-1"), meta)
					plain, _ := b.call(b.stdioIn(version, agent("bot"), nil), tool.GetOutcome, map[string]any{"id": r.ID}, nil)
					if r.Status != "held" || r.Text != plain.Text || b.effects() != 0 {
						t.Errorf("answer %+v, %d effects; without elicitation %+v", r, b.effects(), plain)
					}
					if len(shown) != 1 || shown[0].Mode != "url" || shown[0].URL != "https://readback.example/writes/"+r.ID || shown[0].ElicitationID != r.ID ||
						!strings.Contains(shown[0].Message, "create_order_held") {
						t.Fatalf("%d elicitations: %+v", len(shown), shown)
					}
					if again, _ := b.call(s, "create_order_held", order("A-1"), meta); again.ID != r.ID || len(shown) != 1 {
						t.Errorf("the call again: %+v, %d elicitations", again, len(shown))
					}
					b.call(s, tool.GetOutcome, map[string]any{"id": r.ID}, nil)
					b.call(s, "create_order", order("A-2"), nil)
					if len(shown) != 1 {
						t.Errorf("%d elicitations; get_outcome and a verified write need none", len(shown))
					}
					if all, err := b.ledger.Find(context.Background(), ledger.Search{Tenant: "acme"}); err != nil || len(all.Records) != 2 {
						t.Errorf("%d writes, %v; want 2", len(all.Records), err)
					}
				})
			})
		}
	}
}

// It is the same over HTTP, in a session and without one.
func TestTheUserIsShownThePageOverHTTP(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			b := newBench(t, orders.Unique.Options(), nil)
			shown := make(chan string, 2)
			s := b.connectAs(b.listen(), as{name: "bot"}, opens(func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				shown <- p.URL
				return &mcp.ElicitResult{Action: "accept"}, nil
			}), &mcp.ClientSessionOptions{ProtocolVersion: version})
			r, _ := b.call(s, "create_order_held", order("A-1"), nil)
			if r.Status != "held" || len(shown) != 1 || <-shown != "https://readback.example/writes/"+r.ID {
				t.Errorf("answer %+v", r)
			}
		})
	}
}

// A client that does not answer delays the answer of its call at most by the wait of the
// call.
func TestAClientThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, orders.Unique.Options(), nil)
		s := b.stdioIn(versions[0], agent("bot"), opens(func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		begun := time.Now()
		r, _ := b.call(s, "create_order_held", order("A-1"), nil)
		if took := time.Since(begun); r.Status != "held" || took > tool.DefaultWait {
			t.Errorf("%+v after %s", r, took)
		}
	})
}

// A client that cannot open addresses gets no request that it cannot answer.
func TestClientsThatOpenNoAddressesAreNotAsked(t *testing.T) {
	for _, version := range versions {
		for name, c := range map[string]*mcp.ElicitationCapabilities{"none": nil, "forms": {Form: &mcp.FormElicitationCapabilities{}}} {
			t.Run(name+" "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, orders.Unique.Options(), nil)
					o := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{Elicitation: c}}
					if c != nil {
						o.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
							t.Error("it is asked")
							return &mcp.ElicitResult{Action: "decline"}, nil
						}
					}
					if r, _ := b.call(b.stdioIn(version, agent("bot"), o), "create_order_held", order("A-1"), nil); r.Status != "held" {
						t.Errorf("answer %+v", r)
					}
				})
			})
		}
	}
}

// The second round of a call makes no write, whatever state it has: each request without a
// session has another name.
func TestASecondRoundMakesNoWrite(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	url := b.listen()
	s := b.connectAs(url, as{name: "bot"}, opens(func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}), nil)
	r, _ := b.call(s, "create_order_held", order("A-1"), nil)
	for _, state := range []string{"", "wr_ffffffffffffffffffffffffffffffff", strings.Repeat("x", 200)} {
		res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "create_order", Arguments: order("A-2"), RequestState: state,
			InputResponses: mcp.InputResponseMap{"review": &mcp.ElicitResult{Action: "accept"}}})
		if err != nil || !res.IsError || b.effects() != 0 {
			t.Errorf("state %q: %+v, %v, %d effects", state, res, err, b.effects())
		}
	}
	if r.Status != "held" {
		t.Errorf("answer %+v", r)
	}
	all, err := b.ledger.Find(context.Background(), ledger.Search{Tenant: "acme"})
	if err != nil || len(all.Records) != 1 || string(all.Records[0].ID) != r.ID {
		t.Errorf("%d writes, %v; want %s alone", len(all.Records), err, r.ID)
	}
	outsider := b.connectAs(url, as{name: "outsider"}, nil, nil)
	res, err := outsider.CallTool(context.Background(), &mcp.CallToolParams{Name: "create_order", Arguments: order("A-1"), RequestState: r.ID})
	if err != nil || !res.IsError || strings.Contains(b.read(res).Text, r.ID) {
		t.Errorf("another tenant: %+v, %v", res, err)
	}
}

// The state of one call is none of another, by its tool or its arguments: an answer is about
// the call that gets it.
func TestTheStateOfAnotherCall(t *testing.T) {
	b := newBench(t, orders.Unique.Options(), nil)
	once := opens(nil)
	once.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	url := b.listen()
	s := b.connectAs(url, as{name: "bot"}, once, nil)
	ask := func(name string, args map[string]any, state string) *mcp.CallToolResult {
		t.Helper()
		res, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: args, RequestState: state})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	first, second := ask("create_order_held", order("A-1"), ""), ask("create_order_held", order("A-2"), "")
	if first.RequestState == "" || second.RequestState == "" {
		t.Fatalf("no states: %+v, %+v", first, second)
	}
	for name, res := range map[string]*mcp.CallToolResult{
		"other arguments": ask("create_order_held", order("A-1"), second.RequestState), "another tool": ask("create_order", order("A-1"), first.RequestState),
	} {
		if !res.IsError || !strings.Contains(b.read(res).Text, "its requestState is not the one of the answer before") {
			t.Errorf("%s: %+v", name, b.read(res))
		}
	}
	if r := b.read(ask("create_order_held", order("A-1"), first.RequestState)); r.Status != "held" {
		t.Errorf("its own: %+v", r)
	}
	s = b.connectAs(url, as{name: "outsider"}, once, nil)
	if res := ask("create_order_held", order("A-1"), first.RequestState); !res.IsError || strings.Contains(b.read(res).Text, "wr_") {
		t.Errorf("another tenant: %+v", b.read(res))
	}
	if b.effects() != 0 {
		t.Errorf("%d effects", b.effects())
	}
}
