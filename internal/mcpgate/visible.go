package mcpgate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/mcpapi"
	"github.com/readback-go/readback/internal/visible"
)

const (
	// maxTool bounds a tool as the upstream server lists it, in bytes, and maxProse a
	// description or an error of it, in characters: a model reads all of them before its
	// first call. The longest in use have a quarter of that.
	maxTool  = 256 << 10
	maxProse = 10_000
	// maxNamed bounds what is quoted of a schema in the log, and maxPulse a message of
	// progress, in characters.
	maxNamed = 100
	maxPulse = 500
	// maxResult bounds an answer that passes through, in bytes: an image has some
	// megabytes, and a session with a client or a server reads 16 MB at once.
	maxResult = 8 << 20
)

// tooLargeError: an answer has more than maxResult bytes.
type tooLargeError struct{ bytes int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("it has %d bytes, and at most %d pass", e.bytes, maxResult)
}

// passable is an answer of the upstream server as a client gets it: visible, bounded, and
// marked as unverified.
func passable[R sdk.Result](r R, clean func(string) string) (R, error) {
	r, err := visibleResult(r, clean)
	if err != nil {
		return r, err
	}
	for _, m := range metasOf(r) {
		if len(*m) > 0 {
			*m = foreign(*m)
		}
	}
	r.SetMeta(marked(r.GetMeta()))
	return r, nil
}

// foreign is a server's _meta without what only readback says.
func foreign(m sdk.Meta) sdk.Meta {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(name string, _ any) bool { return strings.HasPrefix(name, "readback/") })
	return m
}

// marked is the _meta of something that is unverified.
func marked(m sdk.Meta) sdk.Meta {
	if m = foreign(m); m == nil {
		m = sdk.Meta{}
	}
	m[mcpapi.MetaUnverified] = true
	return m
}

// metasOf are the _meta of each part of an answer, but for that of the answer itself.
func metasOf(r sdk.Result) (all []*sdk.Meta) {
	content := func(parts ...sdk.Content) {
		for _, c := range parts {
			all = append(all, metasIn(c)...)
		}
	}
	switch r := r.(type) {
	case *sdk.CallToolResult:
		content(r.Content...)
	case *sdk.GetPromptResult:
		for _, m := range r.Messages {
			if m != nil {
				content(m.Content)
			}
		}
	case *sdk.ReadResourceResult:
		for _, c := range r.Contents {
			if c != nil {
				all = append(all, &c.Meta)
			}
		}
	case *sdk.ListPromptsResult:
		for _, p := range r.Prompts {
			if p != nil {
				all = append(all, &p.Meta)
			}
		}
	case *sdk.ListResourcesResult:
		for _, one := range r.Resources {
			if one != nil {
				all = append(all, &one.Meta)
			}
		}
	case *sdk.ListResourceTemplatesResult:
		for _, one := range r.ResourceTemplates {
			if one != nil {
				all = append(all, &one.Meta)
			}
		}
	}
	return all
}

// metasIn are the _meta of a part of an answer, its own first, and those within it.
func metasIn(c sdk.Content) (all []*sdk.Meta) {
	switch c := c.(type) {
	case *sdk.TextContent:
		return []*sdk.Meta{&c.Meta}
	case *sdk.ImageContent:
		return []*sdk.Meta{&c.Meta}
	case *sdk.AudioContent:
		return []*sdk.Meta{&c.Meta}
	case *sdk.ResourceLink:
		return []*sdk.Meta{&c.Meta}
	case *sdk.EmbeddedResource:
		all = []*sdk.Meta{&c.Meta}
		if c.Resource != nil {
			all = append(all, &c.Resource.Meta)
		}
	case *sdk.ToolUseContent:
		return []*sdk.Meta{&c.Meta}
	case *sdk.ToolResultContent:
		all = []*sdk.Meta{&c.Meta}
		for _, part := range c.Content {
			all = append(all, metasIn(part)...)
		}
	}
	return all
}

// visibleTool is a tool of the upstream server as a client may list it: its prose is
// visible and bounded. A tool is refused if a model could not write its names or values
// as they are.
func visibleTool(t *sdk.Tool) (*sdk.Tool, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	}
	if len(text) > maxTool {
		return nil, fmt.Errorf("its description has %d bytes with its schemas; want at most %d", len(text), maxTool)
	}
	var shown sdk.Tool
	if err := json.Unmarshal(visible.Document(text, prose), &shown); err != nil {
		return nil, fmt.Errorf("it cannot be read as JSON: %w", err)
	}
	var raw sdk.Tool
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("it cannot be read as JSON: %w", err)
	}
	if len(shown.Meta) > 0 {
		shown.Meta = foreign(shown.Meta)
	}
	if shown.InputSchema, err = visibleSchema(raw.InputSchema); err != nil {
		return nil, err
	}
	shown.OutputSchema, err = visibleSchema(raw.OutputSchema)
	return &shown, err
}

// prose cleans a text that a server wrote for a model.
func prose(s string) string { return visible.ClipLines(s, maxProse) }

// proseNames are the members of a schema that mean nothing to a program.
var proseNames = []string{"description", "title", "$comment"}

// visibleSchema is a decoded schema with its prose visible. Calls are built from the rest
// of it.
func visibleSchema(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if clean := visible.Data(v); clean != v {
			return nil, fmt.Errorf("its schema has a value with characters that cannot be seen: %s", visible.Clip(v, maxNamed))
		}
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			clean, err := visibleSchema(one)
			if err != nil {
				return nil, err
			}
			all[i] = clean
		}
		return all, nil
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			if visible.Text(name) != name {
				return nil, fmt.Errorf("its schema has a name with characters that cannot be seen: %s", visible.Clip(name, maxNamed))
			}
			if text, ok := one.(string); ok && slices.Contains(proseNames, name) {
				all[name] = prose(text)
				continue
			}
			clean, err := visibleSchema(one)
			if err != nil {
				return nil, err
			}
			all[name] = clean
		}
		return all, nil
	}
	return v, nil
}

// visibleResult is the upstream server's response with each text passed through clean. A
// response that clean does not change stays the same to the byte.
func visibleResult[R sdk.Result](r R, clean func(string) string) (R, error) {
	var none R
	text, err := json.Marshal(r)
	if err != nil {
		return none, err
	}
	if len(text) > maxResult {
		return none, &tooLargeError{len(text)}
	}
	again := visible.Document(text, clean)
	if bytes.Equal(again, text) {
		return r, nil
	}
	fresh, ok := reflect.New(reflect.TypeOf(r).Elem()).Interface().(R)
	if !ok {
		return none, fmt.Errorf("a %T cannot be copied", r)
	}
	if err := json.Unmarshal(again, fresh); err != nil {
		return none, err
	}
	was, isCall := any(r).(*sdk.CallToolResult)
	if !isCall || was.StructuredContent == nil {
		return fresh, nil
	}
	content, err := json.Marshal(was.StructuredContent) // its numbers exact
	if err == nil {
		any(fresh).(*sdk.CallToolResult).StructuredContent = json.RawMessage(visible.Document(content, clean))
	}
	return fresh, err
}

// visibleError is a protocol error as a client gets it: long data is left out.
func visibleError(e *jsonrpc.Error) *jsonrpc.Error {
	shown := &jsonrpc.Error{Code: e.Code, Message: prose(e.Message)}
	if len(e.Data) > 0 && len(e.Data) <= maxProse {
		shown.Data = visible.Document(e.Data, visible.Data)
	}
	return shown
}
