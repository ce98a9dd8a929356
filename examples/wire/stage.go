package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/fakes/orders"
)

// fate is what becomes of the first request to write.
type fate string

const (
	answers    fate = ""           // it is done, and the answer says so
	kills      fate = "kills"      // it is done, and the orchestrator is killed before the answer arrives
	hangs      fate = "hangs"      // it is done, and never answered
	killsEarly fate = "killsEarly" // it is not done, and the orchestrator is killed
)

// declared is what the bank and the notifier can do: nothing but strong reads.
// They are in this process, where nothing is on its way for long.
func declared() orders.Options {
	o := orders.Plain.Options()
	o.Horizon = connectors.Within(2 * time.Second)
	return o
}

// service is a destination of the orchestrator's, served over HTTP.
type service struct {
	world *orders.World
	url   string
	end   func() error

	mu   sync.Mutex
	fate fate
	kill func() // the orchestrator
}

// serve opens a destination on a free port of this machine.
func serve(ctx context.Context) (*service, error) {
	world, err := orders.New(declared())
	if err != nil {
		return nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{world: world, url: "http://" + ln.Addr().String()}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Second}
	s.end = server.Close
	go func() { _ = server.Serve(ln) }() // ends with Close
	return s, nil
}

// ServeHTTP implements [http.Handler]: it executes the request, and then the fate decides what
// happens to the answer.
func (s *service) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	of, kill := answers, s.kill
	if r.Method == http.MethodPost {
		of, s.fate = s.fate, answers
	}
	s.mu.Unlock()
	answer := httptest.NewRecorder()
	if of != killsEarly {
		orders.Handler(s.world).ServeHTTP(answer, r)
	}
	switch of {
	case kills, killsEarly:
		kill()
		panic(http.ErrAbortHandler)
	case hangs:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	rw.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(rw) // the client may have gone
}

// stage is everything that outlives the orchestrator.
type stage struct {
	bank, notifier *service
	dir            string
	out            io.Writer
}

func newStage(ctx context.Context, out io.Writer) (*stage, error) {
	dir, err := os.MkdirTemp("", "readback-wire-")
	if err != nil {
		return nil, err
	}
	st := &stage{dir: dir, out: out}
	if st.bank, err = serve(ctx); err == nil {
		st.notifier, err = serve(ctx)
	}
	if err != nil {
		st.close()
	}
	return st, err
}

func (st *stage) close() {
	for _, s := range []*service{st.bank, st.notifier} {
		if s != nil {
			_ = s.end()
		}
	}
	_ = os.RemoveAll(st.dir)
}

func (st *stage) count() count {
	return count{Transfers: len(st.bank.world.Records(invoice)), Notifications: len(st.notifier.world.Records(invoice))}
}

// begin begins a workflow; without the gate there is nothing to begin.
func (st *stage) begin(ctx context.Context, gated bool) (workflow string, err error) {
	if !gated {
		return "", nil
	}
	g, err := st.setting(gated, "").open(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	return g.begin(ctx)
}

// orchestrator runs one, and reports whether it came to its end or was killed.
func (st *stage) orchestrator(ctx context.Context, gated bool, workflow string) (ended bool, err error) {
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), st.setting(gated, workflow).environ()...)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	killed, dead := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() {
		close(killed)
		cancel() // SIGKILL, while it waits for the answer
		<-dead
	})
	for _, s := range []*service{st.bank, st.notifier} {
		s.mu.Lock()
		s.kill = once
		s.mu.Unlock()
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	for lines := bufio.NewScanner(output); lines.Scan(); {
		_, _ = fmt.Fprintln(st.out, "  "+lines.Text())
	}
	err = cmd.Wait()
	close(dead)
	select {
	case <-killed:
		_, _ = fmt.Fprintln(st.out, "  the orchestrator is dead")
		return false, nil
	default:
		return true, err
	}
}

func (st *stage) setting(gated bool, workflow string) setting {
	return setting{ledger: filepath.Join(st.dir, "ledger.db"), bank: st.bank.url, notifier: st.notifier.url, gated: gated, workflow: workflow}
}
