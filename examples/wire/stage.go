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

	"github.com/readback-go/readback/connectors/simulated"
)

// fate is what becomes of the first transfer that the bank makes.
type fate string

const (
	answers fate = ""      // it says yes
	kills   fate = "kills" // the orchestrator is killed before it hears so
	hangs   fate = "hangs" // it never answers
)

// service is a destination of the orchestrator's, served over HTTP.
type service struct {
	world *simulated.World
	url   string
	end   func() error

	mu   sync.Mutex
	fate fate
	kill func() // the orchestrator
}

// serve opens a destination on a free port of this machine.
func serve(ctx context.Context) (*service, error) {
	world, err := simulated.New(simulated.Plain.Options())
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

// ServeHTTP implements [http.Handler]: what is asked for is done, and then the
// fate decides who hears of it.
func (s *service) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	simulated.Handler(s.world).ServeHTTP(answer, r)
	s.mu.Lock()
	of, kill := answers, s.kill
	if r.Method == http.MethodPost {
		of, s.fate = s.fate, answers
	}
	s.mu.Unlock()
	switch of {
	case kills:
		kill()
		panic(http.ErrAbortHandler)
	case hangs:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	rw.WriteHeader(answer.Code)
	_, _ = answer.Body.WriteTo(rw) // who has gone hears nothing
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

// orchestrator runs one to its end, which may be that the bank kills it.
func (st *stage) orchestrator(ctx context.Context, gated bool, workflow string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), st.setting(gated, workflow).environ()...)
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	killed := make(chan struct{})
	once := sync.OnceFunc(func() {
		close(killed)
		_ = cmd.Process.Kill() // SIGKILL, while it waits for the answer
	})
	st.bank.mu.Lock()
	st.bank.kill = once
	st.bank.mu.Unlock()
	for lines := bufio.NewScanner(said); lines.Scan(); {
		_, _ = fmt.Fprintln(st.out, "  "+lines.Text())
	}
	err = cmd.Wait()
	select {
	case <-killed:
		_, _ = fmt.Fprintln(st.out, "  the orchestrator is dead")
		return nil
	default:
		return err
	}
}

func (st *stage) setting(gated bool, workflow string) setting {
	return setting{ledger: filepath.Join(st.dir, "ledger.db"), bank: st.bank.url, notifier: st.notifier.url, gated: gated, workflow: workflow}
}
