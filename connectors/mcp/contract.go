package mcp

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/jsonplace"
)

// Contract is the checked description of what the tools of a server do. It does no I/O. It is
// safe for concurrent use.
type Contract struct {
	name, server string
	serial       bool
	reads        []string
	digests      map[string][]string
	kinds        map[string]*kind
	tools        map[string]*write
}

// Name is the contract's own, "memory".
func (c *Contract) Name() string { return c.name }

// Server is the server that it was written for, for display.
func (c *Contract) Server() string { return c.server }

// Reads lists the tools that only read, by the contract: those it lists as such, and those that
// verify its writes.
func (c *Contract) Reads() []string {
	all := slices.Clone(c.reads)
	for _, k := range c.kinds {
		for _, r := range k.reads {
			all = append(all, r.tool)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Writes lists the tools that the contract can verify, sorted.
func (c *Contract) Writes() []string { return slices.Sorted(maps.Keys(c.tools)) }

// Digests lists the digests that a tool may have, one for each build of the server; see [Digest].
// It is empty for a tool that the contract does not pin.
func (c *Contract) Digests(tool string) []string { return slices.Clone(c.digests[tool]) }

// unpinned stands for the digest of a tool of a server that changes without a version, or whose
// builds could not be had: the tool is hidden until an operator has pinned it.
const unpinned = "unpinned"

// Pins lists the tools that need a digest: those that write, and those that verify.
func (c *Contract) Pins() []string {
	all := c.Writes()
	for _, tool := range c.Writes() {
		all = append(all, c.Proofs(tool)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Kinds lists the kinds of record.
func (c *Contract) Kinds() []string { return slices.Sorted(maps.Keys(c.kinds)) }

// Target returns the kind and write type of a tool; false for one without a contract.
func (c *Contract) Target(tool string) (kind string, w intent.WriteType, ok bool) {
	one, ok := c.tools[tool]
	if !ok {
		return "", "", false
	}
	return one.kind.name, one.write, true
}

// Proofs lists the tools whose answers verify a write tool, in order.
func (c *Contract) Proofs(tool string) []string {
	one, ok := c.tools[tool]
	if !ok {
		return nil
	}
	return one.kind.proofs()
}

func (k *kind) proofs() []string {
	var all []string
	for _, r := range k.reads {
		all = append(all, r.tool)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Profiles is what the server can do, by kind of record.
func (c *Contract) Profiles() map[string]connectors.Profile {
	return declared.Profiles(c.kinds, func(k *kind) connectors.Profile { return k.profile })
}

// kind is one kind of record.
type kind struct {
	name    string
	keys    []string // fields of the business key, in order
	writes  map[intent.WriteType]*write
	reads   []*read
	record  *record
	undo    map[intent.WriteType]intent.WriteType
	profile connectors.Profile
	// each means that one call writes several records.
	each bool
	// compare is how fields are compared where each is set; otherwise the profile has it.
	compare map[string]intent.Comparison
	// parts means that the record consists of several objects that are read one by one.
	parts bool
}

// write is one tool that writes.
type write struct {
	kind  *kind
	write intent.WriteType
	tool  string
	// each is the list of the records in the arguments, within one in each of
	// its elements; nil where the arguments are of one record.
	each, within path
	key          map[string]source
	expect       map[string]source
	require      map[string]source
	ref          path // where the record's own id goes
	stamp        path
	idempotency  path
	window       time.Duration
	idempotent   bool
	made         *jsonplace.Place // of the new record's id, in the answer
	refused      []*regexp.Regexp
	conflict     []*regexp.Regexp
	throttled    []*regexp.Regexp
	passes       *passes
	notChecked   []unchecked
}

// readsBack reports whether the intent of a call needs the record before it.
func (w *write) readsBack() bool {
	for _, all := range []map[string]source{w.expect, w.require} {
		for _, s := range all {
			if s.before != "" || s.replace != nil {
				return true
			}
		}
	}
	return false
}

// passes is the argument that turns a write into a read.
type passes struct {
	argument path
	equals   any
}

// source is where a value of an intent comes from.
type source struct {
	path    path // into the arguments, or the element
	outer   bool // the path goes into the element around it
	fixed   bool
	value   any    // fixed
	before  string // a field of the record before
	replace *replace
}

// argument reports whether the value is in the arguments unchanged.
func (s source) argument() bool { return !s.fixed && s.before == "" && s.replace == nil }

// replace is a text of the record before with pieces replaced.
type replace struct {
	each     path
	old, new path
	lf       bool // every CRLF becomes LF before, as the tool does it
}

// read is one way to read.
type read struct {
	name          string
	tool          string
	by            string // "key", "stamp" or "ref"
	arguments     map[string]*template
	form          string // of the answer: "", "structured", "json" or "text"
	single        *jsonplace.Place
	list          *declared.List
	within        *jsonplace.Place
	absent, empty []*regexp.Regexp
	limit         int
	newest        int
	strong        bool
	as            string
	asksKeys      bool // for one record at a time
}

// record is how a record of an answer is parsed.
type record struct {
	ref, url, version *jsonplace.Place
	stamp             *field
	fields            map[string]*field
}

// field is how one field is understood.
type field struct {
	place *jsonplace.Place
	outer bool
	key   string // of the query, where the answer does not repeat it
	match *regexp.Regexp
}
