package rest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// pageMaxText is how long one item of rich text can be.
const pageMaxText = 2000

// page is a new page with empty properties.
func (n *Notion) page(now View) (string, Object) {
	id := fmt.Sprintf("00000000-0000-4000-8000-%012x", now.Next())
	properties := map[string]any{}
	for name, kind := range n.o.Properties {
		properties[name] = map[string]any{"id": strings.ReplaceAll(name, " ", "%20"), "type": kind, kind: emptyOf(kind)}
	}
	user := map[string]any{"object": "user", "id": "00000000-0000-4000-8000-0000000000ff"}
	at := minute()
	return id, Object{
		"object": "page", "id": id, "created_time": at, "last_edited_time": at, "created_by": user, "last_edited_by": user,
		"cover": nil, "icon": nil, "archived": false, "in_trash": false, "is_locked": false,
		"parent":     map[string]any{"type": "data_source_id", "data_source_id": n.o.DataSource},
		"properties": properties, "url": "https://www.notion.so/" + strings.ReplaceAll(id, "-", ""), "public_url": nil,
	}
}

// minute is the time as pages show it: cut to the minute.
func minute() string {
	return time.Now().UTC().Truncate(time.Minute).Format("2006-01-02T15:04:05.000Z")
}

func emptyOf(kind string) any {
	switch kind {
	case "title", "rich_text", "multi_select":
		return []any{}
	case "checkbox":
		return false
	}
	return nil
}

func (n *Notion) create(r *Request, now View) (Plan, *Answer) {
	if a := n.versioned(r); a != nil {
		return Plan{}, a
	}
	parent, _ := r.Body["parent"].(map[string]any)
	switch id, _ := parent["data_source_id"].(string); {
	case id == "":
		return Plan{}, pageInvalid("body failed validation: body.parent.data_source_id should be defined, instead was `undefined`.")
	case id != n.o.DataSource || n.o.NotShared:
		a := pageMissing("data_source", id)
		return Plan{}, &a
	}
	id, o := n.page(now)
	if a := n.fill(o, r.Body); a != nil {
		return Plan{}, a
	}
	p := n.plan(id, o, nil)
	p.Create = true
	p.Duplicate = func(stored Object, now View) (string, Object) {
		id, duplicate := n.page(now)
		duplicate["properties"] = stored["properties"]
		return id, duplicate
	}
	return p, nil
}

func (n *Notion) update(r *Request, now View) (Plan, *Answer) {
	if a := n.versioned(r); a != nil {
		return Plan{}, a
	}
	id := r.PathValue("id")
	before := now.Get(Pages, id)
	if before == nil || n.o.NotShared {
		a := pageMissing("page", id)
		return Plan{}, &a
	}
	trash, asked := r.Body["in_trash"].(bool)
	if before["in_trash"] == true && (!asked || trash) {
		return Plan{}, pageInvalid("Can't edit block that is archived. You must unarchive the block before editing.")
	}
	o := before.Clone()
	if a := n.fill(o, r.Body); a != nil {
		return Plan{}, a
	}
	if asked {
		o["in_trash"], o["archived"] = trash, trash
	}
	o["last_edited_time"] = minute()
	return n.plan(id, o, before), nil
}

// plan: what the faults alter is the number, which all tests write.
func (n *Notion) plan(id string, o, before Object) Plan {
	return Plan{
		Collection: Pages, ID: id, After: o,
		Answer: func(stored Object) Answer { return Answer{Status: http.StatusOK, Body: stored.Shown()} },
		Drop: func(stored Object) {
			was := any(nil)
			if before != nil {
				was = amount(before)["number"]
			}
			amount(stored)["number"] = was
		},
		Normalise: func(stored Object) { amount(stored)["number"] = json.Number("0.5") },
	}
}

func amount(o Object) map[string]any {
	properties, _ := o["properties"].(map[string]any)
	property, ok := properties["Amount"].(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return property
}

func (n *Notion) fill(o Object, body map[string]any) *Answer {
	given, ok := body["properties"].(map[string]any)
	if !ok && body["properties"] != nil {
		return pageInvalid("body failed validation: body.properties should be an object.")
	}
	properties := o["properties"].(map[string]any)
	for name, v := range given {
		property, a := n.property(name, v)
		if a != nil {
			return a
		}
		maps.Copy(properties[name].(map[string]any), property)
	}
	return nil
}

// property reads one property as a request gives it, {kind: value}, and
// returns it as pages show it.
func (n *Notion) property(name string, v any) (map[string]any, *Answer) {
	kind := n.o.Properties[name]
	if kind == "" {
		return nil, pageInvalid(name + " is not a property that exists.")
	}
	given, _ := v.(map[string]any)
	value, ok := given[kind]
	if !ok {
		return nil, pageInvalid(name + " is expected to be " + kind + ".")
	}
	shown, a := n.value(kind, value)
	if a != nil {
		return nil, a
	}
	return map[string]any{kind: shown}, nil
}

func (n *Notion) value(kind string, v any) (any, *Answer) {
	wrong := pageInvalid("body failed validation: the value of a " + kind + " is not as it should be.")
	switch kind {
	case "title", "rich_text":
		return n.runs(v)
	case "number":
		if _, ok := v.(json.Number); !ok && v != nil {
			return nil, wrong
		}
		return v, nil
	case "checkbox":
		if _, ok := v.(bool); !ok {
			return nil, wrong
		}
		return v, nil
	case "select":
		if v == nil {
			return nil, nil
		}
		option, _ := v.(map[string]any)
		name, _ := option["name"].(string)
		if name == "" || strings.Contains(name, ",") {
			return nil, pageInvalid("Invalid select option, commas not allowed: " + name)
		}
		if n.options[name] == "" {
			n.options[name] = fmt.Sprintf("opt%d", len(n.options)) // made as it is named
		}
		return map[string]any{"id": n.options[name], "name": name, "color": "default"}, nil
	case "date":
		return date(v)
	}
	return nil, wrong
}

// date brings times into the form in which they are shown.
func date(v any) (any, *Answer) {
	if v == nil {
		return nil, nil
	}
	given, _ := v.(map[string]any)
	start, _ := given["start"].(string)
	if t, err := time.Parse(time.RFC3339, start); err == nil {
		start = t.Format("2006-01-02T15:04:05.000-07:00")
	} else if _, err := time.Parse(time.DateOnly, start); err != nil {
		return nil, pageInvalid("body failed validation: start should be a valid ISO 8601 date string.")
	}
	return map[string]any{"start": start, "end": given["end"], "time_zone": given["time_zone"]}, nil
}

// runs splits text as an editor would.
func (n *Notion) runs(v any) (any, *Answer) {
	items, ok := v.([]any)
	if !ok {
		return nil, pageInvalid("body failed validation: rich text should be an array.")
	}
	shown := []any{}
	for _, item := range items {
		o, _ := item.(map[string]any)
		text, _ := o["text"].(map[string]any)
		content, ok := text["content"].(string)
		if !ok || utf8.RuneCountInString(content) > pageMaxText {
			return nil, pageInvalid(fmt.Sprintf("body failed validation: text.content.length should be ≤ `%d`.", pageMaxText))
		}
		for part := range parts(content, n.o.Run) {
			shown = append(shown, map[string]any{
				"type": "text", "text": map[string]any{"content": part, "link": nil}, "plain_text": part, "href": nil,
				"annotations": map[string]any{"bold": false, "italic": false, "strikethrough": false, "underline": false, "code": false, "color": "default"},
			})
		}
	}
	return shown, nil
}

func parts(s string, size int) func(func(string) bool) {
	return func(yield func(string) bool) {
		letters := []rune(s)
		for len(letters) > 0 {
			n := min(size, len(letters))
			if !yield(string(letters[:n])) {
				return
			}
			letters = letters[n:]
		}
	}
}
