package reviewui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/visible"
)

const (
	// maxShort is how many characters of a value are shown in a table; the rest
	// is folded away.
	maxShort = 160
	// maxWhole is how many characters of one value can be unfolded, and maxPage how many
	// of all values of a page together: a page must load on a phone.
	maxWhole = 16 << 10
	maxPage  = 128 << 10
	// maxLaidOut is how many bytes of JSON are indented.
	maxLaidOut = 256 << 10
	// maxMark is the longest text in which differences are marked.
	maxMark = 4 << 10
)

// shown is a value in its displayed form. Null, missing and empty look different, and are
// named.
type shown struct {
	// Kind is "text", "number", "yes/no", "null", "list", "object", or "" for no value.
	Kind string
	// Note is shown instead of a missing value: "not there".
	Note string
	// Parts are shown at first. Empty describes a value without visible characters.
	Parts []part
	Empty string
	// Rest is the whole value, if it is longer.
	Rest *rest
}

// part is a piece of a value; the marked ones are where two texts differ.
type part struct {
	Text   string
	Marked bool
}

// rest is the folded part.
type rest struct {
	Title string
	Text  string // "" if it is too long
	Cut   bool   // Text is incomplete
	Open  bool   // unfolded at first
}

// none is shown for a missing value.
func none(note string) shown { return shown{Note: note} }

// painter formats values for a page, within the page's budget.
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
	line := report.OneLine(v)
	s.Parts = []part{{Text: report.Clip(line, maxShort)}}
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
	x, y := []rune(report.OneLine(a)), []rune(report.OneLine(b))
	head, tail := alike(x, y)
	const quotes = 2
	if same := head + tail - quotes; same < 3 || 3*same < max(len(x), len(y))-quotes { // they are unrelated texts
		return w, g
	}
	w.Parts, g.Parts = parted(x, head, tail), parted(y, head, tail)
	return w, g
}

// alike is how many characters two texts share at the beginning and at the end.
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

// parted splits a text into the parts before, in and after the difference; of a long one
// only the surroundings.
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

// rest folds a long text. It counts against the page's budget.
func (p *painter) rest(text string) *rest {
	n := utf8.RuneCountInString(text)
	r := &rest{Title: fmt.Sprintf("show all (%s characters)", humanize.Comma(int64(n)))}
	limit := min(maxWhole, p.left)
	switch {
	case limit < maxShort:
		r.Title = fmt.Sprintf("%s characters, too many for this page", humanize.Comma(int64(n)))
		return r
	case n > limit:
		r.Title = fmt.Sprintf("show the first %s of %s characters", humanize.Comma(int64(limit)), humanize.Comma(int64(n)))
		text, r.Cut = string([]rune(text)[:limit]), true
	}
	p.left -= utf8.RuneCountInString(text)
	r.Text = text
	return r
}

// document folds a JSON text, indented; of a large one the beginning, unchanged.
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

// plain is a value for reading: a text with its own line ends, anything else as JSON.
func plain(v any) string {
	if text, ok := v.(string); ok {
		return visible.Lines(text)
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
