package jira

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// comment is a comment as it was read.
type comment struct {
	fields     map[string]any
	id         string
	mark       mark
	properties bool // whether mark was read
}

func newComment(fields map[string]any) (*comment, error) {
	id, _ := fields["id"].(string)
	if _, hasBody := fields["body"]; !hasBody || !idForm.MatchString(id) {
		return nil, fmt.Errorf("%w: one of them is no comment", errUnreadable)
	}
	return &comment{fields: fields, id: id}, nil
}

// comments reads comments. It does not search: it lists all comments of the issue, without an
// index, so the read is strong.
func (r *reader) comments(q *question) error {
	o := connectors.Observation{Path: pathList, Strength: connectors.Strong, Records: []connectors.Record{}}
	var all []*comment
	var err error
	if q.comment != "" {
		o.Path = pathGet
		all, err = r.oneComment(q)
	} else {
		all, err = r.allComments(q)
	}
	if err != nil {
		return err
	}
	if err := r.marks(all); err != nil {
		return fmt.Errorf("read the properties of comments: %w", err)
	}
	for _, c := range all {
		ours := q.stamp != "" && c.mark.Stamp == q.stamp
		if ours || c.id == q.comment || (q.reference != "" && c.mark.Reference == q.reference) || (q.Ref != "" && c.id == q.Ref) {
			o.Records = append(o.Records, r.commentRecord(c, q))
		}
	}
	q.answer.Observation = o
	return nil
}

// oneComment reads a comment by its id. A 404 concerns the comment only if the issue is visible.
func (r *reader) oneComment(q *question) ([]*comment, error) {
	var fields map[string]any
	found, err := r.c.get(r.ctx, "rest/api/2/issue/"+q.issue+"/comment/"+q.comment, &fields)
	if err != nil {
		return nil, fmt.Errorf("read the comment: %w", err)
	}
	if !found {
		return nil, r.issueThere(q)
	}
	c, err := newComment(fields)
	if err == nil && c.id != q.comment {
		err = fmt.Errorf("%w: it is another comment", errUnreadable)
	}
	return []*comment{c}, err
}

func (r *reader) issueThere(q *question) error {
	var i issue
	found, err := r.c.get(r.ctx, "rest/api/2/issue/"+q.issue+"?fields=project", &i)
	switch {
	case err != nil:
		return fmt.Errorf("read the issue of the comment: %w", err)
	case !found:
		return fmt.Errorf("%w: %s", errNoIssue, q.issue)
	case !i.usable():
		return fmt.Errorf("read the issue of the comment: %w", errUnreadable)
	}
	return nil
}

// allComments lists all comments of an issue. One that is deleted between two
// pages shifts the others: each page begins with the last of the one before.
func (r *reader) allComments(q *question) ([]*comment, error) {
	limit := maxComments
	if r.d != Cloud {
		limit = maxCommentsOneByOne
	}
	var all []*comment
	for {
		overlap := min(len(all), 1)
		page, total, err := r.pageOfComments(q, len(all)-overlap)
		switch {
		case err != nil:
			return nil, err
		case total > limit:
			return nil, fmt.Errorf("list the comments: %w: %d comments, at most %d are read; address the comment by its id", errUnreadable, total, limit)
		case len(page) < overlap || (overlap > 0 && page[0].id != all[len(all)-1].id):
			return nil, fmt.Errorf("list the comments: %w: they changed meanwhile", errUnreadable)
		}
		for _, c := range page[overlap:] {
			if slices.ContainsFunc(all, func(o *comment) bool { return o.id == c.id }) {
				return nil, fmt.Errorf("list the comments: %w: one of them twice", errUnreadable)
			}
			all = append(all, c)
		}
		switch {
		case len(all) >= total:
			return all, nil
		case len(page) == overlap:
			return nil, fmt.Errorf("list the comments: %w: it says %d and shows %d", errUnreadable, total, len(all))
		}
	}
}

func (r *reader) pageOfComments(q *question, start int) ([]*comment, int, error) {
	query := url.Values{"startAt": {strconv.Itoa(start)}, "maxResults": {strconv.Itoa(pageSize)}}
	var answer struct {
		Comments *[]map[string]any `json:"comments"`
		Total    *int              `json:"total"`
		Start    int               `json:"startAt"`
	}
	found, err := r.c.get(r.ctx, "rest/api/2/issue/"+q.issue+"/comment?"+query.Encode(), &answer)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("list the comments: %w", err)
	case !found:
		return nil, 0, fmt.Errorf("list the comments: %w: %s", errNoIssue, q.issue)
	case answer.Comments == nil || answer.Total == nil || answer.Start != start || *answer.Total < 0:
		return nil, 0, fmt.Errorf("list the comments: %w: it lists none, or others than were asked for", errUnreadable)
	}
	var page []*comment
	for _, fields := range *answer.Comments {
		c, err := newComment(fields)
		if err != nil {
			return nil, 0, fmt.Errorf("list the comments: %w", err)
		}
		page = append(page, c)
	}
	return page, *answer.Total, nil
}

// marks reads the property of each comment: in one call on Cloud, one by one
// on Data Center, which has no other way.
func (r *reader) marks(all []*comment) error {
	if len(all) == 0 {
		return nil
	}
	if r.d == Cloud {
		return r.marksTogether(all)
	}
	for _, c := range all {
		var p property
		found, err := r.c.get(r.ctx, "rest/api/2/comment/"+c.id+"/properties/"+r.c.o.Property, &p)
		if err != nil {
			return err
		}
		if found && p.Key != r.c.o.Property {
			return fmt.Errorf("%w: it is another property", errUnreadable)
		}
		c.mark = markOf(p.Value)
	}
	return nil
}

// marksTogether reads comments by their ids, which returns the properties. A comment that is
// missing was removed meanwhile, or was never visible this way: the read is then not of one
// state.
func (r *reader) marksTogether(all []*comment) error {
	ids := make([]json.Number, len(all))
	for n, c := range all {
		ids[n] = json.Number(c.id)
	}
	var answer struct {
		Values *[]struct {
			ID         string      `json:"id"`
			Properties *[]property `json:"properties"`
		} `json:"values"`
	}
	err := r.c.post(r.ctx, "rest/api/2/comment/list?expand=properties", map[string]any{"ids": ids}, &answer)
	if err == nil && answer.Values == nil {
		err = fmt.Errorf("%w: it lists no comments", errUnreadable)
	}
	if err != nil {
		return err
	}
	for _, v := range *answer.Values {
		n := slices.IndexFunc(all, func(c *comment) bool { return c.id == v.ID })
		if n < 0 || v.Properties == nil {
			return fmt.Errorf("%w: it gives a comment that was not asked for, or no properties", errUnreadable)
		}
		all[n].properties = true
		for _, p := range *v.Properties {
			if p.Key == r.c.o.Property {
				all[n].mark = markOf(p.Value)
			}
		}
	}
	if slices.ContainsFunc(all, func(c *comment) bool { return !c.properties }) {
		return fmt.Errorf("%w: it does not give every comment", errUnreadable)
	}
	return nil
}

// commentFields are the members of a comment that records show.
var commentFields = []string{"body", "visibility", "author", "updateAuthor", "created", "updated"}

func (r *reader) commentRecord(c *comment, q *question) connectors.Record {
	f := intent.Fields{"issue": q.issue, "comment": c.id}
	if q.project != "" {
		f["project"] = q.project
	}
	if c.mark.Reference != "" {
		f["reference"] = c.mark.Reference
	}
	for _, name := range commentFields {
		v, there := c.fields[name]
		if !there {
			continue
		}
		switch name {
		case "author", "updateAuthor":
			v = show("creator", v, r.d)
		case "created", "updated":
			v = showTime(v)
		case "body":
			v = flat(v)
		}
		f[name] = v
	}
	url := ""
	if !idForm.MatchString(q.issue) {
		url = r.c.browse + "browse/" + q.issue + "?focusedCommentId=" + c.id
	}
	return connectors.Record{Ref: c.id, URL: url, Stamp: c.mark.Stamp, Fields: f}
}
