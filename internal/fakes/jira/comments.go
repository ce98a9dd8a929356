package jira

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	// maxBulk is how many issues one bulk fetch takes, and maxComments how
	// many comments one list by ids.
	maxBulk     = 100
	maxComments = 1000
)

type commentBody struct {
	Body       any            `json:"body"`
	Visibility map[string]any `json:"visibility"`
	Properties []property     `json:"properties"`
}

// clean brings a comment into the form in which it is stored.
func (b commentBody) clean(alter fault.Kind) (map[string]any, *answer) {
	text, isText := b.Body.(string)
	if !isText || strings.TrimSpace(text) == "" {
		a := problem(http.StatusBadRequest, "", map[string]any{"comment": "Comment body can not be empty!"})
		return nil, &a
	}
	stored, _ := cleanText(text)
	fields := map[string]any{"body": stored}
	if b.Visibility != nil && alter != fault.DroppedField {
		fields["visibility"] = b.Visibility
	}
	if alter == fault.NormalisedField {
		fields["body"] = strings.ToUpper(text) + "."
	}
	return fields, nil
}

func (s *Site) addComment(i *issue, fields, properties map[string]any) *comment {
	c := &comment{id: s.nextID(), fields: fields, properties: properties}
	now := stampOf(time.Now())
	author := map[string]any{"accountId": "5b10", "name": "robot"}
	maps.Copy(c.fields, map[string]any{"created": now, "updated": now, "author": author, "updateAuthor": author})
	i.comments = append(i.comments, c)
	s.touch(i)
	return c
}

// showComment leaves the properties out unless they are requested.
func showComment(c *comment, properties bool) map[string]any {
	shown := maps.Clone(c.fields)
	shown["id"] = c.id
	if properties {
		list := []any{}
		for _, key := range slices.Sorted(maps.Keys(c.properties)) {
			list = append(list, map[string]any{"key": key, "value": c.properties[key]})
		}
		shown["properties"] = list
	}
	return shown
}

func (s *Site) comment(r *http.Request) (*issue, *comment) {
	i := s.visible(r.PathValue("issue"))
	if i == nil {
		return nil, nil
	}
	for _, c := range i.comments {
		if c.id == r.PathValue("comment") {
			return i, c
		}
	}
	return i, nil
}

func (s *Site) createComment(rw http.ResponseWriter, r *http.Request) {
	var body commentBody
	if !decode(rw, r, &body) {
		return
	}
	later, _ := s.take(fault.DuplicateBehindOurBack, fault.Rollback)
	phantom := func() answer { return created(map[string]any{"id": s.nextID(), "body": body.Body}) }
	s.serveWrite(rw, r, phantom, func(alter fault.Kind) answer {
		i := s.visible(r.PathValue("issue"))
		if i == nil {
			return noIssue()
		}
		fields, bad := body.clean(alter)
		if bad != nil {
			return *bad
		}
		c := s.addComment(i, fields, propertiesOf(body.Properties))
		s.log("comment-create", i, c, false)
		s.afterComment(later, i, c)
		return created(showComment(c, false))
	})
}

func (s *Site) afterComment(f fault.Fault, i *issue, c *comment) {
	if f.Kind == fault.None {
		return
	}
	time.AfterFunc(f.DelayOr(defaultDelay), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.Kind == fault.Rollback {
			i.comments = slices.DeleteFunc(i.comments, func(other *comment) bool { return other == c })
			s.log("comment-delete", i, c, true)
			return
		}
		s.log("comment-create", i, s.addComment(i, maps.Clone(c.fields), maps.Clone(c.properties)), true)
	})
}

// editComment: an edit without the visibility makes the comment public.
func (s *Site) editComment(rw http.ResponseWriter, r *http.Request) {
	var body commentBody
	if !decode(rw, r, &body) {
		return
	}
	s.serveWrite(rw, r, func() answer { return ok(map[string]any{"id": r.PathValue("comment")}) }, func(alter fault.Kind) answer {
		i, c := s.comment(r)
		if c == nil {
			return noComment(i)
		}
		fields, bad := body.clean(alter)
		if bad != nil {
			return *bad
		}
		if alter == fault.DroppedField && c.fields["visibility"] != nil {
			fields["visibility"] = c.fields["visibility"] // the old one stays
		}
		for _, name := range []string{"author", "created"} {
			fields[name] = c.fields[name]
		}
		fields["updateAuthor"], fields["updated"] = c.fields["author"], stampOf(time.Now())
		c.fields = fields
		maps.Copy(c.properties, propertiesOf(body.Properties))
		s.touch(i)
		s.log("comment-update", i, c, false)
		return ok(showComment(c, false))
	})
}

func noComment(i *issue) answer {
	if i == nil {
		return noIssue()
	}
	return problem(http.StatusNotFound, "Can not find a comment for the id.", nil)
}

func (s *Site) deleteComment(rw http.ResponseWriter, r *http.Request) {
	s.serveWrite(rw, r, func() answer { return noContent }, func(fault.Kind) answer {
		i, c := s.comment(r)
		if c == nil {
			return noComment(i)
		}
		i.comments = slices.DeleteFunc(i.comments, func(other *comment) bool { return other == c })
		s.touch(i)
		s.log("comment-delete", i, c, false)
		return noContent
	})
}

func (s *Site) getComment(rw http.ResponseWriter, r *http.Request) {
	s.serveRead(rw, r, func() answer {
		i, c := s.comment(r)
		if c == nil {
			return noComment(i)
		}
		return ok(showComment(c, false))
	})
}

func (s *Site) listComments(rw http.ResponseWriter, r *http.Request) {
	s.serveRead(rw, r, func() answer {
		i := s.visible(r.PathValue("issue"))
		if i == nil {
			return noIssue()
		}
		start := min(number(r.URL.Query().Get("startAt"), 0), len(i.comments))
		size := min(number(r.URL.Query().Get("maxResults"), s.o.PageSize), s.o.PageSize)
		page := []any{}
		for _, c := range i.comments[start:min(start+size, len(i.comments))] {
			page = append(page, showComment(c, false))
		}
		return ok(map[string]any{"startAt": start, "maxResults": size, "total": len(i.comments), "comments": page})
	})
}

func (s *Site) commentProperty(rw http.ResponseWriter, r *http.Request) {
	s.serveRead(rw, r, func() answer {
		for _, i := range s.issues {
			for _, c := range i.comments {
				v, there := c.properties[r.PathValue("property")]
				if c.id == r.PathValue("comment") && there && !i.gone && !s.hidden[i.project] {
					return ok(map[string]any{"key": r.PathValue("property"), "value": v})
				}
			}
		}
		return problem(http.StatusNotFound, "The property does not exist.", nil)
	})
}

func (s *Site) commentsByID(rw http.ResponseWriter, r *http.Request) {
	var body struct {
		IDs []json.Number `json:"ids"`
	}
	if !decode(rw, r, &body) {
		return
	}
	s.serveRead(rw, r, func() answer {
		if len(body.IDs) == 0 || len(body.IDs) > maxComments {
			return problem(http.StatusBadRequest, fmt.Sprintf("want 1 to %d ids", maxComments), nil)
		}
		found := []any{}
		for _, i := range s.issues {
			for _, c := range i.comments {
				if slices.Contains(body.IDs, json.Number(c.id)) && !i.gone && !s.hidden[i.project] {
					found = append(found, showComment(c, r.URL.Query().Get("expand") == "properties"))
				}
			}
		}
		return ok(map[string]any{"startAt": 0, "maxResults": maxComments, "total": len(found), "isLast": true, "values": found})
	})
}
