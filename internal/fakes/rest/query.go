package rest

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// clause is one condition of a query in the manner of SQL: NAME = 'x', NAME LIKE 'x%', NAME IN ('x', 'y').
type clause struct {
	field, op string
	values    []string
}

const queryValue = `'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"`

var (
	queryPart = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z_.]*(?:\['[^']*'\])?)\s*(=|!=|<=|>=|<|>|(?i:like|in)\b)\s*(` + queryValue + `|\(\s*(?:(?:` + queryValue + `)[\s,]*)+\))\s*`)
	queryText = regexp.MustCompile(queryValue)
	queryAnd  = regexp.MustCompile(`^(?i:and)\b`)
)

// conditions reads clauses that are joined by AND; the rest is what follows them.
func conditions(text string) (all []clause, rest string) {
	for {
		m := queryPart.FindStringSubmatch(text)
		if m == nil {
			return all, text
		}
		c := clause{field: m[1], op: strings.ToUpper(m[2])}
		for _, v := range queryText.FindAllString(m[3], -1) {
			c.values = append(c.values, strings.NewReplacer(`\'`, `'`, `\"`, `"`, `\\`, `\`).Replace(v[1:len(v)-1]))
		}
		all, text = append(all, c), text[len(m[0]):]
		if and := queryAnd.FindString(text); and != "" {
			text = text[len(and):]
		} else {
			return all, text
		}
	}
}

// holds reports whether a value meets the clause. Numbers compare as numbers.
func (c clause) holds(v any) bool {
	have := fmt.Sprint(v)
	switch want := c.values[0]; {
	case v == nil:
		return c.op == "!="
	case c.op == "IN":
		return slices.Contains(c.values, have)
	case c.op == "LIKE":
		parts := strings.Split(want, "%")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		return regexp.MustCompile("^(?is:" + strings.Join(parts, ".*") + ")$").MatchString(have)
	default:
		order := strings.Compare(have, want)
		a, notA := strconv.ParseFloat(have, 64)
		b, notB := strconv.ParseFloat(want, 64)
		if notA == nil && notB == nil {
			order = cmp.Compare(a, b)
		}
		return map[string]bool{"=": order == 0, "!=": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[c.op]
	}
}
