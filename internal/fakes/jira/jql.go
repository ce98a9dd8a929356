package jira

import (
	"fmt"
	"strconv"
	"strings"
)

// matcher reports whether an issue with these fields matches.
type matcher func(fields map[string]any) bool

// parser reads what of JQL the site knows: labels and project with =, AND, OR
// and brackets, strings in double quotes.
type parser struct {
	tokens []string
	knows  func(project string) bool
}

// parseJQL reads a query. Like the real one it refuses what has no bound, and
// projects that do not exist or may not be seen.
func parseJQL(text string, knows func(project string) bool) (matcher, error) {
	tokens, err := tokensOf(text)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("Unbounded JQL queries are not allowed here. Please add a search restriction to your query.") //nolint:staticcheck // the vendor's words
	}
	p := &parser{tokens, knows}
	m, err := p.any()
	if err == nil && len(p.tokens) > 0 {
		err = fmt.Errorf("Error in the JQL Query: Expecting operator but got '%s'.", p.tokens[0]) //nolint:staticcheck // the vendor's words
	}
	return m, err
}

func tokensOf(text string) ([]string, error) {
	var tokens []string
	for {
		text = strings.TrimLeft(text, " ")
		switch {
		case text == "":
			return tokens, nil
		case strings.ContainsRune("()=", rune(text[0])):
			tokens, text = append(tokens, text[:1]), text[1:]
		case text[0] == '"':
			quoted, rest, err := quotedToken(text)
			if err != nil {
				return nil, err
			}
			tokens, text = append(tokens, quoted), rest
		default:
			end := strings.IndexAny(text, " ()=\"")
			if end < 0 {
				end = len(text)
			}
			tokens, text = append(tokens, text[:end]), text[end:]
		}
	}
}

// quotedToken returns the string with its opening quote, unescaped.
func quotedToken(text string) (token, rest string, err error) {
	var b strings.Builder
	b.WriteByte('"')
	for n := 1; n < len(text); n++ {
		switch text[n] {
		case '"':
			return b.String(), text[n+1:], nil
		case '\\':
			width, r, bad := unescape(text[n:])
			if bad != nil {
				return "", "", bad
			}
			b.WriteString(r)
			n += width - 1
		case '\n', '\r':
			return "", "", fmt.Errorf("Error in the JQL Query: a line end in a string.") //nolint:staticcheck // as the vendor writes
		default:
			b.WriteByte(text[n])
		}
	}
	return "", "", fmt.Errorf("Error in the JQL Query: The quoted string has not been completed.") //nolint:staticcheck // as the vendor writes
}

func unescape(text string) (width int, value string, err error) {
	known := map[byte]string{'\\': `\`, '"': `"`, '\'': `'`, 'n': "\n", 'r': "\r", 't': "\t", ' ': " "}
	if len(text) > 1 {
		if v, ok := known[text[1]]; ok {
			return 2, v, nil
		}
		if text[1] == 'u' && len(text) >= 6 {
			code, err := strconv.ParseUint(text[2:6], 16, 16)
			if err == nil {
				return 6, string(rune(code)), nil
			}
		}
	}
	return 0, "", fmt.Errorf("Error in the JQL Query: an illegal escape sequence.") //nolint:staticcheck // as the vendor writes
}

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	t := p.tokens[0]
	p.tokens = p.tokens[1:]
	return t
}

func (p *parser) peek(word string) bool {
	return len(p.tokens) > 0 && strings.EqualFold(p.tokens[0], word)
}

func (p *parser) any() (matcher, error) {
	m, err := p.all()
	for err == nil && p.peek("OR") {
		p.next()
		left := m
		var right matcher
		right, err = p.all()
		m = func(f map[string]any) bool { return left(f) || right(f) }
	}
	return m, err
}

func (p *parser) all() (matcher, error) {
	m, err := p.one()
	for err == nil && p.peek("AND") {
		p.next()
		left := m
		var right matcher
		right, err = p.one()
		m = func(f map[string]any) bool { return left(f) && right(f) }
	}
	return m, err
}

func (p *parser) one() (matcher, error) {
	field := p.next()
	if field == "(" {
		m, err := p.any()
		if err == nil && p.next() != ")" {
			err = fmt.Errorf("Error in the JQL Query: Expecting ')'.") //nolint:staticcheck // as the vendor writes
		}
		return m, err
	}
	operator, value := p.next(), p.next()
	if operator != "=" || !strings.HasPrefix(value, `"`) {
		return nil, fmt.Errorf("Error in the JQL Query near '%s'.", field) //nolint:staticcheck // as the vendor writes
	}
	value = value[1:]
	switch field {
	case "labels":
		return func(f map[string]any) bool {
			for _, l := range labelsOf(f) {
				if strings.EqualFold(l, value) { // an index folds case
					return true
				}
			}
			return false
		}, nil
	case "project":
		if !p.knows(strings.ToUpper(value)) {
			return nil, fmt.Errorf("The value '%s' does not exist for the field 'project'.", value) //nolint:staticcheck // the vendor's words
		}
		return func(f map[string]any) bool { return strings.EqualFold(member(f, "project", "key"), value) }, nil
	}
	return nil, fmt.Errorf("Field '%s' does not exist or you do not have permission to view it.", field) //nolint:staticcheck // the vendor's words
}
