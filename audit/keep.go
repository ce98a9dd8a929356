package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/signing"
)

const (
	// keepWithin bounds one call of a head store. The pause after a failure grows from the first to
	// the second.
	keepWithin   = 30 * time.Second
	minKeepPause = time.Second
	maxKeepPause = 5 * time.Minute
	// maxPending is how many tenants' heads are queued for one head store: only the newest of each
	// tenant is queued.
	maxPending = 10_000
	// maxAnswer is how much of a head store's response is read.
	maxAnswer = 4 << 10
)

// HeadStore stores signed heads where the operator of the ledger is not the owner, or cannot change
// them: this is what makes a chain a proof.
type HeadStore interface {
	// Keep stores one head, and returns when it is durable. It may be called again with the same
	// head.
	Keep(ctx context.Context, head signing.Envelope) error
}

// File keeps heads as lines of JSON in an append-only file. It proves nothing if an actor that
// can change the ledger can change the file: use a write-once disk, or one that another party
// collects.
type File struct{ path string }

// NewFile returns a head store that appends to a file. It creates a missing file, readable only by
// its owner. It fails if the file cannot be written.
func NewFile(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit: heads cannot be kept: %w", err)
	}
	return &File{path}, f.Close()
}

// Keep implements [HeadStore].
func (k *File) Keep(_ context.Context, head signing.Envelope) error {
	line, err := head.Encode()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(k.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	line = append(line, '\n')
	last := []byte{'\n'}
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		if _, err := f.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...) // a process killed in the middle of a line spoils only that line
		}
	}
	_, err = f.Write(line) // one write: lines of two processes do not mix
	return errors.Join(err, f.Sync(), f.Close())
}

// HTTP keeps heads by posting them, as JSON, to a service.
type HTTP struct {
	url    string
	client *http.Client
	header func(context.Context) (http.Header, error)
}

// NewHTTP returns a head store that posts to a URL, with headers, such as one for authentication,
// fetched for each head; nil for none. Redirects are not followed. Any status from 200 to 299 is
// success.
func NewHTTP(to string, header func(context.Context) (http.Header, error)) (*HTTP, error) {
	u, err := url.Parse(to)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("audit: the place for heads is %q; want https://host/path", to)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &HTTP{url: to, client: client, header: header}, nil
}

// Keep implements [HeadStore].
func (k *HTTP) Keep(ctx context.Context, head signing.Envelope) error {
	body, err := head.Encode()
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if k.header != nil {
		header, err := k.header(ctx)
		if err != nil {
			return fmt.Errorf("audit: posting a head: %w", err)
		}
		for name, values := range header {
			r.Header[name] = values
		}
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := k.client.Do(r)
	if err != nil {
		var u *url.Error // without the URL, which may hold a secret
		if errors.As(err, &u) {
			err = u.Err
		}
		return fmt.Errorf("audit: posting a head: %w", err)
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	_ = answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("audit: posting a head was answered with %d", answer.StatusCode)
	}
	return nil
}

// keeping delivers heads to one head store, the newest of each tenant, until it has stored them.
type keeping struct {
	name  string
	store HeadStore
	wake  chan struct{} // of capacity 1

	mu      sync.Mutex
	pending map[string]signing.Envelope
	count   HeadStoreStats
}

func (k *keeping) stats() HeadStoreStats {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count.Waiting = len(k.pending)
	return k.count
}

// give queues a head. It never waits.
func (k *keeping) give(tenant string, head signing.Envelope) {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, older := k.pending[tenant]
	if older || len(k.pending) >= maxPending {
		k.count.Dropped++
	}
	if older || len(k.pending) < maxPending {
		k.pending[tenant] = head
	}
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// flush delivers the queue. It stops at the first failure.
func (k *keeping) flush(ctx context.Context) error {
	for {
		k.mu.Lock()
		tenant, head, found := "", signing.Envelope{}, false
		for tenant, head = range k.pending {
			found = true
			break
		}
		k.mu.Unlock()
		if !found {
			return nil
		}
		within, cancel := context.WithTimeout(ctx, keepWithin)
		err := k.store.Keep(within, head)
		cancel()
		k.mu.Lock()
		if err != nil {
			k.count.Failures++
			k.mu.Unlock()
			return fmt.Errorf("head store %s: %w", k.name, err)
		}
		k.count.Kept, k.count.At = k.count.Kept+1, time.Now()
		if k.pending[tenant].Payload == head.Payload { // no newer one was queued meanwhile
			delete(k.pending, tenant)
		}
		k.mu.Unlock()
	}
}

// work delivers queued heads, until ctx ends.
func (k *keeping) work(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-k.wake:
		case <-ctx.Done():
			return
		}
		for wait := minKeepPause; ; wait = min(2*wait, maxKeepPause) {
			err := k.flush(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			log.Warn("a signed head of the audit chain could not be kept; it is tried again, and nothing waits for it", "store", k.name, "error", err, "in", wait)
			if !pause.For(ctx, wait/2+rand.N(wait)) {
				return
			}
		}
	}
}
