package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/intent"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
)

func shippedContract(t *testing.T, name string) *mcp.Contract {
	t.Helper()
	c, err := mcp.ShippedContract(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func fields(t *testing.T, text string) intent.Fields {
	t.Helper()
	var f intent.Fields
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDerive(t *testing.T) {
	before := &connectors.Observation{Records: []connectors.Record{{Ref: "r", Fields: intent.Fields{"path": "/a", "content": "one two"}}}}
	for name, c := range map[string]struct {
		reason, contract, tool, args string
		before                       *connectors.Observation
		want                         intent.WriteIntent
	}{
		"a file": {"key and expectation hold all arguments", "filesystem", "write_file", `{"path":"/a","content":"x"}`, nil, intent.WriteIntent{
			Kind: "file", Write: intent.Upsert, Key: intent.Fields{"path": "/a"}, Expect: intent.Fields{"content": "x"}}},
		"an edit": {"what must come of it follows from what is there", "filesystem", "edit_file", `{"path":"/a","edits":[{"oldText":"two","newText":"three"}]}`, before, intent.WriteIntent{
			Kind: "file", Write: intent.Update, Key: intent.Fields{"path": "/a"}, Expect: intent.Fields{"content": "one three"}, Require: intent.Fields{"content": "one two"},
			Payload: intent.Fields{"arguments": map[string]any{"path": "/a", "edits": []any{map[string]any{"oldText": "two", "newText": "three"}}}}}},
		"an edit of lines that end otherwise": {"the tool makes one line end of both, in the file too", "filesystem", "edit_file", `{"path":"/a","edits":[{"oldText":"one\ntwo","newText":"1\r\n2"}]}`,
			&connectors.Observation{Records: []connectors.Record{{Ref: "r", Fields: intent.Fields{"path": "/a", "content": "one\r\ntwo\r\n"}}}}, intent.WriteIntent{
				Kind: "file", Write: intent.Update, Key: intent.Fields{"path": "/a"}, Expect: intent.Fields{"content": "1\n2\n"}, Require: intent.Fields{"content": "one\r\ntwo\r\n"},
				Payload: intent.Fields{"arguments": map[string]any{"path": "/a", "edits": []any{map[string]any{"oldText": "one\ntwo", "newText": "1\r\n2"}}}}}},
		"several": {"one intent for all of them", "memory", "create_relations", `{"relations":[{"from":"b","to":"a","relationType":"r"},{"from":"a","to":"b","relationType":"r"}]}`, nil, intent.WriteIntent{
			Kind: "relation", Write: intent.Upsert,
			Key: intent.Fields{"each": `[{"from":"b","relationType":"r","to":"a"},{"from":"a","relationType":"r","to":"b"}]`},
			Expect: intent.Fields{"records": map[string]any{
				`{"from":"b","relationType":"r","to":"a"}`: map[string]any{"from": "b", "to": "a", "relationType": "r"},
				`{"from":"a","relationType":"r","to":"b"}`: map[string]any{"from": "a", "to": "b", "relationType": "r"}}}}},
		"a delete": {"has no expectation, and no need of a payload", "memory", "delete_observations", `{"deletions":[{"entityName":"e","observations":["x","y"]}]}`, nil, intent.WriteIntent{
			Kind: "observation", Write: intent.Delete, Key: intent.Fields{"each": `[{"content":"x","entity":"e"},{"content":"y","entity":"e"}]`}}},
		"a delete in another order": {"is sent as it was asked for", "memory", "delete_observations",
			`{"deletions":[{"entityName":"e","observations":["x"]},{"entityName":"e","observations":["y"]}]}`, nil, intent.WriteIntent{
				Kind: "observation", Write: intent.Delete, Key: intent.Fields{"each": `[{"content":"x","entity":"e"},{"content":"y","entity":"e"}]`,
					"arguments": `{"deletions":[{"entityName":"e","observations":["x"]},{"entityName":"e","observations":["y"]}]}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			contract := shippedContract(t, c.contract)
			got, err := contract.Derive(c.tool, fields(t, c.args), c.before)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, d)
			}
			conn, err := mcp.New(contract, mcp.Options{Server: mcp.Server{Command: []string{"x"}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Check(got); err != nil {
				t.Errorf("what was derived is refused: %v", err)
			}
			sent, err := conn.Arguments(got)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(fields(t, c.args), sent); d != "" {
				t.Errorf("what is sent is not what was asked for (-want +got):\n%s", d)
			}
		})
	}
}

func TestArgumentsThatAreRefused(t *testing.T) {
	before := &connectors.Observation{Records: []connectors.Record{{Ref: "r", Fields: intent.Fields{"path": "/a", "content": "one one"}}}}
	for name, c := range map[string]struct {
		reason, contract, tool, args, says string
		before                             *connectors.Observation
	}{
		"no key":        {"no read could return it", "filesystem", "write_file", `{"content":"x"}`, "path", nil},
		"a key of null": {"null names nothing", "filesystem", "write_file", `{"path":null,"content":"x"}`, "path", nil},
		"nothing there": {"an edit of nothing", "filesystem", "edit_file", `{"path":"/a","edits":[{"oldText":"a","newText":"b"}]}`, "not there", &connectors.Observation{}},
		"no such text":  {"the model has read an older one", "filesystem", "edit_file", `{"path":"/a","edits":[{"oldText":"two","newText":"b"}]}`, "not exactly in the current record", before},
		"twice":         {"the place is ambiguous", "filesystem", "edit_file", `{"path":"/a","edits":[{"oldText":"one","newText":"b"}]}`, "more than once", before},
		"no edits":      {"nothing would change", "filesystem", "edit_file", `{"path":"/a","edits":[]}`, "no list of edits", before},
		"an empty list": {"there is nothing to write", "memory", "create_entities", `{"entities":[]}`, "empty", nil},
		"no list":       {"there must be one", "memory", "create_entities", `{"entities":{"name":"x"}}`, "no list", nil},
		"one twice":     {"one of them would be a second one", "memory", "create_entities", `{"entities":[{"name":"x"},{"name":"x"}]}`, "twice", nil},
		"no contract":   {"it has none", "memory", "read_graph", `{}`, "no contract", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := shippedContract(t, c.contract).Derive(c.tool, fields(t, c.args), c.before)
			if !errors.Is(err, mcp.ErrArguments) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v; want %q", c.reason, err, c.says)
			}
		})
	}
}

// TestIntentsThatLieAreRefused: what an intent carries as arguments must be what
// it declares, or something else would be done than is read back.
func TestIntentsThatLieAreRefused(t *testing.T) {
	contract := shippedContract(t, "filesystem")
	conn, err := mcp.New(contract, mcp.Options{Server: mcp.Server{Command: []string{"x"}}})
	if err != nil {
		t.Fatal(err)
	}
	honest := func() intent.WriteIntent {
		w, err := contract.Derive("write_file", fields(t, `{"path":"/a","content":"x"}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Payload = intent.Fields{"arguments": map[string]any(fields(t, `{"path":"/a","content":"x","mode":7}`))} // as another API may declare it
		return w
	}
	for name, c := range map[string]struct {
		reason string
		change func(w *intent.WriteIntent)
		says   string
	}{
		"another key":   {"it would write another file than it looks at", func(w *intent.WriteIntent) { w.Key["path"] = "/b" }, "/key/path"},
		"another state": {"the read back expects another text than the write sends", func(w *intent.WriteIntent) { w.Expect["content"] = "y" }, "/expect/content"},
		"less expected": {"the read back covers less than the write", func(w *intent.WriteIntent) { w.Expect = intent.Fields{"path": "/a"} }, "/expect/content"},
		"more keys":     {"no read queries it", func(w *intent.WriteIntent) { w.Key["owner"] = "me" }, "/key/owner"},
		"absent":        {"no tool takes a field away", func(w *intent.WriteIntent) { w.Absent = []string{"/x"} }, "/absent"},
		"a count":       {"one call, one record", func(w *intent.WriteIntent) { w.Count = 2 }, "/count"},
		"no arguments":  {"an object", func(w *intent.WriteIntent) { w.Payload["arguments"] = "x" }, "/payload/arguments"},
		"write-only": {"it has a contract, and write-only calls are off", func(w *intent.WriteIntent) {
			*w = mcp.WriteOnlyCall(*w, "write_file", intent.Fields{"path": "/a"})
		}, "/kind"},
	} {
		t.Run(name, func(t *testing.T) {
			w := honest()
			c.change(&w)
			if err := conn.Check(w); !errors.Is(err, intent.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v; want %q", c.reason, err, c.says)
			}
		})
	}
}

// TestArgumentsThatNothingCompares: an argument that no read can show is refused, unless the
// contract declares it as not compared; then the intent lists it as such.
func TestArgumentsThatNothingCompares(t *testing.T) {
	shop := fakemcp.Contract
	listing := strings.Replace(shop, "made: $.id\n", "made: $.id\n        not_checked: [status, $.meta.source]\n", 1)
	for name, c := range map[string]struct {
		reason, contract, tool, args string
		refused                      string   // is in the error
		notChecked                   []string // where it is not refused
	}{
		"all compared":       {"nothing is left out", shop, "create_order", `{"order_id":"A-1","note":"n","amount_cents":1}`, "", nil},
		"not mentioned":      {"verified would cover it too", shop, "create_order", `{"order_id":"A-1","note":"n","status":"paid"}`, "/status", nil},
		"null":               {"null is a value as well", shop, "create_order", `{"order_id":"A-1","note":"n","status":null}`, "/status", nil},
		"listed":             {"the contract says that it is not compared", listing, "create_order", `{"order_id":"A-1","note":"n","status":"paid"}`, "", []string{"/status"}},
		"listed, left out":   {"nothing was sent that is not compared", listing, "create_order", `{"order_id":"A-1","note":"n"}`, "", nil},
		"within":             {"one member is listed, and no other", listing, "create_order", `{"order_id":"A-1","note":"n","meta":{"source":"x"}}`, "", []string{"/meta/source"}},
		"beside":             {"the other one is not", listing, "create_order", `{"order_id":"A-1","note":"n","meta":{"source":"x","by":"y"}}`, "/meta/by", nil},
		"the record's id":    {"it aims the write", shop, "update_order", `{"order_id":"A-1","note":"n","id":"o-1"}`, "", nil},
		"of several":         {"in each of the records", "memory", "create_entities", `{"entities":[{"name":"a","entityType":"t","observations":[],"rank":1}]}`, "/entities/rank", nil},
		"beside several":     {"and around them", "memory", "create_entities", `{"entities":[{"name":"a","entityType":"t","observations":[]}],"name":"x"}`, "/name", nil},
		"a file's mode":      {"the shipped contract says nothing about it", "filesystem", "write_file", `{"path":"/a","content":"x","mode":7}`, "/mode", nil},
		"of a deleted thing": {"a delete sends it too", shop, "delete_order", `{"order_id":"A-1","reason":"x"}`, "/reason", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var contract *mcp.Contract
			if strings.Contains(c.contract, "\n") {
				contract = pinned(t, c.contract)
			} else {
				contract = shippedContract(t, c.contract)
			}
			in, err := contract.Derive(c.tool, fields(t, c.args), nil)
			if c.refused != "" {
				if !errors.Is(err, mcp.ErrArguments) || !strings.Contains(err.Error(), c.refused+":") {
					t.Fatalf("%s: %v, want a refusal of %s", c.reason, err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			conn := connect(t, fakemcp.New(fakemcp.NewWorld()), contract)
			if diff := cmp.Diff(c.notChecked, conn.NotChecked(in), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// TestRefusedArguments: uncompared arguments of a tool's schema are reported before the first
// call is refused for them.
func TestRefusedArguments(t *testing.T) {
	shop := pinned(t, fakemcp.Contract)
	listing := pinned(t, strings.Replace(fakemcp.Contract, "made: $.id\n", "made: $.id\n        not_checked: [status, $.meta.source]\n", 1))
	for name, c := range map[string]struct {
		contract *mcp.Contract
		tool     string
		schema   string
		want     []string
	}{
		"all compared":    {shop, "create_order", `{"properties":{"order_id":{"type":"string"},"note":true,"amount_cents":{"type":"integer"}}}`, nil},
		"two are not":     {shop, "create_order", `{"properties":{"order_id":{},"status":{},"labels":{"type":"array","items":{"type":"string"}}}}`, []string{"/labels", "/status"}},
		"listed":          {listing, "create_order", `{"properties":{"order_id":{},"status":{}}}`, nil},
		"within":          {listing, "create_order", `{"properties":{"order_id":{},"meta":{"properties":{"source":{},"by":{}}}}}`, []string{"/meta/by"}},
		"not described":   {listing, "create_order", `{"properties":{"order_id":{},"meta":{"type":"object"}}}`, nil},
		"of several":      {shippedContract(t, "memory"), "create_entities", `{"properties":{"entities":{"type":"array","items":{"properties":{"name":{},"entityType":{},"observations":{"items":{}},"rank":{}}}}}}`, []string{"/entities/rank"}},
		"a tool to read":  {shop, "get_order", `{"properties":{"fields":{}}}`, nil},
		"without a name":  {shop, "create_order", `{"type":"object"}`, nil},
		"another dialect": {shop, "create_order", `{"properties":{"order_id":{},"status":{"items":[{"type":"string"}]}}}`, []string{"/status"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.contract.Refused(&sdk.Tool{Name: c.tool, InputSchema: json.RawMessage(c.schema)})
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotCheckedNamesWhatThereIs: a name that is mistyped would excuse nothing.
func TestNotCheckedNamesWhatThereIs(t *testing.T) {
	shop := fakemcp.Contract
	if _, err := mcp.Load([]byte(strings.Replace(shop, "made: $.id\n", "made: $.id\n        not_checked: [note]\n", 1)), "shop.yaml"); err == nil || !strings.Contains(err.Error(), "shop.yaml:14: ") || !strings.Contains(err.Error(), "is compared") {
		t.Errorf("what is compared is excused: %v", err)
	}
	meta := `{"type":"object","properties":{"order_id":{"type":"string"},"status":{},"meta":{"type":"object","properties":{"source":{"properties":{"by":{}}}}},"tags":{"type":"array","items":{"properties":{"name":{}}}}}}`
	list := `{"type":"object","properties":{"entities":{"type":"array","items":{"properties":{"name":{},"rank":{},"meta":{"properties":{"by":{}}}}}},"dry":{}}}`
	inner := `{"type":"object","properties":{"observations":{"type":"array","items":{"properties":{"entityName":{},"rank":{},"contents":{"type":"array","items":{"type":"string"}}}}}}}`
	for name, c := range map[string]struct {
		reason, tool, listed, schema string
		want                         string // in the error, "" for none
	}{
		"mistyped":              {"it would excuse nothing", fakemcp.Create, "statsu", meta, "$.statsu, which is no argument of the tool; want one of $.meta, $.order_id, $.status, $.tags"},
		"a member":              {"meta has it", fakemcp.Create, "$.meta.source", meta, ""},
		"a mistyped member":     {"meta declares its members", fakemcp.Create, "$.meta.sorce", meta, "$.meta.sorce, which is no argument of the tool; want one of $.meta.source"},
		"deeper":                {"so does source", fakemcp.Create, "$.meta.source.by", meta, ""},
		"mistyped, deeper":      {"by is all that it has", fakemcp.Create, "$.meta.source.at", meta, "$.meta.source.at, which is no argument of the tool; want one of $.meta.source.by"},
		"a member of a text":    {"a text has none", fakemcp.Create, "$.order_id.x", meta, "$.order_id.x, which is no argument of the tool; want one of $.order_id"},
		"a member of a list":    {"a list is compared as a whole", fakemcp.Create, "$.tags.name", meta, "$.tags.name, which is no argument of the tool; want one of $.tags"},
		"members not declared":  {"they may be anything", fakemcp.Create, "$.meta.sorce", `{"properties":{"meta":{"type":"object"}}}`, ""},
		"null or an object":     {"its members are not declared", fakemcp.Create, "$.meta.sorce", `{"properties":{"meta":{"type":["object","null"]}}}`, ""},
		"others are allowed":    {"the schema says so", fakemcp.Create, "$.meta.sorce", `{"properties":{"meta":{"properties":{"source":{}},"additionalProperties":true}}}`, ""},
		"others are forbidden":  {"the schema says so", fakemcp.Create, "$.meta.sorce", `{"properties":{"meta":{"properties":{"source":{}},"additionalProperties":false}}}`, "want one of $.meta.source"},
		"declared elsewhere":    {"a reference may name more", fakemcp.Create, "$.meta.sorce", `{"$defs":{"m":{}},"properties":{"meta":{"$ref":"#/$defs/m","properties":{"source":{}}}}}`, ""},
		"one of several":        {"another form may name more", fakemcp.Create, "$.meta.sorce", `{"properties":{"meta":{"properties":{"source":{}},"anyOf":[{"properties":{"sorce":{}}}]}}}`, ""},
		"no schema":             {"it names no arguments", fakemcp.Create, "statsu", `{"type":"object"}`, ""},
		"of several":            {"each of the records has it", "create_entities", "rank", list, ""},
		"mistyped, of several":  {"no record has it", "create_entities", "rnak", list, "$.rnak, which is no argument of the tool; want one of $.dry, $.entities, or of $.meta, $.name, $.rank in an element of $.entities\n"},
		"within one of several": {"its meta has it", "create_entities", "$.meta.by", list, ""},
		"mistyped, within one":  {"its meta does not", "create_entities", "$.meta.yb", list, "$.meta.yb, which is no argument of the tool; want one of $.dry, $.entities, or of $.meta.by in an element of $.entities\n"},
		"from the root":         {"names are those of one record", "create_entities", "$.entities.rank", list, "$.entities.rank, which is no argument of the tool; want one of $.entities, or of"},
		"beside several":        {"it is not in the records", "create_entities", "dry", list, ""},
		"of unknown several":    {"the records are not declared", "create_entities", "rnak", `{"properties":{"entities":{"type":"array"}}}`, ""},
		"within several":        {"the element around it has it", "add_observations", "rank", inner, ""},
		"mistyped, within":      {"the inner ones are texts", "add_observations", "rnak", inner, "$.rnak, which is no argument of the tool; want one of $.observations, or of $.contents, $.entityName, $.rank in an element of $.observations\n"},
	} {
		t.Run(name, func(t *testing.T) {
			contract, at := fakemcp.Contract, "made: $.id\n"
			if c.tool != fakemcp.Create {
				text, err := mcp.ShippedText("memory")
				if err != nil {
					t.Fatal(err)
				}
				contract, at = string(text), "tool: "+c.tool+"\n"
			}
			contract = strings.Replace(contract, at, at+"        not_checked: ["+c.listed+"]\n", 1)
			line := strings.Count(contract[:strings.Index(contract, "not_checked:")], "\n") + 1
			if c.tool == fakemcp.Create {
				contract = withDigests(t, contract)
			}
			loaded, err := mcp.Load([]byte(contract), "shop.yaml")
			if err != nil {
				t.Fatal(err)
			}
			err = loaded.Trusts(&sdk.Tool{Name: c.tool, InputSchema: json.RawMessage(c.schema)})
			unknown := err != nil && strings.Contains(err.Error(), "not_checked")
			if unknown != (c.want != "") {
				t.Fatalf("%s: %v, want %q", c.reason, err, c.want)
			}
			if says := fmt.Sprintf("line %d of the contract has not_checked: ", line); unknown && (!errors.Is(err, mcp.ErrWithdrawn) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error()+"\n", c.want)) {
				t.Errorf("%s: %v, want %q and %q", c.reason, err, says, c.want)
			}
		})
	}
}
