package ledger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// WaitKind is what writes that wait for a reviewer are counted by, and what a search can select.
type WaitKind struct {
	State       State  `json:"state"` // [Held] or [Review]
	Destination string `json:"destination"`
	Kind        string `json:"kind"`
	Tool        string `json:"tool"`
	// Write and Risk are those of the intent; "" where it declares none.
	Write string `json:"write,omitempty"`
	Risk  string `json:"risk,omitempty"`
	// Verdict is that of the last read of a write in review, "" for none.
	Verdict string `json:"verdict,omitempty"`
	// Overdue says that an approval deadline passed.
	Overdue bool `json:"overdue,omitempty"`
}

// Waiting counts writes that wait for a reviewer and have the same [WaitKind].
type Waiting struct {
	WaitKind
	Count int
	// Older counts those that were created before each of the requested times.
	Older [WaitAges]int
}

const (
	// WaitAges is how many ages a count of waiting writes distinguishes.
	WaitAges = 3
	// MaxWaits bounds the groups of one count. Agents choose names of tools, and a page with more
	// is of no use.
	MaxWaits = 1000

	// maxWaitName bounds, in bytes, each part of a group in an index, whose rows are bounded.
	maxWaitName = 255
)

// WaitKindOf returns the group of a write, and false for a write that waits for no reviewer.
func WaitKindOf(r Record) (WaitKind, bool) {
	if r.State != Held && r.State != Review || r.Tombstone {
		return WaitKind{}, false
	}
	var declared struct{ Write, Risk string }
	if json.Unmarshal(r.Intent, &declared) != nil { // a write that its caller makes itself may declare anything
		declared.Write, declared.Risk = "", ""
	}
	w := WaitKind{
		State: r.State, Destination: waitName(r.Destination), Kind: waitName(r.Kind), Tool: waitName(r.Tool),
		Write: waitName(declared.Write), Risk: waitName(declared.Risk), Overdue: r.Overdue,
	}
	if r.State == Review {
		w.Verdict = waitName(r.Verdict)
	}
	return w, true
}

func waitName(s string) string {
	if len(s) > maxWaitName {
		s = s[:maxWaitName]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// Waits is the group of a write as drivers store it, "" for a write that waits for no reviewer.
func (r Record) Waits() string {
	w, ok := WaitKindOf(r)
	if !ok {
		return ""
	}
	return w.Text()
}

// Text is the group as drivers store it.
func (w WaitKind) Text() string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(w) // text and a boolean can be encoded
	return strings.TrimSpace(b.String())
}

// ParseWaitKind parses a stored group. The error wraps [ErrCorrupt].
func ParseWaitKind(text string) (w WaitKind, err error) {
	if err := json.Unmarshal([]byte(text), &w); err != nil || w.Text() != text {
		return WaitKind{}, fmt.Errorf("%w: a write waits as %.200q, which is no group", ErrCorrupt, text)
	}
	return w, nil
}

// CheckWaiting returns what is wrong with a request for the counts of waiting writes.
func CheckWaiting(tenant string) error {
	if tenant == "" {
		return fmt.Errorf("ledger: a count of waiting writes without a tenant")
	}
	return nil
}

// Waiting implements [Ledger].
func (m *Memory) Waiting(ctx context.Context, tenant string, before [WaitAges]time.Time) (found []Waiting, more bool, err error) {
	if err := cmp.Or(ctx.Err(), CheckWaiting(tenant)); err != nil {
		return nil, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	groups := map[WaitKind]*Waiting{}
	for _, r := range m.records {
		w, ok := WaitKindOf(r)
		if !ok || r.Tenant != tenant {
			continue
		}
		if groups[w] == nil {
			groups[w] = &Waiting{WaitKind: w}
		}
		groups[w].Count++
		for i, t := range before {
			if r.Created.Before(t) {
				groups[w].Older[i]++
			}
		}
	}
	for _, g := range groups {
		found = append(found, *g)
	}
	slices.SortFunc(found, func(a, b Waiting) int { return cmp.Compare(a.Text(), b.Text()) })
	if more = len(found) > MaxWaits; more {
		found = found[:MaxWaits]
	}
	return found, more, nil
}
