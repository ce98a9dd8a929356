package jira

import (
	"maps"
	"net/http"
	"slices"

	"github.com/readback-go/readback/readbacktest/fault"
)

// The statuses of the one workflow.
const (
	ToDo       = "To Do"
	InProgress = "In Progress"
	Done       = "Done"
	Archived   = "Archived"
	Blocked    = "Blocked"
)

// edge is one transition, from "" one that is open to all statuses, its own
// included. screen lists the fields that it can set.
type edge struct {
	id, name, from, to string
	screen             []string
}

// There is no way back from In Progress to To Do, none out of Archived but to Blocked, and
// two ways from In Progress to Done.
var edges = []edge{
	{"11", "Start", ToDo, InProgress, nil},
	{"21", "Resolve", InProgress, Done, []string{"resolution", "assignee"}},
	{"22", "Drop", InProgress, Done, nil},
	{"31", "Reopen", Done, ToDo, nil},
	{"41", "Archive", Done, Archived, nil},
	{"51", "Block", "", Blocked, nil},
}

func statusOf(name string) map[string]any { return map[string]any{"id": "1", "name": name} }

// available lists the transitions that an issue can make now.
func available(i *issue) []edge {
	var all []edge
	for _, e := range edges {
		if e.from == "" || e.from == member(i.fields, "status", "name") {
			all = append(all, e)
		}
	}
	return all
}

func (s *Site) getTransitions(rw http.ResponseWriter, r *http.Request) {
	s.serveRead(rw, r, func() answer {
		i := s.visible(r.PathValue("issue"))
		if i == nil {
			return noIssue()
		}
		list := []any{}
		for _, e := range available(i) {
			fields := map[string]any{}
			for _, name := range e.screen {
				fields[name] = map[string]any{"required": false}
			}
			list = append(list, map[string]any{"id": e.id, "name": e.name, "to": statusOf(e.to), "fields": fields})
		}
		return ok(map[string]any{"expand": "transitions", "transitions": list})
	})
}

func (s *Site) doTransition(rw http.ResponseWriter, r *http.Request) {
	var body struct {
		Transition struct {
			ID string `json:"id"`
		} `json:"transition"`
		Fields map[string]any `json:"fields"`
	}
	if !decode(rw, r, &body) {
		return
	}
	s.serveWrite(rw, r, func() answer { return noContent }, func(fault.Kind) answer {
		i := s.visible(r.PathValue("issue"))
		if i == nil {
			return noIssue()
		}
		n := slices.IndexFunc(available(i), func(e edge) bool { return e.id == body.Transition.ID })
		if n < 0 {
			return problem(http.StatusBadRequest, "It seems that you have tried to perform a workflow operation that is not valid for the current state of this issue.", nil)
		}
		e := available(i)[n]
		for name := range body.Fields {
			if !slices.Contains(e.screen, name) {
				return problem(http.StatusBadRequest, "", map[string]any{name: "Field cannot be set. It is not on the appropriate screen, or unknown."})
			}
		}
		fields, bad := s.cleanFields(body.Fields, false)
		if bad != nil {
			return *bad
		}
		maps.Copy(i.fields, fields)
		i.fields["status"] = statusOf(e.to)
		if _, given := fields["resolution"]; !given {
			i.fields["resolution"] = nil
			if e.to == Done {
				i.fields["resolution"] = map[string]any{"id": "3", "name": "Done"}
			}
		}
		s.touch(i)
		s.log("transition", i, nil, false)
		return noContent
	})
}
