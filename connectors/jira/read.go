package jira

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// The ways of reading, as observations name them.
const (
	pathGet    = "get"    // the issue or comment itself, by key or id
	pathSearch = "search" // the index for the ids, the issues themselves for the rest
	pathList   = "list"   // all comments of the issue
)

// question is one parsed query and its answer.
type question struct {
	target
	connectors.Query
	stamp  string // to be searched; "" if no record can have it
	fields []string
	answer *connectors.BulkAnswer
}

// Read returns every record of one query. An issue that the key names is read directly, which is
// strong. One that has a reference is searched in the index, which may lag, and then read
// directly: the records shown are current, but the index may miss an existing one.
func (c *Connector) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	answers, err := c.ReadMany(ctx, []connectors.Query{q})
	if err != nil {
		return connectors.Observation{}, err
	}
	return answers[0].Observation, answers[0].Err
}

// ReadMany reads several queries: issues together, one search for every twenty
// references and one bulk fetch for every hundred issues where Jira has it;
// comments one after the other. Queries beyond the profile's BulkLimit are
// taken too.
func (c *Connector) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	began := time.Now()
	answers := make([]connectors.BulkAnswer, len(qs))
	var issues, comments []*question
	for i, q := range qs {
		asked, err := newQuestion(q, &answers[i])
		switch {
		case err != nil:
			answers[i].Err = err
		case asked.kind == KindComment:
			comments = append(comments, asked)
		default:
			issues = append(issues, asked)
		}
	}
	if len(issues)+len(comments) == 0 {
		return answers, nil
	}
	d, err := c.deployment(ctx)
	if err != nil {
		return nil, err
	}
	r := &reader{c: c, d: d, ctx: ctx, seen: map[string]error{}}
	for chunk := range slices.Chunk(issues, searchChunk) {
		r.answerEach(chunk)
	}
	for _, q := range comments {
		if err := r.comments(q); err != nil {
			*q.answer = connectors.BulkAnswer{Err: err}
		}
	}
	for i := range answers {
		if answers[i].Err == nil {
			answers[i].Observation.At = began
			sortRecords(answers[i].Observation.Records)
		}
	}
	return answers, nil
}

func newQuestion(q connectors.Query, answer *connectors.BulkAnswer) (*question, error) {
	t, err := locate(q.Intent)
	if err != nil {
		return nil, err
	}
	asked := &question{target: t, Query: q, answer: answer}
	if t.kind == KindIssue {
		if asked.fields, err = fieldsOf(q.Intent); err != nil {
			return nil, err
		}
	}
	if t.reference != "" && stampForm.MatchString(q.Stamp) {
		// Only a create leaves a stamp, and only a create cannot name the
		// issue itself.
		asked.stamp = q.Stamp
	}
	return asked, nil
}

// sortRecords puts records in the order in which they were made.
func sortRecords(records []connectors.Record) {
	slices.SortFunc(records, func(a, b connectors.Record) int { return cmp.Compare(idNumber(a.Ref), idNumber(b.Ref)) })
}

func idNumber(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// reader is one read in progress. seen is the known permission for projects since the issues in
// question were read.
type reader struct {
	c    *Connector
	d    Deployment
	ctx  context.Context //nolint:containedctx // it lives as long as one call
	seen map[string]error
}

// answerEach answers questions together, and one by one if that fails: an unreadable issue
// affects only its own question.
func (r *reader) answerEach(questions []*question) {
	err := r.answer(questions)
	if err == nil {
		return
	}
	if len(questions) == 1 {
		*questions[0].answer = connectors.BulkAnswer{Err: err}
		return
	}
	for _, q := range questions {
		*q.answer = connectors.BulkAnswer{}
		r.answerEach([]*question{q})
	}
}

// answer finds candidates, reads them, and assigns them.
func (r *reader) answer(questions []*question) error {
	found, err := r.search(questions)
	if err != nil {
		return err
	}
	ids, keys := found, map[string]bool{}
	for _, q := range questions {
		switch {
		case q.issue != "" && !idForm.MatchString(q.issue):
			keys[q.issue] = true
		case q.issue != "":
			ids = append(ids, q.issue)
		}
		if idForm.MatchString(q.Ref) {
			ids = append(ids, q.Ref)
		}
	}
	slices.Sort(ids)
	all, err := r.fetch(slices.Compact(ids), keys, fieldsOfAll(questions))
	if err != nil {
		return err
	}
	clear(r.seen) // a permission that was there before they were read proves nothing
	for _, q := range questions {
		if !r.share(q, all, found, questions) {
			return errShared
		}
	}
	return nil
}

func fieldsOfAll(questions []*question) []string {
	var all []string
	for _, q := range questions {
		all = append(all, q.fields...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// errShared makes questions of a common read be read one by one.
var errShared = errors.New("it is unknown which query an issue answers")

// share assigns a question its records from all that were read for several. It reports whether
// that was possible.
func (r *reader) share(q *question, all *pool, found []string, several []*question) bool {
	o := connectors.Observation{Path: pathSearch, Records: []connectors.Record{}}
	if q.issue != "" {
		o.Path, o.Strength = pathGet, connectors.Strong
	}
	for _, i := range all.issues {
		answers, elsewhere := q.answeredBy(i, all, r.c.o.Property)
		if elsewhere && len(several) > 1 {
			if explained := slices.ContainsFunc(several, func(other *question) bool {
				theirs, _ := other.answeredBy(i, all, r.c.o.Property)
				return other != q && theirs
			}); !explained {
				return false
			}
			elsewhere = false
		}
		if !answers && !elsewhere {
			continue
		}
		if name := q.unseen(i); name != "" {
			q.answer.Err = fmt.Errorf("%w: the field %s of %s is not shown, so it is unknown whether it is empty", errUnreadable, name, i.Key)
			return true
		}
		o.Records = append(o.Records, r.c.record(i, q, r.d))
	}
	// No result, or an issue that the index shows and no read returns: both may mean that we lack
	// permission.
	if len(o.Records) == 0 || all.lacks(found) {
		if q.answer.Err = r.permitted(q.home()); q.answer.Err != nil {
			return true
		}
	}
	q.answer.Observation = o
	return true
}

// unseen names a field that should be empty and is missing in the answer. Jira shows an unset
// field as null: a field that is left out is hidden from us, and may have any value.
func (q *question) unseen(i *issue) string {
	for _, wanted := range []intent.Fields{q.Intent.Expect, q.Intent.Require} {
		for name, v := range wanted {
			if _, there := i.Fields[name]; !there && (v == nil || v == "") {
				return name
			}
		}
	}
	return ""
}

// answeredBy reports whether an issue matches the question, with exact equality. elsewhere means
// that it has the reference and is in another project than that of the key, although a search in
// that project returned it: it was moved, or its project got another key. It is shown unchanged,
// since a record that no longer matches must not be mistaken for nothing.
func (q *question) answeredBy(i *issue, all *pool, property string) (answers, elsewhere bool) {
	switch {
	case q.Ref != "" && i.ID == q.Ref:
		return true, false // whatever became of its labels, it is the one that was made
	case q.issue != "":
		return all.named(q.issue) == i, false
	case q.stamp != "" && (markOf(i.Properties[property]).Stamp == q.stamp || slices.Contains(i.labels(), any(q.stamp))):
		return true, false
	case !slices.Contains(i.labels(), any(q.reference)):
		return false, false
	}
	project, _ := i.Fields["project"].(map[string]any)
	here := project["key"] == any(q.project)
	return here, !here
}
