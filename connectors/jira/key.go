package jira

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/readback-go/readback/intent"
)

// target is where a record is read.
type target struct {
	kind string
	// issue is the key or id of the issue; "" where project and reference are
	// the key.
	issue string
	// project is the project of the record, "" if unknown.
	project string
	// reference is the caller's own name for the record.
	reference string
	// comment is the id of the comment.
	comment string
}

var (
	projectForm  = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	issueKeyForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}-[1-9][0-9]{0,17}$`)
	idForm       = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)
	stampForm    = regexp.MustCompile(`^rb-[a-z2-7]{32}$`)
)

// locate turns a business key into a target. The error names the field that cannot be queried.
func locate(w intent.WriteIntent) (target, error) {
	names := map[string][]string{
		KindIssue:   {"issue", "project", "reference"},
		KindComment: {"issue", "project", "reference", "comment"},
	}[w.Kind]
	if names == nil {
		return target{}, unusable("/kind", "is "+clip(w.Kind), KindIssue+" or "+KindComment)
	}
	if w.Write == intent.Upsert {
		return target{}, unusable("/write", "is upsert", "create, update or delete: Jira has no upsert")
	}
	for _, name := range slices.Sorted(maps.Keys(w.Key)) {
		if !slices.Contains(names, name) {
			return target{}, unusable("/key/"+name, "cannot be queried", strings.Join(names, ", ")+" alone")
		}
		if _, isText := w.Key[name].(string); !isText {
			return target{}, unusable("/key/"+name, "is no string", "a string")
		}
	}
	text := func(name string) string { s, _ := w.Key[name].(string); return s }
	t := target{kind: w.Kind, issue: text("issue"), project: text("project"), reference: text("reference"), comment: text("comment")}
	if err := t.check(w); err != nil {
		return target{}, err
	}
	return t, nil
}

func (t target) check(w intent.WriteIntent) error {
	if t.project != "" && (!projectForm.MatchString(t.project) || len(t.project) > maxProject) {
		return unfit("/key/project", "is "+clip(t.project), "a project key in capital letters, OPS for example", "OPS")
	}
	if t.reference != "" {
		if problem := referenceProblem(t.reference); problem != "" {
			return unfit("/key/reference", problem, fmt.Sprintf("1 to %d bytes without blanks, as labels are", maxText), "x")
		}
	}
	switch {
	case t.issue == "":
	case idForm.MatchString(t.issue) && t.project == "":
		return unusable("/key/project", "is missing next to the id of an issue", "the project that the issue is in: without it a 404 proves nothing")
	case !idForm.MatchString(t.issue) && !issueKeyForm.MatchString(t.issue):
		return unfit("/key/issue", "is "+clip(t.issue), "the key of an issue, OPS-12 for example, or its id", "OPS-12")
	}
	if t.kind == KindComment {
		return t.checkComment(w)
	}
	switch {
	case t.issue != "" && t.reference != "":
		return unusable("/key/reference", "is given beside an issue", "one of the two")
	case t.issue != "" && w.Write == intent.Create:
		return unusable("/key/issue", "is given for a create", "project and reference: Jira chooses the key of the issue")
	case t.issue == "" && t.project == "":
		return unusable("/key/project", "is missing", "a project key, with a reference; or the key of an issue in /key/issue")
	case t.issue == "" && t.reference == "":
		return unusable("/key/reference", "is missing", "your own name for the issue, which becomes a label; or the key of an issue in /key/issue")
	}
	return nil
}

func (t target) checkComment(w intent.WriteIntent) error {
	switch {
	case t.issue == "":
		return unusable("/key/issue", "is missing", "the key of the issue that the comment is on")
	case t.comment != "" && t.reference != "":
		return unusable("/key/reference", "is given beside a comment", "one of the two")
	case t.comment != "" && w.Write == intent.Create:
		return unusable("/key/comment", "is given for a create", "a reference: Jira chooses the id of the comment")
	case t.comment != "" && !idForm.MatchString(t.comment):
		return unfit("/key/comment", "is "+clip(t.comment), "the id of a comment", "10001")
	case t.comment == "" && t.reference == "":
		return unusable("/key/reference", "is missing", "your own name for the comment, or its id in /key/comment")
	}
	return nil
}

// referenceProblem: a reference is a label, and must not look like a stamp.
func referenceProblem(s string) string {
	switch {
	case len(s) > maxText || !utf8.ValidString(s):
		return "is too long or no text"
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return "is " + clip(s) + ", with blanks in it"
	case stampForm.MatchString(s):
		return "has the form of a stamp"
	}
	return ""
}

// home is the project of the record, from the key.
func (t target) home() string {
	if t.project != "" {
		return t.project
	}
	if n := strings.LastIndexByte(t.issue, '-'); n > 0 {
		return strings.ToUpper(t.issue[:n])
	}
	return ""
}
