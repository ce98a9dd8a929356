package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

// Bounds of security events.
const (
	// eventsEvery is the interval at which they are written.
	eventsEvery = 5 * time.Second
	// maxEvents bounds the different events of a kind that are collected at once,
	// maxOfCaller those of one caller, and maxUnknowns those of unknown callers in a
	// minute: a flood of addresses must not fill the ledger.
	maxEvents   = 1000
	maxOfCaller = 100
	maxUnknowns = 20
	// maxUnfiled bounds the events that wait for the ledger.
	maxUnfiled = 5000
)

// Security events, as [Event.Event] names them.
const (
	EventLogin             = "login"               // a session began
	EventLoginRefused      = "login_refused"       // a provider's response, or a token in the form, was refused
	EventLogout            = "logout"              // a user ended a session
	EventSessionEnded      = "session_ended"       // the provider no longer confirms a session
	EventCredentialRefused = "credentials_refused" // a token or cookie that is not valid (any more)
	EventTokenUsed         = "token_used"
	EventTokenCreated      = "token_created"
	EventTokenRevoked      = "token_revoked"
	EventForbidden         = "forbidden"      // a request that the role or the scope does not permit
	EventReloadRefused     = "reload_refused" // a configuration that was not applied
	EventReplayed          = "replayed"       // a call that got the outcome of an earlier one
)

// EventKind is the kind of the documents that hold security events. They are in the audit
// chain.
const EventKind = "security"

// Event is a security event, or several that differ only in time. It holds no secret.
type Event struct {
	Event  string `json:"event"`
	Tenant string `json:"tenant"`
	// Name, Role, Via and Credentials are those of the [Identity], as far as they are
	// known; Credentials is the id of a token or a session.
	Name        string `json:"name,omitempty"`
	Role        string `json:"role,omitempty"`
	Via         string `json:"via,omitempty"`
	Credentials string `json:"credentials,omitempty"`
	// Address is the caller's, without its port.
	Address string `json:"address,omitempty"`
	// Action is the requested route or tool.
	Action string `json:"action,omitempty"`
	// Write is the write that it is about.
	Write string `json:"write,omitempty"`
	// Reason is why the request was refused.
	Reason string `json:"reason,omitempty"`
}

// of fills in the identity of an event.
func (e Event) of(who Identity) Event {
	e.Tenant, e.Name, e.Role, e.Via, e.Credentials = who.Tenant, who.Name, string(who.Role), who.Via, who.ID
	return e
}

// times are the times of equal events.
type times struct {
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	next  time.Time // when they may be written
	place int       // in order of recording
}

// written is the ledger's record of equal events.
type written struct {
	Event
	times
	id string // of the document, the same for each try
}

// Events records security events: in the ledger, and so in the audit chain, and in the
// log. Equal events within [Events.window] are recorded once, with their number. It is
// safe for concurrent use; nil records nothing.
type Events struct {
	documents ledger.Documents
	tenant    string
	log       *slog.Logger
	now       func() time.Time

	mu       sync.Mutex
	pending  map[Event]*times
	alike    map[Event]int // number of entries in pending, by event and by caller
	recorded int           // number recorded so far
	unfiled  []written
	// unknowns are the different events of unknown callers since a time.
	unknowns int
	since    time.Time
}

// NewEvents makes a recorder. tenant owns events of unknown callers.
func NewEvents(documents ledger.Documents, tenant string, log *slog.Logger, now func() time.Time) *Events {
	return &Events{documents: documents, tenant: tenant, log: cmp.Or(log, slog.New(slog.DiscardHandler)), now: now, pending: map[Event]*times{}, alike: map[Event]int{}}
}

// Record records an event. Texts from a caller or a provider are clipped.
func (e *Events) Record(one Event) {
	if e == nil {
		return
	}
	one.Tenant = cmp.Or(one.Tenant, e.tenant)
	one.Reason, one.Action = visible.Cut(one.Reason, maxReason), visible.Cut(one.Action, maxReason)
	if one.Address != "" {
		one.Address = place(one.Address)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now().UTC()
	if !within(now, e.since, time.Minute) {
		e.unknowns, e.since = 0, now
	}
	have := e.pending[one]
	if have == nil && one.Name == "" {
		e.unknowns++
	}
	if have == nil && one.Name != "" && e.alike[one.caller()] >= maxOfCaller {
		one = one.caller() // a caller with many must not hide those of others
		one.Reason = "further ones, counted together"
		have = e.pending[one]
	}
	if have == nil && (one.Name == "" && e.unknowns > maxUnknowns || e.alike[one.kind()] >= maxEvents) {
		// Events above the bound are counted together: a flood must not fill the ledger.
		one = Event{Event: one.Event, Tenant: e.tenant, Reason: "further callers, counted together"}
		have = e.pending[one]
	}
	if have == nil {
		have = &times{next: now}
		e.pending[one] = have
		e.count(one, 1)
	}
	if e.recorded++; have.Count == 0 {
		have.First, have.place = now, e.recorded
	}
	have.Count++
	have.Last = now
}

// kind and caller are what an event has in common with others of its kind, and with
// those of its caller.
func (e Event) kind() Event { return Event{Event: e.Event} }

func (e Event) caller() Event {
	return Event{Event: e.Event, Tenant: e.Tenant, Name: e.Name, Role: e.Role, Via: e.Via, Credentials: e.Credentials}
}

// count counts an event whose collection starts or ends.
func (e *Events) count(one Event, by int) {
	for _, each := range []Event{one.kind(), one.caller()} {
		if e.alike[each] += by; e.alike[each] == 0 {
			delete(e.alike, each)
		}
	}
}

// window is for how long after an event was written equal ones are collected.
func window(event string) time.Duration {
	switch event {
	case EventTokenUsed:
		return time.Hour
	case EventReplayed:
		return 10 * time.Minute
	}
	return time.Minute
}

// Work writes the recorded events, every few seconds and when ctx ends. It returns nil.
func (e *Events) Work(ctx context.Context) error {
	tick := time.NewTicker(eventsEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.Flush(ctx, false)
		case <-ctx.Done():
			e.Flush(context.WithoutCancel(ctx), true)
			return nil
		}
	}
}

// Flush writes what is due, or all that was recorded. What the ledger does not accept now
// is logged, and is tried again.
func (e *Events) Flush(ctx context.Context, all bool) {
	if e == nil {
		return
	}
	e.mu.Lock()
	now := e.now().UTC()
	for _, one := range slices.SortedFunc(maps.Keys(e.pending), func(a, b Event) int { return cmp.Compare(e.pending[a].place, e.pending[b].place) }) {
		have := e.pending[one]
		switch due := all || !now.Before(have.next); {
		case due && have.Count > 0:
			w := written{one, *have, EventKind + "-" + rand.Text()}
			e.unfiled = append(e.unfiled, w)
			have.Count, have.next = 0, now.Add(window(one.Event))
			w.print(ctx, e.log)
		case due:
			delete(e.pending, one)
			e.count(one, -1)
		}
	}
	if lost := len(e.unfiled) - maxUnfiled; lost > 0 {
		e.unfiled = e.unfiled[lost:]
		e.log.ErrorContext(ctx, "security events are in the log alone: the ledger has not taken them for too long", "events", lost)
	}
	waiting := e.unfiled
	e.unfiled = nil
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readFor) // a ledger that hangs must not keep later events out of the log
	defer cancel()
	for i, w := range waiting {
		if err := e.file(ctx, w); err != nil {
			e.log.WarnContext(ctx, "security events cannot be written into the ledger now; they are tried again", "events", len(waiting)-i, "error", err)
			e.mu.Lock()
			e.unfiled = append(waiting[i:], e.unfiled...)
			e.mu.Unlock()
			return
		}
	}
}

// Recording returns a resolver of the same credentials that records uses and refusals.
func (e *Events) Recording(who Resolver) Resolver { return recording{who, e} }

type recording struct {
	inner  Resolver
	events *Events
}

// Resolve implements [Resolver]. A request whose credentials are checked repeatedly is
// one use.
func (c recording) Resolve(r *http.Request) (Identity, error) {
	who, err := c.inner.Resolve(r)
	s, _ := r.Context().Value(seenKey{}).(*seen)
	switch {
	case err == nil && (s == nil || s.who.CompareAndSwap(nil, &who)) && who.Via == "token":
		c.events.Record(Event{Event: EventTokenUsed, Address: r.RemoteAddr}.of(who))
	case err != nil && !errors.Is(err, ErrNoCredentials) && (errors.Is(err, ErrUnknown) || errors.Is(err, ErrTooMany)) && (s == nil || s.refused.CompareAndSwap(false, true)):
		c.events.Record(Event{Event: EventCredentialRefused, Address: r.RemoteAddr, Reason: reasonOf(err)})
	}
	return who, err
}

// reasonOf is an error without the parts that differ between occurrences.
func reasonOf(err error) string {
	if errors.Is(err, ErrTooMany) {
		return ErrTooMany.Error()
	}
	return err.Error()
}

// seen is the result of resolving the credentials of a request.
type seen struct {
	who     atomic.Pointer[Identity]
	refused atomic.Bool
}

type seenKey struct{}

// Around returns a handler whose 403 responses are recorded.
func (e *Events) Around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, g := &seen{}, &begun{ResponseWriter: w}
		h.ServeHTTP(g, r.WithContext(context.WithValue(r.Context(), seenKey{}, s)))
		who := s.who.Load()
		if who == nil || g.status != http.StatusForbidden {
			return
		}
		e.Record(Event{Event: EventForbidden, Address: r.RemoteAddr, Action: r.Method + " " + beginning(r.URL.Path)}.of(*who))
	})
}

// beginning is the part of a path that names the route, without ids.
func beginning(path string) string {
	names := 1 // /writes/wr_1 of the review UI
	if strings.HasPrefix(path, "/v1/") {
		names = 2
	} else if strings.HasPrefix(path, "/api/v1/") {
		names = 3
	}
	parts := strings.Split(path, "/")
	return strings.Join(parts[:min(names+1, len(parts))], "/")
}

// Refused records that a tool was refused, if the response has another status than 403.
func (e *Events) Refused(who Identity, tool string, err error) {
	if errors.Is(err, ErrForbidden) {
		e.Record(Event{Event: EventForbidden, Action: "tool " + tool}.of(who))
	}
}

// print writes the log entry. Its attribute security names the event.
func (w written) print(ctx context.Context, log *slog.Logger) {
	args := []any{"security", w.Event.Event, "tenant", w.Tenant}
	for _, a := range [][2]string{{"name", w.Name}, {"role", w.Role}, {"via", w.Via}, {"credentials", w.Credentials}, {"address", w.Address},
		{"action", w.Action}, {"write", w.Write}, {"reason", w.Reason}} {
		if a[1] != "" {
			args = append(args, a[0], a[1])
		}
	}
	log.InfoContext(ctx, "security event", append(args, "count", w.Count, "first", w.First, "last", w.Last)...)
}

// file writes the document. It is its own cover: it is pruned alone.
func (e *Events) file(ctx context.Context, w written) error {
	body, err := json.Marshal(w)
	if err != nil {
		return err
	}
	_, err = e.documents.Commit(ctx, ledger.Batch{Documents: []ledger.Document{{Tenant: w.Tenant, Kind: EventKind, ID: w.id, Collection: w.id,
		Subject: visible.Cut(cmp.Or(w.Write, w.Credentials, w.Name), maxText), State: w.Event.Event, Done: true, Body: body}}})
	if isStale(err) { // it was written, but the response was lost
		return nil
	}
	return err
}
