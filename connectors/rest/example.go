package rest

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// exampleOf is a text that a pattern matches, nil where none was found: the
// shortest, with the first choice of each. Patterns repeat a thousand times at most.
func exampleOf(p *regexp.Regexp) any {
	tree, err := syntax.Parse(p.String(), syntax.Perl)
	if err != nil {
		return nil
	}
	var b strings.Builder
	exampleInto(&b, tree)
	if !p.MatchString(b.String()) {
		return nil // it has conditions that are no characters
	}
	return b.String()
}

func exampleInto(b *strings.Builder, t *syntax.Regexp) {
	times := 1
	switch t.Op {
	case syntax.OpLiteral:
		b.WriteString(string(t.Rune))
	case syntax.OpCharClass:
		b.WriteRune(plainOf(t.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpStar, syntax.OpQuest:
		times = 0
	case syntax.OpRepeat:
		times = t.Min
	}
	for range times {
		for _, sub := range t.Sub {
			exampleInto(b, sub)
			if t.Op == syntax.OpAlternate {
				break
			}
		}
	}
}

// plainOf is a character of a class, which is a list of ranges: a letter or a digit
// where it has one.
func plainOf(class []rune) rune {
	for i := 0; i+1 < len(class); i += 2 {
		for _, plain := range "xX1" {
			if class[i] <= plain && plain <= class[i+1] {
				return plain
			}
		}
	}
	if len(class) == 0 {
		return 'x' // it matches nothing
	}
	return class[0]
}
