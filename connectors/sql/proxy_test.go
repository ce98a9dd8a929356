package sql_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// The faults of the wire. Those of COMMIT are for writes, those of a row for reads.
const (
	wireNone      = ""
	wireLost      = "lost"      // COMMIT is executed, the answer is cut
	wireDropped   = "dropped"   // COMMIT is received, the connection is cut before the server
	wireLate      = "late"      // COMMIT reaches the server when the client has gone
	wirePhantom   = "phantom"   // COMMIT is answered and ROLLBACK is executed
	wireRolled    = "rolled"    // COMMIT finds a transaction that had failed
	wireStatement = "statement" // the connection is cut at the statement
	wireNoBegin   = "no begin"  // something on the way loses the transaction
	wireDown      = "down"      // no connection can be had, and those that there are break
	wireHang      = "hang"      // a read is not answered
	wireError     = "error"     // a read is cancelled: conflict with recovery
	wireCut       = "cut"       // a read is cut
	wireGarbled   = "garbled"   // a read is answered with nonsense
	wireMangled   = "mangled"   // a row of a read is not what it should be
)

// proxy is between a connector and a server and knows the wire protocol.
type proxy struct {
	t      *testing.T
	target string
	listen net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex
	fault   string
	commits int
	looks   int // at rows
	links   map[*link]bool
	held    chan struct{} // closed lets a held COMMIT go
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, target: target, listen: l, links: map[*link]bool{}}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.cutAll()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) port() int { return p.listen.Addr().(*net.TCPAddr).Port }

// arm switches a fault on; an empty one switches all off.
func (p *proxy) arm(kind string) {
	p.mu.Lock()
	p.fault = kind
	p.mu.Unlock()
	if kind == wireDown {
		p.cutAll()
	}
}

func (p *proxy) armed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// take is the fault for the COMMIT that has just come. It applies to one only.
func (p *proxy) take() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commits++
	v := p.fault
	p.fault = wireNone
	return v
}

func (p *proxy) sends() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commits
}

func (p *proxy) countRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
}

// seen is how many transactions were to be committed here, and how many reads of rows there were.
func (p *proxy) seen() (commits, looks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.commits, p.looks
}

func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve forwards the start of a connection unchanged, except requests for encryption or
// cancellation: a cancel request proves nothing, so it may be lost.
func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	if p.armed() == wireDown {
		return
	}
	var size [4]byte
	if _, err := io.ReadFull(client, size[:]); err != nil {
		return
	}
	body := make([]byte, min(binary.BigEndian.Uint32(size[:]), 10_000)-4)
	if _, err := io.ReadFull(client, body); err != nil || binary.BigEndian.Uint32(body) != pgproto3.ProtocolVersion30 {
		return
	}
	server, err := net.Dial("tcp4", p.target)
	if err != nil {
		return
	}
	l := &link{p: p, client: client, server: server, ready: make(chan struct{}, 1)}
	defer l.cut()
	p.mu.Lock()
	p.links[l] = true
	p.mu.Unlock()
	_, _ = server.Write(append(size[:], body...))
	p.wg.Go(l.answers)
	l.questions()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// link is one connection through the proxy.
type link struct {
	p              *proxy
	client, server net.Conn
	mu             sync.Mutex
	swallow        bool // the server's output is not forwarded
	ready          chan struct{}
	mangle         bool
}

func (l *link) cut() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// frame is one message: its type, then its length and body as they came.
func frame(r io.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	whole := append(head[:], make([]byte, binary.BigEndian.Uint32(head[1:])-4)...)
	_, err := io.ReadFull(r, whole[5:])
	return head[0], whole, err
}

func (l *link) questions() {
	for {
		kind, whole, err := frame(l.client)
		if err != nil {
			return
		}
		text := strings.TrimRight(string(whole[5:]), "\x00")
		reads := kind == 'P' && strings.Contains(text, "SELECT (SELECT to_jsonb(r.*)")
		writes := kind == 'P' && !reads && (strings.Contains(text, "INSERT INTO") || strings.Contains(text, "UPDATE ") || strings.Contains(text, "DELETE FROM"))
		if reads {
			l.p.countRead()
		}
		switch fault := l.p.armed(); {
		case kind == 'Q' && text == "COMMIT":
			if !l.commit(l.p.take(), whole) {
				return
			}
			continue
		case kind == 'Q' && fault == wireNoBegin && strings.HasPrefix(text, "BEGIN"):
			l.p.arm(wireNone)
			whole, _ = (&pgproto3.Query{String: "SELECT false"}).Encode(nil)
		case writes && fault == wireStatement:
			l.p.arm(wireNone)
			return
		case reads && fault != wireNone:
			if !l.spoil(fault) {
				return
			}
		}
		if _, err := l.server.Write(whole); err != nil {
			return
		}
	}
}

// commit handles a COMMIT. It reports whether the connection continues.
func (l *link) commit(kind string, whole []byte) bool {
	pass := func(whole []byte) {
		l.quiet(true)
		_, _ = l.server.Write(whole)
		<-l.ready
	}
	switch kind {
	case wireLost:
		pass(whole)
		return false
	case wireDropped:
		return false
	case wireLate:
		_, _ = io.Copy(io.Discard, l.client) // until it has gone
		if l.p.held != nil {
			<-l.p.held
		}
		pass(whole)
		return false
	case wireRolled:
		whole, _ = (&pgproto3.Query{String: "ROLLBACK"}).Encode(nil)
	case wirePhantom:
		rollback, _ := (&pgproto3.Query{String: "ROLLBACK"}).Encode(nil)
		pass(rollback)
		l.quiet(false)
		l.say(&pgproto3.CommandComplete{CommandTag: []byte("COMMIT")}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
		return true
	}
	if code, ok := strings.CutPrefix(kind, "code:"); ok { // it is done, and the answer is another
		pass(whole)
		l.quiet(false)
		severity, code, _ := strings.Cut(code, ":")
		l.say(&pgproto3.ErrorResponse{Severity: severity, SeverityUnlocalized: severity, Code: code, Message: "a gateway's"}, &pgproto3.ReadyForQuery{TxStatus: 'I'})
		return severity == "ERROR"
	}
	_, err := l.server.Write(whole)
	return err == nil
}

// spoil meets a read. It reports whether it is passed on.
func (l *link) spoil(kind string) bool {
	switch kind {
	case wireHang:
		_, _ = io.Copy(io.Discard, l.client)
		return false
	case wireCut:
		return false
	case wireGarbled:
		_, _ = l.client.Write([]byte("HTTP/1.1 502 Bad Gateway\r\n\r\n<html>"))
		return false
	case wireError:
		l.say(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "40001", Message: "canceling statement due to conflict with recovery"})
		return false
	case wireMangled:
		l.mu.Lock()
		l.mangle = true
		l.mu.Unlock()
	}
	return true
}

func (l *link) quiet(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.swallow = on
}

func (l *link) say(messages ...pgproto3.BackendMessage) {
	var all []byte
	for _, m := range messages {
		all, _ = m.Encode(all)
	}
	_, _ = l.client.Write(all)
}

func (l *link) answers() {
	defer l.cut()
	defer func() { // the server has gone: no wait
		select {
		case l.ready <- struct{}{}:
		default:
		}
	}()
	for {
		kind, whole, err := frame(l.server)
		if err != nil {
			return
		}
		l.mu.Lock()
		swallow, mangle := l.swallow, l.mangle
		l.mu.Unlock()
		switch {
		case swallow && kind == 'Z':
			l.ready <- struct{}{}
			continue
		case swallow:
			continue
		case mangle && kind == 'D' && len(whole) > 11:
			whole[11] = '!' // in place of the brace that opens the object
		case mangle && kind == 'C': // no rows: their description is wrong
			whole = append([]byte{'D', 0, 0, 0, 7, 0, 1, 0}, whole...)
		}
		if _, err := l.client.Write(whole); err != nil {
			return
		}
	}
}
