package jira

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// pool is every issue that one read got, each read itself and not from the
// index.
type pool struct {
	issues []*issue
	byID   map[string]*issue
	byName map[string]*issue // as requested: a moved issue has an old key
}

func (p *pool) add(i *issue, asked string) {
	if known := p.byID[i.ID]; known != nil {
		i = known
	} else {
		p.byID[i.ID] = i
		p.issues = append(p.issues, i)
	}
	if asked != "" {
		p.byName[asked] = i
	}
}

// named is the issue with an id, or with a requested key.
func (p *pool) named(idOrKey string) *issue {
	if i := p.byName[idOrKey]; i != nil {
		return i
	}
	return p.byID[idOrKey]
}

// lacks reports whether one of the ids was not given.
func (p *pool) lacks(ids []string) bool {
	return slices.ContainsFunc(ids, func(id string) bool { return p.byID[id] == nil })
}

// fetch reads issues themselves, by id and by key. What is not there, or not to
// be seen, is not in the pool.
func (r *reader) fetch(ids []string, keys map[string]bool, fields []string) (*pool, error) {
	p := &pool{byID: map[string]*issue{}, byName: map[string]*issue{}}
	wanted := slices.Concat(ids, slices.Sorted(maps.Keys(keys)))
	together := r.d == Cloud && len(wanted) > 1 && len(fields) <= maxNamed
	for chunk := range slices.Chunk(wanted, fetchChunk) {
		if !together {
			break
		}
		var err error
		if together, err = r.bulk(p, chunk, fields); err != nil {
			return nil, err
		}
	}
	if together {
		// The bulk fetch returns an issue under its current key. One that was requested by an old
		// key is still missing.
		ids = nil
	}
	for _, id := range ids {
		if err := r.one(p, id, fields); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		n := slices.IndexFunc(p.issues, func(i *issue) bool { return strings.EqualFold(i.Key, key) })
		if n >= 0 {
			p.byName[key] = p.issues[n]
			continue
		}
		if err := r.one(p, key, fields); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// one reads one issue.
func (r *reader) one(p *pool, idOrKey string, fields []string) error {
	query := url.Values{"fields": {strings.Join(fields, ",")}, "properties": {r.c.o.Property}}
	var i issue
	found, err := r.c.get(r.ctx, "rest/api/2/issue/"+idOrKey+"?"+query.Encode(), &i)
	switch {
	case err != nil:
		return fmt.Errorf("read the issue %s: %w", idOrKey, err)
	case !found:
		return nil
	case !i.usable() || (idForm.MatchString(idOrKey) && i.ID != idOrKey):
		return fmt.Errorf("read the issue %s: %w: it is no issue, or another one", idOrKey, errUnreadable)
	}
	p.add(&i, idOrKey)
	return nil
}

// bulk reads up to a hundred issues in one call, in version 2 of the API, which returns texts as
// strings. It reports whether Jira has such a call.
func (r *reader) bulk(p *pool, wanted, fields []string) (bool, error) {
	var answer struct {
		Issues *[]issue `json:"issues"`
		Errors []any    `json:"issueErrors"`
	}
	k := r.c.request(r.ctx, false, http.MethodPost, "rest/api/2/issue/bulkfetch", map[string]any{
		"issueIdsOrKeys": wanted, "fields": fields, "properties": []string{r.c.o.Property},
	})
	if k.answer.Status == http.StatusNotFound || k.answer.Status == http.StatusMethodNotAllowed {
		return false, nil
	}
	_, err := r.c.take(k, &answer)
	if err == nil && (answer.Issues == nil || len(answer.Errors) > 0) {
		// What is missing is simply not listed; an error is something else.
		err = fmt.Errorf("%w: it lists no issues, or %d errors", errUnreadable, len(answer.Errors))
	}
	if err != nil {
		return true, fmt.Errorf("bulk fetch: %w", err)
	}
	for _, i := range *answer.Issues {
		if !i.usable() {
			return true, fmt.Errorf("bulk fetch: %w: one of them is no issue", errUnreadable)
		}
		p.add(&i, "")
	}
	return true, nil
}
