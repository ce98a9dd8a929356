package ledger

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Note is a small named value, by which workers share state: rates, breakers, stops, learned lags.
// The writer of a note defines its meaning.
type Note struct {
	Name    string // at most 200 bytes
	Version int64  // 0: does not exist yet
	Value   []byte // at most 256 KiB
	At      time.Time
}

const (
	// maxNoteName and maxNoteValue bound a note: a name is read by people and is part of a key;
	// every worker reads a value whole, again and again.
	maxNoteName  = 200
	maxNoteValue = 256 << 10
)

// Check returns what is wrong with a note before it is stored, or nil.
func (n Note) Check() error {
	switch {
	case n.Name == "" || len(n.Name) > maxNoteName || !utf8.ValidString(n.Name) || strings.ContainsRune(n.Name, 0):
		return fmt.Errorf("note: its name has %d bytes; want text of 1 to %d bytes in UTF-8, without NUL", len(n.Name), maxNoteName)
	case len(n.Value) > maxNoteValue:
		return fmt.Errorf("note %q: its value has %d bytes; want at most %d", n.Name, len(n.Value), maxNoteValue)
	case n.Version < 0:
		return fmt.Errorf("note %q: its version is %d; want that of the note as it was read, or 0 for one that is not there", n.Name, n.Version)
	}
	return nil
}

// Notes implements [Documents].
func (m *Memory) Notes(ctx context.Context, prefix string) ([]Note, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Note
	for name, n := range m.notes {
		if strings.HasPrefix(name, prefix) && len(n.Value) > 0 {
			n.Value = bytes.Clone(n.Value)
			found = append(found, n)
		}
	}
	slices.SortFunc(found, func(a, b Note) int { return cmp.Compare(a.Name, b.Name) })
	return found, m.now(), nil
}

// SetNote implements [Documents]. A removed note leaves its version behind, so that another one of
// the same name is not mistaken for it.
func (m *Memory) SetNote(ctx context.Context, n Note) (Note, error) {
	if err := cmp.Or(ctx.Err(), n.Check()); err != nil {
		return Note{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.notes[n.Name]
	there := int64(0)
	if len(have.Value) > 0 {
		there = have.Version
	}
	if n.Version != there {
		return Note{}, fmt.Errorf("%w: note %q has version %d, not %d", ErrStale, n.Name, there, n.Version)
	}
	if m.notes == nil {
		m.notes = make(map[string]Note)
	}
	n.Version, n.Value, n.At = have.Version+1, bytes.Clone(n.Value), m.now()
	m.notes[n.Name] = n
	if len(n.Value) == 0 {
		return Note{Name: n.Name, At: n.At}, nil
	}
	n.Value = bytes.Clone(n.Value)
	return n, nil
}
