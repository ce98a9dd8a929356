package sagamatrix

import (
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
	"github.com/readback-go/readback/saga"
)

// killed are the cells that are run with real processes.
var killed = []cell{
	{plan: plans[0], fault: lostAnswer, step: ticket},
	{plan: plans[0], failing: letter},
	{plan: plans[0], failing: order, fault: lostAnswer, step: contact},
	{plan: plans[1], fault: gateway, step: order},
	{plan: plans[1], failing: order, fault: lostAnswer, step: ticket},
	{plan: plans[1], fault: lostAnswer, step: letter},
}

// killEvery is how many calls lie between those at which a process is killed, and
// killLast the last of them: a saga has fewer.
const killEvery, killLast = 13, 180

// TestKilled runs sagas in processes that are killed, at every so many of their calls, on a
// ledger on disk. The next process ends the saga, and the destinations, which run here, show the
// result.
func TestKilled(t *testing.T) {
	need.Long(t)
	for i, c := range killed {
		c.plan.hosted = true
		for nth := 1 + i%killEvery; nth < killLast; nth += killEvery {
			t.Run(fmt.Sprintf("%s/killed at call %d", c, nth), func(t *testing.T) {
				t.Parallel()
				kill(t, c, nth)
			})
		}
	}
}

// killFirst is a call that every saga comes to.
const killFirst = 40

// kill is one run of a saga whose first process is killed at its nth call.
func kill(t *testing.T, c cell, nth int) {
	s := hosted(t, c.plan)
	arm(t, s.world, c)
	at := s.child(t, nth)
	if at != "" {
		s.child(t, 0)
	} else if nth < killFirst {
		t.Errorf("it ended before its call %d", nth)
	}
	r := &run{cell: c, mischief: mischief{world: s.world}}
	r.accounts = s.world.accounts()
	s.read(t, r)
	r.end = r.ended()
	want := c.led().may
	mail := slices.IndexFunc(r.writes, func(w ledger.Record) bool { return w.Step == letter })
	if mail >= 0 && r.writes[mail].State == ledger.Review && r.writes[mail].Unknown {
		want = append(want, reviewerDecides) // it was killed between the announcement and the answer
	}
	if !slices.Contains(want, r.end) {
		t.Errorf("killed %s: %s, want %v: %s\n%+v", at, r.end, want, r.final.Reason, r.accounts)
	}
	for _, name := range steps {
		if a := r.accounts[name]; a.twice(r.faultAt(name)) {
			t.Errorf("killed %s: %s: %s: %+v", at, doneTwice, name, a)
		}
	}
}

// arm makes the destinations of the cell misbehave as it wants.
func arm(t *testing.T, w world, c cell) {
	if c.fault != "" {
		if err := w[c.step].meet(c.fault); err != nil {
			t.Fatal(err)
		}
	}
	if c.failing == "" {
		return
	}
	if err := w[c.failing].(interface{ alwaysRefuses() error }).alwaysRefuses(); err != nil {
		t.Fatal(err)
	}
}

// scene is what outlives the processes.
type scene struct {
	world  world
	plan   plan
	ledger string
	env    []string
}

// hosted serves the destinations on this machine, and a ledger on its disk.
func hosted(t *testing.T, p plan) *scene {
	t.Helper()
	w, err := opened(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.close() })
	s := &scene{world: w, plan: p, ledger: filepath.Join(t.TempDir(), "ledger.db")}
	mail := w[letter].(*post).fake
	_, password := mail.Account()
	s.env = []string{
		"SAGAMATRIX_PLAN=" + p.name, "SAGAMATRIX_LEDGER=" + s.ledger,
		"SAGAMATRIX_CRM=" + served(t, w[contact].(*crm).fake), "SAGAMATRIX_DESK=" + served(t, w[ticket].(*tracker).fake),
		"SAGAMATRIX_TILL=" + served(t, w[order].(*till).handler()), "SAGAMATRIX_SMTP=" + mail.Addr(),
		"SAGAMATRIX_IMAP=" + mail.Mailbox.Addr(), "SAGAMATRIX_PASSWORD=" + password,
	}
	return s
}

func served(t *testing.T, h http.Handler) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(ln) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + ln.Addr().String()
}

// read reads the reported saga from the ledger.
func (s *scene) read(t *testing.T, r *run) {
	t.Helper()
	book, err := sqlite.Open(t.Context(), s.ledger, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	e := engine.New(book, nil, nil)
	defer e.Close()
	if r.final, err = saga.New(book, e, nil).Get(t.Context(), tenant, sagaID); err != nil {
		t.Fatal(err)
	}
	if r.writes, err = book.List(t.Context(), ledger.Filter{Tenant: tenant}); err != nil {
		t.Fatal(err)
	}
}
