package sagamatrix

import (
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/crashtest"
)

// table shows the results of all runs: by the step that fails, by the fault, and by the moment at
// which the process failed; and why reviewers were needed.
func table(results []result) string {
	var b strings.Builder
	flaws := map[string]int{}
	for _, r := range results {
		for _, f := range r.flaws {
			kind, _, _ := strings.Cut(f, ":")
			flaws[kind]++
		}
	}
	fmt.Fprintf(&b, "%d lives of a saga of four steps\n\n", len(results))
	counted(&b, "", results, func(result) string { return "all" })
	counted(&b, "what fails for good", results, func(r result) string { return r.cell.plan.name + ": " + orNothing(r.cell.failing) })
	counted(&b, "the fault", results, func(r result) string {
		if r.cell.undoing {
			return "undoing: " + string(r.cell.fault)
		}
		return orNothing(string(r.cell.fault))
	})
	counted(&b, "the process", results, func(r result) string {
		if r.point.Fate == crashtest.Lives {
			return "lives"
		}
		what := r.point.Stage.what
		if r.point.Stage.undoes() {
			what += " (undoing)"
		}
		return what + ": " + string(r.point.Fate)
	})
	counted(&b, "why a reviewer", results, func(r result) string { return r.why })
	for _, kind := range []string{doneTwice, mailEarly, overHalted, unexpected, string(half), string(wrong), string(doing)} {
		fmt.Fprintf(&b, "%-60s %d\n", kind, flaws[kind])
	}
	return b.String()
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// counted is one table: a row for each value of by, in the order in which they
// come, and a column for each end. Rows without a name are left out.
func counted(b *strings.Builder, title string, results []result, by func(result) string) {
	var rows []string
	counts := map[string]map[end]int{}
	for _, r := range results {
		name := by(r)
		if name == "" {
			continue
		}
		if counts[name] == nil {
			counts[name] = map[end]int{}
			rows = append(rows, name)
		}
		counts[name][r.end]++
	}
	if title != "" {
		slices.Sort(rows)
	}
	fmt.Fprintf(b, "%-60s", title)
	shown := ends[:3]
	for _, e := range shown {
		fmt.Fprintf(b, " %14s", e)
	}
	b.WriteString("\n")
	for _, row := range rows {
		fmt.Fprintf(b, "%-60s", row)
		for _, e := range shown {
			fmt.Fprintf(b, " %14d", counts[row][e])
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}
