package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxText is how many characters of one sentence are shown; the ledger
	// keeps no longer ones.
	maxText = 600
	// maxNamed is how many entries a survey of a ledger names.
	maxNamed = 100
	// lateAfter is how long due work may wait before an operator is notified: workers
	// poll several times a second, and a restart takes less.
	lateAfter = time.Minute
)

// attention lists what an operator should see to, the most urgent first: what cannot
// continue by itself and no one waits for, then what blocks everything, then what waits
// for a reviewer by design.
func attention(f Found) []Matter {
	all := []Matter{}
	for _, check := range []func(Found) []Matter{damagedRows, refused, unknownDestinations, noWorkers, AuditMatters, RestoreMatters, guardNotes, stopped, breakers, pauses, waiting} {
		all = append(all, check(f)...)
	}
	return all
}

func matters(what, do string, args ...any) []Matter {
	return []Matter{{What: fmt.Sprintf(what, args...), Do: do}}
}

// some is a count in words; more than the report lists are not counted.
func some(n int, one, many string) string {
	if n >= maxNamed {
		return "at least " + Count(n, one, many)
	}
	return Count(n, one, many)
}

func damagedRows(f Found) []Matter {
	if len(f.QueueStats.Damaged) == 0 {
		return nil
	}
	first := f.QueueStats.Damaged[0]
	return matters("The ledger holds %s that cannot be read (%s: %s). No worker runs them; everything else continues.",
		"Check their destination, then restore or repair the rows; nothing of theirs is sent again by itself.",
		some(len(f.QueueStats.Damaged), "write", "writes"), Clip(string(first.ID), cell), Clip(first.Reason, maxText))
}

func refused(f Found) []Matter {
	if len(f.QueueStats.Refused) == 0 {
		return nil
	}
	first := f.QueueStats.Refused[0]
	return matters("The outbox holds %s that can never be taken in (%s of tenant %s: %s). Nothing of theirs was or will be sent.",
		"Inform the program that enqueued them, then delete the rows from ledger_outbox.",
		some(len(f.QueueStats.Refused), "entry", "entries"), Clip(string(first.ID), cell), Safe(first.Tenant), Clip(first.Reason, maxText))
}

func unknownDestinations(f Found) []Matter {
	type of struct{ tenant, destination string }
	open := map[of]int{}
	var unknown []of
	for _, q := range f.QueueStats.Queues {
		if f.Serves != nil && f.Serves(q.Tenant, q.Destination) || q.State == ledger.Delegated || q.Destination == "" {
			continue // writes that callers make themselves need no destination here
		}
		o := of{q.Tenant, q.Destination}
		if open[o] == 0 {
			unknown = append(unknown, o)
		}
		open[o] += q.Count
	}
	var all []Matter
	for _, o := range unknown {
		all = append(all, matters("%s for %q, which is not in this configuration for tenant %s: a worker that has this configuration leaves them alone.",
			"Put the destination back into the configuration, or the tenant among its tenants, or run the workers that know it.",
			some(open[o], "open write is", "open writes are"), Safe(o.destination), Safe(o.tenant))...)
	}
	return all
}

// noWorkers finds work that has waited for longer than a worker's poll takes, though
// nothing blocks it.
func noWorkers(f Found) []Matter {
	late, oldest, orphaned := 0, time.Time{}, 0
	for _, q := range f.QueueStats.Queues {
		orphaned += q.Orphaned
		held := q.State == ledger.Queued && sendsHeld(f.Status, q)
		if q.OldestDue.IsZero() || f.QueueStats.Now.Sub(q.OldestDue) < lateAfter || held {
			continue
		}
		late += q.Due + q.Orphaned
		if oldest.IsZero() || q.OldestDue.Before(oldest) {
			oldest = q.OldestDue
		}
	}
	outbox := 0
	if f.QueueStats.Outbox > 0 && !f.QueueStats.Oldest.IsZero() && f.QueueStats.Now.Sub(f.QueueStats.Oldest) >= lateAfter {
		outbox = f.QueueStats.Outbox
		if oldest.IsZero() || f.QueueStats.Oldest.Before(oldest) {
			oldest = f.QueueStats.Oldest
		}
	}
	if late+outbox == 0 {
		return nil
	}
	what := fmt.Sprintf("%s due, and no worker takes them up: the oldest since %s.",
		some(late+outbox, "write is", "writes are"), Ago(oldest, f.QueueStats.Now))
	what = strings.Replace(what, " ago.", ".", 1)
	if orphaned > 0 {
		what += fmt.Sprintf(" Workers that held %d of them are gone.", orphaned)
	}
	return []Matter{{What: what, Do: "See that `readback work` runs, that it can reach the ledger, and that it is not too little for so much."}}
}

// sendsHeld reports whether a guard holds all sends of a queue.
func sendsHeld(s guards.InForce, q ledger.Queue) bool {
	for _, stop := range s.Stops {
		match := (stop.Tenant == "" || stop.Tenant == q.Tenant) && (stop.Destination == "" || stop.Destination == q.Destination) && stop.Tool == ""
		if stop.Active && (match || stop.Damaged) {
			return true
		}
	}
	for _, d := range s.Destinations {
		if d.Name == q.Destination && (d.Breaker.State != "closed" || d.Pause.After(s.Now) || d.Limit > 0 && d.InUse() >= d.Limit) {
			return true
		}
	}
	return false
}

func guardNotes(f Found) []Matter {
	var all []Matter
	for _, d := range f.Status.Destinations {
		if len(d.Damaged) > 0 {
			all = append(all, matters("What the workers noted about %q cannot be read (%s). They assume the worst for a time, and note it anew.",
				"Nothing, unless it stays so: then check which other program writes to the table ledger_notes.", Safe(d.Name), Safe(strings.Join(d.Damaged, ", ")))...)
		}
	}
	return all
}

func stopped(f Found) []Matter {
	var all []Matter
	for _, s := range f.Status.Stops {
		switch last := s.Last(); {
		case !s.Active:
		case s.Damaged:
			all = append(all, Matter{What: "There is a stop whose note cannot be read; it holds the sends of an unknown scope.", Do: "Stop or release that scope anew; `readback stops` lists what there is."})
		default:
			all = append(all, matters("Stopped: %s, by %s %s: %s. What was sent is still read back.", "readback release "+flags(s.Scope)+" --reason TEXT, when the cause is gone",
				Safe(s.Scope.String()), Safe(last.By), Ago(last.At, f.Status.Now), Clip(last.Reason, maxText))...)
		}
	}
	return all
}

// RestoreMatters lists what an operator should see to after a restore that was not ended.
func RestoreMatters(f Found) []Matter {
	if !f.Restore.Open() {
		return nil
	}
	return matters("A restore was not ended: history is missing from %s until %s. New writes are read before they are sent.",
		"`readback recover` lists what is not accounted for; `readback recover --end --reason TEXT` ends it, when no caller repeats what it asked for then.",
		f.Restore.Since.UTC().Format(time.RFC3339), f.Restore.Until.UTC().Format(time.RFC3339))
}

// flags are the flags that name a scope.
func flags(s guards.Scope) string {
	var parts []string
	for _, p := range []struct{ flag, name string }{{"--tenant", s.Tenant}, {"--destination", s.Destination}, {"--tool", s.Tool}} {
		if p.name != "" {
			parts = append(parts, p.flag+" "+quotedWord(p.name))
		}
	}
	if len(parts) == 0 {
		return "--all"
	}
	return strings.Join(parts, " ")
}

// quotedWord is a word for a command line, in quotes where it needs them.
func quotedWord(s string) string {
	if safe := Safe(s); strings.ContainsFunc(safe, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@+", r)
	}) {
		return "'" + strings.ReplaceAll(safe, "'", `'\''`) + "'"
	}
	return s
}

func breakers(f Found) []Matter {
	var all []Matter
	for _, d := range f.Status.Destinations {
		if d.Breaker.State == "closed" {
			continue
		}
		next := "one send is being tried now"
		if d.Breaker.Until.After(f.Status.Now) {
			next = "one send is tried " + Ago(d.Breaker.Until, f.Status.Now)
		}
		if !d.Breaker.Login.IsZero() {
			n := 0
			for _, q := range f.QueueStats.Queues {
				if q.Destination == d.Name && (q.State == ledger.Queued || q.State == ledger.Checking) {
					n += q.Count
				}
			}
			all = append(all, matters("%q has refused our login since %s (%s); %s, and nothing is sent; %s.",
				"Renew its credentials. The writes are sent when the login works again; none is lost.",
				Safe(d.Name), Moment(d.Breaker.Login), Clip(d.Breaker.Why, maxText), some(n, "write waits", "writes wait"), next)...)
			continue
		}
		all = append(all, matters("Nothing is sent to %q: its sends failed, and its circuit breaker opened %s (%s); %s.",
			"See whether the destination works: `readback destinations --probe`. It closes by itself when a send succeeds.",
			Safe(d.Name), Ago(d.Breaker.Since, f.Status.Now), Clip(d.Breaker.Why, maxText), next)...)
	}
	return all
}

func pauses(f Found) []Matter {
	var all []Matter
	for _, d := range f.Status.Destinations {
		if d.Pause.Sub(f.Status.Now) >= lateAfter {
			all = append(all, matters("%q asked for a pause until %s (%s): %s.",
				"Nothing, unless it is too long: then check the account's limits there, and `rate` in the configuration.",
				Safe(d.Name), Moment(d.Pause), Ago(d.Pause, f.Status.Now), Clip(d.PauseWhy, maxText))...)
		}
	}
	return all
}

// waiting is what waits for a reviewer by design, by tenant.
func waiting(f Found) []Matter {
	type pile struct {
		count  int
		oldest time.Time
	}
	piles, tenants := map[string]pile{}, []string{}
	for _, q := range f.QueueStats.Queues {
		if q.State != ledger.Review && q.State != ledger.Held || q.Count == 0 {
			continue
		}
		p, seen := piles[q.Tenant]
		if !seen {
			tenants = append(tenants, q.Tenant)
		}
		if p.count += q.Count; p.oldest.IsZero() || q.OldestCreated.Before(p.oldest) {
			p.oldest = q.OldestCreated
		}
		piles[q.Tenant] = p
	}
	var all []Matter
	for _, tenant := range tenants {
		p := piles[tenant]
		all = append(all, matters("Tenant %s: %s for a reviewer, the oldest begun %s%s.", "readback review --tenant "+quotedWord(tenant),
			Safe(tenant), Count(p.count, "write waits", "writes wait"), Ago(p.oldest, f.QueueStats.Now), f.Holds[tenant].text())...)
	}
	return all
}
