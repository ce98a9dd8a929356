//go:build unix

package soak

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/pgtest"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
)

func init() { roles["one by one"] = oneByOne }

// oneByOne enqueues the changes that it receives, each in a transaction of its own, and reports
// each commit.
func oneByOne() error {
	ctx, commanded := commands()
	conn, err := pgx.Connect(ctx, os.Getenv("SOAK_DSN"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	fmt.Println("ready")
	for {
		select {
		case <-ctx.Done():
			return nil
		case line := <-commanded:
			record, number, _ := strings.Cut(line, " ")
			n, err := strconv.Atoi(number)
			if err != nil {
				return err
			}
			if err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				_, err := postgres.Enqueue(ctx, tx, change(record, n))
				return err
			}); err != nil {
				return err
			}
			fmt.Println(line)
		}
	}
}

// TestOrderOfTwoProcesses: two processes enqueue an update each of the same
// record, the second as soon as the first has committed; the answer to the
// first is lost. They are applied in order and both verified, for hundreds of
// records and by two workers at once.
func TestOrderOfTwoProcesses(t *testing.T) {
	ordered := 500 / need.OneIn(8)
	s := newScene(t, pgtest.Options{})
	name := func(r int) string { return fmt.Sprintf("r-%03d", r) }
	var creates []intent.WriteIntent
	for r := range ordered {
		creates = append(creates, change(name(r), 1))
	}
	s.enqueue(creates...)
	workers := []*process{deaf(s.worker()), deaf(s.worker())}
	for r := range ordered {
		s.verified(changeID(name(r), 1))
	}
	callers := []*process{started(t, "one by one", s.env...), started(t, "one by one", s.env...)}
	for _, c := range callers {
		c.await(t, "ready")
	}
	for r := range ordered {
		s.lose(name(r))
		for n := range 2 {
			c, line := callers[(r+n)%2], fmt.Sprintf("%s %d", name(r), n+2)
			s.must(c.send(line))
			c.await(t, line)
		}
	}
	want := map[string][]int{}
	for r := range ordered {
		want[name(r)] = []int{1, 2, 3}
		for n := range 2 {
			rec := s.until(changeID(name(r), n+2), "settled", func(r ledger.Record) bool { return r.State == ledger.Settled || r.State == ledger.Review })
			if rec.Settlement != ledger.Verified || rec.Sends != 1 || rec.Unknown != (n == 0) {
				t.Errorf("%s %d: %s%s", name(r), n+2, rec.Phase(), life(s.book, rec))
			}
		}
	}
	if diff := cmp.Diff(want, s.applied()); diff != "" {
		t.Errorf("applied in another order (-want +got):\n%s", diff)
	}
	for _, p := range append(workers, callers...) {
		s.must(p.in.Close())
	}
}

// lose makes the destination lose its next answer to an update of a record.
func (s *scene) lose(record string) {
	s.t.Helper()
	fault := string(orders.LostAnswer) + ",op=update,times=1,key=" + record
	client := &http.Client{Timeout: patience}
	for {
		req, err := http.NewRequestWithContext(s.ctx, http.MethodPut, s.url+"/faults", strings.NewReader(fault))
		s.must(err)
		answer, err := client.Do(req)
		s.must(err)
		s.must(answer.Body.Close())
		if answer.StatusCode == http.StatusNoContent {
			return
		}
		if !pause.For(s.ctx, 20*time.Millisecond) { // as many are on as can be: those first
			s.t.Fatalf("a fault was not taken: %s", answer.Status)
		}
	}
}
