package jira

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// maxReconcile is how many ids a search reconciles.
const maxReconcile = 50

// removedBody is Cloud's answer to the old search.
const removedBody = "The requested API has been removed. Please migrate to the /rest/api/3/search/jql API. " +
	"A full migration guideline is available at https://developer.atlassian.com/changelog/#CHANGE-2046"

type searchBody struct {
	JQL        string        `json:"jql"`
	StartAt    int           `json:"startAt"`
	MaxResults int           `json:"maxResults"`
	Fields     []string      `json:"fields"`
	Token      string        `json:"nextPageToken"`
	Reconcile  []json.Number `json:"reconcileIssues"`
}

// oldSearch is Data Center's; on Cloud it is gone.
func (s *Site) oldSearch(rw http.ResponseWriter, r *http.Request) {
	if !s.o.DataCenter {
		problem(http.StatusGone, removedBody, nil).writeTo(rw)
		return
	}
	body := searchBody{MaxResults: s.o.PageSize}
	if !decode(rw, r, &body) {
		return
	}
	behind := s.lag()
	s.serveRead(rw, r, func() answer {
		found, bad := s.search(body, behind)
		if bad != nil {
			return *bad
		}
		total := len(found)
		found = found[min(body.StartAt, total):]
		found = found[:min(len(found), body.MaxResults, s.o.PageSize)]
		return ok(map[string]any{"startAt": body.StartAt, "maxResults": body.MaxResults, "total": total, "issues": found})
	})
}

// newSearch is Cloud's. Pages are named by tokens, and it shows only ids unless fields are
// requested by name.
func (s *Site) newSearch(rw http.ResponseWriter, r *http.Request) {
	var body searchBody
	if !decode(rw, r, &body) {
		return
	}
	behind := s.lag()
	s.serveRead(rw, r, func() answer {
		if len(body.Reconcile) > maxReconcile {
			return problem(http.StatusBadRequest, "reconcileIssues takes at most 50 ids.", nil)
		}
		found, bad := s.search(body, behind)
		if bad != nil {
			return *bad
		}
		start, known := s.tokens[body.Token]
		if body.Token != "" && !known {
			return problem(http.StatusBadRequest, "The provided next page token is invalid or expired.", nil)
		}
		found = found[min(start, len(found)):]
		size := min(body.MaxResults, s.o.PageSize)
		if size <= 0 {
			size = s.o.PageSize
		}
		body := map[string]any{"isLast": len(found) <= size}
		if len(found) > size {
			token := "page-" + strconv.Itoa(len(s.tokens)+1)
			s.tokens[token] = start + size
			found, body["nextPageToken"] = found[:size], token
		}
		body["issues"] = found
		return ok(body)
	})
}

// lag is how far the next search lags.
func (s *Site) lag() time.Duration {
	if f, met := s.take(fault.LaggingRead); met {
		return max(f.DelayOr(defaultDelay), s.o.IndexLag)
	}
	return s.o.IndexLag
}

// search reads the index, which lags except for what is reconciled.
func (s *Site) search(body searchBody, behind time.Duration) ([]any, *answer) {
	query, err := parseJQL(body.JQL, s.knows)
	if err != nil {
		a := problem(http.StatusBadRequest, err.Error(), nil)
		return nil, &a
	}
	found := []any{}
	for _, i := range s.issues {
		at := time.Now().Add(-behind)
		if slices.Contains(body.Reconcile, json.Number(i.id)) {
			at = time.Now()
		}
		known, there := i.indexed(at)
		if !there || s.hidden[i.project] || !query(known.fields) {
			continue
		}
		shown := map[string]any{"id": i.id}
		if len(body.Fields) > 0 {
			fields := map[string]any{}
			for _, name := range body.Fields {
				fields[name] = known.fields[name]
			}
			shown["key"], shown["fields"] = known.key, fields
		}
		found = append(found, shown)
	}
	return found, nil
}
