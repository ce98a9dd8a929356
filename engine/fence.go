package engine

import (
	"context"
	"time"

	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

// overtaken says why the announced send must not be made any more, "" when it
// may be. A process that stood still since the announcement may have lost the
// write to another worker: where more than a moment has passed the ledger is
// asked, immediately before the send, and the guards whether sends were stopped.
func (t *task) overtaken() (why string, lost bool) {
	now := t.clock.Add(time.Since(t.leased)) // the latest that the ledger's clock can show: an answer may come late
	if max(time.Since(t.leased), wallSince(t.leased)) > fenceFresh {
		if now, why, lost = t.askLedger(); why != "" {
			return why, lost
		}
	}
	asked := time.Now()
	if hold := t.stopped(); hold != nil {
		return "stopped before the send: " + hold.Reason, false
	}
	// After the questions, which can have taken their time too.
	now = now.Add(time.Since(asked))
	if policies.Late(t.intent, now) {
		return "stopped before the send: the deadline has passed", false
	}
	c := caseOf(t.rec, t.intent, t.profile, now, &t.e.clock)
	if t.rec.Rule == policies.RowNativeKey && !policies.InWindow(c, 0) {
		return "stopped before the send: the destination may forget the key before the send has landed", false
	}
	if time.Since(t.leased) > t.rec.LeaseFor-t.profile.SendFor() {
		return "stopped before the send: too late under this lease", false
	}
	return "", false
}

// stopped asks once more whether sends were stopped, where the guards let this
// one pass longer ago than their word is good for.
func (t *task) stopped() *Hold {
	stopper, ok := t.e.opts.Guards.(Stopper)
	if !ok || max(time.Since(t.entered), wallSince(t.entered)) <= guardFresh {
		return nil
	}
	return stopper.Stopped(t.life.ending, t.rec)
}

// askLedger compares the write with what the ledger has of it now, and returns the
// latest time that the ledger's clock can show.
func (t *task) askLedger() (latest time.Time, why string, lost bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.e.ctx), fenceTimeout)
	defer cancel()
	asked := time.Now()
	now, err := t.e.ledger.Get(ctx, t.rec.Tenant, t.rec.ID)
	t.e.clock.hear(now.Now, asked)
	switch {
	case err != nil:
		return latest, "stopped before the send: the ledger cannot say whether the write still is this worker's: " + err.Error(), false
	case now.Fence != t.rec.Fence, now.State != ledger.Sending:
		return latest, "stopped before the send: another worker has taken the write over", true
	case now.LeaseUntil.Sub(now.Now) < t.profile.SendFor():
		return latest, "stopped before the send: too late under this lease", false
	}
	return now.Now.Add(time.Since(asked)), "", false
}

// wallSince is the time passed by the clock on the wall, which goes on where a
// machine sleeps or is moved and its monotonic clock stands.
func wallSince(t time.Time) time.Duration { return time.Now().Round(0).Sub(t.Round(0)) }
