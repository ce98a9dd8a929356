package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/crashtest"
	"github.com/readback-go/readback/ledger"
)

// words are the outcomes in the words and order of the document.
var words = []struct {
	status ledger.Status
	word   string
}{
	{verified, "verified"}, {notApplied, "not applied"}, {compensated, "undone"}, {reported, "reported"}, {review, "review"},
}

func word(s ledger.Status) string {
	for _, w := range words {
		if w.status == s {
			return w.word
		}
	}
	return "**" + string(s) + "**"
}

// moment is a point without its number.
type moment struct {
	stage stage
	fate  crashtest.Fate
}

func (m moment) String() string {
	if m.fate == crashtest.Lives {
		return "nothing fails"
	}
	return string(m.stage) + ": " + string(m.fate)
}

// summary is the result of all runs.
type summary struct {
	cells map[string]map[moment][]result // by cell
	notes []string
}

// summarize leaves out destinations that are wrong about themselves: how their
// cells end depends on the moments at which they are read.
func summarize(results []result) *summary {
	s := &summary{cells: map[string]map[moment][]result{}}
	for _, r := range results {
		if r.cell.fault.liar {
			continue
		}
		name := r.cell.String()
		if s.cells[name] == nil {
			s.cells[name] = map[moment][]result{}
		}
		m := moment{r.point.Stage, r.point.Fate}
		s.cells[name][m] = append(s.cells[name][m], r)
	}
	return s
}

// render is the part of the document that the runs decide.
func (s *summary) render() string {
	var b strings.Builder
	s.renderTotals(&b)
	b.WriteString("### Outcomes by class of destination\n\n")
	for _, cl := range classes {
		s.renderClass(&b, cl)
	}
	b.WriteString("### Notes\n\nA cell has the other outcome if the process\n\n")
	for i, n := range s.notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, n)
	}
	b.WriteString("\n")
	s.renderMoments(&b)
	s.renderReviews(&b)
	return strings.TrimSpace(b.String()) + "\n"
}

// statuses are the outcomes of some runs, in the order of words.
func statuses(rs []result) []ledger.Status {
	var all []ledger.Status
	for _, w := range words {
		if slices.ContainsFunc(rs, func(r result) bool { return r.status == w.status }) {
			all = append(all, w.status)
		}
	}
	for _, r := range rs {
		if !slices.Contains(all, r.status) {
			all = append(all, r.status)
		}
	}
	return all
}

func (s *summary) renderTotals(b *strings.Builder) {
	total, by, faults := 0, map[ledger.Status]int{}, map[string]int{}
	for _, moments := range s.cells {
		for _, rs := range moments {
			total++
			for _, st := range statuses(rs) {
				by[st]++
			}
			for _, r := range rs {
				for _, f := range r.flaws {
					kind, _, _ := strings.Cut(f, ":")
					faults[kind]++
				}
			}
		}
	}
	fmt.Fprintf(b, "%d situations, each with every moment of failure: %d cells.\n\n", len(s.cells), total)
	b.WriteString("| outcome | cells |\n|---|---:|\n")
	for _, w := range words {
		fmt.Fprintf(b, "| %s | %d |\n", w.word, by[w.status])
	}
	for _, f := range faultsCounted {
		fmt.Fprintf(b, "| **%s** | **%d** |\n", f.says, faults[f.kind])
	}
	b.WriteString("\n")
}

// renderClass renders the first variant of a class whole, and of the others
// what differs.
func (s *summary) renderClass(b *strings.Builder, cl class) {
	fmt.Fprintf(b, "#### Class %s\n\n%s.\n\n", cl.name, upper(cl.says))
	var first map[string][]string
	for _, va := range variants {
		if va.classes != nil && !slices.Contains(va.classes, cl.name) {
			continue
		}
		rows := s.rows(cl, va)
		shown := func(faultCase) bool { return true }
		if first == nil {
			first = rows
			fmt.Fprintf(b, "%s:\n\n", upper(va.says))
		} else {
			fmt.Fprintf(b, "%s. All is as above, but:\n\n", upper(va.says))
			shown = func(v faultCase) bool { return !slices.Equal(first[v.name], rows[v.name]) }
		}
		table(b, rows, cl, shown)
	}
}

func upper(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// rows are the outcomes of one table: by fault, for each kind of write.
func (s *summary) rows(cl class, va variant) map[string][]string {
	rows := map[string][]string{}
	for _, vi := range faultCases {
		for _, ki := range cl.all() {
			rows[vi.name] = append(rows[vi.name], s.outcome(cell{cl, va, ki, vi}))
		}
	}
	return rows
}

// outcome is what came of a cell where nothing fails, and, with a note, what
// else came of it and when.
func (s *summary) outcome(c cell) string {
	moments := s.cells[c.String()]
	if moments == nil {
		return "–"
	}
	usual := statuses(moments[moment{}])
	text := []string{s.say(moments[moment{}], usual)}
	for _, w := range words {
		if slices.Contains(usual, w.status) {
			continue
		}
		var when []string
		var then []result
		for _, m := range sorted(moments) {
			got := statuses(moments[m])
			if !slices.Contains(got, w.status) {
				continue
			}
			then = append(then, moments[m]...)
			if len(got) > 1 {
				when = append(when, m.String()+" (not every time)")
			} else {
				when = append(when, m.String())
			}
		}
		if then != nil {
			text = append(text, fmt.Sprintf("%s [%d]", s.say(then, []ledger.Status{w.status}), s.note(strings.Join(when, "; "))))
		}
	}
	return strings.Join(text, ", ")
}

// say names outcomes, reviews with the letter of their reason.
func (s *summary) say(rs []result, which []ledger.Status) string {
	var text []string
	for _, st := range which {
		w := word(st)
		if st == review {
			for _, why := range reasons(rs) {
				w += " " + letter(why)
			}
		}
		text = append(text, w)
	}
	return strings.Join(text, " or ")
}

func reasons(rs []result) []string {
	var all []string
	for _, r := range rs {
		if r.status == review && !slices.Contains(all, r.why) {
			all = append(all, r.why)
		}
	}
	return all
}

// note numbers a note, equal ones alike.
func (s *summary) note(text string) int {
	i := slices.Index(s.notes, text)
	if i < 0 {
		s.notes = append(s.notes, text)
		i = len(s.notes) - 1
	}
	return i + 1
}

// table renders rows, with columns that are equal throughout as one.
func table(b *strings.Builder, rows map[string][]string, cl class, shown func(faultCase) bool) {
	var columns [][]int
	for i := range cl.all() {
		same := func(other []int) bool {
			return !slices.ContainsFunc(faultCases, func(v faultCase) bool { return shown(v) && rows[v.name][i] != rows[v.name][other[0]] })
		}
		if at := slices.IndexFunc(columns, same); at >= 0 {
			columns[at] = append(columns[at], i)
		} else {
			columns = append(columns, []int{i})
		}
	}
	b.WriteString("| fault |")
	for _, column := range columns {
		var names []string
		for _, i := range column {
			names = append(names, cl.all()[i].name)
		}
		fmt.Fprintf(b, " %s |", strings.Join(names, "; "))
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, v := range faultCases {
		if !shown(v) || !slices.ContainsFunc(rows[v.name], func(text string) bool { return text != "–" }) {
			continue
		}
		fmt.Fprintf(b, "| %s |", v.name)
		for _, column := range columns {
			fmt.Fprintf(b, " %s |", rows[v.name][column[0]])
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}

// order of stages and of fates in the document: that of a lifetime.
var (
	lifeOrder = []stage{"", stBefore, stReserve, stSend, stReadBack, stPutBack, stClaim, stRenew, stAnnounce, stUndo, stSettle, stReview, stReadAgain, stRecheck}
	fateOrder = []crashtest.Fate{crashtest.Lives, crashtest.Before, crashtest.After, crashtest.UnderWay, crashtest.Suspends}
)

func sorted(moments map[moment][]result) []moment {
	return slices.SortedFunc(maps.Keys(moments), func(a, b moment) int {
		if a.stage != b.stage {
			return slices.Index(lifeOrder, a.stage) - slices.Index(lifeOrder, b.stage)
		}
		return slices.Index(fateOrder, a.fate) - slices.Index(fateOrder, b.fate)
	})
}

// renderMoments renders what came of the cells by the moment of failure.
func (s *summary) renderMoments(b *strings.Builder) {
	all := map[moment][]result{}
	counts := map[moment]map[ledger.Status]int{}
	for _, moments := range s.cells {
		for m, rs := range moments {
			all[m] = append(all[m], rs...)
			if counts[m] == nil {
				counts[m] = map[ledger.Status]int{}
			}
			for _, st := range statuses(rs) {
				counts[m][st]++
			}
			counts[m][""]++
		}
	}
	b.WriteString("### Moments of failure\n\n| the process … | cells |")
	for _, w := range words {
		fmt.Fprintf(b, " %s |", w.word)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", 1+len(words)) + "\n")
	for _, m := range sorted(all) {
		fmt.Fprintf(b, "| %s | %d |", m, counts[m][""])
		for _, w := range words {
			fmt.Fprintf(b, " %d |", counts[m][w.status])
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
}
