package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

const (
	// heartbeat is how often an idle stream sends a sign of life: less than the half
	// minute after which common proxies cut an idle connection.
	heartbeat = 15 * time.Second
	// askAgain is how often a stream resolves its caller again: a revoked token must not
	// keep its stream.
	askAgain = 5 * time.Second
	// streamTime bounds the life of a stream; its client connects again with the last id.
	// Without it abandoned streams would stay for ever.
	streamTime = time.Hour
	// readGap is the shortest time between two reads of one stream: a busy ledger
	// notifies thousands of times a second.
	readGap = 50 * time.Millisecond
	// streamPage is how many changes one read returns.
	streamPage = 100
)

// fromStart is the value of after for everything that is still stored.
const fromStart = "start"

// stream is one client of events. It buffers nothing: changes are read from the ledger
// and written, and the write must finish in time.
type stream struct {
	c      *call
	out    *httpapi.Stream
	cursor string
}

// follow streams events until the client disconnects, is slow, is no longer
// authenticated, or the stream's time is over.
func (c *call) follow(ctx context.Context) (reply, error) {
	if c.query.Has("workflow") {
		if err := c.who.May(access.Trace); err != nil {
			return reply{}, fmt.Errorf("%w: filter by write instead of workflow", err)
		}
	}
	if err := access.Stream(ctx); err != nil {
		return reply{}, err
	}
	s := &stream{c: c}
	if err := s.start(ctx); err != nil {
		return reply{}, err
	}
	if c.r.Method == http.MethodHead {
		return reply{status: http.StatusOK}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, streamTime)
	defer cancel()
	if err := s.run(ctx); err != nil && ctx.Err() == nil {
		c.api.log.Debug("a stream ended", "tenant", c.who.Tenant, "credentials", c.who.ID, "error", err)
	}
	return reply{status: http.StatusOK}, nil
}

// start determines the first cursor, and opens the stream.
func (s *stream) start(ctx context.Context) error {
	s.cursor = s.c.query.Get("after")
	if id := s.c.r.Header.Get(headerLastID); id != "" {
		if !isText(id, maxCursor) {
			return badField(headerLastID, "is no id of an event; want one as it came")
		}
		s.cursor = id
	}
	if s.cursor == "" { // this needs all partitions of the ledger; to continue does not
		latest, err := s.c.api.service.Latest(ctx, s.c.who)
		if err != nil {
			return err
		}
		s.cursor = latest
	} else { // an invalid one is refused while an error can still be sent
		if s.cursor == fromStart {
			s.cursor = ""
		}
		_, _, err := s.c.api.service.Follow(ctx, s.c.who, s.cursor, 1)
		if errors.Is(err, ledger.ErrCursor) && s.c.r.Header.Get(headerLastID) != "" {
			return badField(headerLastID, "is no id of an event; want one as it came")
		}
		if err != nil && !errors.Is(err, ledger.ErrTooFar) {
			return err
		}
	}
	s.out = httpapi.OpenStream(s.c.w)
	return nil
}

// run sends events until the stream ends.
func (s *stream) run(ctx context.Context) error {
	if err := s.out.Write(": readback\nretry: 2000\n\n"); err != nil {
		return err
	}
	woken := s.c.api.service.Woken(ctx)
	beat, ask := time.NewTicker(heartbeat), time.NewTicker(askAgain)
	defer beat.Stop()
	defer ask.Stop()
	for {
		if err := s.sendChanges(ctx); err != nil {
			return err
		}
		if !pause.For(ctx, readGap) {
			return ctx.Err()
		}
		for due := false; !due; {
			select {
			case <-woken:
				due = true
			case <-beat.C:
				if err := s.beat(ctx); err != nil {
					return err
				}
			case <-ask.C:
				if err := s.stillThem(); err != nil {
					return err
				}
			case <-s.c.api.opts.Closing:
				return errors.New("the server is being stopped")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// stillThem checks whether the credentials still resolve to the same caller.
func (s *stream) stillThem() error {
	now, err := s.c.api.opts.Who.Resolve(s.c.r)
	switch {
	case errors.Is(err, access.ErrUnknown):
		return err
	case err == nil && (now.Tenant != s.c.who.Tenant || now.Role != s.c.who.Role):
		return access.ErrUnknown
	}
	return nil // also where that cannot be checked now: it is checked again
}

// beat sends a sign of life, and moves the cursor past filtered changes. Otherwise the
// cursor of a quiet tenant would become too old to continue from.
func (s *stream) beat(ctx context.Context) error {
	if time.Since(s.out.Wrote) < heartbeat/2 {
		return nil
	}
	if err := s.sendChanges(ctx); err != nil {
		return err
	}
	return s.out.Alive("here", s.cursor)
}

// sendChanges sends all changes since the last read.
func (s *stream) sendChanges(ctx context.Context) error {
	for {
		if err := s.stillOpen(ctx); err != nil {
			return err
		}
		ask, cancel := context.WithTimeout(ctx, s.c.api.opts.Timeout)
		changes, next, err := s.c.api.service.Follow(ask, s.c.who, s.cursor, streamPage)
		cancel()
		switch {
		case errors.Is(err, ledger.ErrTooFar):
			return s.missed(ctx, err)
		case err != nil && (errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)) && ctx.Err() == nil:
			return nil // it is read again; nothing is lost
		case err != nil:
			s.c.api.send(s.c, http.StatusInternalServerError, err)
			return err
		}
		for _, change := range changes {
			if err := s.send(ctx, change); err != nil {
				return err
			}
		}
		s.cursor = next
		if len(changes) < streamPage {
			return nil
		}
	}
}

func (s *stream) stillOpen(ctx context.Context) error {
	select {
	case <-s.c.api.opts.Closing:
		return errors.New("the server is being stopped")
	default:
		return ctx.Err()
	}
}

// missed reports that changes are no longer stored, and continues from now.
func (s *stream) missed(ctx context.Context, err error) error {
	latest, lost := s.c.api.service.Latest(ctx, s.c.who)
	if lost != nil {
		return lost
	}
	s.cursor = latest
	_, p := problemOf(err, s.c.who.Tenant)
	s.c.api.service.Clean(s.c.who, &p)
	p.visible()
	return s.event("missed", latest, p)
}

// send sends one change, if the filter includes it.
func (s *stream) send(ctx context.Context, change ledger.Change) error {
	q := s.c.query
	if id := q.Get("write"); id != "" && id != string(change.ID) || change.Tenant != s.c.who.Tenant {
		return nil
	}
	if workflow := q.Get("workflow"); workflow != "" {
		v, err := s.c.api.service.View(ctx, s.c.who, change.ID)
		if errors.Is(err, ledger.ErrNotFound) || err == nil && v.Record.Workflow != workflow {
			return nil
		}
		if err != nil {
			return err
		}
	}
	out, err := s.c.api.service.Outcome(ctx, s.c.who, change.ID, 0)
	switch {
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrCorrupt), errors.Is(err, ledger.ErrVersion):
		return nil // it was pruned since, or cannot be read: others can
	case err != nil:
		return err
	}
	return s.event("outcome", change.Cursor, Sent{Write: change.ID, Happened: change.Kind, At: change.At, Outcome: out})
}

// event writes one event.
func (s *stream) event(name, id string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.out.Event(name, id, visible.JSON(text))
}
