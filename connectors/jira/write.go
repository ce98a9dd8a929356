package jira

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Write sends one POST, PUT or DELETE. Its reads beforehand (the kind of Jira, the transitions of
// an issue) change nothing; if they fail, nothing was sent.
func (c *Connector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	t, err := located(r.Intent)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	d, err := c.deployment(ctx)
	if err != nil {
		return connectors.Receipt{}, unsent(err)
	}
	w := writer{c, t, d, r}
	switch {
	case t.kind == KindComment:
		return w.comment(ctx)
	case r.Intent.Write == intent.Create:
		return w.create(ctx)
	case r.Intent.Write == intent.Update:
		return w.update(ctx)
	case r.Intent.Write == intent.Delete:
		return w.delete(ctx)
	}
	return connectors.Receipt{}, connectors.NotSent(unusable("/write", "is "+clip(string(r.Intent.Write)), "create, update or delete"))
}

// Check refuses an intent that Jira can never serve.
func (c *Connector) Check(w intent.WriteIntent) error {
	_, err := located(w)
	return err
}

// located is what the key of an intent that can be written names.
func located(w intent.WriteIntent) (target, error) {
	t, err := locate(w)
	if err == nil {
		err = writable(w)
	}
	return t, err
}

// unsent is an error of a read that came before the send.
func unsent(err error) error {
	not := &connectors.Error{Fate: connectors.FateNotSent, Err: err}
	var e *connectors.Error
	if errors.As(err, &e) {
		not.RetryAfter = e.RetryAfter
	}
	return not
}

func writable(w intent.WriteIntent) error {
	for _, path := range w.Absent {
		return unusable("/absent", "names "+path, "null in /expect: Jira shows a field that is not set as null")
	}
	if w.Kind == KindComment {
		return nil
	}
	_, err := fieldsOf(w)
	return err
}

// writer is one write in progress.
type writer struct {
	c *Connector
	target
	d Deployment
	r connectors.Request
}

// before is the one record of the read before, or the reason why nothing is sent. A record that
// was moved out of the project of the key is not the one that was requested.
func (w writer) before() (connectors.Record, error) {
	if w.r.Before == nil || len(w.r.Before.Records) != 1 || !idForm.MatchString(w.r.Before.Records[0].Ref) {
		return connectors.Record{}, connectors.NotSent(fmt.Errorf("%w: a %s needs exactly one record in the read before it", errIntent, w.r.Intent.Write))
	}
	record := w.r.Before.Records[0]
	if in, _ := record.Fields["project"].(string); w.project != "" && in != w.project {
		return connectors.Record{}, connectors.Conflict("", unusable("/key/project", "is "+clip(w.project)+", and the record is in "+clip(in), "the project that it is in now"))
	}
	return record, nil
}

// receiptOf makes a receipt and an error from the result of the send.
func (w writer) receiptOf(k call, ref, key string) (connectors.Receipt, error) {
	var receipt connectors.Receipt
	if k.answer.Status != 0 {
		receipt.Code, receipt.Reply = k.answer.Code(), k.answer.Reply(false)
	}
	if err := classify(k, w.r.Intent.Write, w.r.Attempt); err != nil {
		return receipt, err
	}
	receipt.Ref = ref
	if key != "" {
		receipt.URL = w.c.browse + "browse/" + key
	}
	return receipt, nil
}

// create sends everything in one call: the fields, the labels by which the issue can be searched,
// and the property that proves which write made it.
func (w writer) create(ctx context.Context) (connectors.Receipt, error) {
	fields, err := w.encode()
	if err == nil && !stampForm.MatchString(w.r.Stamp) {
		err = fmt.Errorf("%w: the stamp %s is none", errIntent, clip(w.r.Stamp))
	}
	if err != nil {
		return connectors.Receipt{}, impossible(err)
	}
	given, _ := fields["labels"].([]any)
	if fields["labels"], err = withLabels(given, w.reference, w.r.Stamp); err != nil {
		return connectors.Receipt{}, impossible(err)
	}
	fields["project"] = map[string]any{"key": w.project}
	k := w.c.request(ctx, true, http.MethodPost, "rest/api/2/issue", map[string]any{
		"fields": fields, "properties": w.c.properties(w.r.Stamp, w.reference),
	})
	var made struct{ ID, Key string }
	if k.err == nil && (k.answer.Decode(&made) != nil || !idForm.MatchString(made.ID) || !issueKeyForm.MatchString(made.Key)) {
		made.ID, made.Key = "", "" // Jira accepted; an unreadable body does not change that
	}
	return w.receiptOf(k, made.ID, made.Key)
}

// withLabels adds our labels to the caller's, which show without ours.
func withLabels(given []any, reference, stamp string) ([]any, error) {
	all := slices.Clone(given)
	for _, l := range []string{reference, stamp} {
		switch {
		case l == "":
		case slices.Contains(given, any(l)):
			return nil, unusable("/expect/labels", "holds the reference "+clip(l), "it left out: it is always there, and shown apart")
		default:
			all = append(all, l)
		}
	}
	return all, nil
}

// encode makes Jira's fields of what is expected and the payload. The status
// and the choice of a transition are not among them.
func (w writer) encode() (map[string]any, error) {
	fields := map[string]any{}
	for _, part := range []struct {
		at     string
		fields intent.Fields
	}{{"/expect/", w.r.Intent.Expect}, {"/payload/", w.r.Intent.Payload}} {
		for _, name := range slices.Sorted(maps.Keys(part.fields)) {
			path, v := part.at+name, part.fields[name]
			if _, inKey := w.r.Intent.Key[name]; inKey {
				continue // the same value, as validation sees to
			}
			switch {
			case name == "transition" && w.r.Intent.Write == intent.Update && part.at == "/payload/":
				continue
			case name == "status" && w.r.Intent.Write == intent.Create:
				return nil, unusable(path, "is given for a create", "it left out: the workflow chooses the first status")
			case name == "status" && part.at == "/payload/":
				return nil, unusable(path, "is not verified there", "it in /expect")
			case name == "status":
				if s, isText := v.(string); !isText || s == "" {
					return nil, unusable(path, "is no name", "the name of a status")
				}
				continue
			}
			encoded, err := encode(path, name, v, w.d)
			if err != nil {
				return nil, err
			}
			fields[name] = encoded
		}
	}
	return fields, nil
}

// update is one edit, or one transition where the status is to change.
func (w writer) update(ctx context.Context) (connectors.Receipt, error) {
	fields, err := w.encode()
	if err != nil {
		return connectors.Receipt{}, impossible(err)
	}
	before, err := w.before()
	if err != nil {
		return connectors.Receipt{}, err
	}
	if given, there := fields["labels"].([]any); there {
		// A set replaces all labels, ours included: they go along.
		reference, _ := before.Fields["reference"].(string)
		if fields["labels"], err = withLabels(given, reference, before.Stamp); err != nil {
			return connectors.Receipt{}, impossible(err)
		}
	}
	key, _ := before.Fields["key"].(string)
	wanted, change := w.r.Intent.Expect["status"].(string)
	switch {
	case change && before.Fields["status"] != any(wanted):
		return w.transition(ctx, before.Ref, key, wanted, fields)
	case len(fields) == 0 && change:
		// The issue has the status already: there is nothing to send, and a transition from a
		// status to itself could have unrequested effects.
		return connectors.Receipt{Ref: before.Ref, Code: "unchanged"}, nil
	case len(fields) == 0:
		return connectors.Receipt{}, impossible(unusable("/expect", "holds nothing but the key", "at least one field to change"))
	}
	k := w.c.do(ctx, true, func(ctx context.Context) error {
		_, err := w.c.lib.Issue.UpdateIssueWithContext(ctx, before.Ref, map[string]any{"fields": fields})
		return err
	})
	return w.receiptOf(k, before.Ref, key)
}

// delete has no body: the library's method sends one, which Jira rejects. Jira refuses issues
// with subtasks, as it should: the intent does not name those.
func (w writer) delete(ctx context.Context) (connectors.Receipt, error) {
	before, err := w.before()
	if err != nil {
		return connectors.Receipt{}, err
	}
	k := w.c.request(ctx, true, http.MethodDelete, "rest/api/2/issue/"+before.Ref, nil)
	return w.receiptOf(k, before.Ref, "")
}
