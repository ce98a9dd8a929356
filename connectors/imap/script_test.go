package imap_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/connectors/imap"
)

// script is a server with a test's scripted answers, for what no real server does on request. A
// command without a scripted answer is answered as an honest, empty server with UIDPLUS and
// CONDSTORE would.
type script struct {
	ln      net.Listener
	on      map[string]func(k *talk) // by command, "UID STORE" as one
	reached chan struct{}            // a value each time it falls silent

	mu  sync.Mutex
	log []string // commands as received, without their tags
}

// talk is one command and the connection that it came over.
type talk struct {
	s    *script
	conn net.Conn
	r    *bufio.Reader
	tag  string
	line string
}

func newScript(t *testing.T, on map[string]func(k *talk)) *script {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{ln: ln, on: on, reached: make(chan struct{}, 10)}
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			busy.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = ln.Close(); busy.Wait() })
	return s
}

func (s *script) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	k := &talk{s: s, conn: conn, r: bufio.NewReader(conn), tag: "*"}
	s.react("greeting", k)
	for {
		line, err := k.r.ReadString('\n')
		if err != nil {
			return
		}
		k.tag, k.line, _ = strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		s.mu.Lock()
		s.log = append(s.log, k.line)
		s.mu.Unlock()
		words := strings.Fields(strings.ToUpper(k.line) + " x")
		name := words[0]
		if name == "UID" {
			name += " " + words[1]
		}
		s.react(name, k)
	}
}

func (s *script) react(name string, k *talk) {
	if do, ok := s.on[name]; ok {
		do(k)
		return
	}
	switch name {
	case "greeting":
		k.say("* OK ready")
	case "CAPABILITY":
		k.done("* CAPABILITY IMAP4rev1 UIDPLUS CONDSTORE")
	case "SELECT", "EXAMINE":
		k.done("* 1 EXISTS", "* OK [UIDVALIDITY 9] ok", "* OK [UIDNEXT 8] ok", `* OK [PERMANENTFLAGS (\Seen \Flagged \Deleted \*)] ok`, "* OK [HIGHESTMODSEQ 5] ok")
	case "UID SEARCH":
		k.done("* SEARCH")
	case "APPEND":
		k.literal()
		k.done()
	default:
		k.done()
	}
}

func (k *talk) say(lines ...string) {
	for _, line := range lines {
		_, _ = io.WriteString(k.conn, line+"\r\n") // a client that has gone is the test's matter
	}
}

// done sends the lines and OK.
func (k *talk) done(lines ...string) {
	k.say(lines...)
	k.say(k.tag + " OK done")
}

// answer sends these lines and OK.
func answer(lines ...string) func(k *talk) { return func(k *talk) { k.done(lines...) } }

// no answers with this instead of OK.
func no(text string) func(k *talk) { return func(k *talk) { k.say(k.tag + " " + text) } }

// cut hangs up.
func cut(k *talk) { _ = k.conn.Close() }

// silence sends nothing until the client hangs up.
func silence(k *talk) {
	k.s.reached <- struct{}{}
	_, _ = io.Copy(io.Discard, k.r)
}

// afterLiteral takes the message and then does something.
func afterLiteral(do func(k *talk)) func(k *talk) {
	return func(k *talk) { k.literal(); do(k) }
}

var announced = regexp.MustCompile(`\{(\d+)(\+?)\}$`)

// literal takes the literal that the command announces.
func (k *talk) literal() []byte {
	m := announced.FindStringSubmatch(k.line)
	if m == nil {
		return nil
	}
	if m[2] == "" {
		k.say("+ go ahead")
	}
	n, _ := strconv.Atoi(m[1])
	raw := make([]byte, n+2)
	_, _ = io.ReadFull(k.r, raw) // a short one fails the test elsewhere
	return raw[:n]
}

// commands lists what was received that begins so.
func (s *script) commands(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var some []string
	for _, line := range s.log {
		if strings.HasPrefix(line, prefix) {
			some = append(some, line)
		}
	}
	return some
}

func (s *script) connect(t *testing.T, change func(o *imap.Options)) *imap.Connector {
	t.Helper()
	return connectTo(t, imap.Options{
		Addr: s.ln.Addr().String(), Username: "user",
		Password:    func(context.Context) (string, error) { return "secret-word", nil },
		SingleStore: true,
	}, change)
}

// header is a FETCH answer with the header fields of a message.
func header(uid int, fields string, attributes string) string {
	text := strings.ReplaceAll(fields, "\n", "\r\n") + "\r\n\r\n"
	return fmt.Sprintf("* 1 FETCH (UID %d FLAGS () RFC822.SIZE 100%s BODY[HEADER.FIELDS (Message-ID)]<0> {%d}\r\n%s)", uid, attributes, len(text), text)
}
