package jira

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// hit is a search result: the id. The rest of it is as old as the index.
type hit struct {
	ID string `json:"id"`
}

// search reads the ids of all issues that may match from the index. Those are candidates: the
// index may lag, and compares labels in its own way.
func (r *reader) search(questions []*question) ([]string, error) {
	var parts []string
	var known []json.Number
	for _, q := range questions {
		if jql := q.sought(); jql != "" {
			parts = append(parts, jql)
		}
		if idForm.MatchString(q.Ref) && len(known) < maxReconcile {
			known = append(known, json.Number(q.Ref))
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	page := r.pageOfDataCenter
	if r.d == Cloud {
		page = r.pageOfCloud
	}
	ids, err := pages(search{JQL: strings.Join(parts, " OR "), MaxResults: pageSize, Fields: []string{"labels"}, Reconcile: known}, page)
	if err != nil {
		return nil, fmt.Errorf("search by label: %w", err)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > maxCandidates {
		return nil, fmt.Errorf("search by label: %w: %d issues, at most %d are read", errUnreadable, len(ids), maxCandidates)
	}
	return ids, nil
}

// search is the body of one; fields are named, or Cloud shows none.
type search struct {
	JQL        string        `json:"jql"`
	MaxResults int           `json:"maxResults"`
	Fields     []string      `json:"fields"`
	StartAt    int           `json:"startAt,omitempty"`         // Data Center
	Token      string        `json:"nextPageToken,omitempty"`   // Cloud
	Reconcile  []json.Number `json:"reconcileIssues,omitempty"` // Cloud; consistent for these ids only
	total      *int          // Data Center: how many there were on the first page
}

// pages reads all pages. page reads one and advances s to the next; it reports whether there is
// one.
func pages(s search, page func(s *search) (hits []hit, more bool, err error)) ([]string, error) {
	var ids []string
	for range maxPages {
		hits, more, err := page(&s)
		if err != nil {
			return nil, err
		}
		for _, h := range hits {
			if !idForm.MatchString(h.ID) {
				return nil, fmt.Errorf("%w: it names an issue without an id", errUnreadable)
			}
			ids = append(ids, h.ID)
		}
		if !more {
			return ids, nil
		}
	}
	return nil, fmt.Errorf("%w: more than %d pages", errUnreadable, maxPages)
}

// pageOfCloud calls search/jql. The library's method drops whether there was a list at all, and
// puts the query into the address.
func (r *reader) pageOfCloud(s *search) ([]hit, bool, error) {
	var answer struct {
		Issues *[]hit `json:"issues"`
		Token  string `json:"nextPageToken"`
		IsLast *bool  `json:"isLast"`
	}
	if err := r.c.post(r.ctx, "rest/api/2/search/jql", s, &answer); err != nil {
		return nil, false, err
	}
	notLast := answer.IsLast != nil && !*answer.IsLast
	switch {
	case answer.Issues == nil:
		return nil, false, fmt.Errorf("%w: it lists no issues", errUnreadable)
	case answer.Token == "" && notLast, answer.Token != "" && answer.Token == s.Token:
		return nil, false, fmt.Errorf("%w: there is more, and no way to it", errUnreadable)
	}
	s.Token = answer.Token
	return *answer.Issues, answer.Token != "" && (notLast || answer.IsLast == nil), nil
}

// pageOfDataCenter calls the search that Cloud has removed. Issues that are added or removed
// between two pages shift the others, so the total must stay the same and be reached.
func (r *reader) pageOfDataCenter(s *search) ([]hit, bool, error) {
	asked := *s
	asked.Reconcile = nil
	var answer struct {
		Issues *[]hit `json:"issues"`
		Total  *int   `json:"total"`
		Start  int    `json:"startAt"`
	}
	if err := r.c.post(r.ctx, "rest/api/2/search", asked, &answer); err != nil {
		return nil, false, err
	}
	if answer.Issues == nil || answer.Total == nil || answer.Start != s.StartAt {
		return nil, false, fmt.Errorf("%w: it lists no issues, or others than were asked for", errUnreadable)
	}
	if s.total == nil {
		s.total = answer.Total
	}
	if *s.total != *answer.Total {
		return nil, false, fmt.Errorf("%w: %w: there were %d, and are %d on the next page", errUnreadable, errShifted, *s.total, *answer.Total)
	}
	s.StartAt += len(*answer.Issues)
	more := s.StartAt < *answer.Total
	if more && len(*answer.Issues) == 0 {
		return nil, false, fmt.Errorf("%w: it says %d and shows %d", errUnreadable, *answer.Total, s.StartAt)
	}
	return *answer.Issues, more, nil
}
