package tool_test

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mcpapi/tool"
)

// TestToolsOfShippedDeclarations: a tool with an argument for each field of a sample
// of a declaration works, whatever form the declaration wants of values.
func TestToolsOfShippedDeclarations(t *testing.T) {
	tried := 0
	for _, name := range rest.Shipped() {
		d, err := rest.ShippedDeclaration(name)
		if err != nil {
			t.Fatal(err)
		}
		o := rest.Options{Parameters: map[string]string{}, Secrets: map[string]func(context.Context) (string, error){}}
		for _, p := range d.Parameters() {
			o.Parameters[p.Name] = cmp.Or(p.Example, p.Default)
		}
		for _, s := range d.Logins()[0] {
			o.Secrets[s] = func(context.Context) (string, error) { return "secret", nil }
		}
		c, err := rest.New(d, o)
		if err != nil {
			t.Fatal(name, err)
		}
		var reg connectors.Registry
		if err := reg.Register(name, connectors.Destination{Connector: c, Profiles: c.Profiles()}); err != nil {
			t.Fatal(err)
		}
		for _, kind := range d.Kinds() {
			for _, write := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
				w, err := c.Sample(kind, write, "sample1")
				if err != nil {
					continue
				}
				made := toolLike(w)
				made.Destination = name
				if err := made.Check(); err != nil {
					t.Errorf("%s, %s, %s: %v", name, kind, write, err)
					continue
				}
				if err := made.Fits(&reg); err != nil {
					t.Errorf("%s, %s, %s: %v", name, kind, write, err)
				}
				if doubts := made.Doubts(&reg); len(doubts) > 0 {
					t.Errorf("%s, %s, %s: %v", name, kind, write, doubts)
				}
				tried++
			}
		}
	}
	if tried < 15 {
		t.Errorf("only %d tools were tried", tried)
	}
}

// toolLike is a tool whose calls can make such an intent.
func toolLike(w intent.WriteIntent) tool.Tool {
	t := tool.Tool{Name: "t", Description: "d", Kind: w.Kind, Write: w.Write}
	for part, fields := range map[string]intent.Fields{"key": w.Key, "expect": w.Expect, "payload": w.Payload} {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if _, inKey := w.Key[name]; inKey && part != "key" {
				continue
			}
			a := tool.Argument{Name: part + "_" + name, Description: "d", Required: true, Type: tool.String, To: part + "/" + name}
			switch v := fields[name].(type) {
			case json.Number:
				a.Type = tool.Number
			case bool:
				a.Type = tool.Boolean
			case map[string]any:
				a.Type = tool.Object
			case []any:
				a.Type = tool.Array
				if len(v) > 0 {
					if _, ok := v[0].(map[string]any); ok {
						a.Items = tool.Object
					}
				}
			}
			if t.Arguments = append(t.Arguments, a); part == "key" {
				t.Key = append(t.Key, a.Name)
			}
		}
	}
	return t
}
