package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Checked returns the request for changes with its defaults, or what is wrong with it.
func (q Following) Checked() (Following, error) {
	switch {
	case q.Limit < 0 || q.Limit > maxFollowed:
		return q, fmt.Errorf("ledger: following with limit %d; want 1 to %d, or 0 for %d", q.Limit, maxFollowed, defaultFollowed)
	case q.Limit == 0:
		q.Limit = defaultFollowed
	}
	return q, nil
}

// Checked returns the request for a history, or what is wrong with it.
func (q Past) Checked() (Past, error) {
	switch {
	case q.Tenant == "":
		return q, errors.New("ledger: a history without a tenant")
	case q.Since.IsZero() || q.Until.IsZero() || !q.Until.After(q.Since):
		return q, fmt.Errorf("ledger: a history since %s until %s; want both, the later one last", q.Since.UTC().Format(time.RFC3339), q.Until.UTC().Format(time.RFC3339))
	case q.Step <= 0:
		return q, fmt.Errorf("ledger: a history in steps of %s; want how long a span is, above zero", q.Step)
	case q.Until.Sub(q.Since) > maxSpans*q.Step && q.Step < time.Duration(1<<63-1)/maxSpans:
		return q, fmt.Errorf("ledger: a history of %s in steps of %s has more than %d spans; want a longer step", q.Until.Sub(q.Since), q.Step, maxSpans)
	}
	return q, nil
}

// Counted is a group of like changes in a span with its count, as drivers count them.
type Counted struct {
	Span       int64 // its number, from 0 at Since
	Kind       EventKind
	Settlement Status
	Count      int
	// Saved, Sends and Reads are sums.
	Saved, Sends, Reads int
}

// Counted returns a change as a group of one, and whether it is in the requested time.
func (q Past) Counted(c Change) (Counted, bool) {
	if c.Tenant != q.Tenant || q.Destination != "" && c.Destination != q.Destination || c.At.Before(q.Since) || !c.At.Before(q.Until) {
		return Counted{}, false
	}
	of := Counted{Span: int64(c.At.Sub(q.Since) / q.Step), Kind: c.Kind, Settlement: c.Settlement, Count: 1, Sends: c.Sends, Reads: c.Reads}
	if c.Saved {
		of.Saved = 1
	}
	return of, true
}

// Spans returns the history from counts, oldest first.
func (q Past) Spans(counts []Counted) []Span {
	at := make(map[int64]*Span)
	for _, c := range counts {
		s := at[c.Span]
		if s == nil {
			s = &Span{From: q.Since.Add(time.Duration(c.Span) * q.Step), Settled: make(map[Status]int)}
			at[c.Span] = s
		}
		switch c.Kind {
		case EvSettled:
			s.Settled[c.Settlement] += c.Count
			s.Saved += c.Saved
			s.Sends += c.Sends
			s.Reads += c.Reads
		case EvEscalated:
			s.Review += c.Count
		case EvHeld:
			s.Held += c.Count
		}
	}
	spans := make([]Span, 0, len(at))
	for _, s := range at {
		if len(s.Settled) > 0 || s.Review > 0 || s.Held > 0 {
			spans = append(spans, *s)
		}
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From.UnixNano(), b.From.UnixNano()) })
	return spans
}

const (
	// defaultFollowed is what is sent on at once, maxFollowed what fits in memory for each of
	// many followers.
	defaultFollowed = 100
	maxFollowed     = 1000

	// maxSpans is more points than a plot is wide.
	maxSpans = 1000
)
