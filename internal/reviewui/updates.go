package reviewui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/httpapi"
	"github.com/readback-go/readback/ledger"
)

const (
	// streamTime is when a stream ends and the browser starts a new one, so that
	// abandoned streams end.
	streamTime = 10 * time.Minute
	// askAgain is how often the client's permission is checked again, and a sign of life
	// is sent. A revoked credential ends the stream within 5 s.
	askAgain = 4 * time.Second
	// maxShown is how many writes one message names; a message about more says so.
	maxShown = 50
)

// news is one message: which writes changed. A page that shows others reloads.
type news struct {
	IDs  []ledger.ID `json:"ids"`
	More bool        `json:"more,omitempty"`
}

// stream is one subscribed page.
type stream struct {
	d      *app
	v      *visit
	out    *httpapi.Stream // nil where there are no changes to send
	cursor string
}

// updates sends notices of changes, as server-sent events, until the client disconnects,
// loses its permission, or some minutes have passed: then the browser reconnects, and
// continues where it was.
func (d *app) updates(v *visit) error {
	if v.r.Method != http.MethodGet { // HEAD: there is no body
		return errMethod
	}
	if err := access.Stream(v.r.Context()); err != nil {
		return err
	}
	s := &stream{d: d, v: v, cursor: v.r.Header.Get("Last-Event-ID")}
	ctx, cancel := context.WithTimeout(v.r.Context(), streamTime)
	defer cancel()
	if err := s.begin(ctx); err != nil || s.out == nil {
		return err
	}
	s.run(ctx)
	return nil
}

// begin determines the first cursor.
func (s *stream) begin(ctx context.Context) error {
	if s.cursor == "" {
		var err error
		if s.cursor, err = s.d.service.Latest(ctx, s.v.who); err != nil {
			return err
		}
	}
	s.out = httpapi.OpenStream(s.v.w)
	return s.out.Write("retry: 3000\n: listening\n\n")
}

func (s *stream) run(ctx context.Context) {
	woken := s.d.service.Woken(ctx)
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-woken:
			err = s.push(ctx)
		case <-again.C:
			err = s.still()
		}
		if err != nil {
			return // the browser reconnects, and gets the reason
		}
	}
}

// still checks whether the client is still permitted.
func (s *stream) still() error {
	who, err := s.d.opts.Who.Resolve(s.v.r)
	if err == nil {
		err = who.May(access.Trace)
	}
	if err == nil && who.Tenant != s.v.who.Tenant {
		err = access.ErrUnknown
	}
	if err != nil {
		return err
	}
	return s.out.Alive("still here", "")
}

// push sends the changes since the last message.
func (s *stream) push(ctx context.Context) error {
	changes, next, err := s.d.service.Follow(ctx, s.v.who, s.cursor, maxShown)
	if errors.Is(err, ledger.ErrTooFar) || errors.Is(err, ledger.ErrCursor) { // the page reloads what was missed
		if next, err = s.d.service.Latest(ctx, s.v.who); err == nil {
			s.cursor = next
			return s.send(news{More: true})
		}
	}
	if err != nil {
		return err
	}
	if s.cursor = next; len(changes) == 0 {
		return nil
	}
	n := news{More: len(changes) == maxShown}
	for _, c := range changes {
		n.IDs = append(n.IDs, c.ID)
	}
	return s.send(n)
}

func (s *stream) send(n news) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return s.out.Event("change", s.cursor, text)
}
