package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// Papers keeps what stands above single writes: workflows, their steps, sagas.
// What a paper means is its writer's business; the ledger keeps it, finds it
// again, and changes it only for whoever has seen its last version, together
// with the writes that it is about.
type Papers interface {
	// File does all of a filing or nothing, in one step, and says how things
	// stand then. It fails with [ErrStale] when a paper is not of the version
	// that the filing names, and as Reserve and Append do; a reservation that is
	// a repeat is no failure.
	File(ctx context.Context, f Filing) (Filed, error)
	// Paper returns one paper, or [ErrNoPaper].
	Paper(ctx context.Context, tenant, kind, id string) (Paper, error)
	// FindPapers returns papers of one kind and tenant, newest first unless they
	// are of one binder, which are in the order in which they came; and how many
	// there are in all without Limit and Offset.
	FindPapers(ctx context.Context, q PaperQuery) (found []Paper, total int, err error)
	// DuePapers returns papers of a kind of all tenants whose time has come,
	// oldest due first, at most limit (from 1 to 1000), and the time on the
	// ledger's clock. Who wants to work on one takes it by filing it with a later
	// due time: the loser is told [ErrStale].
	DuePapers(ctx context.Context, kind string, limit int) ([]Paper, time.Time, error)
}

// SagaKind is the kind of the papers of sagas. The id of one is the workflow of its
// writes.
const SagaKind = "saga"

// ErrNoPaper wraps [ErrNotFound]: there is no such paper in this tenant.
var ErrNoPaper = fmt.Errorf("%w: no such paper", ErrNotFound)

// Paper is a small document with a version.
type Paper struct {
	// Tenant, Kind and ID name it: text of 1 to 255, 32 and 600 bytes.
	Tenant, Kind, ID string
	// Binder is what it belongs to, as a step does to its workflow; Subject and
	// Trace are words to find it by. At most 255, 255 and 1,024 bytes. Default none.
	Binder, Subject, Trace string
	// State is a word to find it by. At most 32 bytes. Default none.
	State string
	// Due is when somebody is to look at it. Zero: never.
	Due time.Time
	// Done says that nothing will come of it any more, so that [Pruner] may
	// forget it. A paper whose binder is its own id is the cover of that binder:
	// when it is forgotten, all papers of the tenant that are in the binder go
	// with it. Default false: kept for ever.
	Done bool
	// Body is JSON in UTF-8, at most 1 MiB. It comes back byte for byte.
	Body json.RawMessage
	// Version is 0 for a paper that is not in the ledger, and grows by one with
	// each change.
	Version int64
	// Created and Updated are on the ledger's clock, as is Now, the time of the
	// call that returned it.
	Created, Updated, Now time.Time
}

// Filing is what is to be done in one step.
type Filing struct {
	// Papers are written, each over the version that it names; 0: it must not be
	// there. Binder, Subject, Trace and Created of one that is there do not change.
	Papers []Paper
	// Unchanged are papers that must be of the version that they name and are not
	// written; of them only tenant, kind, id and version count.
	Unchanged []Paper
	// Reserve takes up a write as Ledger.Reserve does, Append changes writes as
	// Ledger.Append does.
	Reserve *Reservation
	Append  []Appending
}

// Appending is one call of Append within a filing.
type Appending struct {
	ID     ID
	Fence  int64
	Events []Event
}

// Filed is how things stand after a filing, in its order.
type Filed struct {
	Papers   []Paper
	Reserved Record
	Fresh    bool
	Appended []Record
	Now      time.Time
}

// PaperQuery selects papers.
type PaperQuery struct {
	Tenant, Kind string // required
	// Binder, States, Subject and Trace narrow it. Default: all.
	Binder         string
	States         []string
	Subject, Trace string
	// Limit is how many at the most, default 100, at most 1000; Offset how many
	// are passed over.
	Limit, Offset int
}

// Check says what is wrong with a filing before anything is done, or nil.
func (f Filing) Check() error {
	if n := len(f.Papers) + len(f.Unchanged) + len(f.Append); n > maxFiling || n == 0 && f.Reserve == nil {
		return fmt.Errorf("filing: it has %d parts; want 1 to %d", n, maxFiling)
	}
	seen := make(map[[3]string]bool)
	for _, p := range slices.Concat(f.Papers, f.Unchanged) {
		if err := p.check(); err != nil {
			return err
		}
		if name := [3]string{p.Tenant, p.Kind, p.ID}; seen[name] {
			return fmt.Errorf("filing: paper %s %q stands in it twice", p.Kind, p.ID)
		} else {
			seen[name] = true
		}
	}
	size := 0
	for _, p := range f.Papers {
		if size += len(p.Body); !json.Valid(p.Body) || !utf8.Valid(p.Body) {
			return fmt.Errorf("filing: the body of paper %s %q is no JSON in UTF-8", p.Kind, p.ID)
		}
	}
	if size > maxFilingBody {
		return fmt.Errorf("filing: the bodies of its papers have %d bytes; want at most %d together", size, maxFilingBody)
	}
	return nil
}

func (p Paper) check() error {
	for _, part := range []struct {
		name, text string
		least, max int
	}{
		{"tenant", p.Tenant, 1, maxPaperName}, {"kind", p.Kind, 1, maxPaperWord}, {"id", p.ID, 1, maxPaperID},
		{"binder", p.Binder, 0, maxPaperName}, {"subject", p.Subject, 0, maxPaperName}, {"trace", p.Trace, 0, maxPaperText},
		{"state", p.State, 0, maxPaperWord},
	} {
		if len(part.text) < part.least || len(part.text) > part.max || !utf8.ValidString(part.text) || slices.Contains([]byte(part.text), 0) {
			return fmt.Errorf("paper: its %s has %d bytes; want text of %d to %d bytes in UTF-8, without NUL", part.name, len(part.text), part.least, part.max)
		}
	}
	switch {
	case len(p.Body) > maxPaperBody:
		return fmt.Errorf("paper %s %q: its body has %d bytes; want at most %d", p.Kind, p.ID, len(p.Body), maxPaperBody)
	case p.Version < 0:
		return fmt.Errorf("paper %s %q: its version is %d; want that of the paper as it was read, or 0 for a new one", p.Kind, p.ID, p.Version)
	}
	return nil
}

// Next is a paper as it stands after it was filed at a time over the one that
// is there (the zero paper when there is none): the pure half of File. It fails
// with [ErrStale].
func (p Paper) Next(have Paper, now time.Time) (Paper, error) {
	if p.Version != have.Version {
		return p, fmt.Errorf("%w: paper %s %q has version %d, not %d", ErrStale, p.Kind, p.ID, have.Version, p.Version)
	}
	p.Created = now
	if have.Version != 0 {
		p.Binder, p.Subject, p.Trace, p.Created = have.Binder, have.Subject, have.Trace, have.Created
	}
	p.Body = slices.Clone(p.Body)
	p.Due = p.Due.Round(0).UTC() // as drivers keep it
	p.Version++
	p.Updated, p.Now = now, now
	return p, nil
}

// Checked is the query with its defaults filled in, or an error that says what
// is missing.
func (q PaperQuery) Checked() (PaperQuery, error) {
	switch {
	case q.Tenant == "" || q.Kind == "":
		return q, errors.New("papers: the tenant or the kind is missing; every listing is of one kind and one tenant")
	case q.Offset < 0:
		return q, fmt.Errorf("papers: offset is %d; want how many are to be passed over, at least 0", q.Offset)
	}
	if q.Limit <= 0 {
		q.Limit = defaultList
	}
	q.Limit = min(q.Limit, maxList)
	return q, nil
}

// Selects reports whether a paper is one of those that are asked for.
func (q PaperQuery) Selects(p Paper) bool {
	return p.Tenant == q.Tenant && p.Kind == q.Kind &&
		(q.Binder == "" || q.Binder == p.Binder) && (len(q.States) == 0 || slices.Contains(q.States, p.State)) &&
		(q.Subject == "" || q.Subject == p.Subject) && (q.Trace == "" || q.Trace == p.Trace)
}
