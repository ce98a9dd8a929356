package access

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/readback-go/readback/ledger"
)

func isStale(err error) bool { return errors.Is(err, ledger.ErrStale) }

// failures counts who comes with bad credentials, by the address of the
// connection. What a header says of an address is not believed: behind a proxy
// all are one, so that what may be good is never refused unseen.
type failures struct {
	now func() time.Time

	mu            sync.Mutex
	young, old    map[string]*rate.Limiter
	since         time.Time // of young
	everybodyElse *rate.Limiter
}

func newFailures(now func() time.Time) *failures {
	return &failures{now: now, young: map[string]*rate.Limiter{}, everybodyElse: newLimiter()}
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(failEvery), maxFailures) }

// place is where somebody comes from: an address, or a network of IPv6, of
// which one machine has all.
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

// of is the limiter of an address.
func (f *failures) of(remote string) *rate.Limiter {
	now, at := f.now(), place(remote)
	// After this long a limiter is as good as new.
	const span = maxFailures * failEvery
	if !within(now, f.since, span) {
		f.old, f.young, f.since = f.young, map[string]*rate.Limiter{}, now
	}
	l, ok := f.young[at]
	if ok {
		return l
	}
	if l, ok = f.old[at]; !ok {
		l = newLimiter()
	}
	if len(f.young) >= maxAddresses {
		return f.everybodyElse
	}
	f.young[at] = l
	return l
}

// held fails with a [TooManyError] when an address has come too often.
func (f *failures) held(remote string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, l := f.now(), f.of(remote)
	if have := l.TokensAt(now); have < 1 {
		return &TooManyError{After: max(time.Duration((1-have)*float64(failEvery)), time.Second)}
	}
	return nil
}

// count notes that an address came with bad credentials, and returns why it is
// refused: err, or that it was too often.
func (f *failures) count(remote string, err error) error {
	if held := f.held(remote); held != nil {
		return held
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(remote).AllowN(f.now(), 1)
	return err
}
