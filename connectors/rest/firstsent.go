package rest

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

// fileFirstSent is how the time of a write's first send is written in requests.
type fileFirstSent struct {
	At   yamlfile.Place
	Skew yamlfile.Span `yaml:"skew"`
	Form yamlfile.Text `yaml:"form"`
}

// firstSent is the same, checked.
type firstSent struct {
	// skew is how far the destination's clock may be from the ledger's.
	skew time.Duration
	form string
}

const (
	// sharedSpan is how far apart the first sends of the queries of one list may be: one pending
	// recheck of last week must not make the list of all others a week long.
	sharedSpan = time.Hour
	// snowflakeEpoch is the first millisecond of 2015, from which Discord counts; snowflakeShift
	// is what its ids hold beside the time, in bits.
	snowflakeEpoch = 1_420_070_400_000
	snowflakeShift = 22
)

func (l *loader) firstSent(k *kind, f *fileKind) {
	if f.FirstSent == nil {
		return
	}
	k.firstSent = &firstSent{skew: time.Duration(f.FirstSent.Skew), form: f.FirstSent.Form.Value}
	if l.Required(f.FirstSent.Form, f.FirstSent.At, "form", "unix, rfc3339, date or snowflake") {
		declared.Choice(&l.Reader, f.FirstSent.Form, "unix", "rfc3339", "date", "snowflake")
	}
	switch skew := k.firstSent.skew; {
	case skew > 0 && skew < 24*time.Hour && k.firstSent.form == "date":
		l.Say(f.FirstSent.At.Line, f.FirstSent.At.Field+".skew", "is %s, and the destination's day may be another one; want 24h or more with form: date", skew)
	case skew <= 0:
		l.Say(f.FirstSent.At.Line, f.FirstSent.At.Field+".skew", "is missing; want how far the destination's clock may be from ours, such as 60s")
	}
}

// firstSends checks where a kind uses the time, and says what follows.
func (l *loader) firstSends(k *kind, f *fileKind) {
	used := false
	for _, w := range k.writes {
		used = used || uses(w.holes(), "first_sent")
	}
	for i, r := range k.reads {
		if !r.bounded {
			continue
		}
		used = true
		switch {
		case r.ref:
			l.At(f.Reads[i].At, "is by ref and asks by {first_sent}; the record of a ref may be older than the write")
		case k.writes[intent.Create] == nil:
			l.At(f.Reads[i].At, "asks by {first_sent}, and the kind has no create: what its writes change may be older than they are")
		case r.key && !k.profile.FreshKeys:
			l.warn(f.Reads[i].At, "asks by {first_sent}, and profile.fresh_keys is not set: it still reads from the beginning of time, since another actor may have used the key before; set fresh_keys where the key is only ever ours, or add a read by stamp")
		default:
			k.explain("read %s: for a create that was sent, only what is at most %s older than its first send; so an empty answer is about what we sent, and not about other actors. Otherwise from the beginning of time.", r.name, k.firstSent.skew)
		}
	}
	if k.firstSent != nil && !used {
		l.At(f.FirstSent.At, "is not used; want {first_sent} in a request")
	}
}

// floor is the earliest time that a read has to show, zero for all. Only what a create of ours made
// cannot be older than its first send: a changed record is, and so may be a record of another actor
// under a key that is not fresh.
func (k *kind) floor(r *read, q connectors.Query) time.Time {
	ours := r.stamp && !r.key || k.profile.FreshKeys
	if k.firstSent == nil || q.FirstSent.IsZero() || q.Intent.Write != intent.Create || !ours {
		return time.Time{}
	}
	return q.FirstSent.Add(-k.firstSent.skew)
}

// floorOf is the floor of a request that several queries share.
func (k *kind) floorOf(r *read, qs []connectors.Query, which []int) time.Time {
	least := time.Time{}
	for n, i := range which {
		at := k.floor(r, qs[i])
		if at.IsZero() {
			return at
		}
		if n == 0 || at.Before(least) {
			least = at
		}
	}
	return least
}

// value is a time as the destination writes it. The beginning of time is a time as well, so that a
// request that is not bounded has the form of one that is.
func (f *firstSent) value(t time.Time) any {
	if t.Before(time.Unix(0, 0)) {
		t = time.Unix(0, 0)
	}
	t = t.UTC()
	switch f.form {
	case "unix":
		return json.Number(strconv.FormatInt(t.Unix(), 10))
	case "date":
		return t.Format(time.DateOnly)
	case "snowflake":
		return strconv.FormatInt(max(t.UnixMilli()-snowflakeEpoch, 0)<<snowflakeShift, 10)
	}
	return t.Truncate(time.Second).Format(time.RFC3339)
}

// bounded are the values of one read: those of the query, and from when it has to show records.
func (k *kind) bounded(v values, r *read, floor time.Time) values {
	if k.firstSent != nil && r.bounded {
		v["first_sent"] = k.firstSent.value(floor)
	}
	return v
}

// together moves the first sends of queries that share lists to the earliest of each hour or so:
// lists that begin at one time are one list.
func together(qs []connectors.Query) []connectors.Query {
	all := slices.Clone(qs)
	order := make([]int, len(qs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return qs[a].FirstSent.Compare(qs[b].FirstSent) })
	var from time.Time
	for _, i := range order {
		if at := qs[i].FirstSent; at.IsZero() || at.Sub(from) > sharedSpan {
			from = at
		}
		all[i].FirstSent = from
	}
	return all
}
