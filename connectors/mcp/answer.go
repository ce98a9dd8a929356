package mcp

import (
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
)

// maxAnswer is how many bytes of an answer are parsed. The transports have higher limits of their
// own.
const maxAnswer = 8 << 20

// document is an answer as decoded JSON. form is "structured", "json" (the one text of the
// answer), "text" ({"text": …}) or "": structured where the tool returned that, otherwise JSON.
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
	doc, ok := decoded(text)
	if !ok {
		return nil, answer("its text is no JSON")
	}
	return doc, nil
}

// decoded is a JSON value. Its numbers are exact, and none has a member twice.
func decoded(text string) (any, bool) {
	var holder intent.Fields
	err := jsonv2.Unmarshal([]byte(`{"doc":`+text+`}`), &holder)
	return holder["doc"], err == nil && len(holder) == 1
}

func asText(res *sdk.CallToolResult) (any, error) {
	text, err := onlyText(res)
	if err != nil {
		return nil, err
	}
	return map[string]any{"text": text}, nil
}

// onlyText is the text of an answer that consists of one text.
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
	text, ok := res.StructuredContent.(json.RawMessage) // see exact
	if !ok {
		return nil, answer("it has no structured content")
	}
	doc, ok := decoded(string(text))
	if !ok {
		return nil, answer("its structured content is no plain JSON")
	}
	return doc, nil
}
