package command

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/fakes/orders"
)

func TestShippedContractsCanBePrintedAndChecked(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	for _, name := range mcp.Shipped() {
		text := p.want(0, p.run("contract", "print", name)).out
		says(t, p.want(0, p.run("contract", "check", p.write(name+".yaml", text))), "PROVEN BY", "e: ")
	}
	says(t, p.want(exitUsage, p.run("contract", "print", "erp")), "filesystem")
	says(t, p.want(exitUsage, p.run("contract", "suggest")), "--server is missing")
	says(t, p.want(exitUnavailable, p.run("contract", "suggest", "--server", "http://127.0.0.1:1/mcp")), "cannot be reached", "No tool was called")
}

func TestContractCheckSaysWhatIsWrongByLine(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	good := p.want(0, p.run("contract", "print", "filesystem")).out
	for name, c := range map[string]struct{ from, to, says string }{
		"an unknown member": {"\nserver:", "\nsever:", ":5: sever: is not known; did you mean server?"},
		"no digest":         {"  write_file: sha256:", "  wrote_file: sha256:", "digests: has none for write_file"},
		"no such field":     {"expect: {content: $.content}", "expect: {contents: $.content}", "shows no contents"},
		"a bad pattern":     {"'^EEXIST: '", "'('", "is no regular expression"},
		"all texts":         {"'^EEXIST: '", "'.*'", "matches every text"},
		"an empty pattern":  {"'^EEXIST: '", "''", "matches every text"},
		"a draft":           {"contract: 1", "draft: x\ncontract: 1", "the contract is unfinished"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, c.from) {
				t.Fatalf("the contract has no %q", c.from)
			}
			r := p.want(exitInvalid, p.run("contract", "check", p.write("bad.yaml", strings.Replace(good, c.from, c.to, 1))))
			says(t, r, "invalid contract:", "bad.yaml:", c.says)
		})
	}
}

func TestContractSuggestDraftsWhatAPersonFinishes(t *testing.T) {
	s := fakemcp.New(fakemcp.NewWorld())
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.MCP }, nil))
	t.Cleanup(web.Close)
	p := newPlace(t, orders.Plain.Options())
	text := p.want(0, p.run("contract", "suggest", "--server", web.URL)).out
	if s.World.Calls() != 0 {
		t.Error("a tool was called")
	}
	draft := p.write("draft.yaml", text)
	says(t, p.want(exitInvalid, p.run("contract", "check", draft)), "draft.yaml:2: draft: says that the contract is unfinished")
	lines := strings.Split(text, "\n")
	finished := p.write("finished.yaml", strings.Join(append(lines[:1], lines[2:]...), "\n"))
	says(t, p.want(0, p.run("contract", "check", finished, "--server", web.URL)), "are those that it was written for")
	s.Replace(fakemcp.Create, "Creates an order, and tells everybody.")
	r := p.want(exitAttention, p.run("contract", "check", finished, "--server", web.URL))
	says(t, r, "create_order has another description or schema", "sha256:")

	says(t, p.want(0, p.run("contract", "pin", finished, "--server", web.URL)), "is pinned to the tools of")
	says(t, p.want(0, p.run("contract", "check", finished, "--server", web.URL)), "are those that it was written for")
	s.Replace(fakemcp.Create, "Creates an order in the order desk.") // a third build
	p.want(exitAttention, p.run("contract", "check", finished, "--server", web.URL))
	p.want(0, p.run("contract", "pin", finished, "--server", web.URL))
	s.Replace(fakemcp.Create, "Creates an order, and tells everybody.")
	says(t, p.want(0, p.run("contract", "check", finished, "--server", web.URL)), "are those that it was written for")
	says(t, p.want(exitUsage, p.run("contract", "pin", "no-such.yaml", "--server", web.URL)), "contract print NAME")
}

// What a contract never compares, and with which arguments of the server's tools a
// call is refused, is in the text and in the JSON of a check.
func TestContractCheckNamesWhatIsNotCompared(t *testing.T) {
	s := fakemcp.New(fakemcp.NewWorld())
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.MCP }, nil))
	t.Cleanup(web.Close)
	text := strings.NewReplacer("made: $.id\n", "made: $.id\n        not_checked: [channel]\n",
		"expect: {note: $.note, amount_cents: $.amount_cents}\n        ref", "expect: {note: $.note}\n        ref").Replace(fakemcp.Contract) + "digests:\n"
	for _, name := range []string{fakemcp.Create, fakemcp.Update, fakemcp.Put, fakemcp.Delete, fakemcp.Get, fakemcp.Find} {
		d, err := mcp.Digest(s.Tool(name))
		if err != nil {
			t.Fatal(err)
		}
		text += "  " + name + ": " + d + "\n"
	}
	p := newPlace(t, orders.Plain.Options())
	file := p.write("shop.yaml", text)
	golden(t, "contract-check", p.want(0, p.run("contract", "check", file)))
	golden(t, "contract-check-server", p.want(0, p.run("contract", "check", file, "--server", web.URL)))
	var got struct {
		Writes []struct {
			Tool       string
			NotChecked []string `json:"not_checked"`
			Refused    []string `json:"refused"`
		}
	}
	r := p.want(0, p.run("contract", "check", file, "--server", web.URL, "--json"))
	if err := json.Unmarshal([]byte(r.out), &got); err != nil {
		t.Fatal(err)
	}
	not, refused := map[string][]string{}, map[string][]string{}
	for _, w := range got.Writes {
		not[w.Tool], refused[w.Tool] = w.NotChecked, w.Refused
	}
	if not[fakemcp.Create] == nil || not[fakemcp.Create][0] != "/channel" || refused[fakemcp.Update] == nil || refused[fakemcp.Update][0] != "/amount_cents" {
		t.Errorf("not_checked %v, refused %v; want /channel of create_order and /amount_cents of update_order", not, refused)
	}
}

// shopServer is a server of a shop, with the contract for its tools as they are.
func shopServer(t *testing.T) (*fakemcp.Server, *httptest.Server, string) {
	t.Helper()
	s := fakemcp.New(fakemcp.NewWorld())
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.MCP }, nil))
	t.Cleanup(web.Close)
	text := fakemcp.Contract + "digests:\n"
	for _, name := range []string{fakemcp.Create, fakemcp.Update, fakemcp.Put, fakemcp.Delete, fakemcp.Get, fakemcp.Find} {
		d, err := mcp.Digest(s.Tool(name))
		if err != nil {
			t.Fatal(err)
		}
		text += "  " + name + ": " + d + "\n"
	}
	return s, web, text
}

// TestContractTry: one record is made, and the reading tool shows it; one that reads the wrong field
// proves nothing, and what is there already is not made again.
func TestContractTry(t *testing.T) {
	s, web, text := shopServer(t)
	p := newPlace(t, orders.Plain.Options())
	file := p.write("shop.yaml", text)
	try := func(file, tool, arguments string) result {
		return p.run("contract", "try", file, tool, "--arguments", arguments, "--scratch", "--server", web.URL)
	}
	says(t, p.want(exitUsage, p.run("contract", "try", file, fakemcp.Create, "--arguments", `{"order_id": "A-1", "note": "n"}`, "--server", web.URL)), "want --scratch", "Nothing was sent")
	if n := s.World.Calls(); n != 0 {
		t.Errorf("%d calls of a server that was not called a scratch one, want none", n)
	}
	says(t, p.want(0, try(file, fakemcp.Create, `{"order_id": "A-1", "note": "n"}`)), "find_orders, get_order showed nothing before the call of create_order, and the record as called after it")
	says(t, p.want(exitUsage, try(file, fakemcp.Create, `{"order_id": "A-1", "note": "n"}`)), "already", "Nothing was sent")
	says(t, p.want(exitUsage, try(file, fakemcp.Delete, `{}`)), "makes no record")
	says(t, p.want(exitUsage, try(file, fakemcp.Create, `[]`)), "want a JSON object")
	wrong := p.write("wrong.yaml", strings.Replace(text, "note: $.note, amount_cents: $.amount_cents, customer: $.customer, channel", "note: $.customer, amount_cents: $.amount_cents, customer: $.customer, channel", 1))
	says(t, p.want(exitAttention, try(wrong, fakemcp.Create, `{"order_id": "A-2", "note": "n"}`)), "did not prove create_order")
	if n := s.World.Calls(fakemcp.Create); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	s.Replace(fakemcp.Create, "Does as it likes.")
	says(t, try(file, fakemcp.Create, `{"order_id": "A-3", "note": "n"}`), "another description or schema")
	if n := s.World.Calls(fakemcp.Create); n != 2 {
		t.Errorf("%d calls, want none of the tool that has changed", n-2)
	}
}

// TestATrialKnowsItsTools: one that has changed, or is not there, ends a trial before anything is called.
func TestATrialKnowsItsTools(t *testing.T) {
	s, web, text := shopServer(t)
	c, err := mcp.Load([]byte(text), "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	a, u := &app{}, upstream{server: web.URL}
	names := append(c.Proofs(fakemcp.Create), fakemcp.Create)
	if err := a.trusted(t.Context(), c, names, u, nil); err != nil {
		t.Error(err)
	}
	if err := a.trusted(t.Context(), c, []string{"no_tool"}, u, nil); !errors.Is(err, mcp.ErrWithdrawn) {
		t.Errorf("a tool that is not there: %v", err)
	}
	for _, tool := range names {
		is := s.Tool(tool).Description
		s.Replace(tool, "Does as it likes.")
		if err := a.trusted(t.Context(), c, names, u, nil); !errors.Is(err, mcp.ErrWithdrawn) || !strings.Contains(err.Error(), tool) {
			t.Errorf("%s has changed: %v", tool, err)
		}
		s.Replace(tool, is)
	}
	if n := s.World.Calls(); n != 0 {
		t.Errorf("%d calls", n)
	}
}
