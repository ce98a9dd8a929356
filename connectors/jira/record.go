package jira

import (
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// mark is the value of our entity property.
type mark struct {
	Stamp     string `json:"stamp"`
	Reference string `json:"reference"`
}

// property is an entity property in the form of the API.
type property struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// properties is the content of a record besides its fields.
func (c *Connector) properties(stamp, reference string) []property {
	return []property{{c.o.Property, mark{stamp, reference}}}
}

// markOf reads our property; any other content is not ours.
func markOf(v any) mark {
	o, _ := v.(map[string]any)
	stamp, _ := o["stamp"].(string)
	reference, _ := o["reference"].(string)
	return mark{stamp, reference}
}

// issue is an issue as it was read.
type issue struct {
	ID         string         `json:"id"`
	Key        string         `json:"key"`
	Fields     map[string]any `json:"fields"`
	Properties map[string]any `json:"properties"`
}

// usable reports whether an answer is an issue.
func (i *issue) usable() bool {
	return idForm.MatchString(i.ID) && issueKeyForm.MatchString(i.Key) && i.Fields != nil
}

func (i *issue) labels() []any {
	list, _ := i.Fields["labels"].([]any)
	return list
}

// record shows an issue for one question: only the fields that the question names, so that two
// reads of one write are equal.
func (c *Connector) record(i *issue, q *question, d Deployment) connectors.Record {
	m := markOf(i.Properties[c.o.Property])
	reference := q.reference
	if reference == "" {
		reference = m.Reference
	}
	f := intent.Fields{"issue": i.Key, "key": i.Key, "id": i.ID}
	if q.issue != "" {
		f["issue"] = q.issue // as in the query, letter case and old key included
	}
	for _, name := range q.fields {
		v, there := i.Fields[name]
		if !there {
			continue
		}
		f[name] = show(name, v, d)
	}
	project, _ := i.Fields["project"].(map[string]any)
	f["project"] = member(project, "key", nil)
	if _, isList := i.Fields["labels"].([]any); isList {
		_, f["labels"] = ownLabels(i.labels(), reference)
		if slices.Contains(i.labels(), any(reference)) {
			f["reference"] = reference
		}
	}
	return connectors.Record{Ref: i.ID, URL: c.browse + "browse/" + i.Key, Stamp: m.Stamp, Fields: f}
}
