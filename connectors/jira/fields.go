package jira

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/readback-go/readback/intent"
)

// form is how a field is written in an intent and shown in a record, where
// that differs from how Jira has it.
type form int

const (
	raw    form = iota // as Jira has it
	text               // a string; rich text is shown as plain
	named              // the name of an object
	many               // the names of objects
	user               // the account ID on Cloud, the name on Data Center
	keyed              // the key of an object
	moment             // a time; shown as RFC 3339
	labels             // the labels without our own
	status             // a name that only a transition changes
	shown              // seen and never written
)

var forms = map[string]form{
	"description": text, "environment": text,
	"issuetype": named, "priority": named, "resolution": named, "security": named,
	"components": many, "fixVersions": many, "versions": many,
	"assignee": user, "reporter": user, "creator": user,
	"parent": keyed, "labels": labels, "status": status,
	"created": moment, "updated": moment, "resolutiondate": moment, "lastViewed": moment, "statuscategorychangedate": moment,
	"issue": shown, "project": shown, "reference": shown, "key": shown, "id": shown,
}

// readOnly are the fields that no write can set.
var readOnly = []string{"key", "id", "created", "updated", "resolutiondate", "lastViewed", "statuscategorychangedate", "creator",
	"comment", "worklog", "attachment", "issuelinks", "subtasks", "votes", "watches"}

// usual are the fields that every read of an issue requests. The resolution is not among them:
// transitions set and clear it by themselves.
var usual = []string{"summary", "description", "environment", "issuetype", "priority", "status", "assignee", "reporter",
	"labels", "components", "fixVersions", "versions", "parent", "duedate", "created", "updated"}

var fieldForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,99}$`)

// fieldsOf lists the fields to read for an intent: the usual ones and those
// that it names.
func fieldsOf(w intent.WriteIntent) ([]string, error) {
	set := map[string]bool{"project": true}
	for _, name := range usual {
		set[name] = true
	}
	named := []string{}
	for part, fields := range map[string]intent.Fields{"/expect/": w.Expect, "/require/": w.Require, "/payload/": w.Payload} {
		for name := range fields {
			if !fieldForm.MatchString(name) {
				return nil, unusable(part+name, "is no field of Jira", "summary, customfield_10010 and the like")
			}
			named = append(named, name)
		}
	}
	for _, path := range w.Ignore {
		for first := range intent.Pointer(path).Tokens() {
			named = append(named, first)
			break
		}
	}
	for _, name := range named {
		if forms[name] != shown && fieldForm.MatchString(name) {
			set[name] = true
		}
	}
	if len(set) > maxNamed {
		return nil, unusable("/expect", fmt.Sprintf("names %d fields", len(named)), fmt.Sprintf("at most %d in one read", maxNamed-len(usual)-1))
	}
	return slices.Sorted(maps.Keys(set)), nil
}

// encode brings a value of an intent into Jira's form. null clears a field.
func encode(path, name string, v any, d Deployment) (any, error) {
	if slices.Contains(readOnly, name) || forms[name] == shown {
		return nil, unusable(path, "cannot be written", "it left out: Jira sets it")
	}
	if v == nil && forms[name] != many && forms[name] != labels {
		return nil, nil
	}
	wrap := map[form]string{named: "name", many: "name", keyed: "key", user: "name"}[forms[name]]
	if forms[name] == user && d == Cloud {
		wrap = "accountId"
	}
	switch forms[name] {
	case raw:
		return v, nil
	case text:
		if _, isText := v.(string); !isText {
			return nil, unusable(path, "is no text", "a string, or null to clear it: version 2 of the API takes wiki markup, not documents")
		}
		return v, nil
	case named, keyed, user:
		id, isText := v.(string)
		if !isText || id == "" {
			return nil, unusable(path, "is no name", "a string with the "+wrap+", or null to clear it")
		}
		return map[string]any{wrap: id}, nil
	}
	return encodeList(path, v, wrap)
}

func encodeList(path string, v any, wrap string) (any, error) {
	list, isList := v.([]any)
	if !isList {
		return nil, unusable(path, "is no list", "an array of names, empty to clear it")
	}
	all := []any{}
	for _, item := range list {
		name, isText := item.(string)
		switch {
		case !isText || name == "":
			return nil, unusable(path, "holds what is no name", "an array of names")
		case wrap == "" && referenceProblem(name) != "":
			return nil, unusable(path, "holds a label that "+referenceProblem(name), "labels without blanks that are not ours")
		case wrap == "":
			all = append(all, name)
		default:
			all = append(all, map[string]any{wrap: name})
		}
	}
	return all, nil
}

// show brings a value of Jira's into the form of a record. What has another
// shape than it should is shown as it is: then it equals nothing.
func show(name string, v any, d Deployment) any {
	o, isObject := v.(map[string]any)
	switch forms[name] {
	case named, status:
		return member(o, "name", v)
	case keyed:
		return member(o, "key", v)
	case user:
		if d == Cloud {
			return member(o, "accountId", v)
		}
		return member(o, "name", v)
	case many:
		return showMany(v)
	case moment:
		return showTime(v)
	case text, raw:
		if isObject {
			return flat(v)
		}
	}
	return v
}

func member(o map[string]any, name string, otherwise any) any {
	if v, isText := o[name].(string); isText {
		return v
	}
	return otherwise
}

func showMany(v any) any {
	list, isList := v.([]any)
	if !isList {
		return v
	}
	all := make([]any, len(list))
	for n, item := range list {
		o, _ := item.(map[string]any)
		all[n] = member(o, "name", item)
	}
	return all
}

// timeForms are how Jira writes a time: without a colon in the offset, or
// with Z.
var timeForms = []string{"2006-01-02T15:04:05.999999999-0700", time.RFC3339Nano}

func showTime(v any) any {
	s, _ := v.(string)
	for _, form := range timeForms {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC().Format(time.RFC3339Nano)
		}
	}
	return v
}

// ownLabels are the labels of an issue that are ours: the stamp's and the
// reference's. The others are the caller's.
func ownLabels(list []any, reference string) (own, others []any) {
	others = []any{}
	for _, l := range list {
		name, _ := l.(string)
		if stampForm.MatchString(name) || (reference != "" && name == reference) {
			own = append(own, l)
		} else {
			others = append(others, l)
		}
	}
	return own, others
}
