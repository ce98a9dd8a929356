package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

const (
	// every is how often what waits is read. A window is minutes.
	every = 10 * time.Second
	// atOnce is how many changes are read at once, and pages how often in one iteration.
	atOnce = 1000
	pages  = 20
	// maxItems bounds the items of a batch that are kept by name; further ones are counted.
	maxItems = 200
	// maxSeen bounds the steps, sagas, logins and stops that are remembered as notified: all
	// that still wait, and the newest of the others.
	maxSeen = 2000
	// progress is how much is read before the cursor is stored though nothing is to be
	// notified: so much is read again.
	progress      = 100
	progressEvery = time.Hour
	// notesPrefix begins the names of the notes with the batches.
	notesPrefix = "notifications/"
)

// Engine is the part of an engine that a sender needs.
type Engine interface {
	Enqueue(ctx context.Context, w intent.WriteIntent) (ledger.ID, error)
}

// Options configures a Sender.
type Options struct {
	// Ledger, Engine, Service and Notifications are required.
	Ledger        ledger.Ledger
	Engine        Engine
	Service       *service.Service
	Notifications []config.Notification
	// ReviewUI is the address of the review UI, without a slash at the end. Default none:
	// messages name no page.
	ReviewUI string
	Logger   *slog.Logger
}

// Sender writes notifications. Any number of them, in any number of processes, may work on the
// same ledger.
type Sender struct{ Options }

// New makes a sender.
func New(o Options) *Sender {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sender{o}
}

// Work notifies of each item once, until ctx ends, and then returns nil. A new notification is
// about what begins to wait from then on. It continues after failures of the ledger.
func (s *Sender) Work(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, n := range s.Notifications {
		for _, tenant := range n.Tenants {
			wg.Go(func() {
				for {
					if err := s.iterate(ctx, n, tenant); err != nil && ctx.Err() == nil {
						s.Logger.Warn("a notification is late", "notification", n.Name, "tenant", tenant, "error", err)
					}
					if !pause.For(ctx, every) {
						return
					}
				}
			})
		}
	}
	wg.Wait()
	return nil
}

// item is one thing that waits.
type item struct {
	Kind kind `json:"kind"`
	// ID names it among those of its kind: a write by its id, anything else with since when it
	// waits.
	ID     string `json:"id"`
	Urgent bool   `json:"urgent,omitempty"`
}

func (i item) name() string { return string(i.Kind) + " " + i.ID }

type kind string

const (
	write kind = "write"
	step  kind = "step"
	sagas kind = "saga"
	login kind = "login"
	stop  kind = "stop"
	gap   kind = "gap"
	// more is that of some kind more wait than are listed.
	more kind = "more"
)

// batch is the progress of a notification for a tenant.
type batch struct {
	// Cursor is after the changes that are notified, or in this batch.
	Cursor string `json:"cursor"`
	// Opened is when the first item came; it identifies the batch. Zero: there is none.
	Opened time.Time `json:"opened,omitzero"`
	// Closed says that nothing is added any more: the message is written.
	Closed bool   `json:"closed,omitempty"`
	Items  []item `json:"items,omitempty"`
	More   int    `json:"more,omitempty"`   // beyond maxItems
	Urgent bool   `json:"urgent,omitempty"` // one of those
	// Seen are digests of the names of items that are no writes and were in a batch.
	Seen []string `json:"seen,omitempty"`
}

func (b *batch) add(i item, now time.Time) {
	same := func(o item) bool { return o.name() == i.name() }
	if at := slices.IndexFunc(b.Items, same); at >= 0 {
		b.Items[at].Urgent = b.Items[at].Urgent || i.Urgent
		return
	}
	if b.Opened.IsZero() {
		b.Opened = now
	}
	if len(b.Items) >= maxItems {
		b.More++
		b.Urgent = b.Urgent || i.Urgent
		return
	}
	b.Items = append(b.Items, i)
}

// see adds items that are no writes, each once, and reports whether one is new. What still
// waits is not forgotten, however much came since.
func (b *batch) see(all []item, now time.Time) (fresh bool) {
	var still []string
	for _, i := range all {
		sum := sha256.Sum256([]byte(i.name()))
		name := hex.EncodeToString(sum[:8])
		if !slices.Contains(b.Seen, name) && !slices.Contains(still, name) {
			fresh = true
			b.add(i, now)
		}
		still = append(still, name)
	}
	others := slices.DeleteFunc(slices.Clone(b.Seen), func(name string) bool { return slices.Contains(still, name) })
	over := max(0, len(others)+len(still)-maxSeen)
	b.Seen = append(others[min(over, len(others)):], still...)
	return fresh
}

// urgent reports whether the batch has an urgent item.
func (b batch) urgent() bool {
	return b.Urgent || slices.ContainsFunc(b.Items, func(i item) bool { return i.Urgent })
}

// iterate adds what waits to the batch, and writes its message when it is due.
func (s *Sender) iterate(ctx context.Context, n config.Notification, tenant string) error {
	note, b, now, err := s.read(ctx, n, tenant)
	if err != nil {
		return err
	}
	standing, err := s.standing(ctx, n, tenant, now)
	if err != nil {
		return err
	}
	if note.Version == 0 {
		return s.arrive(ctx, note, standing.items, now)
	}
	if b.Closed {
		return s.send(ctx, n, tenant, note, b, standing)
	}
	read, err := s.collect(ctx, tenant, &b, now)
	if err != nil {
		return err
	}
	fresh := b.see(standing.items, now)
	due := !b.Opened.IsZero() && !now.Before(b.Opened.Add(n.Window))
	b.Closed = due && (!n.Quiet.At(now) || n.Quiet.Urgent && b.urgent())
	if !b.Closed && read == 0 && !fresh && now.Sub(note.At) < progressEvery {
		return nil
	}
	if note, err = s.keep(ctx, note, b); err != nil || !b.Closed {
		return lost(err)
	}
	return s.send(ctx, n, tenant, note, b, standing)
}

// collect adds the writes that began to wait. It returns how much was read that must not be read
// again.
func (s *Sender) collect(ctx context.Context, tenant string, b *batch, now time.Time) (read int, err error) {
	for range pages {
		changes, next, err := s.Ledger.Follow(ctx, ledger.Following{Tenant: tenant, After: b.Cursor, Limit: atOnce})
		if errors.Is(err, ledger.ErrTooFar) {
			s.Logger.Error("a notification has missed something: the ledger has pruned its next changes", "tenant", tenant, "error", err)
			if next, err = s.Ledger.Latest(ctx); err == nil {
				b.add(item{Kind: gap}, now)
				b.Cursor = next
			}
			return 1, err
		}
		if err != nil {
			return 0, err
		}
		for _, c := range changes {
			i, err := s.itemOf(ctx, c, len(b.Items) < maxItems)
			if err != nil {
				return 0, err
			}
			if i.ID != "" {
				b.add(i, now)
				read++
			}
		}
		b.Cursor = next
		if len(changes) >= progress {
			read++
		}
		if len(changes) < atOnce {
			break
		}
	}
	return read, nil
}

// itemOf is the item of a change, the zero item if it is none. A message that waits is none, and
// neither is a step of the gate, which is listed as a step.
func (s *Sender) itemOf(ctx context.Context, c ledger.Change, exactly bool) (item, error) {
	switch c.Kind {
	case ledger.EvHeld, ledger.EvEscalated, ledger.EvOverdue:
	default:
		return item{}, nil
	}
	if strings.HasPrefix(c.Destination, webhooks.Prefix) {
		return item{}, nil
	}
	i := item{Kind: write, ID: string(c.ID), Urgent: c.Kind == ledger.EvOverdue}
	if !exactly {
		return i, nil
	}
	r, err := s.Ledger.Get(ctx, c.Tenant, c.ID)
	switch {
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrCorrupt):
		return item{}, nil
	case err != nil:
		return item{}, err
	case strings.HasPrefix(r.Tool, engine.OwnTools), r.Delegated && c.Kind != ledger.EvEscalated:
		return item{}, nil
	}
	return i, nil
}

// standing is what waits now and is no write, with the line of each.
type standing struct {
	items []item
	lines map[string]line
	// cut are the kinds of which more may wait than are listed.
	cut map[kind]bool
}

// full notes that of a kind as many are listed as can be. The rest is one item, a new one each day.
func (st *standing) full(of kind, now time.Time) {
	st.cut[of] = true
	st.items = append(st.items, item{Kind: more, ID: string(of) + " " + now.UTC().Format(time.DateOnly)})
}

// standing lists what waits now and is no write. A refused login of the destination of the
// notification itself is not in it: the message could not be sent.
func (s *Sender) standing(ctx context.Context, n config.Notification, tenant string, now time.Time) (standing, error) {
	out := standing{lines: map[string]line{}, cut: map[kind]bool{}}
	add := func(i item, l line) {
		out.items = append(out.items, i)
		out.lines[i.name()] = l
	}
	as := reader(tenant)
	steps, err := s.Service.PendingSteps(ctx, as)
	if err != nil && !errors.Is(err, service.ErrUnsupported) {
		return out, err
	}
	for _, p := range steps {
		l := line{text: "A step waits for approval: ", foreign: p.StepID + " of " + p.WorkflowName, path: stepPath(p.WorkflowID, p.StepID)}
		if p.Overdue {
			l.text = "The approval of a step is overdue: "
		}
		add(item{Kind: step, ID: fmt.Sprintf("%s %t", p.ApprovalID, p.Overdue), Urgent: p.Overdue}, l)
	}
	if len(steps) >= maxListed {
		out.full(step, now)
	}
	inReview, err := s.Service.Sagas(ctx, as, maxListed, saga.Review)
	if err != nil && !errors.Is(err, service.ErrUnsupported) {
		return out, err
	}
	for _, g := range inReview {
		add(item{Kind: sagas, ID: g.ID + " " + stamp(g.Since)}, line{text: "A saga is in review: ", foreign: g.ID, path: sagaPath(g.ID)})
	}
	if len(inReview) >= maxListed {
		out.full(sagas, now)
	}
	destinations, err := s.Service.Destinations(ctx, as)
	if err != nil {
		return out, err
	}
	for _, d := range destinations {
		if since := d.Breaker.Login; !since.IsZero() && d.Name != n.Destination {
			add(item{Kind: login, ID: d.Name + " " + stamp(since)}, line{text: "A destination refuses the login, and its writes wait: ", foreign: d.Name, path: "/destinations"})
		}
	}
	stops, err := s.Service.Stops(ctx, as)
	if err != nil {
		return out, err
	}
	for _, one := range stops {
		if last := one.Last(); one.Active {
			add(item{Kind: stop, ID: one.String() + " " + stamp(last.At)},
				line{text: "Sends are stopped: ", foreign: fmt.Sprintf("%s, by %s: %s", one.Scope, last.By, last.Reason), path: "/destinations"})
		}
	}
	return out, nil
}

// maxListed is how many steps and how many sagas are read: the newest.
const maxListed = 100

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// reader is who reads what waits.
func reader(tenant string) service.Who {
	return service.Who{Tenant: tenant, Name: "readback", Role: engine.RoleAuditor, Via: "process"}
}

// arrive begins with what waits from now on.
func (s *Sender) arrive(ctx context.Context, note ledger.Note, there []item, now time.Time) error {
	latest, err := s.Ledger.Latest(ctx)
	if err != nil {
		return err
	}
	var b batch
	b.see(there, now)
	_, err = s.keep(ctx, note, batch{Cursor: latest, Seen: b.Seen})
	return lost(err)
}

// send writes the message of a closed batch, and opens the next. One that exists already, also
// with other words, was written by a process that then died, or at the same time by another one.
func (s *Sender) send(ctx context.Context, n config.Notification, tenant string, note ledger.Note, b batch, st standing) error {
	m, err := s.message(ctx, n, tenant, b, st)
	if err != nil {
		return err
	}
	if m.Text != "" {
		id, err := s.Engine.Enqueue(ctx, n.Intent(tenant, m))
		log := s.Logger.With("notification", n.Name, "tenant", tenant, "message", m.ID)
		switch {
		case errors.Is(err, ledger.ErrDigestMismatch):
		case errors.Is(err, intent.ErrInvalid):
			log.Error("a notification cannot be made", "error", err) // it must not block the next
		case err != nil:
			return fmt.Errorf("the message %s: %w", m.ID, err)
		default:
			log.Info("a notification was recorded", "write", id)
		}
	}
	_, err = s.keep(ctx, note, batch{Cursor: b.Cursor, Seen: b.Seen})
	return lost(err)
}

// lost is nil if another process was faster: it has done the same.
func lost(err error) error {
	if errors.Is(err, ledger.ErrStale) {
		return nil
	}
	return err
}

// read reads the batch of a notification for a tenant. The name of the note is a hash with the
// length of each part, so that two never share one.
func (s *Sender) read(ctx context.Context, n config.Notification, tenant string) (note ledger.Note, b batch, now time.Time, err error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(n.Name), n.Name, tenant))
	note.Name = notesPrefix + hex.EncodeToString(sum[:16])
	found, now, err := s.Ledger.Notes(ctx, note.Name)
	if err == nil && len(found) > 0 {
		note = found[0]
		if bad := json.Unmarshal(note.Value, &b); bad != nil {
			err = fmt.Errorf("the note %q, the batch of the notification, cannot be read: %w; remove it, and the notification is about what begins to wait from then on", note.Name, bad)
		}
	}
	return note, b, now, err
}

func (s *Sender) keep(ctx context.Context, note ledger.Note, b batch) (ledger.Note, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return note, err
	}
	note.Value = text
	return s.Ledger.SetNote(ctx, note)
}
