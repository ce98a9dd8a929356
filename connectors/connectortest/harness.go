package connectortest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/readbacktest/fault"
)

// Kinds lists the faults that the suite requests from Set, one at a time, on the next write or
// the next read.
func Kinds() []fault.Kind {
	return []fault.Kind{fault.LostAnswer, fault.DroppedBefore, fault.BadGateway, fault.LateCommit, fault.PhantomSuccess,
		fault.DroppedField, fault.NormalisedField, fault.LaggingRead, fault.UnreadableRead, fault.HangingRead,
		fault.DuplicateBehindOurBack, fault.Rollback, fault.Unreachable, fault.Refused, fault.Throttled}
}

// Names for Harness.Lacks besides the faults: parts of a [Fixture] that a
// harness cannot give.
const (
	LacksNear      = "near"      // Fixture.Near
	LacksSeed      = "seed"      // Fixture.Seed
	LacksChange    = "change"    // Fixture.Change
	LacksSends     = "sends"     // Fixture.Sends
	LacksNullField = "null"      // Fixture.NullField
	LacksFindStamp = "findstamp" // a stamped record cannot be found by its stamp under another key
	LacksElsewhere = "elsewhere" // Fixture.Elsewhere

	// What some destinations do not do.
	LacksReplay      = "replay"      // a repeat under the key of a first send is refused as a conflict, not answered as the first was
	LacksRetryAfter  = "retryafter"  // a limit is answered without a time to wait
	LacksRemoval     = "removal"     // what was created cannot be removed; the inverse of a create is an update
	LacksStampUpdate = "stampupdate" // a stamp can be told only to the write that made the record
)

// Harness is how the suite gets at one kind of destination.
type Harness struct {
	// Open returns a destination that holds nothing, once for each check. It
	// runs in the check's bubble; what it starts is ended by t.Cleanup.
	// Required.
	Open func(t *testing.T) *Fixture
	// Writes are the write types that the destination has. Create must be
	// among them. Required.
	Writes []intent.WriteType
	// Lacks declares what the destination cannot have or the harness cannot
	// give: a fault, or a Lacks constant, and the reason. Default nothing.
	Lacks map[string]string
	// Variants are the forms of a fault. Each check of the fault runs once for each, and Set
	// receives it. Default one form, "".
	Variants map[fault.Kind][]string
	// RealTime runs the checks outside of a bubble. Default false.
	RealTime bool
	// Patience is how long the suite waits for what must come. Default 1 min
	// in a bubble and 10 s in real time.
	Patience time.Duration
	// SendTimeout is how long a call may take in the checks where the
	// destination hangs. Default 1 s in a bubble, 200 ms in real time.
	SendTimeout time.Duration
}

// Fixture is one open destination. Functions may call t.Fatal of the t that
// Open got.
type Fixture struct {
	// Connector is under test. Required.
	Connector connectors.Connector
	// Profile is what it declares about the records of Intent. Required.
	Profile connectors.Profile

	// Intent returns a good intent of a write type on record n, complete with
	// its origin (workflow, step, tool, call: so that each write type and n
	// has a stamp of its own; where Workflow is empty the suite fills it in).
	// One n always has one business key, two have two. An update changes, and
	// an upsert sets, at least one field to something else than the create
	// does; expect has at least two fields besides the key. Required.
	Intent func(w intent.WriteType, n int) intent.WriteIntent
	// Near returns creates of other records with keys that nearly are that of
	// record n: another letter case, a prefix, a longer one, with blanks. None
	// of them may be found under the key of n.
	Near func(n int) []intent.WriteIntent
	// Scope lists all records of Intent, where the connector is a [connectors.Lister]. Default:
	// the kind of Intent alone.
	Scope *connectors.Scope
	// Unlisted is why these records cannot be listed although the connector is a Lister. Default
	// "": they can.
	Unlisted string
	// Shared is why a list may show records that another check made: a server that all share. The
	// suite then lists only the records of the check. Default "": the destination is empty at
	// first.
	Shared string
	// NullField names a top-level field that can hold null.
	NullField string

	// Set switches a fault on for the next request that it concerns, and only
	// for that one. variant is one of Harness.Variants, or "". An error fails
	// the check.
	Set func(v fault.Kind, variant string) error
	// Seed creates the record of a create as another actor would: without our stamp.
	Seed func(w intent.WriteIntent)
	// Change changes the record under a key as another actor would: at least its version, if
	// there are versions.
	Change func(key intent.Fields)
	// Put creates a record as another actor would, with exactly these fields, those of the key
	// included, and this stamp, "" for none. An error says why there can be no such record. This
	// suite does not use it; package verifytest needs it for records that the connector itself
	// would never make. Default none.
	Put func(fields intent.Fields, stamp string) error
	// Alter changes fields of the one record under a key, as another actor would. An error says
	// that no actor can. As Put, for verifytest. Default none.
	Alter func(key, fields intent.Fields) error

	// Records returns what is there under a key now, from the destination's
	// own store. Required.
	Records func(key intent.Fields) []connectors.Record
	// Effects returns how many changes requests have made under a key since
	// Open, from the destination's own store; those of Seed, of Change and of
	// the destination itself do not count. Required.
	Effects func(key intent.Fields) int
	// Sends returns how many writes reached the destination since Open,
	// refused ones included.
	Sends func() int
	// Elsewhere returns how many writes, and how many reads of records, have reached the
	// interface or server that serves reads instead of the one that takes writes, or were made with
	// the login of reads (ReadPath.Independent), since Open. None where this fixture has no such place. Default: the
	// profile declares none.
	Elsewhere func() (writes, reads int)

	// Same reports whether a field that was written and one that was read are
	// the same to this destination. Default: equal as JSON, numbers by value.
	Same func(field string, want, got any) bool
}

// Near makes a [Fixture].Near of its Intent: creates whose key has these values in one member.
func Near(of func(w intent.WriteType, n int) intent.WriteIntent, member string, values ...string) []intent.WriteIntent {
	var all []intent.WriteIntent
	for i, value := range values {
		in := of(intent.Create, 100+i)
		in.Key[member] = value
		all = append(all, in)
	}
	return all
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	h.defaults(t)
	for _, name := range slices.Sorted(maps.Keys(h.Lacks)) {
		t.Logf("declared: no %s: %s", name, h.Lacks[name])
	}
	for _, s := range subjects(h) {
		t.Run(s.name, func(t *testing.T) { h.run(t, s) })
	}
}
