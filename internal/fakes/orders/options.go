package orders

import (
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Options define what the destination can do (the first part) and what it declares about itself
// (the second). The two may differ: a destination that declares a settle time below its lag has a
// wrong profile. The zero value can do nothing and declares nothing.
type Options struct {
	// Window is how long an Idempotency-Key is honoured, counted from its
	// first use. Default 0: the header is ignored.
	Window time.Duration
	// Unique makes order_id unique: a second create is answered with 409, and
	// PUT by key exists. Default false.
	Unique bool
	// Lags are how far the replicas lag that serve reads; reads use them in rotation. Default
	// none: reads come from the primary.
	Lags []time.Duration
	// Stamps means that a created order keeps the stamp and that reads show it. Default false.
	Stamps bool
	// StampUpdates means that an update writes its stamp over the earlier one. Default false.
	StampUpdates bool
	// Versions means that orders have versions and that If-Match is honoured. Default false.
	Versions bool
	// Bulk means that many lookups can be made in one call. Default false.
	Bulk bool

	// Settle is the settle time declared. Default undeclared.
	Settle connectors.Bound
	// Horizon is the horizon declared. Default undeclared.
	Horizon connectors.Bound
	// Recheck is the recheck declared. Default undeclared.
	Recheck connectors.Bound
	// Rollback is the time declared within which effects can be taken back. Default
	// undeclared.
	Rollback connectors.Bound
	// ConfirmReads is how many reads in a row must agree. Default 1.
	ConfirmReads int
	// SendTimeout and ReadTimeout are those of the profile. Default: the
	// profile's own defaults.
	SendTimeout, ReadTimeout time.Duration

	// Seed decides the faults that happen by chance. The same seed, order,
	// operation and repeat meet the same fault, however requests interleave.
	// Default 0.
	Seed uint64
	// Faults are the faults that are on from the beginning. Default none.
	Faults []Fault
	// Log keeps the effects. Default: memory alone.
	Log *Log
}

// Class names one of the four kinds of destination that readback distinguishes.
type Class string

// The classes. All of them keep stamps and declare [DefaultHorizon].
const (
	Native  Class = "native"  // deduplicates by idempotency key; strong reads
	Unique  Class = "unique"  // order_id is unique; strong reads
	Plain   Class = "plain"   // nothing but strong reads
	Lagging Class = "lagging" // nothing, and reads lag by DefaultLag
)

// Classes lists the four.
func Classes() []Class { return []Class{Native, Unique, Plain, Lagging} }

// Options returns the class as options, to be changed at will. What they
// declare is true. An unknown class can do nothing.
func (c Class) Options() Options {
	o := Options{
		Stamps:  true,
		Settle:  connectors.Within(0),
		Horizon: connectors.Within(DefaultHorizon),
		// Phantom successes and rollbacks at once are faults of this destination.
		Rollback: connectors.Within(DefaultRollback), Recheck: connectors.Within(0),
	}
	switch c {
	case Native:
		o.Window = DefaultWindow
	case Unique:
		o.Unique = true
	case Plain:
	case Lagging:
		o.Lags = []time.Duration{DefaultLag}
		o.Settle = connectors.Within(DefaultLag)
	default:
		return Options{}
	}
	return o
}

// Kind is the one kind of record there is.
const Kind = "order"

// reads are the list by both and, in bulk, the same in one call.
func (o Options) reads() []connectors.ReadPath {
	strength := connectors.Strong
	if len(o.Lags) > 0 {
		strength = connectors.Weak
	}
	paths := []connectors.ReadPath{{Path: pathList, By: "key", Strength: strength}, {Path: pathList, By: "stamp", Strength: strength}}
	if o.Bulk {
		paths = append(paths, connectors.ReadPath{Path: pathLookup, By: "key", Strength: strength})
	}
	return paths
}

// The names of the ways of reading in observations.
const (
	pathAll    = "all"
	pathList   = "list"
	pathLookup = "lookup"
	pathGet    = "get"
)

// Profile is what the options declare about orders.
func (o Options) Profile() connectors.Profile {
	p := connectors.Profile{
		Kind:          Kind,
		Summary:       connectors.Summary{Text: "order {" + fieldOrderID + "}[ for {amount}]", Amount: "/" + fieldAmount, Currency: "/currency", Minor: true},
		Unique:        []intent.WriteType{intent.Delete}, // ids are never used again
		Stamped:       o.Stamps,
		StampsUpdates: o.Stamps && o.StampUpdates,
		Settle:        o.Settle,
		Horizon:       o.Horizon,
		Recheck:       o.Recheck,
		Rollback:      o.Rollback,
		ConfirmReads:  o.ConfirmReads,
		Volatile:      []string{"/" + fieldUpdated},
		Undo:          []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete},
		Reads:         o.reads(),
		SendTimeout:   o.SendTimeout,
		ReadTimeout:   o.ReadTimeout,
	}
	if o.Unique {
		p.Unique = append(p.Unique, intent.Create, intent.Upsert)
	}
	if o.Versions {
		p.Conditional = []intent.WriteType{intent.Update, intent.Delete}
		if o.Unique {
			p.Conditional = append(p.Conditional, intent.Upsert)
		}
	}
	if o.Window > 0 {
		p.NativeWindow = map[intent.WriteType]time.Duration{}
		for _, t := range []intent.WriteType{intent.Create, intent.Update, intent.Upsert, intent.Delete} {
			p.NativeWindow[t] = o.Window
		}
	}
	if o.Bulk {
		p.BulkLimit = BulkLimit
	}
	return p
}
