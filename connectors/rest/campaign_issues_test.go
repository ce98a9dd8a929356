package rest_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// dig is the value at a path of names and indexes, nil where there is none.
func dig(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(map[string]any)
			if whole, ok := v.(fakerest.Object); ok {
				o = whole
			}
			v = o[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// ending is text that ends with a name of ours within it, which re captures last, after the text.
func ending(re *regexp.Regexp, text any) (before, name string, ok bool) {
	s, _ := text.(string)
	m := re.FindStringSubmatch(s)
	if m == nil {
		return s, "", false
	}
	return m[1], m[2], true
}

// marked is text that begins with our mark, as the declarations write it: the key in the mark, "" for
// none, and the text below it.
func marked(text any) (marker, rest string) {
	s, _ := text.(string)
	m := regexp.MustCompile(`(?s)^<!-- readback:\S*(?: (\S+))? -->\n?(.*)$`).FindStringSubmatch(s)
	if m == nil {
		return "", s
	}
	return m[1], m[2]
}

const wholeFile = "a file is its contents; a commit has all of them or is refused"

// ownText is of what has no field but a text, which has our mark.
func ownText(kind string) map[string]string {
	reason := "the text of a " + kind + " is all that is declared of it, and has our mark: another text is none of ours"
	return map[string]string{string(fault.DroppedField): reason, string(fault.NormalisedField): reason}
}

func init() {
	github := func(kind string, d destination) {
		d.kind, d.parameters, d.secrets, d.lag = kind, map[string]string{"owner": "acme", "repo": "widgets"}, map[string]string{"token": "github-token"}, 8*time.Minute
		d.open = func() *fakerest.Fake {
			g := fakerest.NewGitHub(fakerest.GitHubOptions{})
			for n := range campaignWrites / 20 {
				g.Put(fakerest.Issues, func(fakerest.View) (string, fakerest.Object) {
					number := strconv.Itoa(1_000_000 + n)
					return number, fakerest.Object{"number": fakerest.Number(int64(1_000_000 + n)), "title": "Discuss", "state": "open"}
				})
			}
			return g.Fake
		}
		destinations["github-changes/"+kind] = d
	}
	github("comment", destination{
		collection: fakerest.HubComments, member: "marker", traits: traits{lacks: ownText("comment")}, update: intent.Fields{"body": "It is late."},
		alter: func(o fakerest.Object) {
			mark, _, _ := strings.Cut(o.Text("body"), "\n")
			o["body"], o["updated_at"] = mark+"\nBy hand.", "2036-01-01T00:00:00Z"
		},
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"issue": fmt.Sprint(1_000_000 + n/20), "marker": fmt.Sprintf("run-%03d", n)},
				Expect: intent.Fields{"body": fmt.Sprint("Run ", n, " passed.\n- all of it")}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			marker, body := marked(o["body"])
			return connectors.Record{Ref: fmt.Sprint(o["id"]), Fields: intent.Fields{"issue": o[".issue"], "marker": marker, "body": body}}, marker != ""
		},
		// The same text, or a comment that quotes ours; with our mark if taken.
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
			f.Put(fakerest.HubComments, func(now fakerest.View) (string, fakerest.Object) {
				id := 9_000_000 + now.Next()
				body := fmt.Sprintf("> <!-- readback:x %s -->\n%s", w.Key["marker"], w.Expect["body"])
				if taken {
					body = body[2:]
				}
				issue := fmt.Sprint(w.Key["issue"])
				return fmt.Sprint(id), fakerest.Object{"id": fakerest.Number(id), "body": body, ".issue": issue, "updated_at": now.At().UTC().Format(time.RFC3339),
					"issue_url": "https://api.github.com/repos/acme/widgets/issues/" + issue}
			})
		},
	})
	side := func(label string) map[string]any {
		_, ref, _ := strings.Cut(label, ":")
		return map[string]any{"label": label, "ref": ref}
	}
	github("pull-request", destination{
		collection: fakerest.HubPulls, native: true, member: "head", update: intent.Fields{"title": "Changed"}, traits: traits{spoils: "title", lacks: map[string]string{
			connectortest.LacksRemoval:           "a pull request cannot be deleted; it is closed",
			string(fault.DuplicateBehindOurBack): "there is one open pull request between two branches",
		}},
		alter: func(o fakerest.Object) { o["title"], o["updated_at"] = "By hand", "2036-01-01T00:00:00Z" },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"head": fmt.Sprintf("acme:fix-%03d", n), "base": "main"},
				Expect: intent.Fields{"title": fmt.Sprint("Fix ", n), "body": "It was broken."}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			_, body := marked(o["body"])
			return connectors.Record{Ref: fmt.Sprint(o["number"]), Fields: intent.Fields{"head": dig(o, "head", "label"), "base": dig(o, "base", "ref"), "title": o["title"], "body": body, "state": o["state"]}}, true
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // of another branch, or of ours
			f.Put(fakerest.HubPulls, func(now fakerest.View) (string, fakerest.Object) {
				number, head := 2_000_000+now.Next(), fmt.Sprintf("acme:fix-%03d-too", n)
				if taken {
					head = fmt.Sprint(w.Key["head"])
				}
				return fmt.Sprint(number), fakerest.Object{"number": fakerest.Number(number), "state": "open", "title": w.Expect["title"], "body": w.Expect["body"],
					"head": side(head), "base": side("acme:main"), "updated_at": now.At().UTC().Format(time.RFC3339)}
			})
		},
	})
	destinations["github-files/file"] = destination{
		kind: "file", parameters: map[string]string{"owner": "acme", "repo": "widgets"}, secrets: map[string]string{"token": "github-token"}, collection: fakerest.HubFiles, native: true, lag: 8 * time.Minute,
		open: func() *fakerest.Fake { return fakerest.NewGitHub(fakerest.GitHubOptions{}).Fake },
		traits: traits{lacks: map[string]string{
			string(fault.DuplicateBehindOurBack): "a path has one file",
			string(fault.DroppedField):           wholeFile, string(fault.NormalisedField): wholeFile,
		}},
		member: "path", update: intent.Fields{"content": "Y2hhbmdlZAo="},
		alter: func(o fakerest.Object) { o["sha"], o[".text"] = fmt.Sprintf("%040x", 1<<40), "changed by hand" },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"branch": "main", "path": fmt.Sprintf("docs/a b/ü-%03d.md", n)},
				Expect: intent.Fields{"content": base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "# Run %d\n", n))}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: o.Text("path"), Version: o.Text("sha"),
				Fields: intent.Fields{"branch": "main", "path": o["path"], "content": base64.StdEncoding.EncodeToString([]byte(o.Text(".text")))}}, true
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // beside ours, or ours with other contents
			f.Put(fakerest.HubFiles, func(fakerest.View) (string, fakerest.Object) {
				path := fmt.Sprint(w.Key["path"])
				if !taken {
					path += ".txt"
				}
				return "main:" + path, fakerest.Object{"type": "file", "path": path, "sha": fmt.Sprintf("%040x", n), ".text": "by hand"}
			})
		},
	}
	destinations["gitlab-issues/issue"] = destination{
		kind: "issue", parameters: map[string]string{"project": "42"}, secrets: map[string]string{"token": "glpat-readback"}, collection: fakerest.GitLabIssues, lag: 40 * time.Second,
		open:   func() *fakerest.Fake { return fakerest.NewGitLab(fakerest.GitLabOptions{Owner: true}).Fake }, // no one else deletes issues
		update: intent.Fields{"title": "Changed"}, traits: traits{spoils: "title"},
		alter: func(o fakerest.Object) { o["title"], o["updated_at"] = "By hand", "2036-01-01T00:00:00Z" },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"marker": fmt.Sprintf("alert-%03d", n)},
				Expect: intent.Fields{"title": fmt.Sprint("Disk ", n), "description": "It is full.", "labels": []any{"ops"}}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			marker, description := marked(o["description"])
			labels := []any{}
			for _, label := range stringsOf(o["labels"]) {
				if own, ok := strings.CutPrefix(label, "readback-"); ok { // it is ours, also if the text was rewritten
					marker = own
				} else {
					labels = append(labels, label)
				}
			}
			return connectors.Record{Ref: fmt.Sprint(o["iid"]), Fields: intent.Fields{"marker": marker, "title": o["title"], "description": description, "labels": labels, "state": o["state"]}}, marker != ""
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same title, with our mark if taken
			f.Put(fakerest.GitLabIssues, func(now fakerest.View) (string, fakerest.Object) {
				iid := 9_000_000 + now.Next()
				o := fakerest.Object{"iid": fakerest.Number(iid), "title": w.Expect["title"], "description": w.Expect["description"], "state": "opened", "labels": []any{"ops"}}
				if taken {
					o["labels"], o["description"] = []any{"ops", fmt.Sprint("readback-", w.Key["marker"])}, fmt.Sprintf("<!-- readback:x %s -->\nIt is full.", w.Key["marker"])
				}
				return fmt.Sprint(iid), o
			})
		},
	}
}
