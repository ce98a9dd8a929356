package readbacktest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/chaos"
)

// maxRequest bounds what is kept of one request over TCP.
const maxRequest = 16 << 20

// TCP carries connections to a server of any protocol, and injects the faults of networks:
// [LostAnswer], [DroppedBefore], [LateCommit], [CutBody] and, for a new connection, [Unreachable].
// A client listens to nothing but what the server sends; it connects to [TCP.Addr]. It runs in real
// time, not in a testing/synctest bubble. It has the methods of [Log].
//
// A connection encrypted by the client cannot be read: let the test's client connect without TLS.
type TCP struct {
	*Log
	target string
	ends   func(sent []byte) bool
	listen net.Listener
}

// NewTCP returns a proxy before the server at an address, "127.0.0.1:2525". ends reports whether the
// bytes that a client has sent since its last write end one, such as the dot after a mail's text.
// What comes before the end is passed on as it comes. tb fails if the options are invalid.
func NewTCP(tb testing.TB, target string, ends func(sent []byte) bool, o Options) *TCP {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatalf("readbacktest: %v", err)
	}
	p := &TCP{Log: newLog(tb, chaos.NewLog(checked(tb, o))), target: target, ends: ends, listen: l}
	tb.Cleanup(func() { _ = l.Close() })
	go p.accept()
	return p
}

// Addr is where the proxy listens, on this machine only.
func (p *TCP) Addr() string { return p.listen.Addr().String() }

func (p *TCP) accept() {
	for {
		client, err := p.listen.Accept()
		if err != nil {
			return // the test has ended
		}
		go p.serve(client)
	}
}

// serve carries one connection until either side, or a fault, ends it.
func (p *TCP) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	if p.log.Meets(Request{Op: "connect", Write: true}, Unreachable) {
		return
	}
	ended, stop := context.WithCancel(context.Background())
	defer stop()
	server, err := (&net.Dialer{Timeout: p.log.Options.Patience}).DialContext(ended, "tcp", p.target)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	answers, requests := received(ended, server), received(ended, client)
	var sent []byte
	for {
		select {
		case answer, open := <-answers:
			if !open {
				return
			}
			if _, err := client.Write(answer); err != nil {
				return
			}
		case request, open := <-requests:
			if !open {
				return
			}
			if sent = append(sent, request...); len(sent) > maxRequest {
				p.tb.Errorf("readbacktest: a client sent %d bytes without a write that ends", len(sent))
				return
			}
			if !p.ends(sent) {
				if _, err := server.Write(request); err != nil {
					return
				}
				continue
			}
			if p.write(client, server, sent, request, answers, requests) != nil {
				return
			}
			sent = nil
		}
	}
}

// received are the bytes that arrive on a connection, until it ends.
func received(ended context.Context, conn net.Conn) <-chan []byte {
	all := make(chan []byte)
	go func() {
		defer close(all)
		for buffer := make([]byte, 32<<10); ; {
			n, err := conn.Read(buffer)
			if n > 0 {
				select {
				case all <- bytes.Clone(buffer[:n]):
				case <-ended.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return all
}

var errConnectionEnds = errors.New("the fault ends the connection")

// write carries the end of a write to the server, with its fault. An error ends the connection.
func (p *TCP) write(client, server net.Conn, whole, last []byte, answers, requests <-chan []byte) (err error) {
	c, f := p.log.Begin(Call{Write: true, What: "write", Key: "write", Body: whole})
	defer p.log.End(c)
	answer := func() []byte {
		if _, err = server.Write(last); err != nil {
			return nil
		}
		select {
		case a := <-answers:
			p.log.Arrived(c, Arrival{Answer: string(bytes.TrimSpace(a)), Done: len(a) > 0, Unknown: len(a) == 0})
			return a
		case <-time.After(p.log.Options.Patience):
			p.log.Arrived(c, Arrival{Answer: "nothing in time", Unknown: true})
			return nil
		}
	}
	switch f.Kind {
	case DroppedBefore:
		p.log.Saw(c, chaos.DeadConnection)
		return errConnectionEnds
	case LostAnswer:
		answer()
		p.log.Saw(c, chaos.DeadConnection)
		return errConnectionEnds
	case CutBody:
		a := answer()
		_, _ = client.Write(a[:len(a)/2]) // the connection ends anyway
		p.log.Saw(c, "half of the answer")
		return errConnectionEnds
	case LateCommit:
		p.log.Saw(c, "nothing, and gave up")
		for cut, waits := time.After(p.log.Options.Patience), true; waits; {
			select {
			case _, waits = <-requests:
			case <-cut:
				waits = false
			}
		}
		_ = client.Close()
		answer()
		return errConnectionEnds
	}
	a := answer()
	p.log.Saw(c, string(bytes.TrimSpace(a)))
	if err == nil {
		_, err = client.Write(a)
	}
	return err
}
