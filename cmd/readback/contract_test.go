package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/mcp/mcptest"
	"github.com/readback-go/readback/connectors/simulated"
)

func TestShippedContractsCanBePrintedAndChecked(t *testing.T) {
	p := newPlace(t, simulated.Plain.Options())
	for _, name := range mcp.Shipped() {
		text := p.want(0, p.run("contract", "print", name)).out
		says(t, p.want(0, p.run("contract", "check", p.write(name+".yaml", text))), "PROVEN BY", "upsert: ")
	}
	says(t, p.want(exitUsage, p.run("contract", "print", "erp")), "filesystem")
	says(t, p.want(exitUsage, p.run("contract", "suggest")), "--server is missing")
	says(t, p.want(exitUnavailable, p.run("contract", "suggest", "--server", "http://127.0.0.1:1/mcp")), "cannot be reached", "No tool was called")
}

func TestContractCheckSaysWhatIsWrongByLine(t *testing.T) {
	p := newPlace(t, simulated.Plain.Options())
	good := p.want(0, p.run("contract", "print", "filesystem")).out
	for name, c := range map[string]struct{ from, to, says string }{
		"an unknown member": {"\nserver:", "\nsever:", ":5: sever: is not known; did you mean server?"},
		"no digest":         {"  write_file: sha256:", "  wrote_file: sha256:", "digests: has none for write_file"},
		"no such field":     {"expect: {content: $.content}", "expect: {contents: $.content}", "shows no contents"},
		"a bad pattern":     {"'^EEXIST: '", "'('", "is no regular expression"},
		"all texts":         {"'^EEXIST: '", "'.*'", "matches every text"},
		"a draft":           {"contract: 1", "draft: x\ncontract: 1", "a person has not finished it"},
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
	s := mcptest.New(mcptest.NewWorld())
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.MCP }, nil))
	t.Cleanup(web.Close)
	p := newPlace(t, simulated.Plain.Options())
	text := p.want(0, p.run("contract", "suggest", "--server", web.URL)).out
	if s.World.Calls() != 0 {
		t.Error("a tool was called")
	}
	draft := p.write("draft.yaml", text)
	says(t, p.want(exitInvalid, p.run("contract", "check", draft)), "draft.yaml:2: draft: says that a person has not finished it")
	lines := strings.Split(text, "\n")
	finished := p.write("finished.yaml", strings.Join(append(lines[:1], lines[2:]...), "\n"))
	says(t, p.want(0, p.run("contract", "check", finished, "--server", web.URL)), "are those that it was written for")
	s.Turn(mcptest.Create, "Creates an order, and tells everybody.")
	r := p.want(exitDiffers, p.run("contract", "check", finished, "--server", web.URL))
	says(t, r, "create_order has another description or schema", "sha256:")
}
