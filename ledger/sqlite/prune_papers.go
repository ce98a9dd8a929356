package sqlite

import (
	"context"
	_ "embed"
	"math"
	"time"

	"github.com/readback-go/readback/ledger"
)

//go:embed sql/done_papers.sql
var sqlDonePapers string

//go:embed sql/stirring.sql
var sqlStirring string

//go:embed sql/forget_bound.sql
var sqlForgetBound string

//go:embed sql/forget_paper.sql
var sqlForgetPaper string

// paperSweep is where a sweep through papers that are done goes on, and how
// many are forgotten so far.
type paperSweep struct {
	updated, n int64 // of the last paper that was looked at
	done, most int
	ended      bool
}

// prunePapers forgets at most so many papers.
func (l *Ledger) prunePapers(ctx context.Context, p ledger.Prune, most int) (int, error) {
	at := paperSweep{updated: math.MinInt64, most: most}
	for !at.ended && at.done < at.most {
		var next paperSweep // read only when it is done
		err := l.writer.do(ctx, func(t *tx) (err error) {
			next, err = t.sweepPapers(p, at)
			return err
		})
		if err != nil {
			return at.done, err
		}
		at = next
	}
	return at.done, nil
}

// donePaper is a paper that is done, as far as pruning needs it.
type donePaper struct {
	n, updated int64
	paper      ledger.Paper
}

func (t *tx) sweepPapers(p ledger.Prune, at paperSweep) (paperSweep, error) {
	now, err := t.trust()
	if err != nil {
		return at, err
	}
	until := now.Add(-p.Remember)
	papers, err := t.donePapers(at, until)
	if err != nil {
		return at, err
	}
	at.ended = len(papers) < maxPruned
	budget := min(maxPruned, at.most-at.done) // of this operation
	for _, d := range papers {
		gone, whole, err := t.forgetWithBinder(p, d, now, budget)
		if err != nil {
			return at, err
		}
		at.done, budget = at.done+gone, budget-gone
		if !whole { // the next operation goes on with its binder
			at.ended = false
			return at, nil
		}
		at.updated, at.n = d.updated, d.n
	}
	return at, nil
}

func (t *tx) donePapers(at paperSweep, until time.Time) (papers []donePaper, err error) {
	s := t.donePaper
	s.BindInt64(1, at.updated)
	s.BindInt64(2, at.n)
	bindTime(s, 3, until)
	s.BindInt64(4, maxPruned)
	err = each(t.path, s, func() error {
		papers = append(papers, donePaper{n: s.ColumnInt64(0), updated: s.ColumnInt64(4),
			paper: ledger.Paper{Tenant: s.ColumnText(1), ID: s.ColumnText(2), Binder: s.ColumnText(3)}})
		return nil
	})
	return papers, err
}

// forgetWithBinder forgets a paper, and before it the binder that it covers, at
// most so many in all. Whole says that there is nothing more to do about it.
func (t *tx) forgetWithBinder(p ledger.Prune, d donePaper, now time.Time, most int) (gone int, whole bool, err error) {
	until := now.Add(-p.Remember)
	var marks, cover []*ledger.Mark
	if d.paper.Covers() {
		stirring := false
		t.stirring.BindText(1, d.paper.Tenant)
		t.stirring.BindText(2, d.paper.Binder)
		bindTime(t.stirring, 3, until)
		if err := each(t.path, t.stirring, func() error { stirring = true; return nil }); err != nil || stirring {
			return 0, true, err
		}
		t.forgetBound.BindText(1, d.paper.Tenant)
		t.forgetBound.BindText(2, d.paper.Binder)
		t.forgetBound.BindInt64(3, d.n)
		t.forgetBound.BindInt64(4, int64(most))
		if marks, gone, err = t.dropped(t.forgetBound, p, now); err != nil {
			return 0, false, err
		}
	}
	if gone < most {
		t.forgetPaper.BindInt64(1, d.n)
		if cover, _, err = t.dropped(t.forgetPaper, p, now); err != nil {
			return gone, false, err
		}
		gone, whole = gone+1, true
	}
	t.wrote = t.wrote || gone > 0
	for _, m := range append(marks, cover...) {
		if err := t.leaveMark(m, nil); err != nil {
			return gone, whole, err
		}
	}
	return gone, whole, nil
}
