package sql_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// everything is a table with a column of each type.
func everything(t *testing.T) *bench {
	t.Helper()
	c := need(t)
	name := fmt.Sprintf("everything%d", runs.Add(1))
	if err := c.primary.Exec("postgres", `CREATE EXTENSION IF NOT EXISTS citext; CREATE TABLE `+name+` (k bigint, k2 numeric, PRIMARY KEY (k, k2),
		txt text, chr char(8), ci citext, int bigint, num numeric(24,4), flt real, ok boolean, id uuid, at timestamptz, local timestamp, day date,
		doc json, bytes bytea, texts text[], grid integer[][], span interval, total numeric GENERATED ALWAYS AS (k * 2) STORED, touched timestamptz DEFAULT now(), stamp text);
		GRANT ALL ON `+name+` TO writer; GRANT SELECT ON `+name+` TO reader`); err != nil {
		t.Fatal(err)
	}
	return newBench(t, sql.Table{Name: name, Key: []string{"k", "k2"}, Unique: true, Stamp: "stamp", Whole: true, Version: sql.XMin, Columns: []sql.Column{
		{Name: "k", Type: sql.Integer}, {Name: "k2", Type: sql.Numeric}, {Name: "txt"}, {Name: "chr", Type: sql.Char}, {Name: "ci", Type: sql.CaseFold},
		{Name: "int", Type: sql.Integer}, {Name: "num", Type: sql.Numeric}, {Name: "flt", Type: sql.Float}, {Name: "ok", Type: sql.Bool},
		{Name: "id", Type: sql.UUID}, {Name: "at", Type: sql.Timestamp}, {Name: "local", Type: sql.LocalTime}, {Name: "day", Type: sql.Date},
		{Name: "doc", Type: sql.JSON}, {Name: "bytes", Type: sql.Bytes}, {Name: "texts", Type: sql.Array}, {Name: "grid", Type: sql.Array},
		{Name: "span", Type: sql.Other}, {Name: "total", Type: sql.Numeric, ReadOnly: true}, {Name: "touched", Type: sql.Timestamp, Volatile: true},
	}}, false, nil)
}

// TestValues: each value comes back as it was written, under the profile's
// comparison of its column; and what is nearly it does not.
func TestValues(t *testing.T) {
	d := everything(t)
	if err := d.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	n := func(s string) json.Number { return json.Number(s) }
	n1 := 0
	for column, values := range map[string][]struct{ wrote, other any }{
		"txt":   {{" two  blanks ", " two blanks "}, {"", nil}, {nil, ""}, {"';--\\\"$1\n", "';--"}, {"żółw 🐢", "żółw"}},
		"chr":   {{"ab", " ab"}, {" ab", "ab"}, {"", nil}},
		"ci":    {{"MiXed", "mixe"}},
		"int":   {{n("9007199254740991"), n("9007199254740990")}, {"9223372036854775807", "9223372036854775806"}, {n("1e3"), n("1001")}},
		"num":   {{"12345678901234567890.1234", "12345678901234567890.1235"}, {n("1.50"), n("1.51")}, {n("-0.0001"), n("0")}, {n("0"), nil}},
		"flt":   {{n("0.5"), n("0.25")}, {n("0.1"), n("0.10001")}},
		"ok":    {{true, false}, {false, nil}},
		"id":    {{"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"}},
		"at":    {{"2026-01-02T03:04:05.123456789+05:30", "2026-01-02T03:04:05.123458+05:30"}, {"1969-12-31T23:59:59Z", "1969-12-31T23:59:58Z"}},
		"local": {{"2026-01-02T03:04:05.5", "2026-01-02T03:04:05.6"}},
		"day":   {{"2026-02-28", "2026-03-01"}},
		"doc":   {{map[string]any{"a": []any{n("1.0"), nil, "x"}, "b": map[string]any{}}, map[string]any{"a": []any{n("1"), nil}}}, {[]any{}, nil}, {"text", "texts"}, {n("1e5"), n("1e6")}},
		"bytes": {{"AAEC/w==", "AAEC"}, {"", nil}},
		"texts": {{[]any{"a,b", `"q"`, `\`, "NULL", nil, "", " "}, []any{"a", "b"}}, {[]any{}, nil}},
		"grid":  {{[]any{[]any{n("1"), n("2")}, []any{n("3"), nil}}, []any{n("1"), n("2"), n("3")}}},
		"span":  {{"P1DT2H", "P1DT3H"}},
	} {
		for i, v := range values {
			n1++
			t.Run(fmt.Sprintf("%s/%d", column, i), func(t *testing.T) {
				in := intent.WriteIntent{Tenant: "t", Workflow: fmt.Sprint(column, i), Tool: "x", Destination: "d", Kind: "order", Write: intent.Create,
					Key: intent.Fields{"k": n(fmt.Sprint(n1)), "k2": "1.0"}, Expect: intent.Fields{column: v.wrote}}
				if err := in.Validate(); err != nil {
					t.Fatal(err)
				}
				if _, err := d.Write(t.Context(), connectors.Request{Intent: in, Stamp: in.Stamp()}); err != nil {
					t.Fatal(err)
				}
				o, err := d.Read(t.Context(), connectors.Query{Intent: in, Stamp: in.Stamp()})
				if err != nil || len(o.Records) != 1 {
					t.Fatalf("%d rows, %v", len(o.Records), err)
				}
				got := o.Records[0]
				if m := verify.Diff(in, d.Profiles()["order"].Compare, got.Fields); len(m) > 0 {
					t.Errorf("it differs: %v", m)
				}
				in.Expect = intent.Fields{column: v.other}
				if m := verify.Diff(in, d.Profiles()["order"].Compare, got.Fields); len(m) == 0 {
					t.Errorf("%#v is taken for %#v", got.Fields[column], v.other)
				}
				undo, err := d.Invert(withExpect(in, column, v.wrote), &connectors.Observation{}, o)
				if err != nil || undo.Write != intent.Delete {
					t.Errorf("the inverse is %v (%v), want a delete", undo, err)
				}
			})
		}
	}
}

func withExpect(in intent.WriteIntent, column string, v any) intent.WriteIntent {
	in.Expect = intent.Fields{column: v}
	return in
}

// TestRefusedValues: what a column would change, or cannot hold, is refused
// before anything is sent, with the name of the field.
func TestRefusedValues(t *testing.T) {
	d := everything(t)
	key := intent.Fields{"k": json.Number("1"), "k2": json.Number("1")}
	for name, c := range map[string]struct {
		change func(in *intent.WriteIntent)
		names  string
	}{
		"blanks that char drops":  {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"chr": "a "} }, "/expect/chr"},
		"a number as text":        {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"txt": json.Number("1")} }, "/expect/txt"},
		"a fraction":              {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"int": json.Number("1.5")} }, "/expect/int"},
		"not a number":            {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"num": "NaN"} }, "/expect/num"},
		"hexadecimal":             {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"num": "0x10"} }, "/expect/num"},
		"a boolean in words":      {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"ok": "true"} }, "/expect/ok"},
		"a time without offset":   {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"at": "2026-01-02T03:04:05"} }, "/expect/at"},
		"a local time with one":   {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"local": "2026-01-02T03:04:05Z"} }, "/expect/local"},
		"a date that is none":     {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"day": "2026-02-30"} }, "/expect/day"},
		"a uuid in braces":        {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"id": "{a}"} }, "/expect/id"},
		"Base64 without padding":  {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"bytes": "AAE"} }, "/expect/bytes"},
		"an object in an array":   {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"texts": []any{map[string]any{}}} }, "/expect/texts"},
		"NUL":                     {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"txt": "a\x00b"} }, "/expect/txt"},
		"no such column":          {func(in *intent.WriteIntent) { in.Payload = intent.Fields{"nope": "x"} }, "/payload/nope"},
		"the stamp column":        {func(in *intent.WriteIntent) { in.Expect = intent.Fields{"stamp": "rb-mine"} }, "/expect/stamp"},
		"a generated column":      {func(in *intent.WriteIntent) { in.Payload = intent.Fields{"total": json.Number("4")} }, "/payload/total"},
		"a column to be absent":   {func(in *intent.WriteIntent) { in.Absent = []string{"/txt"} }, "/absent/0"},
		"half a key":              {func(in *intent.WriteIntent) { delete(in.Key, "k2") }, "/key/k2"},
		"more than the key":       {func(in *intent.WriteIntent) { in.Key["txt"] = "x" }, "/key/txt"},
		"several rows of one key": {func(in *intent.WriteIntent) { in.Count = 2 }, "/count"},
	} {
		t.Run(name, func(t *testing.T) {
			in := intent.WriteIntent{Kind: "order", Write: intent.Create, Key: intent.Fields{}, Expect: intent.Fields{"txt": "x"}}
			for k, v := range key {
				in.Key[k] = v
			}
			c.change(&in)
			_, err := d.Write(t.Context(), connectors.Request{Intent: in, Stamp: "rb-x"})
			if fate(t, err, connectors.FateNotSent, "nothing may leave us"); err != nil && !strings.Contains(err.Error(), c.names) {
				t.Errorf("the error does not name %q: %v", c.names, err)
			}
		})
	}
	if d.writes.sends() != 0 {
		t.Errorf("%d commits", d.writes.sends())
	}
}

// TestGenerated: what the database fills is not written, and is verified.
func TestGenerated(t *testing.T) {
	d := everything(t)
	in := intent.WriteIntent{Kind: "order", Write: intent.Create, Key: intent.Fields{"k": json.Number("21"), "k2": json.Number("1")},
		Expect: intent.Fields{"txt": "x", "total": json.Number("42")}}
	if _, err := d.Write(t.Context(), connectors.Request{Intent: in, Stamp: "rb-x"}); err != nil {
		t.Fatal(err)
	}
	o, err := d.Read(t.Context(), connectors.Query{Intent: in})
	if err != nil || len(verify.Diff(in, d.Profiles()["order"].Compare, o.Records[0].Fields)) > 0 {
		t.Errorf("%v, %v; want the generated total as expected", o.Records, err)
	}
	if got := d.Profiles()["order"].Volatile; !slices.Contains(got, "/touched") {
		t.Errorf("volatile are %v, want /touched among them", got)
	}
}

// TestBulk: one statement answers many queries, each with only its own rows.
func TestBulk(t *testing.T) {
	d := everything(t)
	ask := func(k, k2 any, stamp string) connectors.Query {
		return connectors.Query{Intent: intent.WriteIntent{Kind: "order", Write: intent.Create, Key: intent.Fields{"k": k, "k2": k2}}, Stamp: stamp}
	}
	number := func(s string) json.Number { return json.Number(s) }
	for _, k := range []string{"1", "2"} {
		for _, k2 := range []string{"1", "2.50"} {
			in := ask(number(k), number(k2), "").Intent
			in.Expect = intent.Fields{"txt": k + "/" + k2}
			if _, err := d.Write(t.Context(), connectors.Request{Intent: in, Stamp: "rb-" + k + "-" + k2}); err != nil {
				t.Fatal(err)
			}
		}
	}
	questions := []connectors.Query{
		ask(number("1"), "1.00", ""), ask(number("2"), number("2.5"), ""), ask(number("1"), number("3"), ""),
		ask(number("9"), number("9"), "rb-1-1"), ask(number("2"), number("1"), "rb-1-2.50"), ask(number("1"), number("1"), "rb-none"),
	}
	want := []string{"1/1", "2/2.50", "", "1/1", "1/2.50 2/1", "1/1"}
	check := func(answers []connectors.BulkAnswer, err error) {
		t.Helper()
		if err != nil || len(answers) < len(want) {
			t.Fatalf("%d answers, %v", len(answers), err)
		}
		for i, w := range want {
			var got []string
			for _, r := range answers[i].Observation.Records {
				got = append(got, r.Fields["txt"].(string))
			}
			slices.Sort(got)
			if diff := cmp.Diff(w, strings.Join(got, " ")); diff != "" || answers[i].Err != nil || answers[i].Observation.Strength != connectors.Strong {
				t.Errorf("answer %d (%v, %q): -want +got\n%s", i, answers[i].Err, answers[i].Observation.Strength, diff)
			}
		}
	}
	check(d.ReadMany(t.Context(), questions))
	overflow := append(slices.Clone(questions), ask("99999999999999999999", number("1"), ""))
	answers, err := d.ReadMany(t.Context(), overflow)
	check(answers, err) // one key that the column cannot hold spoils no other
	var unknown *connectors.Error
	if last := answers[len(want)]; last.Err == nil || errors.As(last.Err, &unknown) {
		t.Errorf("the key that no bigint holds is answered with %v, want an error", last)
	}
}
