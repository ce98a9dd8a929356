package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

// On a terminal a bar is shown from two seconds on, with count and rate, and removed at the end.
func TestProgressBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		show, end := (&app{stderr: &out, bars: true}).progress()
		show("pruning", 100, 1000)
		if out.Len() > 0 {
			t.Errorf("a bar of a short command: %q", out.String())
		}
		<-time.After(barAfter)
		show("pruning", 400, 1000)
		<-time.After(time.Second)
		show("pruning", 600, 1000)
		if !strings.Contains(out.String(), "pruning") || !strings.Contains(out.String(), "(600/1000, ") {
			t.Errorf("no bar with a count and a rate: %q", out.String())
		}
		<-time.After(time.Second)
		show("finding\x1b[2Jmore", 7, 0)
		if text := out.String(); !strings.Contains(text, "finding") || strings.Contains(text, "\x1b[2J") {
			t.Errorf("the second: %q", text)
		}
		end()
	})
}

// A signal ends a command at once, and it says what it leaves.
func TestSignalsEndCommands(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"eval":      {[]string{"eval", "checks.yaml"}, "no destination was changed. Run it again"},
		"reconcile": {[]string{"reconcile", "log.csv", "--destination", "orders", "--kind", "order", "--key", "order_id", "--foreign=false"}, "no destination was changed. Run it again"},
		"probe":     {[]string{"probe", "orders"}, "interrupted: the probe ended early; no sample record is left at the destination. Run it again"},
	} {
		t.Run(name, func(t *testing.T) {
			p := exported(t)
			asked := make(chan struct{}, 100)
			silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/healthz" {
					return
				}
				asked <- struct{}{}
				<-r.Context().Done()
			}))
			t.Cleanup(silent.Close)
			p.configure(silent.URL, "")
			p.write("log.csv", "order_id,amount_cents\nA-1,1999\n")
			for i, arg := range tt.args[1:] {
				if strings.Contains(arg, ".") {
					tt.args[i+1] = filepath.Join(p.dir, arg)
				}
			}
			cmd, out, errs := p.process("", tt.args...)
			<-asked
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			r := end(cmd, out, errs)
			if r.code != exitFailed {
				t.Errorf("exit code %d", r.code)
			}
			says(t, r, tt.says)
		})
	}
}

// old makes settled writes of long ago.
func (p *place) old(n int) {
	p.t.Helper()
	h := &history{t: p.t, now: began}
	l, err := sqlite.Open(p.t.Context(), p.ledger, &sqlite.Options{Now: func() time.Time { return h.now }})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	h.l = l
	for i := range n {
		rec := h.begin(order(fmt.Sprint("o-", i), ""), nothing, announced)
		h.then(time.Millisecond, rec, yes, ledger.Event{Kind: ledger.EvRead, Verdict: "verified", Count: 1, Reason: "seen", Ref: "ord_000001", Evidence: seen("")},
			ledger.Event{Kind: ledger.EvSettled, Settlement: ledger.Verified, Verdict: "verified", Rule: "accept", Reason: "seen"})
	}
}

// stopping ends the program when it has written something.
type stopping struct {
	lines
	at  string
	end func()
}

func (s *stopping) Write(text []byte) (int, error) {
	n, err := s.lines.Write(text)
	if strings.Contains(s.String(), s.at) {
		s.end()
	}
	return n, err
}

// What was pruned before a signal stays so, and the next prune continues.
func TestPruneIsInterrupted(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.old(1100)
	prune := []string{"prune", "--keep", "30h", "--remember", "400d"}
	for at, want := range map[string]string{"counting what can be pruned": "interrupted: nothing was pruned; run it again", "msg=pruning": "interrupted: pruned 500 of 1,100; run it again to continue"} {
		ctx, cancel := context.WithCancel(t.Context())
		errs := &stopping{at: at, end: cancel}
		if code := p.start(ctx, nil, io.Discard, errs, append(prune, "-v")...); code != exitFailed {
			t.Errorf("exit code %d", code)
		}
		says(t, result{err: errs.String()}, want)
	}
	says(t, p.want(0, p.run(append(prune, "--dry-run")...)), "make 600 settled writes tombstones")
	says(t, p.want(0, p.run(prune...)), "made 600 settled writes tombstones")
}

// A signal also ends the check of the audit log, and the first sealing of a ledger.
func TestAuditIsInterrupted(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.old(1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for command, want := range map[string]string{"seal": "interrupted: sealed 0 events", "verify": "nothing is proven, and nothing was changed. Run it again"} {
		var errs lines
		p.start(ended, nil, io.Discard, &errs, "audit", command)
		if !strings.Contains(errs.String(), want) && !strings.Contains(errs.String(), "context canceled") { // before the ledger was open
			t.Errorf("%s: %s", command, errs.String())
		}
	}
}
