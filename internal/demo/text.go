package demo

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// text is the report as text. It fits 80 columns.
func (r report) text() string {
	var b strings.Builder
	b.WriteString(heading(r.Strategies))
	for _, f := range r.Strategies {
		if f.trial.target == toOrders {
			b.WriteString(f.row())
		}
	}
	for _, f := range r.Strategies {
		fmt.Fprintf(&b, "\n%s\n%s", f.trial.title, f.story())
		if f.trial.strategy == readback && f.trial.target == toOrders {
			b.WriteString(f.gridText())
		}
	}
	return b.String()
}

const rowForm = "%-26s %7s %10s %9s %10s %4s %6s\n"

// heading describes what was done in all trials.
func heading(all []Figures) string {
	n, lost, made := 0, 0, 0
	for _, f := range all {
		n, lost, made = f.Orders, f.AnswersLost, max(made, f.Kills)
	}
	return fmt.Sprintf(`%d orders at %s each, to a destination that deduplicates nothing: no
idempotency key, no unique order id. In every row %d answers were lost after
the charge was made. Where it says "killed" the worker also got SIGKILL %d
times, mostly between a charge and the record of it, and was started again.
Counted by the destination, in its own log:

`, n, dollars(priceCents), lost, made) +
		fmt.Sprintf(rowForm, "strategy", "charges", "charged", "over", "duplicates", "lost", "review")
}

// row is a line of the table.
func (f Figures) row() string {
	return fmt.Sprintf(rowForm, f.trial.title, number(f.SideEffectCalls), dollars(f.BalanceCents),
		dollars(f.BalanceCents-f.ExpectedCents), number(f.Duplicates), number(f.Lost), number(f.Review))
}

// story describes what happened.
func (f Figures) story() string {
	t := f.trial
	switch {
	case t.strategy == naiveRetry:
		return fmt.Sprintf("  No answer came, so it called again: %d charges too many.\n", f.Duplicates)
	case t.strategy == plainLedger && !t.killed:
		return fmt.Sprintf(`  Never calls again for an order that has a row. But a row holds the answer
  that came, and for %d orders none came: an operator must check them.
`, f.Review)
	case t.strategy == plainLedger:
		return fmt.Sprintf(`  The row is written after the charge. Killed in between, it found no row
  and charged again: %d charges too many.
`, f.Duplicates)
	case t.target == toIMAP:
		return fmt.Sprintf(`  %d messages for a mailbox that takes whatever is appended. It holds %d,
  counted by the server: %d too many, %d missing.
`, f.Orders, f.SideEffectCalls, f.Duplicates, f.Lost) + f.outcomes()
	}
	return "  The same losses and the same kills.\n" + f.outcomes()
}

// outcomes is readback's own count of its orders.
func (f Figures) outcomes() string {
	var b strings.Builder
	for _, line := range []struct {
		ended ending
		means string
	}{
		{endAtOnce, "verified at once"},
		{endReadBack, "verified: no answer came, a read found it"},
		{endRecovered, "verified: left by a killed worker, a read found it"},
		{endSentAgain, "verified: left by a killed worker, shown to be absent, and sent again"},
		{endReview, "in review: a reviewer decides"},
		{endOther, "ended otherwise"},
	} {
		if n := f.Outcomes[string(line.ended)]; n > 0 || line.ended == endReview {
			fmt.Fprintf(&b, "  %5d %s  %s\n", n, mark(line.ended), line.means)
		}
	}
	return b.String()
}

// mark shows in the grid how an order ended.
func mark(e ending) string {
	switch e {
	case endAtOnce:
		return "."
	case endReadBack:
		return "r"
	case endRecovered:
		return "k"
	case endSentAgain:
		return "s"
	case endReview:
		return "?"
	}
	return "!"
}

// gridText shows every order.
func (f Figures) gridText() string {
	const perLine, perGroup = 50, 5
	var b strings.Builder
	for i, e := range f.grid {
		switch {
		case i%perLine == 0:
			fmt.Fprintf(&b, "\n  %s  ", orderID(i+1))
		case i%perGroup == 0:
			b.WriteString(" ")
		}
		b.WriteString(mark(e))
	}
	b.WriteString("\n")
	return b.String()
}

func number(n int) string { return humanize.Comma(int64(n)) }

// dollars writes cents, "$2,398.80".
func dollars(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s$%s.%02d", sign, humanize.Comma(cents/100), cents%100)
}
