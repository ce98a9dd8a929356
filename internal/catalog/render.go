package catalog

import (
	_ "embed" // for the template
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/policies"
)

//go:embed page.md.tmpl
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"cell": cell}).Parse(pageText))

// cell keeps a text inside its cell of a Markdown table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}

// Page is an entry as Markdown that can be read in a terminal as well. level is
// the level of its heading, from 1.
func Page(e Entry, level int) string { return render(e, level, nil) }

// render makes the page. alike names the claims that an earlier page has, by its link.
func render(e Entry, level int, alike []Declared) string {
	var b strings.Builder
	err := page.Execute(&b, struct {
		Entry
		Heading  string
		Promises []promise
		Declared []Declared
		Alike    []Declared
	}{e, strings.Repeat("#", max(level, 1)), grouped(e.Promises), shortened(e.Declared), alike})
	if err != nil {
		panic(err) // the template is ours, and a Builder takes everything
	}
	return b.String()
}

// promise is a sentence that is true of some write types.
type promise struct{ Writes, Text string }

// grouped joins promises that differ in the name of the write type only.
func grouped(all []policies.Guarantee) []promise {
	var by []promise
	general := map[string]int{}
	for _, g := range all {
		text := strings.ReplaceAll(g.Text, string(g.Write), "write")
		if i, ok := general[text]; ok {
			by[i] = promise{by[i].Writes + ", " + string(g.Write), text}
			continue
		}
		general[text] = len(by)
		by = append(by, promise{string(g.Write), g.Text})
	}
	return by
}

// shortened joins the names of what a destination has none of.
func shortened(all []Declared) []Declared {
	var some []Declared
	var none []string
	for _, d := range all {
		if d.Value == "none" {
			none = append(none, d.Name)
		} else {
			some = append(some, d)
		}
	}
	if none != nil {
		some = append(some, Declared{"none", strings.Join(none, ", ")})
	}
	return some
}

// columns are those of the table.
const columns = "NAME\tNATIVE KEY\tLOOKUP\tSETTLE\tHORIZON\tCONDITIONAL\tUNDO\tAFTER A LOST RESPONSE"

// Rows are the lines of the table, cells separated by tabs, the heading first.
func Rows(sheets []connectors.Sheet) []string {
	rows := []string{columns}
	for _, s := range sheets {
		p := s.Profile
		first := writes(p)[0]
		rows = append(rows, strings.Join([]string{s.Name, windows(p.NativeWindow), lookup(p), bound(p.Settle), bound(p.Horizon),
			list(p.Conditional), list(p.Undo), afterLoss(p, first)}, "\t"))
	}
	return rows
}

// lookup is the strength of the strongest read that needs no answer of a write.
func lookup(p connectors.Profile) string {
	best := "none"
	for _, r := range p.Reads {
		switch {
		case r.By == "ref":
		case r.Strength == connectors.Strong:
			return "strong"
		default:
			best = "weak"
		}
	}
	return best
}

// afterLoss is the short form of a promise.
func afterLoss(p connectors.Profile, w intent.WriteType) string {
	g := policies.Explain(p, w)
	switch {
	case !g.Repeats:
		return fmt.Sprintf("%s: a reviewer decides", w)
	case g.Row == policies.RowAbsence:
		return fmt.Sprintf("%s: again after %s of absence", w, report.Short(g.After))
	}
	return fmt.Sprintf("%s: again at once, %s", w, how[g.Row])
}

// how is why a repeat is harmless.
var how = map[string]string{
	policies.RowNativeKey:   "same native key",
	policies.RowUnique:      "same record",
	policies.RowConditional: "on condition",
}

// Markdown is the whole catalogue as a document part: the table and the pages. A claim is
// shown in the first page that has it; later pages name that page.
func Markdown(sheets []connectors.Sheet) string {
	var b strings.Builder
	for i, row := range Rows(sheets) {
		cells := strings.Split(row, "\t")
		for j, c := range cells {
			cells[j] = cell(c)
		}
		if i > 0 {
			cells[0] = fmt.Sprintf("[%s](#%s)", cells[0], anchor(sheets[i-1]))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	shown := map[Claim]string{} // to the link of the page
	for _, s := range sheets {
		link := fmt.Sprintf("[%s: %s](#%s)", s.System, s.Kind, anchor(s))
		var alike []Declared
		e := Of(s)
		e.Claims = slices.DeleteFunc(e.Claims, func(c Claim) bool {
			at, known := shown[c]
			if !known {
				shown[c] = link
				return false
			}
			i := slices.IndexFunc(alike, func(d Declared) bool { return d.Name == at })
			switch topic := string(c.About); {
			case i < 0:
				alike = append(alike, Declared{at, topic})
			case !strings.HasSuffix(alike[i].Value, topic):
				alike[i].Value += ", " + topic
			}
			return true
		})
		b.WriteString("\n" + render(e, 2, alike))
	}
	return b.String()
}

// anchor is the address that a heading gets where Markdown is shown.
func anchor(s connectors.Sheet) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}, strings.ToLower(s.System+": "+s.Kind))
	return kept
}
