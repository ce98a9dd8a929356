package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/ledger"
)

const (
	// cell is how many characters of a sentence are shown in one row of a list.
	cell = 60
	// maxQueues and maxEntries are how many rows of a status are shown. --json
	// has all.
	maxQueues  = 60
	maxEntries = 20
)

// Text is the status for an operator: what needs attention first, then the rest.
func (s Status) Text() string {
	now := s.Clock.Ledger
	parts := []string{
		s.matters(),
		section("Queues", s.queues(now)),
		section("Outbox", s.outbox(now)),
		section("Cannot be read", entryRows(s.Damaged, now)),
		section("Destinations", s.destinations(now)),
		section("Stops", StopsText(s.Stops, now)),
		section("Learned: how long until a write is visible", s.lags()),
		section("Audit log", s.audit(now)),
		section("Retention", s.retention()),
		section("Ledger", s.place()),
	}
	var filled []string
	for _, p := range parts {
		if p != "" {
			filled = append(filled, p)
		}
	}
	return strings.Join(filled, "\n")
}

func (s Status) matters() string {
	if len(s.Attention) == 0 {
		return "Nothing needs attention.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Needs attention: %d\n", len(s.Attention))
	for i, m := range s.Attention {
		lead := fmt.Sprintf("%2d. ", i+1)
		for _, text := range []string{m.What, m.Do} {
			for _, line := range wrap(text, wrapAt) {
				b.WriteString(lead + line + "\n")
				lead = "    "
			}
			lead = "    "
		}
	}
	return b.String()
}

func (s Status) retention() string {
	if s.Retention == "" {
		return ""
	}
	var b strings.Builder
	for _, line := range wrap("Not configured: "+s.Retention, wrapAt) {
		b.WriteString("  " + line + "\n")
	}
	return b.String()
}

func (s Status) queues(now time.Time) string {
	if len(s.Queues) == 0 {
		return "  Nothing is open, and nothing is owed.\n"
	}
	rows := []string{"TENANT\tDESTINATION\tSTATE\tWRITES\tDUE\tIN HAND\tORPHANED\tBEHIND\tOLDEST DUE\tOLDEST BEGUN"}
	for i, q := range s.Queues {
		if i == maxQueues {
			rows = append(rows, fmt.Sprintf("and %d more", len(s.Queues)-i))
			break
		}
		state := string(q.State)
		if state == "settled" {
			state = "needs a recheck"
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s", Clip(q.Tenant, cell), Clip(q.Destination, cell), state,
			q.Count, q.Due, q.Leased, q.Orphaned, q.Waiting, agoOrNone(q.OldestDue, now), agoOrNone(q.OldestCreated, now)))
	}
	return table("  ", rows...)
}

func agoOrNone(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return Ago(t, now)
}

func (s Status) outbox(now time.Time) string {
	if s.Outbox.Count == 0 && len(s.Outbox.Refused) == 0 {
		return ""
	}
	text := fmt.Sprintf("  %s, the oldest enqueued %s\n", some(s.Outbox.Count, "entry", "entries"), agoOrNone(s.Outbox.Oldest, now))
	if len(s.Outbox.Refused) > 0 {
		text += "  Refused:\n" + entryRows(s.Outbox.Refused, now)
	}
	return text
}

func entryRows(all []ledger.Refused, now time.Time) string {
	if len(all) == 0 {
		return ""
	}
	ids := make([]ledger.ID, len(all))
	for i, e := range all {
		ids[i] = e.ID
	}
	short := shortIDs(ids...)
	rows := []string{"ID\tTENANT\tWHEN\tWHY"}
	for i, e := range all {
		if i == maxEntries {
			rows = append(rows, fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%s", short[e.ID], Clip(e.Tenant, cell), agoOrNone(e.At, now), Clip(e.Reason, 2*maxValue)))
	}
	return table("  ", rows...)
}

func (s Status) destinations(now time.Time) string {
	if len(s.Destinations) == 0 {
		return ""
	}
	rows := []string{"NAME\tBREAKER\tPAUSED\tSENDS UNDER WAY\tRATE"}
	for _, d := range s.Destinations {
		breaker, paused, under, rate := d.Breaker, "-", "-", "-"
		if !d.BreakerSince.IsZero() {
			breaker += " since " + strings.TrimSuffix(Ago(d.BreakerSince, now), " ago")
		}
		if !d.LoginRefused.IsZero() {
			breaker = "login refused since " + strings.TrimSuffix(Ago(d.LoginRefused, now), " ago")
		}
		if d.PausedUntil.After(now) {
			paused = "until " + Ago(d.PausedUntil, now)
		}
		if d.Concurrency > 0 {
			under = fmt.Sprintf("%d of %d", d.UnderWay, d.Concurrency)
		}
		if d.RateCalls > 0 {
			rate = fmt.Sprintf("%d in %s", d.RateCalls, Short(time.Duration(d.RateSeconds*float64(time.Second))))
		}
		rows = append(rows, strings.Join([]string{Clip(d.Name, cell), breaker, paused, under, rate}, "\t"))
	}
	return table("  ", rows...)
}

// StopsText is a table of kill switches, "" when there is none.
func StopsText(all []Stop, now time.Time) string {
	if len(all) == 0 {
		return ""
	}
	rows := []string{"SCOPE\tSTATE\tBY\tWHEN\tWHY"}
	for _, s := range all {
		state := "released"
		switch {
		case s.Damaged:
			state = "stopped, cannot be read"
		case s.Active:
			state = "stopped"
		}
		rows = append(rows, strings.Join([]string{Clip(s.Scope, maxValue), state, Clip(s.By, cell), agoOrNone(s.At, now), Clip(s.Reason, 2*maxValue)}, "\t"))
	}
	return table("  ", rows...)
}

func (s Status) lags() string {
	if len(s.Lags) == 0 {
		return ""
	}
	rows := []string{"DESTINATION\tKIND\tREAD BY\tWRITES\tHALF\t90 %\t99 %"}
	for _, l := range s.Lags {
		path := l.Path
		if path == "" {
			path = "(any)"
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%.0f\t%s\t%s\t%s", Clip(l.Destination, cell), Clip(l.Kind, cell), Clip(path, cell), l.Writes,
			within(l.P50), within(l.P90), within(l.P99)))
	}
	return table("  ", rows...)
}

func within(seconds float64) string {
	return strings.TrimPrefix(since(time.Duration(seconds*float64(time.Second))), "+")
}

func (s Status) place() string {
	rows := []string{"where\t" + Safe(s.Ledger)}
	if s.Version.Ledger > 0 {
		rows = append(rows, fmt.Sprintf("version\t%d (this program knows %d)", s.Version.Ledger, s.Version.Program))
	}
	return table("  ", append(rows, "clock\t"+s.Clock.Text())...)
}

// Text describes the ledger's time and how far this machine's clock differs.
func (c Clock) Text() string {
	at := Moment(c.Ledger)
	ahead := time.Duration(c.Ahead * float64(time.Second)).Round(time.Millisecond)
	give := max(time.Duration(c.Within*float64(time.Second)).Round(time.Millisecond), time.Millisecond)
	switch {
	case ahead.Abs() <= give:
		return fmt.Sprintf("%s; this machine agrees to %s", at, give)
	case ahead > 0:
		return fmt.Sprintf("%s; this machine is %s ahead (give or take %s)", at, ahead, give)
	}
	return fmt.Sprintf("%s; this machine is %s behind (give or take %s)", at, -ahead, give)
}
