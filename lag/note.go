package lag

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// fadeAfter is how long until weights are halved if there are few writes: week-old lags
	// predict little.
	fadeAfter = 24 * time.Hour
	// maxNote bounds a note that is read: a full sketch has some 10 KiB.
	maxNote = 64 << 10
	// maxEpoch bounds how often everything was forgotten: a larger number is invalid.
	maxEpoch = 1 << 40
)

// prefix begins the names of notes about lags.
const prefix = "lag/"

// version is the version of notes' format. Notes of another version are left unchanged.
const version = 1

// written is a note's value.
type written struct {
	Version     int       `json:"v"`
	Destination string    `json:"destination"`
	Kind        string    `json:"kind"`
	Path        string    `json:"path"`
	Epoch       int64     `json:"epoch"`
	Faded       time.Time `json:"faded"` // when weights were last halved
	Sketch      []byte    `json:"sketch"`
}

func (w written) key() Key {
	return Key{Destination: w.Destination, Kind: w.Kind, Path: w.Path}
}

// nameOf is the name of the note about a path. Names of destinations, kinds and ways of reading
// may be long and hold any character.
func nameOf(p Key) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d %s %s", len(p.Destination), p.Destination, len(p.Kind), p.Kind, p.Path))
	return prefix + hex.EncodeToString(sum[:16])
}

// decodeNote reads a note. Other reports that it is of another version.
func decodeNote(n ledger.Note) (w written, s sketch, other bool, err error) {
	if len(n.Value) > maxNote {
		return w, s, false, fmt.Errorf("it has %d bytes, at most %d are read", len(n.Value), maxNote)
	}
	if err := json.Unmarshal(n.Value, &w); err != nil {
		return w, s, false, err
	}
	if w.Version != version {
		return w, s, true, fmt.Errorf("it is of version %d, this program reads %d", w.Version, version)
	}
	if n.Name != nameOf(w.key()) {
		return w, s, true, fmt.Errorf("it is about %q, and has another's name", w.key())
	}
	if w.Epoch < 0 || w.Epoch > maxEpoch {
		return w, s, false, fmt.Errorf("its epoch is %d", w.Epoch)
	}
	s, err = decodeSketch(w.Sketch)
	return w, s, false, err
}

// pending is a note that is to be saved.
type pending struct {
	note  ledger.Note
	path  Key
	epoch int64
	fresh sketch // the part of it that the ledger lacks
}

// merge adds what the ledger knows and returns what it lacks.
func (b *Book) merge(notes []ledger.Note, now time.Time) []pending {
	b.mu.Lock()
	defer b.mu.Unlock()
	stored := make(map[string]ledger.Note, len(notes))
	known := make(map[string]written)
	left := make(map[string]bool)
	for _, n := range notes {
		stored[n.Name] = n
		w, s, other, err := decodeNote(n)
		if err != nil {
			left[n.Name] = other
			b.complain(n, err)
			continue
		}
		known[n.Name] = w
		if l := b.at(w.key()); l != nil {
			l.adopt(w.Epoch, s)
		}
	}
	var all []pending
	for path, l := range b.paths {
		name := nameOf(path)
		w, there := known[name]
		if left[name] || !l.unsaved(there) {
			continue
		}
		all = append(all, l.write(w, stored[name], now))
	}
	return all
}

// complain logs once that a note is unreadable.
func (b *Book) complain(n ledger.Note, err error) {
	if b.warned[n.Name] == n.Version || len(b.warned) >= maxPaths {
		return
	}
	b.warned[n.Name] = n.Version
	b.opts.Logger.Warn("a note about lags is passed over", "note", n.Name, "error", err)
}

// adopt adds what the ledger knows: it replaces local knowledge if the ledger's epoch is later,
// and is combined with unsaved knowledge if the epochs are equal.
func (l *learned) adopt(epoch int64, stored sketch) {
	l.saved = epoch
	if epoch < l.epoch {
		return
	}
	if epoch > l.epoch {
		l.forget()
		l.epoch, l.saved = epoch, epoch
	}
	stored.merge(l.fresh)
	l.earlier, l.plan = stored, nil
}

// unsaved reports whether the ledger lacks anything.
func (l *learned) unsaved(there bool) bool {
	return there && l.epoch > l.saved || !l.fresh.IsEmpty() ||
		slices.ContainsFunc(l.recent, func(n interval) bool { return !n.saved })
}

// write makes the note of all that is known. The new part counts as saved from now on. w is the
// ledger's value, the zero value if it has none.
func (l *learned) write(w written, n ledger.Note, now time.Time) pending {
	l.plan = nil // the next fit must be complete
	f := l.planned().fitted
	for i := range l.recent {
		if !l.recent[i].saved {
			f.place(l.recent[i], l.fresh)
			f.place(l.recent[i], l.earlier)
			l.recent[i].saved = true
		}
	}
	all := newSketch()
	all.merge(l.earlier)
	if w.Faded.IsZero() || w.Faded.After(now) {
		w.Faded = now
	}
	if now.Sub(w.Faded) > fadeAfter {
		all.fade()
		w.Faded = now
	}
	for all.GetCount() > maxWeight { // many writes can have been added since the last note
		all.fade()
		w.Faded = now
	}
	w = written{Version: version, Destination: l.path.Destination, Kind: l.path.Kind, Path: l.path.Path,
		Epoch: l.epoch, Faded: w.Faded, Sketch: all.encode()}
	n.Name = nameOf(l.path)
	n.Value, _ = json.Marshal(w) // names, numbers and bytes always encode
	p := pending{note: n, path: l.path, epoch: l.epoch, fresh: l.fresh}
	l.fresh = newSketch()
	return p
}

// settle keeps unsaved knowledge for the next exchange.
func (b *Book) settle(p pending, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.paths[p.path]
	switch {
	case l.epoch != p.epoch:
	case err == nil:
		l.saved = p.epoch
	default:
		l.fresh.merge(p.fresh)
	}
}

// PathLag is the knowledge about one path.
type PathLag struct {
	Key // an empty Path means all ways of reading together
	// Count is how many writes it is based on; older ones count as a fraction.
	Count float64
	// P50, P90 and P99 are the lags within which that percentage of writes was visible.
	P50, P90, P99 time.Duration
	// At is when it was last written to the ledger.
	At time.Time
}

// Quantiles returns what the workers of a ledger know, ordered by destination, kind and path.
// Unreadable notes are left out. The error is the ledger's.
func Quantiles(ctx context.Context, notes ledger.Documents) ([]PathLag, error) {
	all, _, err := notes.Notes(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var known []PathLag
	for _, n := range all {
		w, s, _, err := decodeNote(n)
		if err != nil || s.IsEmpty() {
			continue
		}
		at, err := s.GetValuesAtQuantiles([]float64{0.5, 0.9, 0.99})
		if err != nil {
			continue
		}
		known = append(known, PathLag{Key: w.key(), Count: s.GetCount(), P50: seconds(at[0]), P90: seconds(at[1]), P99: seconds(at[2]), At: n.At})
	}
	slices.SortFunc(known, func(a, b PathLag) int {
		return cmp.Or(strings.Compare(a.Destination, b.Destination), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Path, b.Path))
	})
	return known, nil
}
