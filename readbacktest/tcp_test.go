package readbacktest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/readback-go/readback/readbacktest"
)

// ledgerServer answers each line with its number, and keeps it.
type ledgerServer struct {
	mu    sync.Mutex
	lines []string
}

func (s *ledgerServer) start(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				for in := bufio.NewReader(conn); ; {
					line, err := in.ReadString('\n')
					if err != nil {
						return // half a line is none
					}
					s.mu.Lock()
					s.lines = append(s.lines, line)
					n := len(s.lines)
					s.mu.Unlock()
					_, _ = fmt.Fprintf(conn, "line %d\n", n)
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestFaultsOverTCP(t *testing.T) {
	for kind, want := range map[readbacktest.Kind]struct {
		answer string
		lines  int
	}{
		readbacktest.None:          {"line 1\n", 1},
		readbacktest.LostAnswer:    {"", 1},
		readbacktest.CutBody:       {"lin", 1},
		readbacktest.DroppedBefore: {"", 0},
		readbacktest.LateCommit:    {"", 1},
		readbacktest.Unreachable:   {"", 0},
	} {
		t.Run(string(kind), func(t *testing.T) {
			s := &ledgerServer{}
			p := readbacktest.NewTCP(t, s.start(t), func(sent []byte) bool { return bytes.HasSuffix(sent, []byte("\n")) }, readbacktest.Options{})
			if kind != readbacktest.None {
				if err := p.Set(readbacktest.Fault{Kind: kind, Times: 1}); err != nil {
					t.Fatal(err)
				}
			}
			first := talk(t, p.Addr(), "a pay", "ment\n")
			if first != want.answer {
				t.Errorf("the client got %q, want %q", first, want.answer)
			}
			readbacktest.Effects(t, func(string) int { // once what is late has arrived
				s.mu.Lock()
				defer s.mu.Unlock()
				return len(s.lines)
			}, "", p).Exactly(want.lines)
			if next := talk(t, p.Addr(), "again\n"); next != fmt.Sprintf("line %d\n", want.lines+1) {
				t.Errorf("the next connection gets %q", next)
			}
		})
	}
}

// talk sends pieces over a connection of its own and returns what came back.
func talk(t *testing.T, addr string, pieces ...string) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, piece := range pieces {
		if _, err := io.WriteString(conn, piece); err != nil {
			return ""
		}
	}
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // only a fault that never answers is waited for
	var got strings.Builder
	_, _ = io.Copy(&got, bufio.NewReader(io.LimitReader(conn, 7)))
	return got.String()
}
