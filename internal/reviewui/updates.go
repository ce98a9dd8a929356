package reviewui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/office"
	"github.com/readback-go/readback/ledger"
)

// listeners counts the open streams, all and by person.
type listeners struct {
	mu  sync.Mutex
	all int
	by  map[string]int
}

// enter counts one in, or says that there are too many.
func (l *listeners) enter(who access.Identity) (leave func(), ok bool) {
	name := who.Tenant + "\x00" + who.Name
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxListeners || l.by[name] >= maxOwn {
		return nil, false
	}
	l.all++
	l.by[name]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all--
		if l.by[name]--; l.by[name] <= 0 {
			delete(l.by, name)
		}
	}, true
}

// news is one message: to which writes something happened. A page that shows
// more than these asks again.
type news struct {
	IDs  []ledger.ID `json:"ids"`
	More bool        `json:"more,omitempty"`
}

// stream is one page that listens.
type stream struct {
	d      *desk
	v      *visit
	out    *http.ResponseController
	cursor string
}

// updates says that something changed, as server-sent events, until whoever
// listens has gone, may no more, or some minutes have passed: then the browser
// asks again, and goes on where it was.
func (d *desk) updates(v *visit) error {
	if v.r.Method != http.MethodGet { // HEAD: there is no end to look for
		return errMethod
	}
	leave, ok := d.listeners.enter(v.who)
	if !ok {
		v.w.Header().Set("Retry-After", "30")
		http.Error(v.w, "too many pages listen", http.StatusServiceUnavailable)
		return nil
	}
	defer leave()
	s := &stream{d: d, v: v, out: http.NewResponseController(v.w), cursor: v.r.Header.Get("Last-Event-ID")}
	ctx, cancel := context.WithTimeout(v.r.Context(), streamTime)
	defer cancel()
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.run(ctx)
	return nil
}

// begin finds out from where on it is told.
func (s *stream) begin(ctx context.Context) error {
	if s.cursor == "" {
		var err error
		if s.cursor, err = s.d.past.Latest(ctx, s.v.who); errors.Is(err, office.ErrUnsupported) {
			s.v.w.WriteHeader(http.StatusNoContent) // the browser does not come back
			s.cursor = ""
			return nil
		} else if err != nil {
			return err
		}
	}
	h := s.v.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies are to pass it on at once
	_ = s.out.SetReadDeadline(time.Time{})
	return s.say("retry: 3000\n: listening\n\n")
}

func (s *stream) run(ctx context.Context) {
	if s.v.w.Header().Get("Content-Type") != "text/event-stream" {
		return
	}
	woken := s.d.past.Woken(ctx)
	again := time.NewTicker(askAgain)
	defer again.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-woken:
			err = s.tell(ctx)
		case <-again.C:
			err = s.still()
		}
		if err != nil {
			return // the browser asks again, and is told why not
		}
	}
}

// still asks whether whoever listens still may.
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
	return s.say(": still here\n\n")
}

// tell sends what has happened since.
func (s *stream) tell(ctx context.Context) error {
	changes, next, err := s.d.past.Follow(ctx, s.v.who, s.cursor, maxTold)
	if errors.Is(err, ledger.ErrTooFar) || errors.Is(err, ledger.ErrCursor) { // what was missed is looked up by the page
		if next, err = s.d.past.Latest(ctx, s.v.who); err == nil {
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
	n := news{More: len(changes) == maxTold}
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
	id := ""
	if !strings.ContainsAny(s.cursor, "\r\n\x00") {
		id = "id: " + s.cursor + "\n"
	}
	return s.say(fmt.Sprintf("event: change\n%sdata: %s\n\n", id, text))
}

// say sends a message, at once. One that nobody takes ends the stream.
func (s *stream) say(text string) error {
	_ = s.out.SetWriteDeadline(time.Now().Add(writeTime)) // where there are deadlines
	if _, err := s.v.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.out.Flush()
}
