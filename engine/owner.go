package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/readback-go/readback/ledger"
)

// newOwner names this engine: host, process, and a part of its own that ends with
// where the number of the process counts.
func newOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d/%s%s", host, os.Getpid(), rand.Text()[:8], processes())
}

// processes says where the numbers of processes mean what they mean here: since this
// boot of this machine, in this container. "" where that cannot be known, as on other
// systems than Linux.
var processes = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return fmt.Sprintf("@%.4x", sha256.Sum256([]byte(string(boot)+space)))
})

// gone returns the owner if its process is known to have ended, else "". A number that
// another process has by now is one of a process that runs.
func gone(owner string) string {
	parts := strings.Split(owner, "/")
	if len(parts) != 3 || processes() == "" || !strings.HasSuffix(parts[2], processes()) {
		return ""
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid <= 0 {
		return ""
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return ""
	}
	if err := p.Signal(syscall.Signal(0)); errors.Is(err, os.ErrProcessDone) {
		return owner
	}
	return ""
}

const waitForLeases = "writes of an ended process wait for their leases to end"

// inheritFirst is [worker.inherit] when a worker begins.
func (w *worker) inheritFirst(ctx context.Context) error {
	surveyor, ok := w.e.ledger.(ledger.Surveyor)
	if !ok || processes() == "" {
		return nil
	}
	s, err := surveyor.Survey(ctx)
	if err != nil {
		return err
	}
	return w.inherit(ctx, s, math.MaxInt)
}

// inherit takes over at once what an ended process of this machine had in hand: the
// one before this, or one that ran beside it. Nothing that it did not send can leave it
// any more, and its leases would only be waited out. Of each tenant and state it lists
// so many of the newest pages, until it has met all leased writes.
func (w *worker) inherit(ctx context.Context, survey ledger.Survey, pages int) error {
	if processes() == "" {
		return nil
	}
	type held struct {
		tenant string
		state  ledger.State
	}
	leased, all := make(map[held]int), 0
	for _, q := range survey.Queues {
		if q.State != ledger.Settled && q.Leased > 0 {
			leased[held{q.Tenant, q.State}] += q.Leased
			all += q.Leased
		}
	}
	if all <= w.inHand() {
		return nil // they are this worker's own
	}
	for h, left := range leased {
		f := ledger.Filter{Tenant: h.tenant, States: []ledger.State{h.state}, Limit: inheritAtOnce}
		for page := 0; left > 0 && page < pages; page++ {
			recs, err := w.e.ledger.List(ctx, f)
			if err != nil {
				return err
			}
			for _, rec := range recs {
				if !rec.LeaseUntil.After(rec.Now) {
					continue
				}
				left--
				if err := w.succeed(ctx, rec); err != nil {
					return err
				}
			}
			if len(recs) < inheritAtOnce {
				break
			}
			f.Before = recs[len(recs)-1].ID
		}
	}
	return nil
}

// succeed takes over a leased write if the process of its owner is gone.
func (w *worker) succeed(ctx context.Context, rec ledger.Record) error {
	c := ledger.Claim{Owner: w.e.opts.Owner, LeaseFor: w.e.leaseFor(rec), Tenant: rec.Tenant, ID: rec.ID, Gone: gone(rec.Owner)}
	if c.Gone == "" {
		return nil
	}
	claimed, asked, err := w.e.lent(ctx, c)
	for _, rec := range claimed {
		w.work(rec, asked)
	}
	return err
}

// inHand is how many writes this worker works on.
func (w *worker) inHand() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used
}
