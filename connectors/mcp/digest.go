package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
)

// Digest fingerprints what a tool declares and a model reads: the SHA-256 over the canonical JSON
// of its name, its description and the meaning of its schemas, as "sha256:" and 64 digits. It
// does not cover titles, icons, annotations and how a library prints a schema: see [meaning]. The
// error means that the tool cannot be written as JSON.
func Digest(t *sdk.Tool) (string, error) { return digest(t, meaning) }

func digest(t *sdk.Tool, schema func(any) any) (string, error) {
	whole, err := intent.Normalize(intent.Fields{
		"name": t.Name, "description": t.Description, "input": t.InputSchema, "output": t.OutputSchema,
	})
	if err != nil {
		return "", err
	}
	whole["input"], whole["output"] = schema(whole["input"]), schema(whole["output"])
	text, err := intent.Canonical(whole)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// meaning is a JSON schema without what differs between two libraries that print the same one:
// references within it are resolved; $schema, $comment and the definitions are left out; names in
// required, enum and type are sorted. Whether further members are allowed is left out as well:
// libraries disagree about it, and a contract itself refuses arguments that it does not know. A
// schema with references that cannot be resolved, or that grows too large, stays as printed.
func meaning(printed any) any {
	r := reader{root: printed, left: maxSchema}
	m, err := r.schema(printed, nil)
	if err != nil {
		return printed
	}
	return m
}

// maxSchema is how many schemas one may have after its references are resolved.
const maxSchema = 10_000

var errPrinted = errors.New("a schema that is compared as it is printed")

type reader struct {
	root any
	left int
}

// schema reads one schema. within are the references that lead to it.
func (r *reader) schema(v any, within []string) (any, error) {
	if r.left--; r.left < 0 {
		return nil, errPrinted
	}
	s, ok := v.(map[string]any)
	if !ok {
		return v, nil // true and false are schemas
	}
	out := map[string]any{}
	for name, v := range s {
		var err error
		switch name {
		case "$schema", "$comment", "$defs", "definitions", "$ref":
			continue
		case "$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor":
			return nil, errPrinted // references lead elsewhere
		case "additionalProperties":
			if more, ok := v.(map[string]any); !ok || len(more) == 0 {
				continue
			}
			v, err = r.schema(v, within)
		case "properties", "patternProperties", "dependentSchemas":
			v, err = r.each(v, within)
		case "items", "additionalItems", "unevaluatedItems", "unevaluatedProperties", "contains", "propertyNames", "not", "if", "then", "else",
			"anyOf", "allOf", "oneOf", "prefixItems":
			if all, ok := v.([]any); ok {
				v, err = r.list(all, within)
			} else {
				v, err = r.schema(v, within)
			}
		case "required", "enum", "type":
			v = sorted(v)
			if all, ok := v.([]any); ok && len(all) == 0 && name == "required" {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		out[name] = v
	}
	return r.resolved(s["$ref"], out, within)
}

// resolved puts what a reference leads to beside the rest of a schema.
func (r *reader) resolved(ref any, rest map[string]any, within []string) (any, error) {
	if ref == nil {
		return rest, nil
	}
	text, _ := ref.(string)
	if at := slices.Index(within, text); at >= 0 {
		rest["$ref"] = strconv.Itoa(at) // it leads back to a schema that is being read: the name does not matter
		return rest, nil
	}
	target, ok := pointed(r.root, text)
	if !ok {
		return nil, errPrinted
	}
	read, err := r.schema(target, append(slices.Clone(within), text))
	if err != nil {
		return nil, err
	}
	m, ok := read.(map[string]any)
	for name := range rest {
		if _, twice := m[name]; !ok || twice {
			rest["$ref"] = read // both count
			return rest, nil
		}
	}
	if !ok {
		return read, nil
	}
	maps.Copy(rest, m)
	return rest, nil
}

func (r *reader) each(v any, within []string) (any, error) {
	all, ok := v.(map[string]any)
	if !ok {
		return v, nil
	}
	out := map[string]any{}
	for name, v := range all {
		read, err := r.schema(v, within)
		if err != nil {
			return nil, err
		}
		out[name] = read
	}
	return out, nil
}

func (r *reader) list(all []any, within []string) (any, error) {
	out := make([]any, len(all))
	for i, v := range all {
		read, err := r.schema(v, within)
		if err != nil {
			return nil, err
		}
		out[i] = read
	}
	return out, nil
}

// sorted is a list whose order has no meaning, in the order of its canonical JSON.
func sorted(v any) any {
	all, ok := v.([]any)
	if !ok {
		return v
	}
	texts := map[string]any{}
	for _, v := range all {
		text, err := intent.Canonical(v)
		if err != nil {
			return all
		}
		texts[string(text)] = v
	}
	out := make([]any, 0, len(texts))
	for _, text := range slices.Sorted(maps.Keys(texts)) {
		out = append(out, texts[text])
	}
	return out
}

// pointed is what a reference within a document leads to.
func pointed(root any, ref string) (any, bool) {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || rest != "" && rest[0] != '/' || strings.Contains(rest, "%") {
		return nil, false
	}
	v := root
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest[1:], "/")
		if rest != "" {
			rest = "/" + rest
		}
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch in := v.(type) {
		case map[string]any:
			v, ok = in[part]
		case []any:
			var i int
			i, err := strconv.Atoi(part)
			if ok = err == nil && i >= 0 && i < len(in); ok {
				v = in[i]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return v, true
}

// Trusts fails with [ErrWithdrawn] if a tool is not the one that the contract was written for. It
// does not check a tool that the contract does not pin.
func (c *Contract) Trusts(t *sdk.Tool) error {
	if w, ok := c.tools[t.Name]; ok {
		if err := w.knowsArguments(t); err != nil {
			return err
		}
	}
	want := c.digests[t.Name]
	if len(want) == 0 {
		return nil
	}
	if slices.Contains(want, unpinned) {
		return fmt.Errorf("%w: %s is %s: the contract was written without a build of the server; review the tool, then pin it: readback contract pin", ErrWithdrawn, t.Name, unpinned)
	}
	got, err := Digest(t)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrWithdrawn, t.Name, err)
	}
	// Contracts that were written for an earlier version pin the schemas as printed.
	if printed, _ := digest(t, func(schema any) any { return schema }); !slices.Contains(want, got) && !slices.Contains(want, printed) {
		return fmt.Errorf("%w: %s has another description or schema than the contract was written for (%s, now %s); review the tool, then put the new digest into the contract", ErrWithdrawn, t.Name, strings.Join(want, " or "), got)
	}
	return nil
}
