package access

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/readback-go/readback/ledger"
)

// Bounds of failures.
const (
	// maxFailures is how often one address may come with bad credentials at once; then
	// once every failEvery. A program with an old token is soon limited, and a user who
	// mistypes is not locked out.
	maxFailures = 20
	failEvery   = 3 * time.Second
	// maxDoubted is how many tokens are read at once for limited addresses: fewer than
	// maxReads, so that all others have priority.
	maxDoubted = 2
	// maxHops bounds how many addresses of X-Forwarded-For are read: no deployment has
	// more than five proxies in a row.
	maxHops = 20
	// maxAddresses bounds how many addresses are remembered, twice: those of this and of
	// the last span. When it is full, all further addresses are counted together.
	maxAddresses = 5000
)

func isStale(err error) bool { return errors.Is(err, ledger.ErrStale) }

// failures counts bad credentials by the address of the connection. Addresses in headers
// are not trusted. Behind a proxy all callers share one address, so credentials that may
// be good are never refused unchecked.
type failures struct {
	now func() time.Time

	// doubted has a slot for each concurrent attempt from limited addresses.
	doubted chan struct{}

	mu      sync.Mutex
	buckets *buckets
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, doubted: make(chan struct{}, maxDoubted), buckets: newBuckets(rate.Every(failEvery), maxFailures, maxAddresses)}
}

// place is a caller's origin: an address, or an IPv6 network, as one machine has all of
// its addresses.
func place(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return "?"
	}
	if ip = ip.Unmap(); ip.Is6() {
		p, _ := ip.WithZone("").Prefix(64)
		return p.String()
	}
	return ip.String()
}

// held fails with a [TooManyError] if an address has failed too often.
func (f *failures) held(remote string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	if after := missing(f.buckets.of(place(remote), now), now); after > 0 {
		return &TooManyError{After: after}
	}
	return nil
}

// admit admits an attempt from an address, and returns a function to call when it is
// over. Limited addresses get a few attempts at a time, in order: a caller who guesses
// must not lock out the others who share the address. If no slot is free within patience,
// admit fails as held does.
func (f *failures) admit(ctx context.Context, remote string, patience time.Duration) (done func(), err error) {
	held := f.held(remote)
	if held == nil {
		return func() {}, nil
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case f.doubted <- struct{}{}:
		return func() { <-f.doubted }, nil
	case <-enough.C:
		return nil, held
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// count records bad credentials from an address, and returns the reason of the refusal:
// err, or too many failures.
func (f *failures) count(remote string, err error) error {
	if held := f.held(remote); held != nil {
		return held
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	f.buckets.of(place(remote), now).AllowN(now, 1)
	return err
}
