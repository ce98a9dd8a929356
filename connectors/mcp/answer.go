package mcp

import (
	"encoding/json"
	"math"

	jsonv2 "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
)

// document is an answer as decoded JSON. form is "structured", "json" (the one
// text of the answer), "text" ({"text": …}) or "": structured where the tool
// gave that, else JSON.
func document(res *sdk.CallToolResult, form string) (any, error) {
	switch {
	case form == "text":
		return asText(res)
	case form == "structured" || form == "" && res.StructuredContent != nil:
		return structured(res)
	}
	text, err := onlyText(res)
	if err != nil {
		return nil, err
	}
	var holder intent.Fields // its decoding keeps numbers exact and refuses a member that is there twice
	if err := jsonv2.Unmarshal([]byte(`{"doc":`+text+`}`), &holder); err != nil || len(holder) != 1 {
		return nil, answer("its text is no JSON")
	}
	return holder["doc"], nil
}

func asText(res *sdk.CallToolResult) (any, error) {
	text, err := onlyText(res)
	if err != nil {
		return nil, err
	}
	return map[string]any{"text": text}, nil
}

// onlyText is the text of an answer that is nothing but one text.
func onlyText(res *sdk.CallToolResult) (string, error) {
	if len(res.Content) != 1 {
		return "", answer("it has %d pieces of content; want one text", len(res.Content))
	}
	t, ok := res.Content[0].(*sdk.TextContent)
	if !ok {
		return "", answer("its content is no text")
	}
	if len(t.Text) > maxAnswer {
		return "", answer("it has more than %d bytes", maxAnswer)
	}
	return t.Text, nil
}

func structured(res *sdk.CallToolResult) (any, error) {
	if res.StructuredContent == nil {
		return nil, answer("it has no structured content")
	}
	if !exact(res.StructuredContent) {
		return nil, answer("it has a number too large to be exact; declare answer: json if its text has the same")
	}
	doc, err := intent.Normalize(intent.Fields{"doc": res.StructuredContent})
	if err != nil {
		return nil, answer("its structured content is no plain JSON")
	}
	return doc["doc"], nil
}

// exact reports whether all numbers survived being decoded into doubles.
func exact(v any) bool {
	switch v := v.(type) {
	case float64:
		return math.Abs(v) < exactInteger
	case json.Number:
		return true
	case map[string]any:
		for _, m := range v {
			if !exact(m) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if !exact(e) {
				return false
			}
		}
	}
	return true
}
