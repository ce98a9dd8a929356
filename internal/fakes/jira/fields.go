package jira

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxSummary is the longest summary.
const maxSummary = 255

// cleaners return, by field, the stored form of a value; false: it is refused.
func (s *Site) cleaners() map[string]func(v any) (any, bool) {
	named := func(v any) (any, bool) {
		return map[string]any{"id": "3", "name": member(map[string]any{"v": v}, "v", "name")}, nameOf(v) != ""
	}
	return map[string]func(v any) (any, bool){
		"project": func(v any) (any, bool) {
			key := member(map[string]any{"v": v}, "v", "key")
			return map[string]any{"id": "1", "key": key}, s.knows(key)
		},
		"issuetype":         named,
		"priority":          orNull(named),
		"summary":           cleanSummary,
		"description":       orNull(cleanText),
		"environment":       orNull(cleanText),
		"customfield_10010": orNull(cleanText),
		"duedate":           orNull(cleanText),
		"labels":            cleanLabels,
		"components":        cleanNamed,
		"fixVersions":       cleanNamed,
		"assignee":          orNull(s.cleanUser),
		"reporter":          orNull(s.cleanUser),
		"resolution":        orNull(named),
		"customfield_10020": orNull(func(v any) (any, bool) {
			o, isObject := v.(map[string]any)
			if !isObject {
				return nil, false
			}
			return map[string]any{"id": "7", "value": o["value"]}, true
		}),
	}
}

// known are the names of all fields that an issue shows.
func known() []string {
	return []string{"project", "issuetype", "priority", "summary", "description", "environment", "duedate", "labels",
		"components", "fixVersions", "assignee", "reporter", "resolution", "status", "created", "updated",
		"customfield_10010", "customfield_10020"}
}

// cleanFields checks the fields of a request and brings them into the form in
// which they are stored.
func (s *Site) cleanFields(asked map[string]any, isNew bool) (map[string]any, *answer) {
	bad := map[string]any{}
	clean := map[string]any{}
	cleaners := s.cleaners()
	for name, v := range asked {
		cleaner, known := cleaners[name]
		if !known || (name == "resolution" && isNew) {
			bad[name] = fmt.Sprintf("Field '%s' cannot be set. It is not on the appropriate screen, or unknown.", name)
			continue
		}
		stored, fits := cleaner(v)
		if !fits {
			bad[name] = fmt.Sprintf("data was not valid for '%s'", name)
			continue
		}
		clean[name] = stored
	}
	if isNew {
		for _, name := range []string{"project", "issuetype", "summary"} {
			if _, there := asked[name]; !there {
				bad[name] = "Field is required"
			}
		}
	}
	if len(bad) > 0 {
		a := problem(http.StatusBadRequest, "", bad)
		return nil, &a
	}
	if isNew {
		whole := map[string]any{"labels": []any{}, "components": []any{}, "fixVersions": []any{},
			"priority": map[string]any{"id": "3", "name": "Medium"}, "status": statusOf(ToDo)}
		maps.Copy(whole, clean)
		return whole, nil
	}
	return clean, nil
}

func orNull(clean func(any) (any, bool)) func(any) (any, bool) {
	return func(v any) (any, bool) {
		if v == nil || v == "" {
			return nil, true
		}
		return clean(v)
	}
}

func nameOf(v any) string {
	o, _ := v.(map[string]any)
	name, _ := o["name"].(string)
	return name
}

// cleanSummary trims: it is one line.
func cleanSummary(v any) (any, bool) {
	text, _ := v.(string)
	text = strings.TrimSpace(text)
	return text, text != "" && utf8.RuneCountInString(text) <= maxSummary && !strings.ContainsAny(text, "\r\n")
}

// cleanText stores line ends as browsers send them.
func cleanText(v any) (any, bool) {
	text, isText := v.(string)
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
	return text, isText
}

// cleanLabels stores a set, in an order of its own.
func cleanLabels(v any) (any, bool) {
	list, isList := v.([]any)
	set := map[string]bool{}
	for _, l := range list {
		text, _ := l.(string)
		if text == "" || strings.ContainsAny(text, " \t\r\n") || len(text) > maxSummary {
			return nil, false
		}
		set[text] = true
	}
	stored := []any{}
	for _, text := range slices.Backward(slices.Sorted(maps.Keys(set))) {
		stored = append(stored, text)
	}
	return stored, isList
}

func cleanNamed(v any) (any, bool) {
	list, isList := v.([]any)
	stored := []any{}
	for _, item := range list {
		if nameOf(item) == "" {
			return nil, false
		}
		stored = append(stored, map[string]any{"id": "9", "name": nameOf(item)})
	}
	return stored, isList
}

// cleanUser: an account ID on Cloud, a name on Data Center.
func (s *Site) cleanUser(v any) (any, bool) {
	o, _ := v.(map[string]any)
	field := "accountId"
	if s.o.DataCenter {
		field = "name"
	}
	id, _ := o[field].(string)
	return map[string]any{field: id, "displayName": "A User"}, id != ""
}
