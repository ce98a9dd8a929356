package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
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

// inherit takes over at once what an ended process of this machine, usually the one
// before this, had in hand. Nothing that it did not send can leave it any more, and
// its leases would only be waited out.
func (w *worker) inherit(ctx context.Context) error {
	surveyor, ok := w.e.ledger.(ledger.Surveyor)
	if !ok || processes() == "" {
		return nil
	}
	survey, err := surveyor.Survey(ctx)
	if err != nil {
		return err
	}
	leased := make(map[string]int)
	for _, q := range survey.Queues {
		if q.State != ledger.Settled {
			leased[q.Tenant] += q.Leased
		}
	}
	for tenant, left := range leased {
		f := ledger.Filter{Tenant: tenant, States: []ledger.State{ledger.Queued, ledger.Sending, ledger.Checking, ledger.Compensating}, Limit: inheritAtOnce}
		for left > 0 {
			recs, err := w.e.ledger.List(ctx, f)
			if err != nil {
				return err
			}
			for _, rec := range recs {
				if !rec.LeaseUntil.After(rec.Now) {
					continue
				}
				left--
				c := ledger.Claim{Owner: w.e.opts.Owner, LeaseFor: w.e.leaseFor(rec), Tenant: tenant, ID: rec.ID, Gone: gone(rec.Owner)}
				if c.Gone == "" {
					continue
				}
				claimed, asked, err := w.e.lent(ctx, c)
				if err != nil {
					return err
				}
				for _, rec := range claimed {
					w.work(rec, asked)
				}
			}
			if len(recs) < 1000 {
				break
			}
			f.Before = recs[len(recs)-1].ID
		}
	}
	return nil
}
