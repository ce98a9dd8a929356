package jira

import "strings"

// flat is a text field as plain text. Version 2 of the API gives strings; a
// field of rich text may come as a document (ADF) all the same, and is shown
// as the text in it: one line for each block, marks left out.
func flat(v any) any {
	doc, isObject := v.(map[string]any)
	if !isObject || doc["type"] != "doc" {
		return v
	}
	if _, whole := doc["content"].([]any); !whole {
		return v
	}
	var b strings.Builder
	if !flatten(&b, doc, 0) {
		return v // half of a text must not look like the whole
	}
	return strings.TrimRight(b.String(), "\n")
}

// blocks end a line.
var blocks = map[string]bool{"paragraph": true, "heading": true, "codeBlock": true, "rule": true, "tableRow": true,
	"mediaSingle": true, "blockCard": true}

// bare are the nodes that may have nothing in them and need no text.
var bare = map[string]bool{"doc": true, "listItem": true, "tableCell": true, "tableHeader": true, "taskItem": true, "decisionItem": true}

// flatten reports whether the whole node was written. A picture, a date, a macro and an unknown
// node have no text form.
func flatten(b *strings.Builder, node map[string]any, depth int) bool {
	if depth > maxDocument {
		return false
	}
	attrs, _ := node["attrs"].(map[string]any)
	kind, _ := node["type"].(string)
	switch kind {
	case "text":
		b.WriteString(textOf(node, "text"))
	case "hardBreak":
		b.WriteByte('\n')
	case "mention", "status":
		b.WriteString(textOf(attrs, "text"))
	case "emoji":
		b.WriteString(textOf(attrs, "shortName"))
	case "inlineCard", "blockCard":
		b.WriteString(textOf(attrs, "url"))
	default:
		if list, _ := node["content"].([]any); len(list) == 0 && !blocks[kind] && !bare[kind] {
			return false
		}
	}
	content, _ := node["content"].([]any)
	for _, below := range content {
		if n, isObject := below.(map[string]any); isObject && !flatten(b, n, depth+1) {
			return false
		}
	}
	if blocks[kind] {
		b.WriteByte('\n')
	}
	return true
}

func textOf(o map[string]any, name string) string {
	text, _ := o[name].(string)
	return text
}
