package reviewui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/readback-go/readback/internal/report"
)

// shown is a value as a page shows it. Null, missing and empty look like three
// things, and in words they are.
type shown struct {
	// Kind is "text", "number", "yes/no", "null", "list", "object", or "" for what
	// is no value.
	Kind string
	// Note says instead of a value that there is none: "not there".
	Note string
	// Parts are what is shown at once, Empty what it is where nothing can be seen.
	Parts []part
	Empty string
	// Rest is all of it, where that is more.
	Rest *rest
}

// part is a piece of a value; the marked ones are where two texts differ.
type part struct {
	Text   string
	Marked bool
}

// rest is what is folded away.
type rest struct {
	Title string
	Text  string // "" where there is too much of it
	Cut   bool   // Text is not all
	Open  bool   // it is unfolded from the start
}

// none is shown where there is no value.
func none(note string) shown { return shown{Note: note} }

// painter makes values fit for a page, which holds only so much.
type painter struct{ left int }

func newPainter() *painter { return &painter{left: maxPage} }

// value shows a decoded JSON value.
func (p *painter) value(v any) shown {
	s := shown{Kind: kindOf(v)}
	switch v := v.(type) {
	case nil:
		s.Parts = []part{{Text: "null"}}
		return s
	case string:
		if v == "" {
			s.Empty = "empty text"
		} else if strings.TrimSpace(v) == "" {
			s.Empty = "only blanks"
		}
	case []any:
		if len(v) == 0 {
			s.Empty = "empty list"
		}
	case map[string]any:
		if len(v) == 0 {
			s.Empty = "empty object"
		}
	}
	line := oneLine(v)
	s.Parts = []part{{Text: cut(line, maxShort)}}
	if utf8.RuneCountInString(line) > maxShort {
		s.Rest = p.rest(plain(v))
	}
	return s
}

// pair shows two values beside each other and marks where two texts differ.
func (p *painter) pair(want, got any) (w, g shown) {
	w, g = p.value(want), p.value(got)
	a, isText := want.(string)
	b, both := got.(string)
	if !isText || !both || a == b || len(a) > maxMark || len(b) > maxMark {
		return w, g
	}
	x, y := []rune(oneLine(a)), []rune(oneLine(b))
	head, tail := alike(x, y)
	const quotes = 2
	if same := head + tail - quotes; same < 3 || 3*same < max(len(x), len(y))-quotes { // they are two different texts
		return w, g
	}
	w.Parts, g.Parts = parted(x, head, tail), parted(y, head, tail)
	return w, g
}

// alike is how many characters two texts begin and end with in common.
func alike(x, y []rune) (head, tail int) {
	most := min(len(x), len(y))
	for head < most && x[head] == y[head] {
		head++
	}
	for tail < most-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	return head, tail
}

// parted is a text in what is before, in and behind the difference; of a long
// one what stands around it.
func parted(x []rune, head, tail int) []part {
	const around = 40
	before, in, behind := x[:head], x[head:len(x)-tail], x[len(x)-tail:]
	if len(x) > maxShort {
		if len(before) > around {
			before = append([]rune("…"), before[len(before)-around:]...)
		}
		if len(in) > maxShort {
			in = append(in[:maxShort-1:maxShort-1], '…')
		}
		if len(behind) > around {
			behind = append(behind[:around:around], '…')
		}
	}
	parts := []part{{Text: string(before)}}
	if len(in) > 0 {
		parts = append(parts, part{string(in), true})
	}
	return append(parts, part{Text: string(behind)})
}

// rest folds a long text away. The page pays for it as long as it can.
func (p *painter) rest(text string) *rest {
	n := utf8.RuneCountInString(text)
	r := &rest{Title: fmt.Sprintf("show all (%s characters)", humanize.Comma(int64(n)))}
	room := min(maxWhole, p.left)
	switch {
	case room < maxShort:
		r.Title = fmt.Sprintf("%s characters, too many for this page", humanize.Comma(int64(n)))
		return r
	case n > room:
		r.Title = fmt.Sprintf("show the first %s of %s characters", humanize.Comma(int64(room)), humanize.Comma(int64(n)))
		text, r.Cut = string([]rune(text)[:room]), true
	}
	p.left -= utf8.RuneCountInString(text)
	r.Text = text
	return r
}

// document folds a JSON text away, indented; of a large one the beginning, as it
// is.
func (p *painter) document(title string, text json.RawMessage) *rest {
	switch size := humanize.Comma(int64(len(text))); {
	case len(text) == 0:
		return nil
	case p.left < maxShort:
		return &rest{Title: fmt.Sprintf("%s, %s bytes, too many for this page", title, size)}
	case len(text) > maxLaidOut:
		begin := strings.ToValidUTF8(report.Safe(string(text[:maxWhole])), "")
		r := p.rest(begin)
		r.Title, r.Cut = fmt.Sprintf("%s, the beginning of %s bytes", title, size), true
		return r
	}
	var b bytes.Buffer
	lines := report.Safe(string(text))
	if json.Valid(text) && report.JSON(&b, text) == nil {
		lines = strings.TrimSuffix(b.String(), "\n")
	}
	r := p.rest(lines)
	r.Title = title + ", " + strings.TrimPrefix(r.Title, "show ")
	return r
}

// oneLine is a value on one line, as JSON in which everything can be seen.
func oneLine(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "(cannot be shown)"
	}
	return report.Safe(strings.TrimSuffix(b.String(), "\n"))
}

// plain is a value for reading: a text in its own lines, anything else as JSON.
func plain(v any) string {
	if text, ok := v.(string); ok {
		var lines []string
		for line := range strings.Lines(text) {
			end := ""
			if l, ok := strings.CutSuffix(line, "\n"); ok {
				line, end = strings.TrimSuffix(l, "\r"), "\n"
			}
			lines = append(lines, report.Safe(line)+end)
		}
		return strings.Join(lines, "")
	}
	var b bytes.Buffer
	if err := report.JSON(&b, v); err != nil {
		return "(cannot be shown)"
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// kindOf names the kind of a decoded JSON value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "yes/no"
	case json.Number, float64, int:
		return "number"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return ""
}

// cut is a text of at most n characters that is fit to be shown already.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// count says how many there are of something.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
