package guards

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

const (
	// readEvery is how old the copy of the notes may be when a send is requested; readLast is how old
	// if the notes cannot be read. Together with the quarter of a second for which the engine
	// relies on an answer, a stop takes effect everywhere within a second.
	readEvery = 500 * time.Millisecond
	readLast  = 750 * time.Millisecond
	// stoppedFirst and stoppedMost bound when a write that a stop holds asks again, which costs a
	// claim and a commit; in between it is stoppedShare of the time for which the stop has held.
	stoppedFirst = time.Second
	stoppedMost  = 30 * time.Second
	stoppedShare = 10
	// maxBy, maxOwner, maxReason and maxScope bound the texts of a stop, in bytes, and maxLog the
	// entries of its history: every worker reads all stops twice a second.
	maxBy     = 200
	maxOwner  = 200
	maxReason = 500
	maxScope  = 1 << 10
	maxLog    = 10
)

// Errors of stops. They are wrapped.
var (
	// ErrIncomplete: the name or the reason of a stop or release is missing or too long.
	ErrIncomplete = errors.New("incomplete")
	// ErrNotStopped: there is no stop of that scope to release.
	ErrNotStopped = errors.New("not stopped")
)

// Scope selects the sends that a stop holds. An empty field matches any; the zero value matches
// all sends.
type Scope struct {
	Tenant      string `json:"tenant,omitempty"`
	Destination string `json:"destination,omitempty"`
	Tool        string `json:"tool,omitempty"`
}

// String describes it for display.
func (s Scope) String() string {
	var parts []string
	for _, p := range []struct{ what, name string }{{"tenant", s.Tenant}, {"destination", s.Destination}, {"tool", s.Tool}} {
		if p.name != "" {
			parts = append(parts, fmt.Sprintf("%s %q", p.what, p.name))
		}
	}
	if len(parts) == 0 {
		return "all sends"
	}
	return strings.Join(parts, ", ")
}

// note names the note of a scope. It is a hash, with the length of each part, so that two scopes
// never share a name.
func (s Scope) note() string {
	h := sha256.New()
	for _, part := range []string{s.Tenant, s.Destination, s.Tool} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return prefix + "stop/" + hex.EncodeToString(h.Sum(nil)) + "/"
}

// covering are all scopes that hold a write.
func covering(rec ledger.Record) []Scope {
	var all []Scope
	for _, tenant := range []string{"", rec.Tenant} {
		for _, destination := range []string{"", rec.Destination} {
			for _, tool := range []string{"", rec.Tool} {
				all = append(all, Scope{Tenant: tenant, Destination: destination, Tool: tool})
			}
		}
	}
	return all
}

// Act is one entry in the history of a stop.
type Act struct {
	Released bool      `json:"released,omitempty"` // otherwise stopped
	By       string    `json:"by"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"` // on the ledger's clock
}

// Stopped is a stop, or the record of a released one.
type Stopped struct {
	Scope
	Active bool // false: released
	// Log is its history, newest last, at most the last ten entries.
	Log []Act
	// Damaged reports that its note is unreadable. It holds the sends of its scope, which is
	// unknown, until that scope is stopped or released anew.
	Damaged bool
}

// Last is the newest entry of the history.
func (s Stopped) Last() Act {
	if len(s.Log) == 0 {
		return Act{}
	}
	return s.Log[len(s.Log)-1]
}

// stopNote is a stop as stored. The zero value stops.
type stopNote struct {
	Scope
	Released bool  `json:"released,omitempty"`
	Log      []Act `json:"log"`
}

// Stop holds all sends of a scope, by every worker, from the next one on and within a second;
// earlier sends are still read back. It holds until [Release]. by and reason are required, at
// most 200 and 500 bytes. A second stop of the same scope adds to the history. The error wraps
// [ErrIncomplete], or is the ledger's: then [Stops] returns whether it holds.
func Stop(ctx context.Context, notes ledger.Documents, s Scope, by, reason string) error {
	if err := errors.Join(s.check(), complete(by, reason)); err != nil {
		return fmt.Errorf("stop %s: %w", s, err)
	}
	return s.record(ctx, notes, Act{By: by, Reason: reason})
}

// Release ends the stop of exactly this scope; stops of other scopes that hold some of its sends
// remain. by and reason are required as with [Stop]. The error wraps [ErrNotStopped] or
// [ErrIncomplete], or is the ledger's.
func Release(ctx context.Context, notes ledger.Documents, s Scope, by, reason string) error {
	if err := errors.Join(s.check(), complete(by, reason)); err != nil {
		return fmt.Errorf("release %s: %w", s, err)
	}
	return s.record(ctx, notes, Act{Released: true, By: by, Reason: reason})
}

// record adds an act to the note of the scope.
func (s Scope) record(ctx context.Context, notes ledger.Documents, act Act) error {
	b := newNoteCache(notes)
	if _, err := b.again(ctx, s.note()); err != nil {
		return fmt.Errorf("%s: %w", s, err)
	}
	missing := false
	err := b.change(ctx, s.note(), func(n ledger.Note) []byte {
		have, ok := decoded[stopNote](n)
		if missing = act.Released && ok && (len(n.Value) == 0 || have.Released); missing {
			return nil
		}
		act.At = b.clock.early()
		log := append(have.Log, act)
		return encoded(stopNote{Scope: s, Released: act.Released, Log: log[max(0, len(log)-maxLog):]})
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", s, err)
	case missing:
		return fmt.Errorf("release %s: %w: name the scope of the stop exactly", s, ErrNotStopped)
	}
	return nil
}

func (s Scope) check() error {
	for _, name := range []string{s.Tenant, s.Destination, s.Tool} {
		if len(name) > maxScope {
			return fmt.Errorf("%w: a name of the scope has %d bytes; want at most %d", ErrIncomplete, len(name), maxScope)
		}
	}
	return nil
}

func complete(by, reason string) error {
	for _, f := range []struct {
		name, text string
		most       int
	}{{"by", by, maxBy}, {"reason", reason, maxReason}} {
		switch {
		case strings.TrimSpace(f.text) == "":
			return fmt.Errorf("%w: %s is missing; say who stops it and why", ErrIncomplete, f.name)
		case len(f.text) > f.most:
			return fmt.Errorf("%w: %s has %d bytes; want at most %d", ErrIncomplete, f.name, len(f.text), f.most)
		}
	}
	return nil
}

// Stops lists all stops, active ones first, then by scope. It includes released ones with their
// history. The error is the ledger's.
func Stops(ctx context.Context, notes ledger.Documents) ([]Stopped, error) {
	all, _, err := notes.Notes(ctx, prefix+"stop/")
	if err != nil {
		return nil, fmt.Errorf("stops: %w", err)
	}
	return stopsOf(all), nil
}

func stopsOf(all []ledger.Note) []Stopped {
	var stops []Stopped
	for _, n := range all {
		if !strings.HasPrefix(n.Name, prefix+"stop/") {
			continue
		}
		note, ok := decoded[stopNote](n)
		stops = append(stops, Stopped{Scope: note.Scope, Active: !note.Released, Log: note.Log, Damaged: !ok})
	}
	slices.SortStableFunc(stops, func(a, b Stopped) int {
		if a.Active != b.Active {
			if a.Active {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Tool, b.Tool))
	})
	return stops
}

// Stopped implements [engine.Guards]: it checks only the stops, with the same freshness as
// [Guards.Enter].
func (g *Guards) Stopped(ctx context.Context, rec ledger.Record) *engine.Hold {
	return g.stopped(ctx, rec)
}

// stopped returns a hold if a stop holds a write now, or if that cannot be known.
func (g *Guards) stopped(ctx context.Context, rec ledger.Record) *engine.Hold {
	err := g.cache.fresh(ctx, readEvery)
	if age, ok := g.cache.age(); !ok || age > readLast {
		return &engine.Hold{Rule: ruleStopped, For: readEvery,
			Reason: visible.Cut(fmt.Sprintf("the stops could not be read, and nothing is sent without knowing them: %v", err), maxReason)}
	}
	for _, s := range covering(rec) {
		if why, held := g.cache.stop(s); why != "" {
			return &engine.Hold{Rule: ruleStopped, Reason: why, For: min(max(held/stoppedShare, stoppedFirst), stoppedMost)}
		}
	}
	return nil
}

// stop returns why a scope is stopped, "" if it is not, and for how long it has been.
func (b *noteCache) stop(s Scope) (why string, held time.Duration) {
	n := b.note(s.note())
	if len(n.Value) == 0 {
		return "", 0
	}
	note, ok := decoded[stopNote](n)
	switch {
	case !ok:
		return fmt.Sprintf("%s: there is a stop, and its note cannot be read; stop or release it anew", s), 0
	case note.Released:
		return "", 0
	}
	last := Stopped{Log: note.Log}.Last()
	return fmt.Sprintf("%s: stopped by %s: %s", s, last.By, last.Reason), b.clock.early().Sub(last.At)
}
