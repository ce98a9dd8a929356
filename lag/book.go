package lag

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// maxLag is the longest lag that is learned. A longer one was an outage, or a manual action.
	maxLag = time.Hour
	// maxReads is how many reads a plan places.
	maxReads = 6
	// beyondFirst and beyondGrowth are the pause after a read that did not show what practically
	// all others showed by then: the first, and that multiple of the time since the send. Few of
	// those effects come at all, and the settle time decides.
	beyondFirst  = 50 * time.Millisecond
	beyondGrowth = 2
	// maxPaths bounds what is kept in memory. Destinations and kinds come from the configuration,
	// and each has a few ways of reading.
	maxPaths = 1024
	// maxName bounds each of the three names of a path.
	maxName = 200
	// saveEvery is how often workers share what they learned. A new lag is learned from eight
	// writes, so no worker waits for the others.
	saveEvery = 30 * time.Second
	// saveTries bounds how often an exchange is begun anew because another worker was faster.
	saveTries = 4
	// saveWithin bounds one exchange with the ledger.
	saveWithin = 10 * time.Second
)

// Key identifies what a lag is learned for.
type Key struct {
	Destination, Kind string
	Path              string // as in Observation.Path; "" until it is known
}

// Options configures a Book. The zero value is valid.
type Options struct {
	// Every is how often what was learned is exchanged with the other workers.
	// Default 30 s.
	Every time.Duration
	// Logger receives warnings of unreadable notes and of an unreachable ledger. Default:
	// nothing.
	Logger *slog.Logger
}

// Book holds the learned lags. It is safe for concurrent use. Create one with [New] and end it
// with [Book.Close].
type Book struct {
	notes ledger.Documents
	opts  Options
	stop  context.CancelFunc
	done  chan struct{} // closed when the background work has ended
	once  sync.Once
	saved error // the result of the last exchange; read after once

	exchangeMu sync.Mutex // held during an exchange

	mu     sync.Mutex
	paths  map[Key]*learned
	warned map[string]int64 // the version of each note that was logged as unreadable
}

// New opens a book. It loads what the workers of the ledger know, and shares what it learns with
// them, in the background; with nil notes it shares nothing. o may be nil.
func New(notes ledger.Documents, o *Options) *Book {
	b := &Book{notes: notes, paths: make(map[Key]*learned), warned: make(map[string]int64), done: make(chan struct{})}
	if o != nil {
		b.opts = *o
	}
	if b.opts.Every <= 0 {
		b.opts.Every = saveEvery
	}
	if b.opts.Logger == nil {
		b.opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	if notes == nil {
		close(b.done)
		return b
	}
	go b.keep(ctx)
	return b
}

// Close shares what is not shared yet and ends the background work. The error is the ledger's.
// What could not be shared is lost, and the others learn it again.
func (b *Book) Close() error {
	b.once.Do(func() {
		b.stop()
		<-b.done
		if b.notes != nil {
			b.saved = b.Sync(context.Background())
		}
	})
	return b.saved
}

// keep exchanges notes with the ledger periodically.
func (b *Book) keep(ctx context.Context) {
	defer close(b.done)
	tick := time.NewTicker(b.opts.Every)
	defer tick.Stop()
	for {
		if err := b.Sync(ctx); err != nil && ctx.Err() == nil {
			b.opts.Logger.Warn("learned lags are not shared", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Next returns how long to pause before the next read of a write, made the given time after its
// send, is likely to succeed, or false where nothing is known. It is long where the write should
// have been seen. Reads is how many were made since the send.
func (b *Book) Next(path Key, since time.Duration, reads int) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.find(path)
	if l == nil || since < 0 || reads < 0 {
		return 0, false
	}
	if reads == 0 {
		return max(l.first(since)-since, 0), true
	}
	if at, ok := l.planned().next(since); ok && reads < maxReads {
		return max(at-since, 0), true
	}
	return max(beyondFirst, beyondGrowth*since), true
}

// find is what is known about a path. If too little is known about its way of reading, it is what
// is known about all of them together; nil if too little is known.
func (b *Book) find(path Key) *learned {
	for _, p := range []Key{path, whole(path)} {
		if l := b.paths[p]; l != nil && l.trusted() {
			return l
		}
	}
	return nil
}

// whole is the path of all ways of reading together.
func whole(path Key) Key {
	path.Path = ""
	return path
}

// Seen records that an effect was first seen the given time after the send and, if there was an
// earlier read, was not there yet missed after it. A missed of 0 means that the first read showed
// it.
func (b *Book) Seen(path Key, missed, seen time.Duration) {
	if missed < 0 || seen < missed || seen > maxLag {
		return // clock jumps, and times too long to be a lag
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range []Key{whole(path), path} {
		if l := b.at(p); l != nil && l.learn(interval{missed: missed, seen: seen}) {
			b.opts.Logger.Info("lags are not like those before; they are learned anew",
				"destination", p.Destination, "kind", p.Kind, "path", p.Path, "missed", missed, "seen", seen)
		}
		if path.Path == "" {
			break
		}
	}
}

// at is the entry of a path, nil if there is no space for it.
func (b *Book) at(path Key) *learned {
	l := b.paths[path]
	if l == nil && len(b.paths) < maxPaths && max(len(path.Destination), len(path.Kind), len(path.Path)) <= maxName {
		l = newLearned(path)
		b.paths[path] = l
	}
	return l
}

// Sync exchanges what is known with the ledger now. Calling it is optional: a book does so by
// itself. The error is the ledger's. What could not be saved is saved later.
func (b *Book) Sync(ctx context.Context) error {
	if b.notes == nil {
		return nil
	}
	b.exchangeMu.Lock()
	defer b.exchangeMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, saveWithin)
	defer cancel()
	for range saveTries {
		notes, now, err := b.notes.Notes(ctx, prefix)
		if err != nil {
			return err
		}
		if err = b.save(ctx, b.merge(notes, now)); !errors.Is(err, ledger.ErrStale) {
			return err
		}
	}
	return nil // the others were faster each time; try later
}

// save writes notes and keeps what could not be written.
func (b *Book) save(ctx context.Context, all []pending) error {
	var stale, failed error
	for _, p := range all {
		err := failed
		if err == nil {
			_, err = b.notes.SetNote(ctx, p.note)
		}
		b.settle(p, err)
		switch {
		case errors.Is(err, ledger.ErrStale):
			stale = err
		case err != nil:
			failed = err
		}
	}
	return cmp.Or(failed, stale)
}
