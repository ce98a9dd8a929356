package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Shares of the server.
const (
	// RateBurst is how many seconds' worth of requests a token or a tenant may make at
	// once: a program makes many requests at its start, and few later.
	RateBurst = 4
	// maxTokenRate and maxTenantRate are the default requests a second: agents make a
	// few, an import some tens; more than this is a loop.
	maxTokenRate, maxTenantRate = 250, 500
	// maxRequests is the default number of open requests of all callers: each holds a
	// connection, a goroutine and its data, some 40 KiB.
	maxRequests = 4096
	// maxStreams is the default number of event streams, which last for hours and read
	// the ledger.
	maxStreams = 512
	// maxBodies bounds the bytes of bodies that are read or processed at once. In memory
	// each is several times its text; sixteen of the largest for one token.
	maxBodies = 64 << 20
	// maxAnnounced is the most that one body counts as: no more of it is read. A body
	// without an announced length counts as much until it has ended.
	maxAnnounced = defaultBody
	// maxBuckets bounds the rates that are remembered, twice; one has some 150 bytes.
	maxBuckets = 10_000
	// fullAfter is the Retry-After of a caller whose share of requests is used up,
	// streamsAfter that of streams.
	fullAfter    = time.Second
	streamsAfter = 30 * time.Second

	settingRequests = "server.limits.requests"
)

// Limits bounds the use of one server by its callers. The zero value has the defaults.
type Limits struct {
	// Requests bounds the open requests of all callers, those that wait for an outcome
	// included. Default 4096.
	Requests int
	// Streams bounds the event streams of all callers. Default 512.
	Streams int
	// Bodies bounds the bytes of the bodies of open requests. Default 64 MiB.
	Bodies int64
	// TokenRate and TenantRate bound the requests a second of one token and of one
	// tenant. Each may make [RateBurst] seconds' worth at once. Default 250 and 500.
	TokenRate, TenantRate int
}

// Default returns the limits with their defaults filled in.
func (l Limits) Default() Limits {
	return Limits{
		Requests: cmp.Or(l.Requests, maxRequests), Streams: cmp.Or(l.Streams, maxStreams), Bodies: cmp.Or(l.Bodies, maxBodies),
		TokenRate: cmp.Or(l.TokenRate, maxTokenRate), TenantRate: cmp.Or(l.TenantRate, maxTenantRate),
	}
}

// Kinds of limits, as metrics name them.
const (
	LimitRate     = "rate"
	LimitRequests = "requests"
	LimitStreams  = "streams"
	LimitBodies   = "bodies"
)

// ErrLimit is wrapped by [LimitError].
var ErrLimit = errors.New("limit reached")

// LimitError reports that a caller has reached a limit. The request had no effect, and
// its body was not read.
type LimitError struct {
	Limit   string // one of the kinds
	Of      string // token, tenant or server
	Setting string // the setting that changes it
	Most    int64  // what the setting allows
	After   time.Duration
}

func (e *LimitError) Error() string {
	const again = "; send the same request again in %s"
	after := e.After.Round(time.Second)
	if e.Limit == LimitRate {
		return fmt.Sprintf("%s: the %s sends more than %d requests a second (%s)"+again, ErrLimit, e.Of, e.Most, e.Setting, after)
	}
	what := map[string]string{LimitRequests: "open requests", LimitStreams: "open streams", LimitBodies: "bytes in the bodies of open requests"}[e.Limit]
	if e.Of == "server" {
		return fmt.Sprintf("%s: the server has no room for more %s, of which there may be %d (%s)"+again, ErrLimit, what, e.Most, e.Setting, after)
	}
	return fmt.Sprintf("%s: the %s has its share of the %d %s of the server (%s)"+again, ErrLimit, e.Of, e.Most, what, e.Setting, after)
}

// Unwrap returns [ErrLimit].
func (e *LimitError) Unwrap() error { return ErrLimit }

// Shares divides a server among its callers. The handler of every API runs inside
// [Shares.Handler] and resolves the caller by [Shares.Resolver] before it reads a body.
// The first call for a request counts the request, or refuses it with a [LimitError]. It
// is safe for concurrent use.
type Shares struct {
	limits  Limits
	now     func() time.Time
	refused func(limit string)

	mu                sync.Mutex
	tokens, tenants   *buckets
	requests, streams pool
	bodies            pool
	unidentified      int // open requests whose caller is not known yet
}

// NewShares makes shares. refused is called with the kind of each limit that refuses a
// request; it may be nil.
func NewShares(l Limits, now func() time.Time, refused func(limit string)) *Shares {
	if now == nil {
		now = time.Now
	}
	if refused == nil {
		refused = func(string) {}
	}
	l = l.Default()
	return &Shares{limits: l, now: now, refused: refused,
		tokens: newBuckets(rate.Limit(l.TokenRate), l.TokenRate*RateBurst, maxBuckets), tenants: newBuckets(rate.Limit(l.TenantRate), l.TenantRate*RateBurst, maxBuckets),
		requests: newPool(int64(l.Requests)), streams: newPool(int64(l.Streams)), bodies: newPool(l.Bodies)}
}

// Handler prepares each request that h serves for counting, and releases its share when h
// is done.
func (s *Shares) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o, err := s.enter(r)
		if err != nil { // the caller is unknown, or was not resolved
			status, header := Refused(err)
			for name := range header {
				w.Header().Set(name, header.Get(name))
			}
			Problem(w, status, err.Error())
			return
		}
		defer o.leave()
		r = r.WithContext(context.WithValue(r.Context(), openKey{}, o))
		if r.ContentLength < 0 && r.Body != nil {
			r.Body = &unannounced{ReadCloser: r.Body, of: o}
		}
		h.ServeHTTP(w, r)
	})
}

// Resolver is who, and refuses a request whose caller has reached a limit.
func (s *Shares) Resolver(who Resolver) Resolver { return limited{who} }

type limited struct{ who Resolver }

func (l limited) Resolve(r *http.Request) (Identity, error) {
	id, err := l.who.Resolve(r)
	if err != nil {
		return id, err
	}
	if o, ok := r.Context().Value(openKey{}).(*open); ok {
		if err := o.admit(id); err != nil {
			return Identity{}, err
		}
	}
	return id, nil
}

// Stream makes an open request a stream: it releases its share of requests, and takes one
// of streams until it ends. It fails with a [LimitError]. Outside of [Shares.Handler]
// nothing is counted.
func Stream(ctx context.Context) error {
	o, ok := ctx.Value(openKey{}).(*open)
	if !ok {
		return nil
	}
	return o.stream()
}

// Another counts, within an open request, one more request of its caller: a request for many
// things counts as often as one for each. It fails with a [LimitError] of the caller's rates.
// Outside of [Shares.Handler] nothing is counted.
func Another(ctx context.Context) error {
	o, ok := ctx.Value(openKey{}).(*open)
	if !ok {
		return nil
	}
	o.shares.mu.Lock()
	defer o.shares.mu.Unlock()
	return o.shares.rated(o.who)
}

// More takes up to want more open requests for one that does many things at once, no more than
// the share of its caller allows. release gives one of them back. Outside of [Shares.Handler]
// nothing is counted.
func More(ctx context.Context, want int) (got int, release func()) {
	o, ok := ctx.Value(openKey{}).(*open)
	if !ok {
		return want, func() {}
	}
	s := o.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	for got < want && s.requests.take(o.who, 1) == "" {
		got++
	}
	return got, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests.give(o.who, 1)
	}
}

type openKey struct{}

// open is a request in progress.
type open struct {
	shares *Shares
	// The rest is guarded by the mutex of the shares.
	stage stage
	who   holder
	body  int64 // bytes taken for its body
}

type stage int

const (
	unidentified stage = iota // its caller is not known yet
	requested                 // counted among the requests
	streaming                 // counted among the streams
	over                      // not counted
)

// enter admits a request whose caller is not known yet: there are few of these at a time,
// unless the ledger resolves tokens slowly.
func (s *Shares) enter(r *http.Request) (*open, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unidentified >= s.limits.Requests {
		return nil, s.refuse(&LimitError{Limit: LimitRequests, Of: "server", Setting: settingRequests, Most: int64(s.limits.Requests), After: fullAfter})
	}
	s.unidentified++
	o := &open{shares: s, body: min(r.ContentLength, maxAnnounced)}
	if r.ContentLength < 0 {
		o.body = maxAnnounced
	}
	return o, nil
}

// admit counts the request among those of its caller, once.
func (o *open) admit(id Identity) error {
	s := o.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.stage != unidentified {
		return nil
	}
	o.who = holder{id.Tenant, id.Tenant + "\x00" + id.Via + "\x00" + cmp.Or(id.ID, id.Name)}
	if err := s.rated(o.who); err != nil {
		return err
	}
	if of := s.requests.take(o.who, 1); of != "" {
		return s.refuse(&LimitError{Limit: LimitRequests, Of: of, Setting: settingRequests, Most: s.requests.total, After: fullAfter})
	}
	if of := s.bodies.take(o.who, o.body); of != "" {
		s.requests.give(o.who, 1)
		return s.refuse(&LimitError{Limit: LimitBodies, Of: of, Setting: "server.limits.bodies", Most: s.bodies.total, After: fullAfter})
	}
	s.unidentified--
	o.stage = requested
	return nil
}

// rated counts one request of a holder, which its rates may refuse.
func (s *Shares) rated(who holder) error {
	now := s.now()
	for _, each := range []struct {
		bucket      *rate.Limiter
		of, setting string
		most        int
	}{
		{s.tokens.of(who.token, now), "token", "server.limits.token_rate", s.limits.TokenRate},
		{s.tenants.of(who.tenant, now), "tenant", "server.limits.tenant_rate", s.limits.TenantRate},
	} {
		if !each.bucket.AllowN(now, 1) {
			return s.refuse(&LimitError{Limit: LimitRate, Of: each.of, Setting: each.setting, Most: int64(each.most), After: max(missing(each.bucket, now), time.Second)})
		}
	}
	return nil
}

func (o *open) stream() error {
	s := o.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.stage != requested {
		return nil
	}
	if of := s.streams.take(o.who, 1); of != "" {
		return s.refuse(&LimitError{Limit: LimitStreams, Of: of, Setting: "server.limits.streams", Most: s.streams.total, After: streamsAfter})
	}
	s.requests.give(o.who, 1)
	s.bodies.give(o.who, o.body)
	o.stage = streaming
	return nil
}

// leave releases the request's shares.
func (o *open) leave() {
	s := o.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o.stage {
	case unidentified:
		s.unidentified--
	case requested:
		s.requests.give(o.who, 1)
		s.bodies.give(o.who, o.body)
	case streaming:
		s.streams.give(o.who, 1)
	}
	o.stage = over
}

// shrink releases what was taken for a body that was smaller than announced.
func (o *open) shrink(body int64) {
	s := o.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	if spare := o.body - body; spare > 0 {
		if o.stage == requested {
			s.bodies.give(o.who, spare)
		}
		o.body = body
	}
}

func (s *Shares) refuse(err *LimitError) error {
	s.refused(err.Limit)
	return err
}

// unannounced is a body without an announced length. It counts as the largest allowed
// until it has ended.
type unannounced struct {
	io.ReadCloser
	of   *open
	read int64
}

func (u *unannounced) Read(into []byte) (int, error) {
	n, err := u.ReadCloser.Read(into)
	if u.read += int64(n); errors.Is(err, io.EOF) {
		u.of.shrink(u.read)
	}
	return n, err
}

// holder is the owner of a part of a pool.
type holder struct{ tenant, token string }

// pool is a quantity that tenants, and tokens within them, share. A tenant gets more only
// while it holds no more than what is free: one alone gets half of all, two get a third
// each, and a tenant that comes later always finds some free. Tokens share the half of
// their tenant by the same rule.
type pool struct {
	total, taken    int64
	tenants, tokens map[string]int64
}

func newPool(total int64) pool {
	return pool{total: total, tenants: map[string]int64{}, tokens: map[string]int64{}}
}

// take takes n, or takes nothing and returns whose share is used up.
func (p *pool) take(h holder, n int64) (of string) {
	free, own := p.total-p.taken, p.tenants[h.tenant]
	switch {
	case n == 0: // also where its share has shrunk because another tenant came
		return ""
	case n > free:
		return "server"
	case own+n > free:
		return "tenant"
	case p.tokens[h.token]+n > (p.total+1)/2-own:
		return "token"
	}
	p.add(h, n)
	return ""
}

func (p *pool) give(h holder, n int64) { p.add(h, -n) }

func (p *pool) add(h holder, n int64) {
	p.taken += n
	for _, each := range []struct {
		shares map[string]int64
		name   string
	}{{p.tenants, h.tenant}, {p.tokens, h.token}} {
		if each.shares[each.name] += n; each.shares[each.name] == 0 {
			delete(each.shares, each.name)
		}
	}
}
