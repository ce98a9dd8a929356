package verify_test

import (
	"encoding/json"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// The owner of an observed effect follows from our stamp, or from a receipt and a value that
// only our write can have produced.
func TestOwn(t *testing.T) {
	const open, paid, half = `{"id":"1","state":"open","sum":1}`, `{"id":"1","state":"paid","sum":2}`, `{"id":"1","state":"paid","sum":1}`
	const theirs, mixed, added = `{"id":"1","state":"void","sum":1}`, `{"id":"1","state":"paid","sum":3}`, `{"id":"1","state":"paid","sum":1,"note":"x"}`
	answered := func(version string) *connectors.Receipt { return &connectors.Receipt{Ref: "A", Version: version} }
	checked := connectors.Profile{Conditional: []intent.WriteType{intent.Update}}
	for name, c := range map[string]struct {
		write   intent.WriteType
		profile connectors.Profile
		receipt *connectors.Receipt
		before  string
		seen    []connectors.Record
		want    bool
	}{
		"verified, answered":                {intent.Update, plain, answered(""), open, []connectors.Record{record(t, "", paid)}, true},
		"verified, not answered":            {intent.Update, plain, nil, open, []connectors.Record{record(t, "", paid)}, false},
		"verified, our stamp":               {intent.Update, stampsAll, nil, open, []connectors.Record{record(t, ourStamp, paid)}, true},
		"verified, another stamp":           {intent.Update, stampsAll, answered(""), open, []connectors.Record{record(t, "rb-theirs", paid)}, false},
		"half of it, answered":              {intent.Update, plain, answered(""), open, []connectors.Record{record(t, "", half)}, true},
		"phantom success, another value":    {intent.Update, plain, answered(""), open, []connectors.Record{record(t, "", theirs)}, false},
		"phantom success, as before":        {intent.Update, plain, answered(""), open, []connectors.Record{versioned(record(t, "", open), "2")}, false},
		"phantom success, the same version": {intent.Update, checked, answered("2"), open, []connectors.Record{versioned(record(t, "", theirs), "2")}, false},
		"another value beside ours":         {intent.Update, plain, answered(""), open, []connectors.Record{record(t, "", mixed)}, false},
		"another value, our version":        {intent.Update, checked, answered("7"), open, []connectors.Record{versioned(record(t, "", mixed), "7")}, true},
		"another value, a later version":    {intent.Update, checked, answered("7"), open, []connectors.Record{versioned(record(t, "", mixed), "8")}, false},
		"our version, sent unconditionally": {intent.Update, plain, answered("7"), open, []connectors.Record{versioned(record(t, "", mixed), "7")}, false},
		"added to":                          {intent.Update, plain, answered(""), open, []connectors.Record{record(t, "", added)}, false},
		"no pre-state":                      {intent.Update, plain, answered(""), "", []connectors.Record{record(t, "", half)}, false},
		"another record under the key":      {intent.Update, plain, answered(""), open, []connectors.Record{named(record(t, "", half), "B")}, false},
		"created, answered":                 {intent.Create, plain, answered(""), "", []connectors.Record{record(t, "", paid)}, true},
		"created, another than answered":    {intent.Create, plain, answered(""), "", []connectors.Record{named(record(t, "", paid), "B")}, false},
		"created, not answered":             {intent.Create, plain, nil, "", []connectors.Record{record(t, "", paid)}, false},
		"created, our stamp":                {intent.Create, stamped, nil, "", []connectors.Record{record(t, ourStamp, paid)}, true},
		"created, our key":                  {intent.Create, freshKeys, nil, "", []connectors.Record{record(t, "", paid)}, true},
		"created, a field lost":             {intent.Create, stamped, nil, "", []connectors.Record{record(t, ourStamp, `{"id":"1","state":"paid"}`)}, true},
		"created, a field without a value":  {intent.Create, stamped, nil, "", []connectors.Record{record(t, ourStamp, `{"id":"1","state":"paid","sum":null}`)}, true},
		"created, a field altered":          {intent.Create, stamped, nil, "", []connectors.Record{record(t, ourStamp, mixed)}, false},
		"created, changed since":            {intent.Create, stamped, answered("1"), "", []connectors.Record{versioned(record(t, ourStamp, paid), "2")}, false},
		"created twice":                     {intent.Create, stamped, answered(""), "", []connectors.Record{record(t, ourStamp, paid), named(record(t, ourStamp, paid), "B")}, false},
		"deleted, answered":                 {intent.Delete, plain, answered(""), open, nil, true},
		"deleted, not answered":             {intent.Delete, plain, nil, open, nil, false},
		"not deleted, and changed":          {intent.Delete, plain, answered(""), open, []connectors.Record{record(t, "", theirs)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := intent.WriteIntent{Write: c.write, Key: intent.Fields{"id": "1"}}
			if c.write != intent.Delete {
				w.Expect = intent.Fields{"state": "paid", "sum": json.Number("2")}
			}
			k := verify.Case{Intent: w, Profile: c.profile, Stamp: ourStamp, Receipt: c.receipt, Seen: strong(c.seen...)}
			if c.before != "" {
				k.Before = one(record(t, "", c.before))
			}
			if j := verify.Judge(k); j.Own != c.want {
				t.Errorf("own is %t, want %t: %+v", j.Own, c.want, j)
			}
		})
	}
}
