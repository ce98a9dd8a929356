package yamlfile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

var (
	_ yaml.NodeUnmarshaler = (*Bound)(nil)
	_ yaml.NodeUnmarshaler = (*Span)(nil)
)

// Bound is a time that a destination promises: a duration, or "unknown". The
// zero value is one that the file does not mention.
type Bound struct {
	// Set says that the file mentions it.
	Set bool
	// Known says that it is a duration, Time.
	Known bool
	Time  time.Duration
}

// UnmarshalYAML reads a bound.
func (b *Bound) UnmarshalYAML(n ast.Node) error {
	if n.GetToken() != nil && n.GetToken().Value == "unknown" {
		*b = Bound{Set: true}
		return nil
	}
	d, err := duration(n, "60s, or unknown")
	*b = Bound{Set: true, Known: true, Time: d}
	return err
}

// Span is a duration that is longer than nothing.
type Span time.Duration

// UnmarshalYAML reads a span.
func (s *Span) UnmarshalYAML(n ast.Node) error {
	d, err := duration(n, "10s")
	if err == nil && d == 0 {
		err = &yaml.SyntaxError{Message: "is 0; want a duration such as 10s", Token: n.GetToken()}
	}
	*s = Span(d)
	return err
}

// parseDuration also knows days, of 24 hours: "10d".
func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(text)
}

// duration is a duration that is not negative.
func duration(n ast.Node, such string) (time.Duration, error) {
	text := ""
	if tk := n.GetToken(); tk != nil {
		text = tk.Value
	}
	d, err := parseDuration(text)
	if _, scalar := n.(ast.ScalarNode); !scalar || err != nil || d < 0 {
		return 0, &yaml.SyntaxError{Message: fmt.Sprintf("%q is no duration; want one such as %s", Clip(text), such), Token: n.GetToken()}
	}
	return d, nil
}
