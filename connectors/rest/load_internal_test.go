package rest

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// FuzzLoad: no file makes the loader panic, and no call of a connector from an accepted file
// panics.
func FuzzLoad(f *testing.F) {
	for _, name := range Shipped() {
		text, err := ShippedText(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add(fuzzed)
	traps, err := filepath.Glob("testdata/traps/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range traps {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range []string{
		"kinds: {a: {writes: {create: }, reads: [], record: }}", "kinds: {a: {key: [[], [a, a]], reads: [{by: [ref, key]}]}}",
		"auth: {bearer: }", "kinds: {a: {writes: {create: {body: [{\"...\": x}, {\"[...]\": 1}], condition: {if_absent: {}}}}}}",
		"kinds: {a: {record: {stamp: , fields: {a: , \"...\": {list: true}}}, sample: {key: 1}, undo: {create: {update: 1}}}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Load([]byte(text), "f")
		if err != nil {
			if d != nil || !errors.Is(err, ErrInvalid) {
				t.Errorf("%v, and a declaration beside it: %t", err, d != nil)
			}
			return
		}
		exercise(t, d)
	})
}

// exercise calls everything of a declaration, on a transport without answers.
func exercise(t *testing.T, d *Declaration) {
	o := Options{Parameters: map[string]string{}, Secrets: map[string]func(context.Context) (string, error){}, Transport: deaf{}}
	for _, p := range d.Parameters() {
		o.Parameters[p.Name] = p.Example
	}
	for _, s := range d.Logins()[0] {
		o.Secrets[s] = func(context.Context) (string, error) { return "secret", nil }
	}
	d.Sheets()
	c, err := New(d, o)
	if err != nil {
		return
	}
	_ = c.Probe(t.Context())
	for name, k := range d.kinds {
		for _, form := range k.forms {
			in := intent.WriteIntent{Kind: name, Key: intent.Fields{}, Expect: intent.Fields{"x": "y"}}
			for _, field := range form {
				in.Key[field] = "1"
			}
			rec := connectors.Record{Ref: "1", Version: "2", Stamp: "3", Fields: intent.Fields{"x": "y"}}
			for w := range k.writes {
				in.Write = w
				for _, before := range []*connectors.Observation{nil, {}, {Records: []connectors.Record{rec}}} {
					r := connectors.Request{Intent: in, Stamp: "s", IdempotencyKey: "k", Before: before, Conditional: before != nil}
					if _, err := c.Write(t.Context(), r); err == nil {
						t.Error("a write without an answer counts as answered")
					}
					_, _ = c.Invert(in, before, connectors.Observation{Records: []connectors.Record{rec}})
				}
				_, _ = c.Sample(name, w, "x")
			}
			q := connectors.Query{Intent: in, Stamp: "s", Ref: "1"}
			if o, err := c.Read(t.Context(), q); err == nil {
				t.Errorf("a read without an answer shows %v", o)
			}
			_, _ = c.ReadMany(t.Context(), []connectors.Query{q, q})
		}
	}
}

// deaf is a network without answers.
type deaf struct{}

func (deaf) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("deaf") }
