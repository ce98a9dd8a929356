package guards

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/ledger"
)

const (
	// readFor bounds one read of the notes, and setFor one write: with a slower ledger, a stop
	// cannot take effect within a second.
	readFor = time.Second
	setFor  = 2 * time.Second
	// setTries bounds how often one change of a note is tried when other workers change it at the
	// same time. With the pauses between them it is enough for some tens of workers; a worker
	// that fails that often asks again later.
	setTries = 8
	// maxNamePart bounds the readable part of a note's name; a longer one is hashed. Names of
	// notes have at most 200 bytes.
	maxNamePart = 120
)

// prefix begins the names of all notes of this package. The rest of a name is "rate/", "breaker/"
// or "slots/" and the escaped destination, or "stop/" and the hash of the scope. Each ends with a
// slash, so that no name is a prefix of another.
const prefix = "guard/"

// noteOf names the note of a destination.
func noteOf(what, destination string) string {
	part := url.QueryEscape(destination) // has neither "/" nor "#"
	if len(part) > maxNamePart {
		sum := sha256.Sum256([]byte(destination))
		part = "#" + hex.EncodeToString(sum[:])
	}
	return prefix + what + "/" + part + "/"
}

// noteCache is a worker's copy of the notes. Notes are never removed, so that a version is never used
// twice.
type noteCache struct {
	notes ledger.Documents
	clock *clock

	mu      sync.Mutex
	known   map[string]posted
	asked   time.Time // when the last full copy was requested; zero: never
	reading *reading  // under way
}

// posted is a note and when it was requested or written.
type posted struct {
	note  ledger.Note
	asked time.Time
}

// newer reports whether it was received after one that was requested then.
func (p posted) newer(than ledger.Note, asked time.Time) bool {
	return p.asked.After(asked) || p.asked.Equal(asked) && p.note.Version > than.Version
}

// reading is one read of all notes, shared by all concurrent callers.
type reading struct {
	done chan struct{}
	err  error // after done
}

func newNoteCache(notes ledger.Documents) *noteCache {
	return &noteCache{notes: notes, clock: newClock(), known: make(map[string]posted)}
}

// age is how old the copy is; false when there is none.
func (b *noteCache) age() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.asked), !b.asked.IsZero()
}

// fresh ensures that the copy is no older than within, or returns why it could not be read again.
func (b *noteCache) fresh(ctx context.Context, within time.Duration) error {
	if age, ok := b.age(); ok && age <= within {
		return nil
	}
	r := b.read()
	timer := time.NewTimer(readFor)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return fmt.Errorf("the ledger did not answer within %s", readFor)
	}
}

// read begins to read all notes, or joins a read under way.
func (b *noteCache) read() *reading {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading != nil {
		return b.reading
	}
	r := &reading{done: make(chan struct{})}
	b.reading = r
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), readFor)
		defer cancel()
		asked := time.Now()
		all, now, err := b.notes.Notes(ctx, prefix)
		b.finish(r, asked, all, now, err)
	}()
	return r
}

func (b *noteCache) finish(r *reading, asked time.Time, all []ledger.Note, now time.Time, err error) {
	defer close(r.done)
	if err == nil {
		b.clock.observe(asked, time.Now(), now)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = nil
	if r.err = err; err != nil {
		return
	}
	known := make(map[string]posted, len(all))
	for _, n := range all {
		known[n.Name] = posted{note: n, asked: asked}
	}
	for name, p := range b.known { // notes received since are newer
		if p.newer(known[name].note, asked) {
			known[name] = p
		}
	}
	b.known, b.asked = known, asked
}

// note is the copy of one note; without a value if there is none.
func (b *noteCache) note(name string) ledger.Note {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.known[name]; ok {
		return p.note
	}
	return ledger.Note{Name: name}
}

// keep puts one note into the copy, unless a newer one is there.
func (b *noteCache) keep(n ledger.Note, asked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.known[n.Name]; !ok || !p.newer(n, asked) {
		b.known[n.Name] = posted{note: n, asked: asked}
	}
}

// change rewrites a note as decide returns it; decide is called again when another worker was
// faster. No value leaves the note unchanged. The first call gets the copy, so that an
// uncontended note costs one write and no read.
func (b *noteCache) change(ctx context.Context, name string, decide func(ledger.Note) []byte) error {
	ctx, cancel := context.WithTimeout(ctx, setFor)
	defer cancel()
	pace, n := newSetPace(), b.note(name)
	for try := 1; ; try++ {
		value := decide(n)
		if value == nil {
			return nil
		}
		asked := time.Now()
		set, err := b.notes.SetNote(ctx, ledger.Note{Name: name, Version: n.Version, Value: value})
		if err == nil {
			b.clock.observe(asked, time.Now(), set.At)
			b.keep(set, time.Now())
			return nil
		}
		if !errors.Is(err, ledger.ErrStale) || try == setTries {
			return err
		}
		if !pause.For(ctx, pace.NextBackOff()) {
			return ctx.Err()
		}
		if n, err = b.again(ctx, name); err != nil {
			return err
		}
	}
}

// again reads one note.
func (b *noteCache) again(ctx context.Context, name string) (ledger.Note, error) {
	asked := time.Now()
	found, now, err := b.notes.Notes(ctx, name)
	if err != nil {
		return ledger.Note{}, err
	}
	b.clock.observe(asked, time.Now(), now)
	n := ledger.Note{Name: name}
	if len(found) > 0 {
		n = found[0]
	}
	b.keep(n, asked)
	return n, nil
}

// decoded reads the value of a note. It returns false for an unreadable note: each guard then
// assumes the worst, for a time.
func decoded[T any](n ledger.Note) (value T, ok bool) {
	if len(n.Value) == 0 {
		return value, true
	}
	if err := json.Unmarshal(n.Value, &value); err != nil {
		var none T
		return none, false
	}
	return value, true
}

// encoded encodes one; the types of this package always encode.
func encoded(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("guards: a note cannot be written: %v", err))
	}
	return data
}

// newSetPace is the backoff of retries of a contended change of a note.
func newSetPace() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(2*time.Millisecond), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0.8),
		backoff.WithMaxInterval(100*time.Millisecond), backoff.WithMaxElapsedTime(0))
}
