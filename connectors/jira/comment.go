package jira

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// comment sends one write on a comment.
func (w writer) comment(ctx context.Context) (connectors.Receipt, error) {
	body, err := w.commentBody()
	if err != nil {
		return connectors.Receipt{}, impossible(err)
	}
	path := "rest/api/2/issue/" + w.issue + "/comment"
	if w.r.Intent.Write == intent.Create {
		body["properties"] = w.c.properties(w.r.Stamp, w.reference)
		k := w.c.request(ctx, true, http.MethodPost, path, body)
		var made struct{ ID string }
		if k.err == nil && (k.answer.Decode(&made) != nil || !idForm.MatchString(made.ID)) {
			made.ID = ""
		}
		return w.receiptOf(k, made.ID, w.issueKey())
	}
	before, err := w.before()
	if err != nil {
		return connectors.Receipt{}, err
	}
	if w.r.Intent.Write == intent.Delete {
		k := w.c.do(ctx, true, func(ctx context.Context) error {
			return w.c.lib.Issue.DeleteCommentWithContext(ctx, w.issue, before.Ref)
		})
		return w.receiptOf(k, before.Ref, "")
	}
	for _, name := range []string{"body", "visibility"} {
		// An edit replaces both: what it leaves out is lost, and a comment
		// for few would be one for all.
		if _, given := body[name]; !given && before.Fields[name] != nil {
			body[name] = before.Fields[name]
		}
	}
	if before.Stamp != "" {
		reference, _ := before.Fields["reference"].(string)
		body["properties"] = w.c.properties(before.Stamp, reference)
	}
	k := w.c.request(ctx, true, http.MethodPut, path+"/"+before.Ref, body)
	return w.receiptOf(k, before.Ref, w.issueKey())
}

// issueKey is the key of the issue, where it was named by that.
func (w writer) issueKey() string {
	if idForm.MatchString(w.issue) {
		return ""
	}
	return w.issue
}

// commentBody is what the intent wants in the comment.
func (w writer) commentBody() (map[string]any, error) {
	body := map[string]any{}
	for at, fields := range map[string]intent.Fields{"/expect/": w.r.Intent.Expect, "/payload/": w.r.Intent.Payload} {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			v := fields[name]
			if _, inKey := w.r.Intent.Key[name]; inKey {
				continue
			}
			switch name {
			case "body":
				if s, isText := v.(string); !isText || s == "" {
					return nil, unusable(at+name, "is no text", "a string that is not empty, in wiki markup")
				}
			case "visibility":
				if _, isObject := v.(map[string]any); !isObject && v != nil {
					return nil, unusable(at+name, "is no object", `{"type": "role", "value": "…"}, or null`)
				}
			default:
				return nil, unusable(at+name, "cannot be written", "body and visibility alone")
			}
			body[name] = v
		}
	}
	if _, given := body["body"]; !given && w.r.Intent.Write == intent.Create {
		return nil, unusable("/expect/body", "is missing", "the text of the comment")
	}
	return body, nil
}
