package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/yamlfile"
)

const (
	// maxFile bounds a file of rules in bytes: a thousand rules fit.
	maxFile = 1 << 20
	// maxRules bounds the rules of a file: each is evaluated at every step.
	maxRules = 1000
	// maxNamed bounds the identifier of a rule.
	maxNamed = 100
)

// Set is the rules of one file. It is safe for concurrent use. The zero value
// has no rules and no answer.
type Set struct {
	path  string
	rules []*rule
}

var _ gate.Decider = (*Set)(nil)

// rule is one rule of a file.
type rule struct {
	at                             yamlfile.Place
	id, name, about, reason, level string
	decision                       gate.Decision
	when                           *expression
	// parts are the conditions of when that must all hold.
	parts []string
}

// Rule is a rule as listed.
type Rule struct {
	ID       string        `json:"id"`
	Line     int           `json:"line"`
	Decision gate.Decision `json:"decision"`
	When     string        `json:"when"`
	Reason   string        `json:"reason"`
}

// Rules returns the rules of the set, in the order of the file.
func (s *Set) Rules() []Rule {
	var all []Rule
	for _, r := range s.rules {
		all = append(all, Rule{ID: r.id, Line: r.at.Line, Decision: r.decision, When: r.when.text, Reason: r.reason})
	}
	return all
}

// Problem is one error in a file of rules.
type Problem = yamlfile.Problem

// ErrInvalid is wrapped by [InvalidError].
var ErrInvalid = errors.New("invalid rules")

// InvalidError lists all errors in a file of rules, in the order of lines.
type InvalidError struct {
	Path     string
	Problems []Problem
}

// Error lists the problems, one per line.
func (e *InvalidError) Error() string {
	return yamlfile.Spell(ErrInvalid.Error(), e.Path, e.Problems)
}

// Unwrap returns [ErrInvalid].
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// Warning is a property of a rule that is allowed and probably a mistake.
type Warning struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Rule string `json:"rule"`
	Text string `json:"text"`
}

// String returns the warning with its place.
func (w Warning) String() string {
	return fmt.Sprintf("%s:%d: rule %s: %s", w.Path, w.Line, w.Rule, w.Text)
}

// Load reads a file of rules. It fails with [InvalidError], and with the file's error if it
// cannot be read.
func Load(path string) (*Set, []Warning, error) {
	text, err := yamlfile.ReadBounded(path, maxFile)
	if err != nil {
		return nil, nil, fmt.Errorf("rules: %w", err)
	}
	return Parse(path, text)
}

// Parse reads the text of a file of rules; path is only its name in messages. It fails with
// [InvalidError].
func Parse(path string, text []byte) (*Set, []Warning, error) {
	env, err := environment()
	if err != nil {
		return nil, nil, fmt.Errorf("rules: %w", err)
	}
	l := &loader{Reader: yamlfile.Reader{Empty: "want version: 1, and rules"}, env: env, lines: strings.Split(string(text), "\n")}
	s := &Set{path: path}
	if body, ok := l.Parse(text); ok {
		l.file(s, body)
	}
	if len(l.Problems) > 0 {
		yamlfile.Sort(l.Problems)
		return nil, nil, &InvalidError{Path: path, Problems: l.Problems}
	}
	w := l.warnings(s)
	return s, w, nil
}

// loader reads one file.
type loader struct {
	yamlfile.Reader
	env   *cel.Env
	lines []string
}

// written is a rule as written in the file.
type written struct {
	At          yamlfile.Place
	ID          yamlfile.Text `yaml:"id"`
	Name        yamlfile.Text `yaml:"name"`
	Description yamlfile.Text `yaml:"description"`
	When        condition     `yaml:"when"`
	Decision    yamlfile.Text `yaml:"decision"`
	Reason      yamlfile.Text `yaml:"reason"`
	RiskLevel   yamlfile.Text `yaml:"risk_level"`
}

// condition is an expression; true and false need no quotes.
type condition struct{ yamlfile.Text }

// FillYAML reads it.
func (c *condition) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	c.Place = at
	if v, ok := r.Scalar(n, at.Field); ok {
		c.Value = strings.TrimRight(fmt.Sprint(v), "\n")
	}
}

func (l *loader) file(s *Set, body yamlfile.Node) {
	var f struct {
		Version int       `yaml:"version"`
		Rules   []written `yaml:"rules"`
	}
	if !l.Fill(body, "", &f) {
		return
	}
	switch {
	case f.Version != 1:
		l.Say(0, "version", "is %d; want version: 1", f.Version)
	case len(f.Rules) == 0:
		l.Say(0, "rules", "is missing or empty; want at least one rule, or no file of rules at all")
	case len(f.Rules) > maxRules:
		l.Say(f.Rules[maxRules].At.Line, "rules", "has %d rules; want at most %d", len(f.Rules), maxRules)
		return
	}
	lines := map[string]int{}
	for _, w := range f.Rules {
		r := l.rule(w)
		if line, twice := lines[r.id]; twice && r.id != "" {
			l.Say(w.ID.Line, w.ID.Field, "is %q, as that of line %d; want another one: matches are recorded by it", r.id, line)
		}
		lines[r.id] = w.ID.Line
		s.rules = append(s.rules, r)
	}
}

var (
	identifier = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,%d}$`, maxNamed-1))
	levels     = []string{"low", "medium", "high", "critical"}
	decisions  = []string{string(gate.Allow), string(gate.Block), string(gate.RequireApproval)}
)

func (l *loader) rule(w written) *rule {
	r := &rule{at: w.At, id: w.ID.Value, name: w.Name.Value, about: w.Description.Value, reason: w.Reason.Value,
		level: w.RiskLevel.Value, decision: gate.Decision(w.Decision.Value)}
	if r.name == "" {
		r.name = r.id
	}
	member := func(t yamlfile.Text, name string) yamlfile.Place {
		if t.Line == 0 {
			return yamlfile.Place{Line: w.At.Line, Field: w.At.Field + "." + name}
		}
		return t.Place
	}
	if !identifier.MatchString(r.id) {
		l.At(member(w.ID, "id"), "is %q; want a name for the rule, such as transfer-once: up to %d letters, digits and . _ : / -", yamlfile.Clip(r.id), maxNamed)
	}
	if !slices.Contains(decisions, string(r.decision)) {
		l.At(member(w.Decision, "decision"), "is %q; want one of %s", yamlfile.Clip(string(r.decision)), strings.Join(decisions, ", "))
	}
	if r.reason == "" {
		l.At(member(w.Reason, "reason"), "is missing; want the reason, in words for the recipient of the decision")
	}
	if r.level != "" && !slices.Contains(levels, r.level) {
		l.At(member(w.RiskLevel, "risk_level"), "is %q; want one of %s", yamlfile.Clip(r.level), strings.Join(levels, ", "))
	}
	l.condition(r, w.When.Value, member(w.When.Text, "when"))
	return r
}

func (l *loader) condition(r *rule, text string, at yamlfile.Place) {
	if strings.TrimSpace(text) == "" || len(text) > maxExpression {
		l.At(at, "has %d bytes; want a condition in CEL, such as step.gate_count > 3, of at most %d", len(text), maxExpression)
		return
	}
	var faults []fault
	r.when, faults = compile(l.env, text)
	for _, f := range faults {
		line, column := l.place(text, at.Line, f)
		where := ""
		if column > 0 {
			where = fmt.Sprintf("column %d: ", column)
		}
		l.Say(line, at.Field, "%s%s", where, f.what)
	}
	if r.when == nil {
		return
	}
	var err error
	if r.parts, err = conditions(r.when.ast); err != nil {
		l.At(at, "cannot be written down again: %v", err)
	}
}

// place is the position in the file of a position in an expression; the column is 0 if it is not
// known (in quotes with escapes). An expression may be folded over lines, so only non-blank
// characters are counted, in the expression and in the file.
func (l *loader) place(text string, from int, f fault) (line, column int) {
	rows := strings.Split(text, "\n")
	before := 0
	for i := range min(f.line-1, len(rows)) {
		before += ink(rows[i])
	}
	if f.line >= 1 && f.line <= len(rows) {
		row := []rune(rows[f.line-1])
		before += ink(string(row[:min(max(f.column, 0), len(row))]))
	}
	want := solid(text)
	before = min(before, max(len(want)-1, 0))
	const lookAhead = 2 // the name of the member, and | or > after it
	for row := max(from-1, 0); row < min(from-1+lookAhead, len(l.lines)); row++ {
		runes := []rune(l.lines[row])
		for start := range runes {
			if line, column, ok := l.locate(want, before, row, start); ok {
				return line, column
			}
		}
	}
	return from, 0
}

// locate compares an expression with the file from a place on, and returns the place of its
// character of that number.
func (l *loader) locate(want []rune, number, row, start int) (line, column int, ok bool) {
	i := 0
	for ; row < len(l.lines) && i < len(want); row++ {
		for at, r := range []rune(l.lines[row]) {
			if at < start || blank(r) || i == len(want) {
				continue
			}
			if r != want[i] {
				return 0, 0, false
			}
			if i == number {
				line, column = row+1, at+1
			}
			i++
		}
		start = 0
	}
	return line, column, i == len(want) && line > 0
}

func blank(r rune) bool { return strings.ContainsRune(" \t\r\n", r) }

func ink(s string) int { return len(solid(s)) }

func solid(s string) []rune {
	return slices.DeleteFunc([]rune(s), blank)
}
