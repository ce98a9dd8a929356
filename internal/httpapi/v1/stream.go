package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

// fromStart is what after says for everything that is still kept.
const fromStart = "start"

// stream is one reader of events. It keeps nothing for its reader: what is there
// is looked up, written, and waited for until it is taken.
type stream struct {
	c       *call
	control *http.ResponseController
	cursor  string
	spoke   time.Time // when something was last written
}

// follow streams events until the caller goes, is slow, is no longer who it was,
// or has listened long enough.
func (c *call) follow(ctx context.Context) (reply, error) {
	if c.query.Has("workflow") {
		if err := c.who.May(access.Trace); err != nil {
			return reply{}, fmt.Errorf("%w: filter by write instead of workflow", err)
		}
	}
	leave, err := c.api.streams.take(c.who.Tenant, "ask for outcomes instead")
	if err != nil {
		return reply{}, err
	}
	defer leave()
	s := &stream{c: c, control: http.NewResponseController(c.w)}
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

// start finds out from where on, and opens the stream.
func (s *stream) start(ctx context.Context) error {
	latest, err := s.c.api.office.Latest(ctx, s.c.who)
	if err != nil {
		return err
	}
	s.cursor = latest
	if after := s.c.query.Get("after"); after != "" {
		s.cursor = after
	}
	if id := s.c.r.Header.Get(headerLastID); id != "" {
		if !isText(id, maxCursor) {
			return badField(headerLastID, "is no id of an event; want one as it came")
		}
		s.cursor = id
	}
	if s.cursor == fromStart {
		s.cursor = ""
	}
	if s.cursor != latest { // one that is none is refused while that can still be said
		_, _, err := s.c.api.office.Follow(ctx, s.c.who, s.cursor, 1)
		if errors.Is(err, ledger.ErrCursor) && s.c.r.Header.Get(headerLastID) != "" {
			return badField(headerLastID, "is no id of an event; want one as it came")
		}
		if err != nil && !errors.Is(err, ledger.ErrTooFar) {
			return err
		}
	}
	h := s.c.w.Header()
	h.Set("Content-Type", streamType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // proxies that gather answers gather no stream
	s.c.w.WriteHeader(http.StatusOK)
	return nil
}

// run tells what happens until it ends.
func (s *stream) run(ctx context.Context) error {
	if err := s.say(": readback\nretry: 2000\n\n"); err != nil {
		return err
	}
	woken := s.c.api.office.Woken(ctx)
	beat, ask := time.NewTicker(heartbeat), time.NewTicker(askAgain)
	defer beat.Stop()
	defer ask.Stop()
	for {
		if err := s.look(ctx); err != nil {
			return err
		}
		if !pause(ctx, lookGap) {
			return ctx.Err()
		}
		for looked := false; !looked; {
			select {
			case <-woken:
				looked = true
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

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// stillThem asks whether the credentials are still those of whoever came.
func (s *stream) stillThem() error {
	now, err := s.c.api.opts.Who.Resolve(s.c.r)
	switch {
	case errors.Is(err, access.ErrUnknown):
		return err
	case err == nil && (now.Tenant != s.c.who.Tenant || now.Role != s.c.who.Role):
		return access.ErrUnknown
	}
	return nil // also where it cannot be asked now: it is asked again
}

// beat says that the stream is there, and takes its reader past what it does not
// want to hear of: else one of a quiet tenant that comes back would be told one day
// that it is too far behind.
func (s *stream) beat(ctx context.Context) error {
	if time.Since(s.spoke) < heartbeat/2 {
		return nil
	}
	if err := s.look(ctx); err != nil {
		return err
	}
	return s.say(": here\nid: " + oneLine(s.cursor) + "\n\n")
}

// look tells everything that happened since the last look.
func (s *stream) look(ctx context.Context) error {
	for {
		if err := s.stillOpen(ctx); err != nil {
			return err
		}
		ask, cancel := context.WithTimeout(ctx, s.c.api.opts.Timeout)
		changes, next, err := s.c.api.office.Follow(ask, s.c.who, s.cursor, streamPage)
		cancel()
		switch {
		case errors.Is(err, ledger.ErrTooFar):
			return s.missed(ctx, err)
		case err != nil && (errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)) && ctx.Err() == nil:
			return nil // it is looked for again; nothing is lost
		case err != nil:
			s.c.api.tell(s.c, http.StatusInternalServerError, err)
			return err
		}
		for _, change := range changes {
			if err := s.tell(ctx, change); err != nil {
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

// missed says that something came which is no longer kept, and goes on from now.
func (s *stream) missed(ctx context.Context, err error) error {
	latest, lost := s.c.api.office.Latest(ctx, s.c.who)
	if lost != nil {
		return lost
	}
	s.cursor = latest
	_, p := problemOf(err, s.c.who.Tenant)
	s.c.api.office.Clean(s.c.who, &p)
	return s.event("missed", latest, p)
}

// tell tells one change, if its reader wants to hear of it.
func (s *stream) tell(ctx context.Context, change ledger.Change) error {
	q := s.c.query
	if id := q.Get("write"); id != "" && id != string(change.ID) || change.Tenant != s.c.who.Tenant {
		return nil
	}
	if workflow := q.Get("workflow"); workflow != "" {
		v, err := s.c.api.office.View(ctx, s.c.who, change.ID)
		if errors.Is(err, ledger.ErrNotFound) || err == nil && v.Record.Workflow != workflow {
			return nil
		}
		if err != nil {
			return err
		}
	}
	out, err := s.c.api.office.Outcome(ctx, s.c.who, change.ID, 0)
	switch {
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrCorrupt), errors.Is(err, ledger.ErrVersion):
		return nil // it was forgotten since, or cannot be read: others can
	case err != nil:
		return err
	}
	return s.event("outcome", change.Cursor, Told{Write: change.ID, Happened: change.Kind, At: change.At, Outcome: out})
}

// event writes one event. The data is one line: JSON has no line ends of its own.
func (s *stream) event(name, id string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s\nevent: %s\ndata: %s\n\n", oneLine(id), name, text)
	return s.say(b.String())
}

// oneLine is a cursor as it can stand in a stream. They are a ledger's, and have
// no line ends; one that had could say anything.
func oneLine(cursor string) string {
	if strings.ContainsAny(cursor, "\r\n\x00") {
		return ""
	}
	return cursor
}

// say writes a piece and waits until it is taken, for so long and no longer.
func (s *stream) say(text string) error {
	s.spoke = time.Now()
	_ = s.control.SetWriteDeadline(s.spoke.Add(slowReader)) // without it the bound of the server holds
	if _, err := s.c.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
