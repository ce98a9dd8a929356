package mcpapi

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// maxStreams is how many responses of a session are kept for a client that lost its
	// connection, and maxReplay how many bytes: a response has a few kilobytes.
	maxStreams = 64
	maxReplay  = 256 << 10
)

// replays keeps the last responses of each session, for clients that lost their
// connection and resume the stream. The store of the protocol's library bounds the bytes
// but not the streams, of which each call makes one.
type replays struct {
	mu       sync.Mutex
	sessions map[string]*replay
}

// replay holds the responses of one session.
type replay struct {
	streams map[string][][]byte
	order   []string // oldest first
	size    int
}

var _ mcp.EventStore = (*replays)(nil)

func newReplays() *replays { return &replays{sessions: map[string]*replay{}} }

func (r *replays) of(session, stream string) *replay {
	s, ok := r.sessions[session]
	if !ok {
		s = &replay{streams: map[string][][]byte{}}
		r.sessions[session] = s
	}
	if _, ok := s.streams[stream]; !ok {
		s.streams[stream] = nil
		s.order = append(s.order, stream)
	}
	return s
}

// Open prepares a stream.
func (r *replays) Open(_ context.Context, session, stream string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(session, stream).trim()
	return nil
}

// Append keeps an event.
func (r *replays) Append(_ context.Context, session, stream string, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.of(session, stream)
	s.streams[stream] = append(s.streams[stream], slices.Clone(data))
	s.size += len(data)
	s.trim()
	return nil
}

// trim removes the oldest streams, never the newest.
func (s *replay) trim() {
	for len(s.order) > 1 && (len(s.order) > maxStreams || s.size > maxReplay) {
		for _, data := range s.streams[s.order[0]] {
			s.size -= len(data)
		}
		delete(s.streams, s.order[0])
		s.order = s.order[1:]
	}
}

// After returns the events of a stream after an index.
func (r *replays) After(_ context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	r.mu.Lock()
	defer r.mu.Unlock()
	var events [][]byte
	found := false
	if s, ok := r.sessions[session]; ok {
		events, found = s.streams[stream]
	}
	events = slices.Clone(events)
	return func(yield func([]byte, error) bool) {
		if !found || index+1 > len(events) {
			yield(nil, fmt.Errorf("%w: stream %q", mcp.ErrEventsPurged, stream))
			return
		}
		for _, data := range events[max(index+1, 0):] {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// SessionClosed removes a session.
func (r *replays) SessionClosed(_ context.Context, session string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, session)
	return nil
}
