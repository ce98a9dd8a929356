package mail

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
)

// Turn is one turn of a scripted server.
type Turn struct {
	// Hears is how the client's line must begin; "." means a whole message, "" that the server
	// speaks first.
	Hears string
	// Says is the server's answer, line ends included. Default nothing.
	Says string
	// After makes it cut the connection after so many bytes of a message, instead of reading it
	// all. Default 0: it reads the message to the dot.
	After int
}

// Script is a server that plays turns, the same for every connection, and cuts the connection
// after the last. In a turn with neither Says nor Hears it waits for the client to disconnect. It
// is reached by Dial alone. The zero value needs its Turns.
type Script struct {
	Turns []Turn

	mu    sync.Mutex
	heard []string
	wrong error
}

// Dial connects to the script, in memory.
func (s *Script) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go s.play(server)
	return client, nil
}

// Heard lists the lines of the client; a message is one entry, ".".
func (s *Script) Heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heard)
}

// Wrong is how a client left the script, nil if it kept to it.
func (s *Script) Wrong() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

func (s *Script) play(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for _, turn := range s.Turns {
		if turn == (Turn{}) {
			break // wait
		}
		if turn.After > 0 {
			_, _ = io.CopyN(io.Discard, r, int64(turn.After))
			return
		}
		if turn.Hears != "" && !s.hear(r, turn.Hears) {
			return
		}
		if turn.Says == "" {
			continue // in memory, nothing would wait for a reader
		}
		if _, err := io.WriteString(conn, turn.Says); err != nil {
			return
		}
	}
	if n := len(s.Turns); n == 0 || s.Turns[n-1] == (Turn{}) {
		for s.hear(r, "") {
		}
	}
}

// hear reads one line or one message.
func (s *Script) hear(r *bufio.Reader, want string) bool {
	said, err := ".", error(nil)
	if want == "." {
		_, err = readMessage(r)
	} else {
		said, err = r.ReadString('\n')
	}
	if err != nil {
		return false
	}
	said = strings.TrimRight(said, "\r\n")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, said)
	if !strings.HasPrefix(said, want) {
		s.wrong = fmt.Errorf("the client says %q, the script has %q", said, want)
		return false
	}
	return true
}
