package matrix

import (
	"encoding/json"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
)

const (
	tenant  = "acme"
	orderID = "A-1"
)

// class is one kind of destination.
type class struct {
	name, says string
	options    func() orders.Options
	kinds      []string // default all
	writeOnly  bool     // nothing can be read there

	irreversible bool // its profile declares so for every write
}

var classes = []class{
	{"native", "deduplicates by our idempotency key; strong reads", orders.Native.Options, nil, false, false},
	{"native, irreversible", "deduplicates by our idempotency key, and what it does cannot be taken back (a payment); strong reads", orders.Native.Options, []string{"create"}, false, true},
	{"unique", "the key is unique, and there is an upsert by it; strong reads", orders.Unique.Options, nil, false, false},
	{"plain", "nothing but strong reads", orders.Plain.Options, nil, false, false},
	{"lagging", "nothing, and reads lag by 2 s", orders.Lagging.Options, nil, false, false},
	{"versioned", "plain, and updates and deletes can be made conditional on the version", func() orders.Options {
		o := orders.Plain.Options()
		o.Versions = true
		return o
	}, []string{"update", "delete"}, false, false},
	{"write-only", "cannot be read", orders.Plain.Options, []string{"create"}, true, false},
	{"write-only, native", "cannot be read; deduplicates by our idempotency key", orders.Native.Options, []string{"create"}, true, false},
}

// all lists the kinds of write that the class is run with.
func (c class) all() []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return c.kinds != nil && !slices.Contains(c.kinds, k.name) })
}

// variant is what a destination declares about its times.
type variant struct {
	name, says string
	declare    func(*orders.Options)
	classes    []string // default all
}

var variants = []variant{
	{"horizon passes", "a horizon of 30 s is declared, and passes", func(*orders.Options) {}, nil},
	{"no horizon", "no horizon is declared, so it never passes", func(o *orders.Options) { o.Horizon = connectors.Bound{} }, []string{"native", "unique", "plain", "lagging", "versioned"}},
	{"no settle time", "a horizon of 30 s is declared, and no settle time", func(o *orders.Options) { o.Settle = connectors.Bound{} }, []string{"lagging"}},
}

// kind is one type of write, with what is there before it.
type kind struct {
	name  string
	write intent.WriteType
	there bool // a record is there before
}

var kinds = []kind{
	{"create", intent.Create, false},
	{"update", intent.Update, true},
	{"upsert (new)", intent.Upsert, false},
	{"upsert (there)", intent.Upsert, true},
	{"delete", intent.Delete, true},
}

// cell is one situation; a run of it adds the point at which a process fails.
type cell struct {
	class   class
	variant variant
	kind    kind
	fault   faultCase
}

func (c cell) options() orders.Options {
	o := c.class.options()
	if c.fault.options != nil {
		c.fault.options(&o)
	}
	c.variant.declare(&o)
	return o
}

func (c cell) intent() intent.WriteIntent {
	w := intent.WriteIntent{
		Tenant: tenant, Workflow: "wf-1", Step: "pay", Tool: "orders." + string(c.kind.write),
		Destination: "orders", Kind: orders.Kind,
		Key: intent.Fields{"order_id": orderID}, Write: c.kind.write,
	}
	if c.kind.write != intent.Delete {
		w.Expect = intent.Fields{"amount_cents": json.Number("1999"), "currency": "USD"}
	}
	if c.fault.intent != nil {
		c.fault.intent(&w)
	}
	return w
}

// earlier is the record that is there before an update, upsert or delete.
func earlier() intent.Fields {
	return intent.Fields{"order_id": orderID, "amount_cents": json.Number("5"), "currency": "EUR", "note": "kept"}
}

// powers is what follows from the cell alone about what can be known and done.
// It is read off what the destination can do, not off its profile.
type powers struct {
	native      bool // it deduplicates by our key
	addressed   bool // a repeat meets the unique key, or the condition
	conclusive  bool // absence can become certain
	shows       bool // a read can prove that our write is there
	creates     bool
	overwritten bool // a repeat replaces what is there under the unique key
	readsFirst  bool // the plan reads the state before
	recent      bool // a read can be sure to be no older than the send
	based       bool // the state before is known for sure, or there can be none
	versions    bool // reads show a version, so that a record written twice differs from an untouched one
}

func (c cell) powers() powers {
	o, w := c.options(), c.kind.write
	if c.class.writeOnly {
		return powers{native: o.Window > 0, creates: true}
	}
	_, settles := o.Settle.Declared()
	_, ends := o.Horizon.Declared()
	recent := len(o.Lags) == 0 || settles
	creates := !c.kind.there
	return powers{
		native: o.Window > 0,
		addressed: w == intent.Delete ||
			o.Unique && (w == intent.Create || w == intent.Upsert) ||
			o.Versions && w == intent.Update,
		conclusive: ends && recent && !c.class.irreversible, shows: recent || creates, creates: creates,
		overwritten: o.Unique && w == intent.Upsert,
		readsFirst:  !(o.Unique && w == intent.Create),
		recent:      recent,
		based:       len(o.Lags) == 0 || w == intent.Create,
		versions:    o.Versions,
	}
}

// repeatable reports whether a write of unknown fate that is not there can be
// sent again without harm.
func (p powers) repeatable() bool { return p.native || p.addressed || p.conclusive }

// all lists every possible cell: a fault that a class cannot have, or that cannot concern a
// write, makes none.
func all() []cell {
	var cells []cell
	for _, cl := range classes {
		for _, va := range variants {
			if va.classes != nil && !slices.Contains(va.classes, cl.name) {
				continue
			}
			for _, vi := range faultCases {
				if cl.writeOnly && writeOnlyWants[vi.name] == nil {
					continue
				}
				for _, ki := range cl.all() {
					if c := (cell{cl, va, ki, vi}); vi.can == nil || vi.can(c) {
						cells = append(cells, c)
					}
				}
			}
		}
	}
	return cells
}

func hasFields(c cell) bool { return c.kind.write != intent.Delete }
func canUndo(c cell) bool   { return hasFields(c) && !c.class.irreversible }
func canDouble(c cell) bool { return hasFields(c) && !c.class.options().Unique }
