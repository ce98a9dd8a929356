package connectors

import (
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/intent"
)

// Bound is a duration that a destination promises, or does not. The zero value
// is undeclared, which is not the same as zero.
type Bound struct {
	d        time.Duration
	declared bool
}

// Within declares a bound. A negative d counts as zero.
func Within(d time.Duration) Bound {
	return Bound{d: max(d, 0), declared: true}
}

// WithinOr is d, otherwise if d is zero, and not declared if d is negative, for options of
// connectors.
func WithinOr(d, otherwise time.Duration) Bound {
	switch {
	case d < 0:
		return Bound{}
	case d == 0:
		return Within(otherwise)
	}
	return Within(d)
}

// Declared returns the bound and whether there is one.
func (b Bound) Declared() (time.Duration, bool) { return b.d, b.declared }

// Passed reports whether the bound is declared and elapsed has reached it.
func (b Bound) Passed(elapsed time.Duration) bool {
	return b.declared && elapsed >= b.d
}

// Profile is what a destination can do with one kind of record. Every zero
// value is the cautious one.
type Profile struct {
	// Destination and Kind name the subject of this profile.
	Destination string
	Kind        string

	// Writes lists the write types that there are. Others are refused before
	// anything is recorded. Default: all of them.
	Writes []intent.WriteType
	// NativeWindow gives, by write type, how long the destination
	// deduplicates by our idempotency key, counted from the first send.
	// Default: not at all.
	NativeWindow map[intent.WriteType]time.Duration
	// Unique lists the write types whose repeat addresses the one record by a key that the
	// destination enforces as unique (unique-key insert, PUT, upsert, delete by an id that is
	// never reused). Default none.
	Unique []intent.WriteType
	// Conditional lists the write types that can be refused by the
	// destination unless the record is as it was read before. Default none.
	Conditional []intent.WriteType
	// FreshKeys means that no record under the key can exist before a create, since we make the
	// key and use it once (a Message-ID made from the stamp). Default false: read before a
	// create.
	FreshKeys bool

	// Stamped means that a created record has our stamp and that reads show it. Default false.
	Stamped bool
	// StampsUpdates means that an updated record has the stamp of the last write. Default false.
	StampsUpdates bool

	// WriteOnly means that nothing can be read there (a receiver of messages, a tool without a
	// read). A send that the destination accepts is then reported and never verified. A send
	// without a response is repeated only inside NativeWindow. [Profile.Valid] checks what such a
	// destination cannot claim. Default false: it is read back.
	WriteOnly bool

	// Settle is how long reads may lag behind writes. Default undeclared: a
	// weak read then never proves absence.
	Settle Bound
	// Open is how long after a send a record may stay undecided (Observation.Open). Default
	// undeclared: one that is undecided is read no longer than any other.
	Open Bound
	// Horizon is how long a send may still be applied after the client gave up. Default
	// undeclared: absence is then never conclusive.
	Horizon Bound
	// Rollback is how long after a send the destination may itself take back what it accepted or
	// showed. Default undeclared: another actor removed what is gone, and it is not sent again.
	Rollback Bound
	// ConfirmReads is how many reads in a row must agree. Default 1.
	ConfirmReads int
	// Recheck is when to read a verified write again, counted from the last send, where late
	// duplicates or rollbacks happen. Default when Rollback has passed, or never, unless the way
	// it was verified needs one.
	Recheck Bound

	// Proof is what a record that is as declared proves, where that is less than the purpose of
	// the write: "a copy of it, and not that a recipient received it". Default "": it proves the
	// effect.
	Proof string

	// Volatile lists fields (JSON Pointers) that the destination changes by
	// itself (update times, versions): never collateral. Default none.
	Volatile []string
	// Compare gives the destination's normalisation by field. An intent's own
	// comparison of the field wins. Default exact.
	Compare map[string]intent.Comparison

	// Summary is how records and writes are described to people. Default: by their kind and key.
	Summary Summary

	// Sensitive lists fields (JSON Pointers) of its records whose values are never stored or
	// shown in the clear, in addition to those that an intent marks: as
	// [intent.WriteIntent.Sensitive]. Default none.
	Sensitive []string

	// Irreversible lists the write types whose effect cannot be taken back, and may be where no
	// read can see it (a mail sent). Their absence is conclusive only with Observation.Unused. After a
	// send of unknown fate they are repeated only then, or where NativeWindow, Unique or Conditional
	// makes the repeat harmless: see also NeverRepeat. Default none.
	Irreversible []intent.WriteType
	// ShowsUnused lists the write types of two calls of which a read can report Observation.Unused.
	// It is for display. Default none.
	ShowsUnused []intent.WriteType
	// NeverRepeat lists the write types that are sent once and not again, whatever key or condition
	// there is, unless it is proven that nothing was applied by the send, or a reviewer states it.
	// It says nothing about undoing. Default none.
	NeverRepeat []intent.WriteType
	// Undo lists the write types that the connector can invert ([Inverter]).
	// Default none.
	Undo []intent.WriteType
	// Reads lists the ways in which records are read, by Observation.Path. They are for display
	// and statistics; each observation states what it proves. Default none known.
	Reads []ReadPath
	// Sends is how many sends may reach the destination over the lifetime of one write. Default:
	// the engine's option for all.
	Sends int
	// Rate is how many calls the destination takes. Default not known.
	Rate Rate
	// BulkLimit is how many queries one bulk read takes. Default: no bulk
	// read.
	BulkLimit int
	// BulkWait is how long a read waits for others to share its bulk read, where few calls matter
	// more than a quick outcome. Default: none waits unless a call is in progress.
	BulkWait time.Duration
	// SendTimeout bounds one send. Default 30 s.
	SendTimeout time.Duration
	// ReadTimeout bounds one read. Default 10 s.
	ReadTimeout time.Duration
}

// ReadPath is one way of reading.
type ReadPath struct {
	Path     string   // "get", "search"; as in Observation.Path
	By       string   // how it queries: "ref", "stamp" or "key"
	Strength Strength // how strong it is at its best
	// Independent is its best independence from the path of writes, as the connector knows it
	// from its own configuration. An observation states that of one read. Default OwnCall.
	Independent Independence
}

// Rate is so many calls in so much time.
type Rate struct {
	Calls int
	Per   time.Duration
}

const (
	defaultSendTimeout = 30 * time.Second
	defaultReadTimeout = 10 * time.Second
)

// Check refuses a write type that there is not. The error wraps
// [intent.ErrInvalid].
func (p Profile) Check(w intent.WriteType) error {
	if len(p.Writes) == 0 || slices.Contains(p.Writes, w) {
		return nil
	}
	return WrongField("/write", fmt.Errorf("%w: /write: %q has no %s of kind %q; it has %v", intent.ErrInvalid, p.Destination, w, p.Kind, p.Writes))
}

// Valid returns an error that names an impossible claim of a profile, or nil. A write-only
// destination claims nothing that only a read could use or show.
func (p Profile) Valid() error {
	if p.Sends < 0 {
		return fmt.Errorf("sends is %d; want how many sends of one write it may get, or 0 for the engine's own number", p.Sends)
	}
	if err := p.Summary.Valid(); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	for _, path := range p.Sensitive {
		if at := intent.Pointer(path); path == "" || !at.IsValid() {
			return fmt.Errorf("sensitive lists %q; want JSON Pointers to fields, such as /card/number", path)
		}
	}
	for _, way := range p.Reads {
		if all := []Independence{OwnCall, OtherLogin, OtherInterface, OtherServer}; !slices.Contains(all, way.Independent) {
			return fmt.Errorf("the read %q is independent by %q; want one of %q", way.Path, way.Independent, all)
		}
	}
	if !p.WriteOnly {
		return nil
	}
	_, settles := p.Settle.Declared()
	_, rechecks := p.Recheck.Declared()
	_, opens := p.Open.Declared()
	_, rollsBack := p.Rollback.Declared()
	for _, claim := range []struct {
		field   string
		claimed bool
	}{
		{"stamped", p.Stamped}, {"stamps updates", p.StampsUpdates}, {"unique", len(p.Unique) > 0},
		{"conditional", len(p.Conditional) > 0}, {"undo", len(p.Undo) > 0}, {"reads", len(p.Reads) > 0},
		{"bulk limit", p.BulkLimit > 0}, {"bulk wait", p.BulkWait > 0}, {"confirm reads", p.ConfirmReads > 1}, {"settle time", settles}, {"open", opens}, {"recheck", rechecks}, {"rollback", rollsBack},
		{"volatile", len(p.Volatile) > 0}, {"compare", len(p.Compare) > 0}, {"read timeout", p.ReadTimeout > 0},
	} {
		if claim.claimed {
			return fmt.Errorf("it is write-only and declares %s, which only a read could use or show; leave one of the two out", claim.field)
		}
	}
	return nil
}

// SendFor is the bound on one send: SendTimeout, or 30 s.
func (p Profile) SendFor() time.Duration { return orDefault(p.SendTimeout, defaultSendTimeout) }

// ReadFor is the bound on one read: ReadTimeout, or 10 s, after BulkWait.
func (p Profile) ReadFor() time.Duration {
	return max(p.BulkWait, 0) + orDefault(p.ReadTimeout, defaultReadTimeout)
}

// Confirm is how many reads in a row must agree: ConfirmReads, or 1.
func (p Profile) Confirm() int { return max(p.ConfirmReads, 1) }

func orDefault(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}
