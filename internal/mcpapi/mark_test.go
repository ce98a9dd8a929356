package mcpapi_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/readback-go/readback/internal/mcpapi"
)

type params struct {
	Meta      map[string]any  `json:"_meta"`
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

func TestMark(t *testing.T) {
	for name, c := range map[string]struct{ reason, body, want string }{
		"call":         {"its id goes where tools find it", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"a":1.50}}}`, `{"id":7,"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"readback/request":"7"},"arguments":{"a":1.50},"name":"t"}}`},
		"text id":      {"another one", `{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"t"}}`, `{"id":"7","jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"readback/request":"\"7\""},"name":"t"}}`},
		"forged":       {"no client writes it", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"readback/request":"8","x":1},"name":"t"}}`, `{"id":7,"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"readback/request":"7","x":1},"name":"t"}}`},
		"other method": {"as it is", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":7,"method":"ping"}`},
		"batch":        {"each of it", `[{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}},{"jsonrpc":"2.0","id":8,"method":"ping"}]`, `[{"id":7,"jsonrpc":"2.0","method":"tools/call","params":{"_meta":{"readback/request":"7"},"name":"t"}},{"jsonrpc":"2.0","id":8,"method":"ping"}]`},
		"answer":       {"no request", `{"jsonrpc":"2.0","id":7,"result":{}}`, `{"jsonrpc":"2.0","id":7,"result":{}}`},
	} {
		got, err := mcpapi.Mark([]byte(c.body))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(c.want, string(got)); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, c.reason, d)
		}
	}
}

// Of a batch no more messages are read than a client may send, whatever follows.
func TestMarkReadsNoMoreThanABatch(t *testing.T) {
	one := `{"jsonrpc":"2.0","id":7,"method":"ping"},`
	if _, err := mcpapi.Mark([]byte("[" + strings.Repeat(one, 80_000) + "%%")); err == nil || !strings.Contains(err.Error(), "more than 100 messages") {
		t.Error(err)
	}
	if _, err := mcpapi.Mark([]byte("[" + strings.TrimSuffix(strings.Repeat(one, 100), ",") + "]")); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"[" + one, "[1,", `[{"jsonrpc":"2.0","id":7,"method":"ping"}`, `[]]`, `[] {}`} {
		if _, err := mcpapi.Mark([]byte(wrong)); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// FuzzMark: for every input, what is passed on is the same, except for the id of a call,
// which is the message's own.
func FuzzMark(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"a":1},"name":"t","arguments":{"a":[1,2.0,"x"]}}}`,
		`{"jsonrpc":"2.0","id":"7","method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{}}`,
		`{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"_meta":7}}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}`,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `[]`, `{}`, ``, `nul`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		marked, err := mcpapi.Mark(body)
		if err != nil {
			return
		}
		again, err := mcpapi.Mark(marked)
		if err != nil || !bytes.Equal(again, marked) {
			t.Fatalf("marked twice is another message: %v\n%s\n%s", err, marked, again)
		}
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
			return
		}
		before, errBefore := jsonrpc.DecodeMessage(bytes.TrimSpace(body))
		after, err := jsonrpc.DecodeMessage(marked)
		if errBefore != nil || err != nil {
			t.Fatalf("no message: %v, %v", errBefore, err)
		}
		was, isRequest := before.(*jsonrpc.Request)
		is, stillRequest := after.(*jsonrpc.Request)
		if isRequest != stillRequest {
			t.Fatalf("%T became %T", before, after)
		}
		if isRequest {
			same(t, was, is)
		}
	})
}

func same(t *testing.T, was, is *jsonrpc.Request) {
	t.Helper()
	if was.Method != is.Method || was.ID != is.ID {
		t.Fatalf("%s %v became %s %v", was.Method, was.ID, is.Method, is.ID)
	}
	var a, b params
	if json.Unmarshal(was.Params, &a) != nil || was.Method != "tools/call" || !was.IsCall() {
		return
	}
	if err := json.Unmarshal(is.Params, &b); err != nil {
		t.Fatal(err)
	}
	if string(a.Name) != string(b.Name) || string(a.Arguments) != string(b.Arguments) {
		t.Fatalf("another call: %s\n%s", was.Params, is.Params)
	}
	delete(a.Meta, mcpapi.MetaRequest)
	got, there := b.Meta[mcpapi.MetaRequest]
	delete(b.Meta, mcpapi.MetaRequest)
	if d := cmp.Diff(len(a.Meta), len(b.Meta)); d != "" {
		t.Fatalf("another _meta: %s", d)
	}
	if there && got == "" {
		t.Fatal("an empty id")
	}
}
