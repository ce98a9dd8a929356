package jira

import (
	"fmt"

	"github.com/readback-go/readback/intent"
)

// Sample makes the intents of records to be measured, in the project (issues)
// or on the issue (comments) that the options name. The error names
// the option that is missing.
func (c *Connector) Sample(kind string, w intent.WriteType, name string) (intent.WriteIntent, error) {
	reference := "readback-sample-" + name
	in := intent.WriteIntent{Kind: kind, Write: w, Expect: intent.Fields{}}
	switch {
	case kind != KindIssue && kind != KindComment:
		return intent.WriteIntent{}, fmt.Errorf("%w: /kind is %s; want %s or %s", errSample, clip(kind), KindIssue, KindComment)
	case w != intent.Create && w != intent.Update && w != intent.Delete:
		return intent.WriteIntent{}, fmt.Errorf("%w: /write is %s; want create, update or delete", errSample, clip(string(w)))
	case referenceProblem(reference) != "":
		return intent.WriteIntent{}, fmt.Errorf("%w: the name %s; want letters and digits", errSample, clip(name))
	case kind == KindIssue && c.o.Project == "":
		return intent.WriteIntent{}, fmt.Errorf("%w: the option Project is missing; want the key of a sandbox project", errSample)
	case kind == KindComment && c.o.Issue == "":
		return intent.WriteIntent{}, fmt.Errorf("%w: the option Issue is missing; want the key of an issue that takes sample comments", errSample)
	}
	title := "readback sample " + name
	if w == intent.Update {
		title += ", changed"
	}
	if kind == KindComment {
		in.Key = intent.Fields{"issue": c.o.Issue, "reference": reference}
		in.Expect["body"] = title
	} else {
		in.Key = intent.Fields{"project": c.o.Project, "reference": reference}
		in.Expect["summary"] = title
		in.Expect["description"] = "Made to measure how this Jira behaves. It may be deleted."
	}
	switch {
	case w == intent.Delete:
		in.Expect = nil
	case w == intent.Create && kind == KindIssue:
		in.Payload = intent.Fields{"issuetype": c.o.IssueType}
	}
	return in, nil
}
