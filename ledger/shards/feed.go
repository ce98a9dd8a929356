package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/readback-go/readback/ledger"
)

// vector is a cursor of each partition, by name. A partition without one is read from its beginning.
type vector map[string]string

const vectorCursor = "s:"

// parse parses a cursor. One of a ledger without partitions is that of the home, so that followers can
// continue when a ledger gets partitions. The error wraps [ledger.ErrCursor].
func (l *Ledger) parse(text string) (vector, error) {
	v := vector{}
	if !strings.HasPrefix(text, vectorCursor) {
		_, err := ledger.PlaceOf(text)
		if text != "" {
			v[l.home.Name] = text
		}
		return v, err
	}
	parts, ok := strings.CutPrefix(text, vectorCursor)
	for part := range strings.SplitSeq(parts, ",") {
		name, cursor, cut := strings.Cut(part, "=")
		_, err := ledger.PlaceOf(cursor)
		ok = ok && cut && err == nil && cursor != ""
		v[name] = cursor
	}
	if !ok || v.text("") != text { // each has one spelling
		return nil, fmt.Errorf("%w: %.40q; want one that Follow or Latest gave, or none to begin at what is still there", ledger.ErrCursor, text)
	}
	return v, nil
}

// cursor returns the cursor of a vector: that of the home where there is no other one.
func (l *Ledger) cursor(v vector) string { return v.text(l.home.Name) }

func (v vector) text(home string) string {
	if len(v) == 1 && v[home] != "" {
		return v[home]
	}
	var parts []string
	for name, cursor := range v {
		if cursor != "" {
			parts = append(parts, name+"="+cursor)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return vectorCursor + strings.Join(parts, ",")
}

// followed are the changes of one partition that were not passed on yet.
type followed struct {
	name    string
	changes []ledger.Change
	next    string
}

// Follow implements [ledger.Feed]. The changes of each partition are in its order, those of several
// are merged by time. Those of a partition that cannot be reached come later.
func (l *Ledger) Follow(ctx context.Context, q ledger.Following) ([]ledger.Change, string, error) {
	q, err := q.Checked()
	if err != nil {
		return nil, "", err
	}
	at, err := l.parse(q.After)
	if err != nil {
		return nil, "", err
	}
	of := make([]*followed, len(l.shards))
	errs := l.all(ctx, func(i int, p ledger.Partition) error {
		f, one := &followed{name: l.shards[i].Name}, q
		one.After = at[f.name]
		var err error
		if f.changes, f.next, err = p.Follow(ctx, one); err == nil {
			of[i] = f
		}
		return err
	})
	if err := l.needed(ctx, q.Tenant, errs); err != nil {
		return nil, "", err
	}
	return l.merged(q, at, slices.DeleteFunc(of, func(f *followed) bool { return f == nil }))
}

// needed returns the error without which nothing can be returned: one that is no outage, that of the
// partition where the tenant is, or, without a tenant, that of all.
func (l *Ledger) needed(ctx context.Context, tenant string, errs []error) error {
	var own string
	if tenant != "" {
		where, err := l.placeOf(ctx, tenant, false, false)
		if err != nil {
			return err
		}
		own = where.Partition
	}
	for i, err := range errs {
		if err != nil && (!errors.Is(err, ledger.ErrUnavailable) || l.shards[i].Name == own) {
			return err
		}
	}
	if slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}

// merged takes changes of all partitions by time, up to the limit, each with the cursor after it.
func (l *Ledger) merged(q ledger.Following, at vector, of []*followed) (changes []ledger.Change, next string, err error) {
	slices.SortFunc(of, func(a, b *followed) int { return cmp.Compare(a.name, b.name) })
	for len(changes) < q.Limit {
		var first *followed
		for _, f := range of {
			if len(f.changes) > 0 && (first == nil || f.changes[0].At.Before(first.changes[0].At)) {
				first = f
			}
		}
		if first == nil {
			break
		}
		c := first.changes[0]
		first.changes = first.changes[1:]
		at[first.name] = c.Cursor
		c.Cursor = l.cursor(at)
		changes = append(changes, c)
	}
	if len(changes) == q.Limit {
		return changes, l.cursor(at), nil
	}
	for _, f := range of {
		if f.next != "" {
			at[f.name] = f.next
		}
	}
	return changes, l.cursor(at), nil
}

// Latest implements [ledger.Feed]. It needs all partitions: a follower that begins without one would
// get all its old changes.
func (l *Ledger) Latest(ctx context.Context) (string, error) {
	at := vector{}
	var mu sync.Mutex
	err := l.every(ctx, func(i int, p ledger.Partition) error {
		cursor, err := p.Latest(ctx)
		mu.Lock()
		defer mu.Unlock()
		at[l.shards[i].Name] = cursor
		return err
	})
	if err != nil {
		return "", err
	}
	return l.cursor(at), nil
}

// Changed implements [ledger.Feed].
func (l *Ledger) Changed(ctx context.Context) <-chan struct{} { return l.changed.listen(ctx) }

// History implements [ledger.Feed].
func (l *Ledger) History(ctx context.Context, q ledger.Past) (spans []ledger.Span, err error) {
	if q, err = q.Checked(); err != nil {
		return nil, err
	}
	where, err := l.placeOf(ctx, q.Tenant, false, false)
	if err != nil {
		return nil, err
	}
	if where.Previous == "" {
		err = l.read(ctx, q.Tenant, func(p ledger.Partition, _ int64) error {
			spans, err = p.History(ctx, q)
			return err
		})
		return spans, err
	}
	of := make([][]ledger.Span, len(l.shards)) // changes stay where they were made, which may be in any
	err = l.every(ctx, func(i int, p ledger.Partition) (err error) {
		of[i], err = p.History(ctx, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, more := range of {
		spans = added(spans, more)
	}
	return spans, nil
}

// added returns the sums of two histories.
func added(a, b []ledger.Span) []ledger.Span {
	for _, s := range b {
		i := slices.IndexFunc(a, func(have ledger.Span) bool { return have.From.Equal(s.From) })
		if i < 0 {
			a = append(a, s)
			continue
		}
		for status, n := range s.Settled {
			a[i].Settled[status] += n
		}
		a[i].Review, a[i].Held, a[i].Saved = a[i].Review+s.Review, a[i].Held+s.Held, a[i].Saved+s.Saved
		a[i].Sends, a[i].Reads = a[i].Sends+s.Sends, a[i].Reads+s.Reads
	}
	slices.SortFunc(a, func(x, y ledger.Span) int { return x.From.Compare(y.From) })
	return a
}

// BeginSealing implements [ledger.Feed].
func (l *Ledger) BeginSealing(ctx context.Context) (since time.Time, err error) {
	l.mu.Lock()
	l.sealing = true // for partitions that are opened later
	l.mu.Unlock()
	var mu sync.Mutex
	err = l.each(ctx, func(_ int, p ledger.Partition) error {
		one, err := p.BeginSealing(ctx)
		mu.Lock()
		defer mu.Unlock()
		if one.After(since) {
			since = one
		}
		return err
	})
	return since, err
}

// ticketOf returns the ticket of a run in a partition as one of all partitions, and back.
func (l *Ledger) ticketOf(i int, ticket int64) int64 { return ticket*int64(len(l.shards)) + int64(i) }
func (l *Ledger) runOf(ticket int64) (i int, of int64) {
	n := int64(len(l.shards))
	return int(ticket % n), ticket / n
}

// Unsealed implements [ledger.Feed].
func (l *Ledger) Unsealed(ctx context.Context, after int64, limit int) (runs []ledger.Run, err error) {
	of := make([][]ledger.Run, len(l.shards))
	err = l.each(ctx, func(i int, p ledger.Partition) (err error) {
		last, from := l.runOf(after)
		if i > last {
			from-- // its run with that number comes after the ticket
		}
		of[i], err = p.Unsealed(ctx, max(from, 0), limit)
		for j := range of[i] {
			of[i][j].Ticket = l.ticketOf(i, of[i][j].Ticket)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	runs = slices.Concat(of...)
	slices.SortFunc(runs, func(a, b ledger.Run) int { return cmp.Compare(a.Ticket, b.Ticket) })
	return runs[:min(len(runs), ledger.RunLimit(limit))], nil
}

// Sealed implements [ledger.Feed].
func (l *Ledger) Sealed(ctx context.Context, tickets []int64) error {
	of := make([][]int64, len(l.shards))
	for _, t := range tickets {
		i, ticket := l.runOf(t)
		of[i] = append(of[i], ticket)
	}
	var errs []error
	for i, those := range of {
		if len(those) == 0 {
			continue
		}
		p, err := l.open(ctx, l.shards[i])
		if err == nil {
			err = p.Sealed(ctx, those)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// owned returns which tenants are in which partition.
func (l *Ledger) owned(ctx context.Context) (map[string]string, error) {
	home, err := l.open(ctx, l.home)
	var all []ledger.Placement
	if err == nil {
		all, err = home.Placements(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the directory: %w", err)
	}
	of := make(map[string]string, len(all))
	for _, p := range all {
		of[p.Tenant] = p.Partition
	}
	return of, nil
}

// Tenants implements [ledger.Feed].
func (l *Ledger) Tenants(ctx context.Context) (tenants []string, err error) {
	of, err := l.owned(ctx)
	if err != nil {
		return nil, err
	}
	all := make([][]string, len(l.shards))
	err = l.every(ctx, func(i int, p ledger.Partition) (err error) {
		all[i], err = p.Tenants(ctx)
		all[i] = slices.DeleteFunc(all[i], func(t string) bool { return of[t] != l.shards[i].Name })
		return err
	})
	tenants = slices.Concat(all...)
	slices.Sort(tenants)
	return tenants, err
}

// inOrder merges pages of all partitions, without what a move has left behind. Page returns the rows of
// one after a position, and whether there may be more.
func inOrder[T any](ctx context.Context, l *Ledger, limit int, tenant func(T) string, order func(a, b T) int, page func(p ledger.Partition, after *T) ([]T, error)) (rows []T, err error) {
	of, err := l.owned(ctx)
	if err != nil {
		return nil, err
	}
	var after *T
	for {
		pages := make([][]T, len(l.shards))
		var until *T // what a full page does not have comes after its last row
		var mu sync.Mutex
		err = l.every(ctx, func(i int, p ledger.Partition) error {
			got, err := page(p, after)
			mu.Lock()
			defer mu.Unlock()
			if n := len(got); n == ledger.RunLimit(limit) && (until == nil || order(got[n-1], *until) < 0) {
				until = &got[n-1]
			}
			for _, row := range got {
				if t := tenant(row); of[t] == "" || of[t] == l.shards[i].Name {
					pages[i] = append(pages[i], row)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		rows = slices.Concat(pages...)
		slices.SortFunc(rows, order)
		if until != nil {
			rows = slices.DeleteFunc(rows, func(row T) bool { return order(row, *until) > 0 })
		}
		if len(rows) > 0 || until == nil {
			return rows[:min(len(rows), ledger.RunLimit(limit))], nil
		}
		after = until
	}
}

// Lifetimes implements [ledger.Feed].
func (l *Ledger) Lifetimes(ctx context.Context, after ledger.ID, limit int) ([]ledger.Lifetime, error) {
	return inOrder(ctx, l, limit, func(x ledger.Lifetime) string { return x.Record.Tenant },
		func(a, b ledger.Lifetime) int { return cmp.Compare(a.Record.ID, b.Record.ID) },
		func(p ledger.Partition, last *ledger.Lifetime) ([]ledger.Lifetime, error) {
			if last == nil {
				return p.Lifetimes(ctx, after, limit)
			}
			return p.Lifetimes(ctx, last.Record.ID, limit)
		})
}

// Kept implements [ledger.Feed].
func (l *Ledger) Kept(ctx context.Context, after ledger.Document, limit int) ([]ledger.Document, error) {
	return inOrder(ctx, l, limit, func(x ledger.Document) string { return x.Tenant },
		func(a, b ledger.Document) int {
			return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
		},
		func(p ledger.Partition, last *ledger.Document) ([]ledger.Document, error) {
			if last == nil {
				return p.Kept(ctx, after, limit)
			}
			return p.Kept(ctx, *last, limit)
		})
}

// Foreign implements [ledger.Feed].
func (l *Ledger) Foreign(ctx context.Context) (names []string, err error) {
	of := make([][]string, len(l.shards))
	err = l.every(ctx, func(i int, p ledger.Partition) (err error) {
		of[i], err = p.Foreign(ctx)
		for j := range of[i] {
			of[i][j] += " of partition " + l.shards[i].Name
		}
		return err
	})
	return slices.Concat(of...), err
}

// QueueStats implements [ledger.Maintenance]. Without a partition that cannot be reached.
func (l *Ledger) QueueStats(ctx context.Context) (all ledger.QueueStats, err error) {
	of, err := l.owned(ctx)
	if err != nil {
		of = nil // a tenant that is being moved may be counted twice
	}
	stats := make([]ledger.QueueStats, len(l.shards))
	err = l.each(ctx, func(i int, p ledger.Partition) (err error) {
		stats[i], err = p.QueueStats(ctx)
		return err
	})
	for i, s := range stats {
		if s.Now.IsZero() {
			continue
		}
		if all.Now.IsZero() || s.Now.Before(all.Now) {
			all.Now = s.Now
		}
		for _, q := range s.Queues {
			if of[q.Tenant] == "" || of[q.Tenant] == l.shards[i].Name {
				all.Queues = append(all.Queues, q)
			}
		}
		if all.Outbox += s.Outbox; !s.Oldest.IsZero() && (all.Oldest.IsZero() || s.Oldest.Before(all.Oldest)) {
			all.Oldest = s.Oldest
		}
		left := func(r ledger.Refused) bool { return of[r.Tenant] != "" && of[r.Tenant] != l.shards[i].Name }
		all.Refused = append(all.Refused, slices.DeleteFunc(s.Refused, left)...)
		all.Damaged = append(all.Damaged, slices.DeleteFunc(s.Damaged, left)...)
	}
	slices.SortFunc(all.Queues, func(a, b ledger.Queue) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.State, b.State))
	})
	return all, err
}

// Prune implements [ledger.Maintenance].
func (l *Ledger) Prune(ctx context.Context, p ledger.Prune) (did ledger.Pruned, err error) {
	if p, err = p.Checked(); err != nil {
		return did, err
	}
	var errs []error
	limit := p.Limit
	for _, s := range l.shards {
		if p.Limit = limit - did.Compacted - did.Forgotten - did.Documents; p.Limit <= 0 && !p.DryRun {
			break
		}
		if p.DryRun {
			p.Limit = limit
		}
		part, err := l.open(ctx, s)
		var one ledger.Pruned
		if err == nil {
			one, err = part.Prune(ctx, p)
		}
		errs = append(errs, err)
		did.Compacted, did.Forgotten, did.Documents = did.Compacted+one.Compacted, did.Forgotten+one.Forgotten, did.Documents+one.Documents
		did.Changes, did.Bytes = did.Changes+one.Changes, did.Bytes+one.Bytes
	}
	return did, unread(errs)
}

// unread joins errors: those that name rows which cannot be read become one.
func unread(errs []error) error {
	var all ledger.UnreadError
	var others []error
	for _, err := range errs {
		var one *ledger.UnreadError
		if errors.As(err, &one) {
			all.Writes = append(all.Writes, one.Writes...)
		} else {
			others = append(others, err)
		}
	}
	if len(all.Writes) > 0 {
		others = append(others, &all)
	}
	return errors.Join(others...)
}

// Erase implements [ledger.Maintenance]. A move that died last may have left rows where the tenant was:
// they are deleted too, when no process reads there any more.
func (l *Ledger) Erase(ctx context.Context, e ledger.Erasing) (did ledger.Erased, err error) {
	if err := e.Check(); err != nil {
		return did, err
	}
	err = l.at(ctx, e.Tenant, false, func(p ledger.Partition, _ int64) error {
		did, err = p.Erase(ctx, e)
		return err
	})
	if err != nil {
		return did, err
	}
	where, err := l.placeOf(ctx, e.Tenant, false, false)
	if err != nil || where.Previous == "" {
		return did, err
	}
	l.mu.Lock()
	tidy := l.tidied[e.Tenant] == where.Epoch
	l.mu.Unlock()
	if tidy {
		return did, nil
	}
	if err := l.tidy(ctx, where.Placement); err != nil {
		return did, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tidied[e.Tenant] = where.Epoch
	return did, nil
}

// KeyDigests implements [ledger.Maintenance]. All partitions have the same digest key.
func (l *Ledger) KeyDigests() ledger.KeyDigests {
	if p, _ := l.home.now(); p != nil {
		return p.KeyDigests()
	}
	return ledger.KeyDigests{}
}

// Scrub implements [ledger.Maintenance].
func (l *Ledger) Scrub(ctx context.Context) error {
	return l.every(ctx, func(_ int, p ledger.Partition) error { return p.Scrub(ctx) })
}
