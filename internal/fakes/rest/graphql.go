package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// selected is one field of a GraphQL document, with the values of its arguments.
type selected struct {
	name, as   string
	args       map[string]any
	directives map[string]map[string]any
	fields     []selected
}

// resolver is a value that depends on arguments.
type resolver func(args map[string]any) (any, error)

var graphQLToken = regexp.MustCompile(`"""(?s:.*?)"""|"(?:[^"\\]|\\.)*"|\$?[A-Za-z_]\w*|-?\d+(?:\.\d+)?|[!():={}\[\]@|&]|\.\.\.|#[^\n]*|\S`)

// graphQL reads {"query", "variables"}: whether it is a mutation, and its fields. It knows one
// operation without fragments.
func graphQL(raw []byte) (mutation bool, fields []selected, err error) {
	body, err := object(raw)
	if err != nil {
		return false, nil, err
	}
	query, ok := body["query"].(string)
	if !ok {
		return false, nil, errors.New("query is missing")
	}
	given, ok := body["variables"].(map[string]any)
	if !ok {
		given = map[string]any{}
	}
	p := &graphQLParser{given: given, declared: map[string]bool{}}
	for _, token := range graphQLToken.FindAllString(query, -1) {
		if token != "," && token[0] != '#' {
			p.tokens = append(p.tokens, token)
		}
	}
	defer func() {
		if problem, ok := recover().(graphQLProblem); ok {
			err = errors.New(string(problem))
		}
	}()
	if kind := p.peek(); kind == "query" || kind == "mutation" {
		mutation = kind == "mutation"
		p.next()
		if p.peek() != "{" && p.peek() != "(" {
			p.next() // its name
		}
		if p.peek() == "(" {
			p.variables()
		}
	}
	fields = p.selection()
	if p.peek() != "" {
		p.fail("unexpected " + p.peek())
	}
	return mutation, fields, nil
}

type graphQLProblem string

func (p graphQLProblem) Error() string { return string(p) }

type graphQLParser struct {
	tokens   []string
	given    map[string]any
	declared map[string]bool
}

func (p *graphQLParser) fail(says string) { panic(graphQLProblem("Parse error: " + says)) }

func (p *graphQLParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *graphQLParser) next() string {
	token := p.peek()
	if token == "" {
		p.fail("unexpected end")
	}
	p.tokens = p.tokens[1:]
	return token
}

func (p *graphQLParser) want(token string) {
	if got := p.next(); got != token {
		p.fail("unexpected " + got + ", want " + token)
	}
}

// variables are declared with a type: one that ends in ! must be given.
func (p *graphQLParser) variables() {
	p.want("(")
	for p.peek() != ")" {
		name := strings.TrimPrefix(p.next(), "$")
		p.want(":")
		kind := ""
		for p.peek() != ")" && p.peek() != "=" && !strings.HasPrefix(p.peek(), "$") {
			kind += p.next()
		}
		p.declared[name] = true
		if p.peek() == "=" {
			p.next()
			if v := p.value(); p.given[name] == nil {
				p.given[name] = v
			}
		}
		if strings.HasSuffix(kind, "!") && p.given[name] == nil {
			panic(graphQLProblem("Variable $" + name + " of type " + kind + " was provided invalid value"))
		}
	}
	p.want(")")
}

func (p *graphQLParser) selection() (fields []selected) {
	p.want("{")
	for p.peek() != "}" {
		f := selected{name: p.next(), directives: map[string]map[string]any{}}
		if f.as = f.name; f.name == "..." {
			p.fail("fragments are not known here")
		}
		if p.peek() == ":" {
			p.next()
			f.name = p.next()
		}
		f.args = p.arguments()
		for p.peek() == "@" {
			p.next()
			f.directives[p.next()] = p.arguments()
		}
		if p.peek() == "{" {
			f.fields = p.selection()
		}
		fields = append(fields, f)
	}
	p.want("}")
	return fields
}

// arguments leaves out those with a variable that is not given.
func (p *graphQLParser) arguments() map[string]any {
	args := map[string]any{}
	if p.peek() != "(" {
		return args
	}
	for p.next(); p.peek() != ")"; {
		name := p.next()
		p.want(":")
		variable := strings.TrimPrefix(p.peek(), "$")
		v := p.value()
		if _, given := p.given[variable]; given || !p.declared[variable] {
			args[name] = v
		}
	}
	p.want(")")
	return args
}

func (p *graphQLParser) value() any {
	switch token := p.next(); {
	case token[0] == '$':
		if !p.declared[token[1:]] {
			panic(graphQLProblem("Variable " + token + " is used but not declared"))
		}
		return p.given[token[1:]]
	case strings.HasPrefix(token, `"""`):
		return strings.TrimSpace(strings.Trim(token, `"`))
	case token[0] == '"':
		text, err := strconv.Unquote(token)
		if err != nil {
			p.fail("a text: " + token)
		}
		return text
	case token == "true" || token == "false":
		return token == "true"
	case token == "null":
		return nil
	case token == "[":
		list := []any{}
		for p.peek() != "]" {
			list = append(list, p.value())
		}
		p.next()
		return list
	case token == "{":
		o := map[string]any{}
		for p.peek() != "}" {
			name := p.next()
			p.want(":")
			o[name] = p.value()
		}
		p.next()
		return o
	case token[0] == '-' || token[0] >= '0' && token[0] <= '9':
		return json.Number(token)
	default:
		return token // of an enumeration
	}
}

// selects shows of a value what was selected. A field that it does not have is an error.
func selects(fields []selected, v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case Object:
		return selects(fields, map[string]any(v))
	case []any:
		all := make([]any, len(v))
		for i := range v {
			var err error
			if all[i], err = selects(fields, v[i]); err != nil {
				return nil, err
			}
		}
		return all, nil
	case map[string]any:
		if len(fields) == 0 {
			return nil, graphQLProblem("Field must have selections")
		}
		shown := map[string]any{}
		for _, f := range fields {
			member, ok := v[f.name]
			if !ok || f.name[0] == '.' {
				return nil, graphQLProblem("Field '" + f.name + "' doesn't exist")
			}
			if resolve, ok := member.(resolver); ok {
				var err error
				if member, err = resolve(f.args); err != nil {
					return nil, err
				}
			}
			part, err := selects(f.fields, member)
			if err != nil {
				return nil, err
			}
			shown[f.as] = part
		}
		return shown, nil
	}
	if len(fields) > 0 {
		return nil, graphQLProblem("Selections can't be made on scalars")
	}
	return v, nil
}

// connection is a page of a list: first of them, after a cursor.
func connection(all []any) resolver {
	return func(args map[string]any) (any, error) {
		n, err := strconv.Atoi(fmt.Sprint(args["first"]))
		if err != nil || n < 1 || n > 250 {
			return nil, errors.New("first must be from 1 to 250")
		}
		from := 0
		if cursor, ok := args["after"].(string); ok {
			if from, err = strconv.Atoi(cursor); err != nil {
				return nil, errors.New("invalid cursor")
			}
		}
		from = min(from, len(all))
		to := min(from+n, len(all))
		edges := []any{}
		for i, node := range all[from:to] {
			edges = append(edges, map[string]any{"node": node, "cursor": strconv.Itoa(from + i + 1)})
		}
		return map[string]any{
			"nodes": slices.Clone(all[from:to]), "edges": edges,
			"pageInfo": map[string]any{"hasNextPage": to < len(all), "hasPreviousPage": from > 0, "endCursor": strconv.Itoa(to), "startCursor": strconv.Itoa(from + 1)},
		}, nil
	}
}
