package jira

import (
	"net/http"
	"strconv"
)

// routes are the endpoints. Those under /rest/api/3 answer like those of
// version 2 with their texts as ADF.
func (s *Site) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /rest/api/2/serverInfo", s.serverInfo)
	mux.HandleFunc("GET /rest/api/2/myself", s.myself)
	mux.HandleFunc("GET /rest/api/2/mypermissions", s.permissions)
	mux.HandleFunc("GET /rest/api/2/project/{project}", s.project)

	mux.HandleFunc("POST /rest/api/2/issue", s.createIssue)
	mux.HandleFunc("GET /rest/api/2/issue/{issue}", s.getIssue)
	mux.HandleFunc("PUT /rest/api/2/issue/{issue}", s.editIssue)
	mux.HandleFunc("DELETE /rest/api/2/issue/{issue}", s.deleteIssue)
	mux.HandleFunc("GET /rest/api/2/issue/{issue}/transitions", s.getTransitions)
	mux.HandleFunc("POST /rest/api/2/issue/{issue}/transitions", s.doTransition)

	mux.HandleFunc("GET /rest/api/2/issue/{issue}/comment", s.listComments)
	mux.HandleFunc("POST /rest/api/2/issue/{issue}/comment", s.createComment)
	mux.HandleFunc("GET /rest/api/2/issue/{issue}/comment/{comment}", s.getComment)
	mux.HandleFunc("PUT /rest/api/2/issue/{issue}/comment/{comment}", s.editComment)
	mux.HandleFunc("DELETE /rest/api/2/issue/{issue}/comment/{comment}", s.deleteComment)
	mux.HandleFunc("GET /rest/api/2/comment/{comment}/properties/{property}", s.commentProperty)

	for _, version := range []string{"2", "3"} {
		mux.HandleFunc("POST /rest/api/"+version+"/search", s.oldSearch)
		mux.HandleFunc("GET /rest/api/"+version+"/search", s.oldSearch)
		if s.o.DataCenter {
			continue
		}
		mux.HandleFunc("POST /rest/api/"+version+"/search/jql", s.newSearch)
		mux.HandleFunc("POST /rest/api/"+version+"/issue/bulkfetch", s.bulkFetch(version == "3"))
		mux.HandleFunc("POST /rest/api/"+version+"/comment/list", s.commentsByID)
	}
	mux.HandleFunc("/elsewhere", func(rw http.ResponseWriter, _ *http.Request) {
		ok(map[string]any{"id": "1", "key": "ELSE-1"}).writeTo(rw)
	})
	return mux
}

func (s *Site) serverInfo(rw http.ResponseWriter, _ *http.Request) {
	kind := "Cloud"
	if s.o.DataCenter {
		kind = "Server"
	}
	ok(map[string]any{"baseUrl": "https://jira.invalid", "version": "1001.0.0", "deploymentType": kind}).writeTo(rw)
}

func (s *Site) myself(rw http.ResponseWriter, _ *http.Request) {
	ok(map[string]any{"accountId": "5b10", "name": "robot", "displayName": "Robot"}).writeTo(rw)
}

func (s *Site) knows(project string) bool {
	for _, p := range s.o.Projects {
		if p == project {
			return !s.hidden[project]
		}
	}
	return false
}

func (s *Site) project(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	known := s.knows(r.PathValue("project"))
	s.mu.Unlock()
	if !known {
		problem(http.StatusNotFound, "No project could be found.", nil).writeTo(rw)
		return
	}
	ok(map[string]any{"key": r.PathValue("project")}).writeTo(rw)
}

// permissions answers for one project. Cloud requires its name.
func (s *Site) permissions(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !s.o.DataCenter && q.Get("permissions") == "" {
		problem(http.StatusBadRequest, "The 'permissions' query parameter is required.", nil).writeTo(rw)
		return
	}
	s.mu.Lock()
	known := s.knows(q.Get("projectKey"))
	s.mu.Unlock()
	if !known {
		problem(http.StatusNotFound, "No project could be found.", nil).writeTo(rw)
		return
	}
	ok(map[string]any{"permissions": map[string]any{
		"BROWSE_PROJECTS": map[string]any{"key": "BROWSE_PROJECTS", "havePermission": true},
	}}).writeTo(rw)
}

func number(text string, otherwise int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}
