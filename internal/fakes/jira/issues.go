package jira

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// property is an entity property as requests carry it.
type property struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

func propertiesOf(list []property) map[string]any {
	all := map[string]any{}
	for _, p := range list {
		all[p.Key] = p.Value
	}
	return all
}

func (s *Site) createIssue(rw http.ResponseWriter, r *http.Request) {
	var body struct {
		Fields     map[string]any `json:"fields"`
		Properties []property     `json:"properties"`
	}
	if !decode(rw, r, &body) {
		return
	}
	named := func(id, key string) answer {
		return created(map[string]any{"id": id, "key": key, "self": "https://jira.invalid/rest/api/2/issue/" + id})
	}
	later, _ := s.take(fault.DuplicateBehindOurBack, fault.Rollback)
	phantom := func() answer { return named(s.nextID(), s.newKey(member(body.Fields, "project", "key"))) }
	s.serveWrite(rw, r, phantom, func(alter fault.Kind) answer {
		fields, bad := s.cleanFields(body.Fields, true)
		if bad != nil {
			return *bad
		}
		alterIssue(fields, body.Fields, alter)
		i := s.add(fields, propertiesOf(body.Properties))
		s.log("create", i, nil, false)
		s.afterwards(later, i)
		return named(i.id, i.key())
	})
}

// afterwards is what becomes of a created issue later.
func (s *Site) afterwards(f fault.Fault, i *issue) {
	if f.Kind == fault.None {
		return
	}
	time.AfterFunc(f.DelayOr(defaultDelay), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.Kind == fault.Rollback {
			s.remove(i)
			s.log("delete", i, nil, true)
			return
		}
		s.log("create", s.add(maps.Clone(i.fields), maps.Clone(i.properties)), nil, true)
	})
}

// alterIssue stores one requested field differently.
func alterIssue(stored, asked map[string]any, alter fault.Kind) {
	text, there := asked["description"].(string)
	switch {
	case alter == fault.NormalisedField && there:
		stored["description"] = strings.ToUpper(text) + "."
	case alter == fault.DroppedField:
		delete(stored, "description")
	}
}

func (s *Site) getIssue(rw http.ResponseWriter, r *http.Request) {
	s.serveRead(rw, r, func() answer {
		i := s.visible(r.PathValue("issue"))
		if i == nil {
			return noIssue()
		}
		q := r.URL.Query()
		return ok(s.show(i, split(q.Get("fields")), split(q.Get("properties"))))
	})
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// show is an issue as a read shows it: what is not set is null. No fields
// means all.
func (s *Site) show(i *issue, fields, properties []string) map[string]any {
	shown := map[string]any{}
	for _, name := range known() {
		if len(fields) == 0 || slices.Contains(fields, name) {
			shown[name] = i.fields[name]
		}
	}
	found := map[string]any{}
	for _, name := range properties {
		if v, there := i.properties[name]; there {
			found[name] = v
		}
	}
	return map[string]any{"id": i.id, "key": i.key(), "fields": shown, "properties": found}
}

// editIssue changes fields. The status is ignored without a word.
func (s *Site) editIssue(rw http.ResponseWriter, r *http.Request) {
	var body struct {
		Fields map[string]any `json:"fields"`
	}
	if !decode(rw, r, &body) {
		return
	}
	s.serveWrite(rw, r, func() answer { return noContent }, func(alter fault.Kind) answer {
		i := s.visible(r.PathValue("issue"))
		if i == nil {
			return noIssue()
		}
		delete(body.Fields, "status")
		fields, bad := s.cleanFields(body.Fields, false)
		if bad != nil {
			return *bad
		}
		alterIssue(fields, body.Fields, alter)
		maps.Copy(i.fields, fields)
		s.touch(i)
		s.log("update", i, nil, false)
		return noContent
	})
}

func (s *Site) deleteIssue(rw http.ResponseWriter, r *http.Request) {
	s.serveWrite(rw, r, func() answer { return noContent }, func(fault.Kind) answer {
		i := s.visible(r.PathValue("issue"))
		if i == nil {
			return noIssue()
		}
		s.remove(i)
		s.log("delete", i, nil, false)
		return noContent
	})
}

// bulkFetch answers in the order of ids. Missing and hidden issues are left out. Version 3 shows
// texts as ADF.
func (s *Site) bulkFetch(adf bool) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var body struct {
			IDs        []string `json:"issueIdsOrKeys"`
			Fields     []string `json:"fields"`
			Properties []string `json:"properties"`
		}
		if !decode(rw, r, &body) {
			return
		}
		s.serveRead(rw, r, func() answer {
			if len(body.IDs) == 0 || len(body.IDs) > maxBulk {
				return problem(http.StatusBadRequest, "You can fetch up to 100 issues at a time.", nil)
			}
			found := []any{}
			for _, i := range s.issues {
				asked := slices.ContainsFunc(body.IDs, func(id string) bool { return s.visible(id) == i })
				if !asked {
					continue
				}
				shown := s.show(i, body.Fields, body.Properties)
				if adf {
					asDocument(shown["fields"].(map[string]any))
				}
				found = append(found, shown)
			}
			return ok(map[string]any{"issues": found, "issueErrors": []any{}})
		})
	}
}

// asDocument turns the description into ADF.
func asDocument(fields map[string]any) {
	text, there := fields["description"].(string)
	if !there {
		return
	}
	var blocks []any
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		blocks = append(blocks, map[string]any{"type": "paragraph", "content": []any{map[string]any{"type": "text", "text": line}}})
	}
	fields["description"] = map[string]any{"type": "doc", "version": 1, "content": blocks}
}
