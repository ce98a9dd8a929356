package redact

import (
	"cmp"
	"encoding/json"
	"html"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/readback-go/readback/intent"
)

// withheld replaces a sentence that could not be kept in part.
const withheld = "this text could contain a sensitive value, and is not stored"

// literal is a value that was met, in one of its spellings.
type literal struct {
	letters []rune // folded
	shown   string
	// word means that it counts only as a separate word, short that removing it from a sentence
	// would make the rest unreadable.
	word, short bool
	// plain means that it is the value itself and not quoted, number that it is a number, and
	// more that it was cut.
	plain, number, more bool
}

// literals are the values that were met.
type literals struct {
	by    map[beginning][]literal // the longest first
	short []literal               // those with fewer letters than that, the longest first
	known map[string]bool
	many  bool // more than are searched for
}

// beginning are the first letters of a literal.
type beginning [minLiteral]rune

func beginningOf(letters []rune, at int) (b beginning) {
	copy(b[:], letters[at:])
	return b
}

// any reports whether any value was met.
func (l *literals) any() bool { return len(l.known) > 0 || l.many }

// copied is an independent copy.
func (l *literals) copied() literals {
	all := literals{short: slices.Clone(l.short), known: maps.Clone(l.known), many: l.many}
	if l.by != nil {
		all.by = make(map[beginning][]literal, len(l.by))
	}
	for first, list := range l.by {
		all.by[first] = slices.Clone(list)
	}
	return all
}

// add remembers a string, a number or a boolean.
func (l *literals) add(v any, digest func() string) {
	var text string
	of := literal{}
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		text, of.number = string(v), true
	case bool:
		text, of.word = strconv.FormatBool(v), true
	}
	if text == "" || l.known[text] {
		return
	}
	if len(l.known) >= maxLiterals {
		l.many = true
		return
	}
	if l.known == nil {
		l.known, l.by = map[string]bool{}, map[beginning][]literal{}
	}
	l.known[text] = true
	of.shown = "redacted:"
	if d := digest(); d != "" {
		of.shown = shortened(d)
	}
	cut := strings.ToValidUTF8(text[:min(len(text), maxLiteral)], "")
	for i, way := range ways(cut, of.number) {
		one := of
		one.word = of.word || of.number && i > 0 && len(way) < minLiteral // 5.00 is sensitive, and not each 5
		one.plain = i == 0 || of.number || way == strings.TrimSpace(cut)
		one.letters, one.more = folded([]rune(way)), len(cut) < len(text)
		one.short = len(one.letters) < minLiteral
		one.word = one.word || len(one.letters) == 1
		if one.short {
			l.short = inserted(l.short, one)
			continue
		}
		first := beginningOf(one.letters, 0)
		l.by[first] = inserted(l.by[first], one)
	}
}

// inserted keeps the longest first.
func inserted(list []literal, one literal) []literal {
	at, _ := slices.BinarySearchFunc(list, one, func(a, b literal) int { return cmp.Compare(len(b.letters), len(a.letters)) })
	return slices.Insert(list, at, one)
}

// ways are the spellings of a value: as it is, without the blanks around it, in JSON, in Go's
// quotes, in URLs and in HTML, and combinations of these; a number in other notations.
// [unescaped] finds the others.
func ways(text string, number bool) []string {
	all := []string{text}
	add := func(way string) {
		if way != "" && !slices.Contains(all, way) {
			all = append(all, way)
		}
	}
	if number {
		notations(text, add)
		return all
	}
	add(strings.TrimSpace(text))
	if quoted, err := json.Marshal(text); err == nil {
		add(string(quoted[1 : len(quoted)-1]))
	}
	for _, quoted := range []string{strconv.Quote(text), strconv.QuoteToASCII(text)} {
		add(quoted[1 : len(quoted)-1])
	}
	add(url.QueryEscape(text))
	add(url.PathEscape(text))
	add(html.EscapeString(text))
	for _, way := range slices.Clone(all[1:]) { // quoting an answer quotes its quotes
		if quoted, err := json.Marshal(way); err == nil {
			add(string(quoted[1 : len(quoted)-1]))
		}
		add(strconv.Quote(way)[1 : len(strconv.Quote(way))-1])
		add(url.QueryEscape(way))
	}
	return all
}

// notations are other texts of a number: 1.50 is 1.5 as well, and 1e3 is 1000.
func notations(number string, add func(string)) {
	if text, err := intent.Canonical(json.Number(number)); err == nil {
		add(string(text))
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return
	}
	for _, form := range []byte{'g', 'f'} {
		if text := strconv.FormatFloat(f, form, -1, 64); len(text) <= maxLiteral {
			add(text)
		}
	}
}

// fold maps letters that differ only in case to one letter.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return least
}

func folded(letters []rune) []rune {
	for i, r := range letters {
		letters[i] = fold(r)
	}
	return letters
}

// same is how many letters of a text from a place on are those of this literal.
func (l *literal) same(text []rune, at int) int {
	n := 0
	for n < len(l.letters) && at+n < len(text) && text[at+n] == l.letters[n] {
		n++
	}
	return n
}

// counts is how many letters of a text from a place on are this literal, 0 for none, where n is
// the number of equal first letters. A long one is found by its beginning, in a sentence also if
// it is cut short at the end.
func (l *literal) counts(text []rune, at, n int, inside bool) int {
	whole := n >= min(len(l.letters), cutLiteral) || !inside && n >= max(minCut, len(l.letters)/2) && ends(text[at+n:])
	if !whole || l.word && !bounded(text, at, n) {
		return 0
	}
	return n
}

// ends reports whether the text ends here, or has a mark of omitted text.
func ends(rest []rune) bool {
	return len(rest) == 0 || rest[0] == '…' || len(rest) >= 3 && string(rest[:3]) == "..."
}

// bounded reports whether a part of a text is a separate word.
func bounded(text []rune, at, n int) bool {
	letter := func(i int) bool {
		return i >= 0 && i < len(text) && (unicode.IsLetter(text[i]) || unicode.IsDigit(text[i]))
	}
	return !letter(at-1) && !letter(at+n)
}

// span is a part of a text, in bytes, and its replacement.
type span struct {
	from, to int
	shown    string
}

// in reports whether a text contains one of the values, however quoted.
func (l *literals) in(text string) bool {
	if !l.any() {
		return false
	}
	exposes := func(text string) bool {
		spans, withhold := l.find(text, true)
		return withhold || len(spans) > 0
	}
	return exposes(text) || slices.ContainsFunc(unescaped(text), exposes)
}

// brief reports whether a text is a value that has few letters.
func (l *literals) brief(text string) bool {
	letters := folded([]rune(text))
	return slices.ContainsFunc(l.short, func(one literal) bool { return slices.Equal(one.letters, letters) })
}

// find finds the values in a text. With inside it finds only those that count inside other values
// too: not short ones, nor true and false. Withhold reports that the text cannot be kept.
func (l *literals) find(text string, inside bool) (spans []span, withhold bool) {
	switch {
	case !l.any():
		return nil, false
	case l.many || len(text) > maxText:
		return nil, true
	}
	letters, at, effort := make([]rune, 0, len(text)), make([]int, 0, len(text)+1), searchLeast+searchLetter*len(text)
	for i, r := range text {
		letters, at = append(letters, fold(r)), append(at, i)
	}
	at = append(at, len(text))
	for i := range letters {
		if !inside {
			if _, n := firstMatch(l.short, letters, i, false, &effort); n > 0 {
				return nil, true
			}
		}
		// Also inside another match: this one may end later.
		one, n := firstMatch(l.by[beginningOf(letters, i)], letters, i, inside, &effort)
		if effort < 0 {
			return nil, true
		}
		if n > 0 {
			if one.more && n == len(one.letters) {
				return nil, true
			}
			spans = append(spans, span{at[i], at[i+n], one.shown})
		}
	}
	return spans, false
}

// firstMatch is the first of several literals that matches at a place, and its length. It deducts
// its cost from effort; once that is used up nothing is found.
func firstMatch(list []literal, text []rune, at int, inside bool, effort *int) (*literal, int) {
	for j := range list {
		if inside && list[j].word {
			continue
		}
		same := list[j].same(text, at)
		if *effort -= same + 1; *effort < 0 {
			return nil, 0
		}
		if n := list[j].counts(text, at, same, inside); n > 0 {
			return &list[j], n
		}
	}
	return nil, 0
}

// Text is a sentence, redacted for storage and display: values that were met, in any case and as
// JSON, URLs and HTML write them, and all pattern matches become "redacted:" and 16 hex digits. A
// sentence with a value too short to be removed, or with one in another quoting or encoding, is
// replaced as a whole, as is one longer than 16 KiB if anything is sensitive.
func (s *Scope) Text(text string) string {
	if s.Idle() || text == "" {
		return text
	}
	spans, withhold := s.met.find(text, false)
	if withhold || len(text) > maxText {
		return withheld
	}
	if s.vault != nil {
		for _, p := range s.vault.patterns {
			for _, at := range p.Regexp.FindAllStringIndex(text, -1) {
				if at[0] < at[1] {
					spans = append(spans, span{at[0], at[1], shortened(s.Digest(text[at[0]:at[1]]))})
				}
			}
		}
	}
	if s.hides(text, spans) {
		return withheld
	}
	return replaced(text, spans)
}

// hides reports whether a text without its spans still contains a sensitive value in quoted or
// encoded form.
func (s *Scope) hides(text string, spans []span) bool {
	blank := slices.Clone(spans)
	for i := range blank {
		blank[i].shown = "\x00"
	}
	return slices.ContainsFunc(unescaped(replaced(text, blank)), func(plain string) bool {
		found, withhold := s.met.find(plain, false)
		return withhold || len(found) > 0 || s.vault.finds(plain) != ""
	})
}

// replaced is a text with its spans replaced; of overlapping ones the first gives the
// replacement.
func replaced(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	var b strings.Builder
	end := 0
	for _, one := range spans {
		if one.from >= end {
			b.WriteString(text[end:one.from])
			b.WriteString(one.shown)
		}
		end = max(end, one.to)
	}
	b.WriteString(text[end:])
	return b.String()
}

// names reports whether a name contains a sensitive value: a pattern matches, or it contains a
// value that was met as a word.
func (s *Scope) names(name string) bool {
	if s.Idle() || name == "" {
		return false
	}
	return s.vault.Matches(name) != "" || s.met.words(name, func(*literal, bool) bool { return true })
}

// member reports whether the name of a member contains a sensitive value, as names does, except
// that a value which is a plain word must be the whole name. Such a word is part of many field
// names.
func (s *Scope) member(name string) bool {
	return !s.Idle() && (s.vault.Matches(name) != "" || s.met.words(name, func(one *literal, whole bool) bool {
		return whole || one.odd()
	}))
}

// odd reports whether a value has other characters than the letters of a word.
func (l *literal) odd() bool {
	return slices.ContainsFunc(l.letters, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) })
}

// words reports whether a value is a word in a name, however that is encoded, or is the whole
// name, and counts.
func (l *literals) words(name string, counts func(one *literal, whole bool) bool) bool {
	if len(l.by) == 0 {
		return false
	}
	word := func(name string) bool { return l.word(name, counts) }
	return word(name) || slices.ContainsFunc(unescaped(name), word)
}

func (l *literals) word(name string, counts func(one *literal, whole bool) bool) bool {
	letters, effort := folded([]rune(name)), searchLeast+searchLetter*len(name)
	for i := range letters {
		list := l.by[beginningOf(letters, i)]
		for j := range list {
			one := &list[j]
			least := minLiteral
			if one.number {
				least = minNumber
			}
			same := one.same(letters, i)
			if effort -= same + 1; effort < 0 {
				return true
			}
			if !one.plain || len(one.letters) < least {
				continue
			}
			if n := one.counts(letters, i, same, true); n > 0 && bounded(letters, i, n) && counts(one, n == len(letters)) {
				return true
			}
		}
	}
	return false
}
