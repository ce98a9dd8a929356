package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/saga"
)

// readPlan reads the file of a plan, JSON or YAML, as JSON.
func (a *app) readPlan(file string) ([]byte, error) {
	from := a.stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, usagef("%w", err)
		}
		defer func() { _ = f.Close() }() // it was only read
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, saga.MaxPlan+1))
	if err != nil {
		return nil, usagef("%w", err)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || len(text) > saga.MaxPlan {
		return text, nil
	}
	return fromYAML(text)
}

// fromYAML converts a YAML file to JSON. Errors have the line.
func fromYAML(text []byte) ([]byte, error) {
	r := &yamlfile.Reader{Empty: "want a plan with tenant, id and steps"}
	var v any
	if body, ok := r.Parse(text); ok {
		v = plainYAML(r, body, "", 0)
	}
	if len(r.Problems) > 0 {
		yamlfile.Sort(r.Problems)
		var all []error
		for _, p := range r.Problems {
			all = append(all, fmt.Errorf("the plan%s", p))
		}
		return nil, &saga.PlanError{Problem: "cannot be read: " + errors.Join(all...).Error(), Want: "a plan in YAML or JSON"}
	}
	return json.Marshal(v)
}

// maxYAMLDepth is how deep a plan may nest: an intent within a step of it.
const maxYAMLDepth = 40

// plainYAML converts a value of a YAML file to its JSON form.
func plainYAML(r *yamlfile.Reader, n yamlfile.Node, field string, depth int) any {
	switch {
	case depth > maxYAMLDepth:
		r.Say(n.Line(), field, "is nested more than %d deep", maxYAMLDepth)
		return nil
	case n.IsMapping():
		m := map[string]any{}
		for _, e := range r.Mapping(n, field) {
			m[e.Name] = plainYAML(r, e.Value, under(field, e.Name), depth+1)
		}
		return m
	case n.IsList():
		list := []any{}
		for i, e := range r.List(n, field) {
			list = append(list, plainYAML(r, e, fmt.Sprintf("%s[%d]", field, i), depth+1))
		}
		return list
	}
	v, _ := r.Scalar(n, field)
	return v
}

func under(field, name string) string {
	if field == "" {
		return yamlfile.Clip(name)
	}
	return field + "." + yamlfile.Clip(name)
}
