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

// Step is one step of a scripted server.
type Step struct {
	// Expect is how the client's line must begin; "." means a whole message, "" that the server
	// speaks first.
	Expect string
	// Reply is the server's answer, line ends included. Default nothing.
	Reply string
	// After makes it cut the connection after so many bytes of a message, instead of reading it
	// all. Default 0: it reads the message to the dot.
	After int
}

// Script is a server that runs the same steps for every connection, and cuts the connection after
// the last. In a step with neither Expect nor Reply it waits for the client to disconnect. It is
// reached by Dial alone. The zero value needs its Steps.
type Script struct {
	Steps []Step

	mu       sync.Mutex
	received []string
	wrong    error
}

// Dial connects to the script, in memory.
func (s *Script) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go s.play(server)
	return client, nil
}

// Received lists the lines of the client; a message is one entry, ".".
func (s *Script) Received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
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
	for _, step := range s.Steps {
		if step == (Step{}) {
			break // wait
		}
		if step.After > 0 {
			_, _ = io.CopyN(io.Discard, r, int64(step.After))
			return
		}
		if step.Expect != "" && !s.hear(r, step.Expect) {
			return
		}
		if step.Reply == "" {
			continue // in memory, nothing would wait for a reader
		}
		if _, err := io.WriteString(conn, step.Reply); err != nil {
			return
		}
	}
	if n := len(s.Steps); n == 0 || s.Steps[n-1] == (Step{}) {
		for s.hear(r, "") {
		}
	}
}

// hear reads one line or one message.
func (s *Script) hear(r *bufio.Reader, want string) bool {
	line, err := ".", error(nil)
	if want == "." {
		_, err = readMessage(r)
	} else {
		line, err = r.ReadString('\n')
	}
	if err != nil {
		return false
	}
	line = strings.TrimRight(line, "\r\n")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, line)
	if !strings.HasPrefix(line, want) {
		s.wrong = fmt.Errorf("the client says %q, the script has %q", line, want)
		return false
	}
	return true
}
