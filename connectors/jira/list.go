package jira

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/readback-go/readback/connectors"
)

var _ connectors.Lister = (*Connector)(nil)

// errShifted means that issues were added or removed while pages were read.
var errShifted = errors.New("issues came or went while pages were turned")

// listedFields are those that a list shows, and listedChange when an issue was
// changed last and created.
var listedFields = []string{"summary", "description", "labels", "priority", "issuetype", "status", "project", listedChange, listedCreation}

const listedChange, listedCreation = "updated", "created"

// List shows the issues of the project that Scope.Within names: {"project":
// "OPS"}. They are found by a search, which is an index that lags, and then read
// themselves; the list is weak, whatever it shows. Jira cannot search for our
// stamps, so that all issues of the project are read, on Data Center one by one.
// Comments cannot be listed.
func (c *Connector) List(ctx context.Context, s connectors.Scope) (connectors.Listing, error) {
	project, isText := s.Within["project"].(string)
	switch {
	case s.Kind != KindIssue:
		return connectors.Listing{}, fmt.Errorf("%w: kind %s; want %s", connectors.ErrScope, clip(s.Kind), KindIssue)
	case !isText || len(s.Within) != 1 || !projectForm.MatchString(project):
		return connectors.Listing{}, fmt.Errorf("%w: within %v; want the project alone, {project: OPS}", connectors.ErrScope, s.Within)
	}
	l := connectors.Listing{At: time.Now(), Path: pathSearch, Stamped: s.Stamped, Timed: !s.From.IsZero() || !s.Until.IsZero()}
	d, err := c.deployment(ctx)
	if err != nil {
		return connectors.Listing{}, err
	}
	r := &reader{c: c, d: d, ctx: ctx, seen: map[string]error{}}
	ids, why, err := r.everyID(project)
	if err != nil {
		return connectors.Listing{}, err
	}
	all, err := r.fetch(ids, nil, listedFields)
	if err != nil {
		return connectors.Listing{}, err
	}
	if len(all.issues) == 0 {
		if err := r.permitted(project); err != nil {
			return connectors.Listing{}, err
		}
	}
	if all.lacks(ids) && why == "" {
		why = "the index shows issues that are not given: they are gone, or hidden from us"
	}
	q := &question{target: target{kind: KindIssue, project: project}, fields: listedFields}
	for _, i := range all.issues {
		one := connectors.Listed{Record: c.record(i, q, d), Changed: at(i, listedChange), Created: at(i, listedCreation)}
		if in, sure := s.Of(one); in && (!s.Stamped || connectors.IsStamp(one.Stamp)) {
			l.Timed = l.Timed && sure
			l.Records = append(l.Records, one)
		}
	}
	l.Complete, l.Why = why == "", why
	return l, nil
}

// at is a time of an issue, zero if it has none.
func at(i *issue, field string) time.Time {
	text, _ := i.Fields[field].(string)
	t, err := time.Parse("2006-01-02T15:04:05.000-0700", text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// everyID reads the ids of all issues of a project from the index, and says why some may be
// missing.
func (r *reader) everyID(project string) (ids []string, why string, err error) {
	page := r.pageOfDataCenter
	if r.d == Cloud {
		page = r.pageOfCloud
	}
	s := search{JQL: "project = " + quoted(project), MaxResults: pageSize, Fields: []string{"labels"}}
	for range listPages {
		hits, more, err := page(&s)
		if errors.Is(err, errShifted) {
			return unique(ids), err.Error(), nil
		}
		if err != nil {
			return nil, "", fmt.Errorf("list the project %s: %w", project, err)
		}
		for _, h := range hits {
			if !idForm.MatchString(h.ID) {
				return nil, "", fmt.Errorf("list the project %s: %w: it names an issue without an id", project, errUnreadable)
			}
			ids = append(ids, h.ID)
		}
		if !more {
			return unique(ids), "", nil
		}
	}
	return unique(ids), fmt.Sprintf("the project has more than %d issues", len(ids)), nil
}

func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}
