package rest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/internal/verifytest"
	"github.com/readback-go/readback/readbacktest/fault"
)

const hubIssues = "/repos/acme/widgets/issues"

func gitHub(o fakerest.GitHubOptions) (api, *fakerest.GitHub) {
	o.Collaborators = []string{"robot", "Ada"}
	g := fakerest.NewGitHub(o)
	return api{
		fake: g.Fake, name: "github-issues", kind: "issue", collection: fakerest.Issues, list: hubIssues,
		options: rest.Options{
			Parameters: map[string]string{"owner": "acme", "repo": "widgets"},
			Secrets:    secrets(map[string]string{"token": "github-token"}),
		},
		intent: hubIntent, near: hubNear, record: hubRecord,
		put: func(f intent.Fields, stamp string) error {
			if stamp == "" {
				stamp = "-"
			}
			title, _ := f["title"].(string)
			body, _ := f["body"].(string)
			o := g.SeedIssue(title, fmt.Sprintf("<!-- readback:%s %s -->\n%s", stamp, f["marker"], body),
				append(stringsOf(f["labels"]), "readback-"+fmt.Sprint(f["marker"])), nil)
			return hubAlter(g, o, intent.Fields{"assignees": f["assignees"], "milestone": f["milestone"]})
		},
		alter:  func(o fakerest.Object, f intent.Fields) error { return hubAlter(g, o, f) },
		change: intent.Fields{"body": "by hand"},
		traits: traits{lacks: map[string]string{connectortest.LacksFindStamp: "issues are listed by the label of their key; a second label for each, with its stamp, would clutter the repository"}},
	}, g
}

func stringsOf(list any) []string {
	var all []string
	items, _ := list.([]any)
	for _, v := range items {
		all = append(all, fmt.Sprint(v))
	}
	return all
}

// hubAlter changes an issue as another actor would.
func hubAlter(g *fakerest.GitHub, o fakerest.Object, f intent.Fields) error {
	g.Edit(fakerest.Issues, fmt.Sprint(o["number"]), func(o fakerest.Object) {
		o["updated_at"] = time.Now().Add(time.Second).UTC().Format(time.RFC3339)
		for name, v := range f {
			switch name {
			case "labels":
				o["labels"] = append(named("name", v), hubOwn(o)...)
			case "assignees":
				o["assignees"] = named("login", v)
			case "milestone":
				o["milestone"] = nil
				if v != nil {
					o["milestone"] = map[string]any{"number": v}
				}
			case "body":
				mark, _, _ := strings.Cut(o.Text("body"), "\n")
				o["body"] = mark + "\n" + fmt.Sprint(v)
			default:
				o[name] = v
			}
		}
	})
	return nil
}

func named(member string, list any) []any {
	all := []any{}
	for _, name := range stringsOf(list) {
		all = append(all, map[string]any{member: name})
	}
	return all
}

// hubOwn is the label of ours that an issue has.
func hubOwn(o fakerest.Object) []any {
	var own []string
	for _, name := range fakerest.HubLabels(o) {
		if strings.HasPrefix(name, "readback-") {
			own = append(own, name)
		}
	}
	list := []any{}
	for _, name := range own {
		list = append(list, name)
	}
	return named("name", list)
}

var hubMark = regexp.MustCompile(`<!-- readback:(\S*) (\S+) -->\n?`)

// hubRecord shows an issue as the declaration should.
func hubRecord(o fakerest.Object) (connectors.Record, bool) {
	body := o.Text("body")
	mark := hubMark.FindStringSubmatch(body)
	if mark == nil || o["pull_request"] != nil {
		return connectors.Record{}, false
	}
	labels := []any{}
	for _, name := range fakerest.HubLabels(o) {
		if !strings.HasPrefix(strings.ToLower(name), "readback-") {
			labels = append(labels, name)
		}
	}
	f := intent.Fields{
		"marker": mark[2], "title": o["title"], "body": strings.Replace(body, mark[0], "", 1), "labels": labels,
		"assignees": []any{}, "state": o["state"], "state_reason": o["state_reason"],
	}
	users, _ := o["assignees"].([]any)
	for _, u := range users {
		f["assignees"] = append(f["assignees"].([]any), u.(map[string]any)["login"])
	}
	r := connectors.Record{Ref: fmt.Sprint(o["number"]), Version: o.Text("updated_at"), Fields: f}
	if strings.HasPrefix(mark[1], "rb-") {
		r.Stamp = mark[1]
	}
	return r, true
}

func hubIntent(w intent.WriteType, n int) intent.WriteIntent {
	in := intent.WriteIntent{Kind: "issue", Write: w, Key: intent.Fields{"marker": fmt.Sprintf("inc-%03d", n)}}
	switch w {
	case intent.Create:
		in.Expect = intent.Fields{
			"title": fmt.Sprintf("Printer %d on fire", n), "body": fmt.Sprintf("Since noon, %d.\n\nIt smokes.", n),
			"labels": []any{"bug", "Urgent"}, "assignees": []any{"Ada"},
		}
	case intent.Update:
		in.Expect = intent.Fields{"title": "Printer was on fire", "labels": []any{"bug"}, "state": "closed"}
	}
	return in
}

func hubNear(n int) []intent.WriteIntent {
	id := fmt.Sprintf("inc-%03d", n)
	return connectortest.Near(hubIntent, "marker", strings.ToUpper(id), id[:len(id)-1], id+"0", "inc.001", "inc_001", "001", "Inc-001")
}

func hubSuite() connectortest.Harness {
	return suite(func() api { a, _ := gitHub(fakerest.GitHubOptions{}); return a }, intent.Create, intent.Update, intent.Delete)
}

func TestGitHub(t *testing.T) { connectortest.Run(t, hubSuite()) }

func TestGitHubDeclared(t *testing.T) {
	a, _ := gitHub(fakerest.GitHubOptions{})
	declared(t, a)
}

func TestGitHubAudit(t *testing.T) {
	audit(t, hubSuite(),
		verifytest.Difference{
			Name: "labels", Reason: "labels are a set, and one that the repository knows in other letters is meant",
			Declared: func(w *intent.WriteIntent) { w.Expect["labels"] = []any{"urgent", "BUG"} },
		},
		verifytest.Difference{
			Name: "trimmed", Reason: "titles are trimmed", Stored: func(w *intent.WriteIntent) { w.Expect["title"] = fmt.Sprintf(" %s ", w.Expect["title"]) },
		},
		verifytest.Difference{
			Name: "line ends", Reason: "an edit by hand makes CRLF of LF",
			After: func(f *connectortest.Fixture, w intent.WriteIntent) {
				if err := f.Alter(w.Key, intent.Fields{"body": strings.ReplaceAll(fmt.Sprint(w.Expect["body"]), "\n", "\r\n") + "\r\n"}); err != nil {
					panic(err)
				}
			},
		},
		verifytest.Difference{
			Name: "an empty body", Reason: "an empty body, none and null are the same",
			Stored:   func(w *intent.WriteIntent) { w.Expect["body"] = "" },
			Declared: func(w *intent.WriteIntent) { w.Expect["body"] = nil },
		},
	)
}

// TestGitHubLimits: each form of a rate limit is recognised, and nothing is applied.
func TestGitHubLimits(t *testing.T) {
	for how, c := range map[string]struct {
		fate   connectors.Fate
		wait   time.Duration
		reason string
	}{
		"429":       {connectors.FateThrottled, 30 * time.Second, "429 with Retry-After"},
		"secondary": {connectors.FateThrottled, 30 * time.Second, "403 with Retry-After"},
		"primary":   {connectors.FateThrottled, 31 * time.Second, "403 and the time at which the hour begins anew"},
		"bare":      {connectors.FateThrottled, time.Minute, "403 in words only"},
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, g := gitHub(fakerest.GitHubOptions{})
				con, _ := a.connector(t)
				if err := g.Set(fault.Fault{Kind: fault.Throttled, Times: 1, How: how, Delay: 30 * time.Second}); err != nil {
					t.Fatal(err)
				}
				_, err := a.send(t, con, hubIntent(intent.Create, 1), 1)
				var e *connectors.Error
				if connectors.FateOf(err) != c.fate || !errors.As(err, &e) || e.RetryAfter != c.wait {
					t.Errorf("%v (wait %v), want %q after %v: %s", err, e, c.fate, c.wait, c.reason)
				}
			})
		})
	}
}

// TestGitHubRefusals: what is no limit is a refusal.
func TestGitHubRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		options fakerest.GitHubOptions
		how     string
		reason  string
	}{
		"no permission": {how: "403", reason: "a 403 without a word of limits"},
		"invalid":       {how: "422", reason: "validation"},
		"hidden":        {options: fakerest.GitHubOptions{Hidden: true}, reason: "404 is the answer to who has no access"},
		"disabled":      {options: fakerest.GitHubOptions{Disabled: true}, reason: "410: issues are switched off"},
		"renamed":       {options: fakerest.GitHubOptions{Repo: "gadgets", FormerRepo: "widgets"}, reason: "301 is not followed, and was not applied"},
	} {
		t.Run(name, func(t *testing.T) {
			a, g := gitHub(c.options)
			con, _ := a.connector(t)
			if c.how != "" {
				if err := g.Set(fault.Fault{Kind: fault.Refused, How: c.how}.Once()); err != nil {
					t.Fatal(err)
				}
			}
			in := hubIntent(intent.Create, 1)
			if _, err := a.send(t, con, in, 1); connectors.FateOf(err) != connectors.FateRefused {
				t.Errorf("%v, want refused: %s", err, c.reason)
			}
			if n := len(g.Effects()); n != 0 {
				t.Errorf("%d effects, want none", n)
			}
			if c.how != "" {
				return
			}
			for _, ref := range []string{"", "1"} {
				if o, err := con.Read(t.Context(), a.query(in, ref)); err == nil {
					t.Errorf("a read with the ref %q says %d records; want an error, since the read proves nothing", ref, len(o.Records))
				}
			}
		})
	}
}

// TestGitHubDropsLabels: without push access the issue is there and its label is not. That must
// never look like absence.
func TestGitHubDropsLabels(t *testing.T) {
	a, g := gitHub(fakerest.GitHubOptions{NoPush: true})
	con, _ := a.connector(t)
	in := hubIntent(intent.Create, 1)
	receipt, err := a.send(t, con, in, 1)
	if err != nil || len(g.Effects()) != 1 {
		t.Fatalf("%v, %d effects; want the 201 that GitHub gives", err, len(g.Effects()))
	}
	if o, err := con.Read(t.Context(), a.query(in, "")); err == nil {
		t.Errorf("a lookup by a label that was dropped says %d records; want an error", len(o.Records))
	}
	if o, err := con.Read(t.Context(), a.query(in, receipt.Ref)); err == nil && len(o.Records) == 0 {
		t.Error("with the ref the read says that there is nothing")
	}
	if err := con.Probe(t.Context()); err == nil {
		t.Error("the probe is content with a token that cannot push")
	}
}

// TestGitHubSilentDrops: a read shows that a 201 stored less than requested.
func TestGitHubSilentDrops(t *testing.T) {
	a, _ := gitHub(fakerest.GitHubOptions{})
	con, _ := a.connector(t)
	in := hubIntent(intent.Create, 1)
	in.Expect["assignees"] = []any{"Ada", "nobody-here"}
	if _, err := a.send(t, con, in, 1); err != nil {
		t.Fatal(err)
	}
	o, err := con.Read(t.Context(), a.query(in, ""))
	if err != nil || len(o.Records) != 1 {
		t.Fatalf("%v, %v", o, err)
	}
	if got := fmt.Sprint(o.Records[0].Fields["assignees"]); got != "[Ada]" {
		t.Errorf("assignees %s, want whom GitHub kept", got)
	}
}

// TestGitHubLists: pull requests, closed issues, many pages, issues that only have the label.
func TestGitHubLists(t *testing.T) {
	a, g := gitHub(fakerest.GitHubOptions{})
	con, _ := a.connector(t)
	in := hubIntent(intent.Create, 1)
	const label = "readback-inc-001"
	mark := "<!-- readback:- inc-001 -->\n"
	g.SeedIssue("closed", mark, []string{label}, fakerest.Object{"state": "closed"})
	for n := range 130 { // the same label, to GitHub
		g.SeedIssue(fmt.Sprintf("chatter %d", n), "<!-- readback:- INC-001 -->\n", []string{"Readback-INC-001"}, nil)
	}
	g.SeedIssue("a pull request", mark, []string{label}, fakerest.Object{"pull_request": map[string]any{"url": "x"}})
	o, err := con.Read(t.Context(), a.query(in, ""))
	if err != nil || len(o.Records) != 1 || o.Records[0].Fields["title"] != "closed" {
		t.Fatalf("%+v, %v; want the closed issue from the second page, and no pull request", o.Records, err)
	}
	for _, call := range g.Calls() {
		if strings.HasPrefix(call.Path, "/search") || call.Header.Get("If-None-Match") != "" {
			t.Errorf("%s %s: neither the search nor a conditional read may be asked", call.Method, call.Path)
		}
	}
	for range 1000 {
		g.SeedIssue("more", "<!-- readback:- INC-001 -->\n", []string{label}, nil)
	}
	if o, err := con.Read(t.Context(), a.query(in, "")); err == nil {
		t.Errorf("a list cut at its limit says %d records, want an error", len(o.Records))
	}
}

// TestGitHubMarkTakenOff: an issue with our label and without a mark can be ours, edited by hand.
// That is unknowable, so nothing is called absent.
func TestGitHubMarkTakenOff(t *testing.T) {
	for name, edit := range map[string]func(o fakerest.Object){
		"rewritten": func(o fakerest.Object) { o["body"] = "all new" },
		"emptied":   func(o fakerest.Object) { o["body"] = nil },
		"no text":   func(o fakerest.Object) { o["body"] = json.Number("1") },
		"missing":   func(o fakerest.Object) { delete(o, "body") },
	} {
		t.Run(name, func(t *testing.T) {
			a, g := gitHub(fakerest.GitHubOptions{})
			con, _ := a.connector(t)
			in := hubIntent(intent.Create, 1)
			if _, err := a.send(t, con, in, 1); err != nil {
				t.Fatal(err)
			}
			g.Edit(fakerest.Issues, "1", edit)
			if o, err := con.Read(t.Context(), a.query(in, "")); err == nil {
				t.Errorf("the read says %d records, want an error", len(o.Records))
			}
		})
	}
}

// TestGitHubUpdateKeepsMarks: labels and bodies are replaced whole; what is ours stays, and only
// requested changes are sent.
func TestGitHubUpdateKeepsMarks(t *testing.T) {
	for name, c := range map[string]struct {
		expect intent.Fields
		reason string
	}{
		"title":  {intent.Fields{"title": "new"}, "labels that are not named stay"},
		"labels": {intent.Fields{"labels": []any{"x"}}, "our label stays beside those that are named"},
		"none":   {intent.Fields{"labels": []any{}}, "our label stays alone"},
		"body":   {intent.Fields{"body": "other"}, "our mark stays in the body, with the stamp of the create"},
		"forged": {intent.Fields{"body": "<!-- readback:- inc-002 -->"}, "another actor's mark in the text is text"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := gitHub(fakerest.GitHubOptions{})
			con, _ := a.connector(t)
			made := hubIntent(intent.Create, 1)
			if _, err := a.send(t, con, made, 1); err != nil {
				t.Fatal(err)
			}
			was := a.under(made.Key)[0]
			in := hubIntent(intent.Update, 1)
			in.Expect = c.expect
			if _, err := a.send(t, con, in, 1); err != nil {
				t.Fatal(err)
			}
			o, err := con.Read(t.Context(), a.query(in, ""))
			if err != nil || len(o.Records) != 1 || o.Records[0].Stamp != was.Stamp {
				t.Fatalf("%+v, %v; want the one record with the stamp of its create: %s", o.Records, err, c.reason)
			}
			for _, field := range []string{"title", "labels"} {
				if _, asked := c.expect[field]; !asked && fmt.Sprint(o.Records[0].Fields[field]) != fmt.Sprint(was.Fields[field]) {
					t.Errorf("%s is %v, and was %v: %s", field, o.Records[0].Fields[field], was.Fields[field], c.reason)
				}
			}
		})
	}
}

// TestGitHubByNumber: any issue can be reached by its number, and none can be
// deleted by it.
func TestGitHubByNumber(t *testing.T) {
	a, g := gitHub(fakerest.GitHubOptions{})
	con, _ := a.connector(t)
	theirs := g.SeedIssue("theirs", "text", []string{"bug"}, nil)
	in := intent.WriteIntent{Write: intent.Update, Key: intent.Fields{"number": theirs["number"]}, Expect: intent.Fields{"state": "closed", "labels": []any{"bug", "done"}}}
	if _, err := a.send(t, con, in, 1); err != nil {
		t.Fatal(err)
	}
	now := g.Now(fakerest.Issues)[0]
	if now["state"] != "closed" || fmt.Sprint(fakerest.HubLabels(now)) != "[bug done]" || now["body"] != "text" {
		t.Errorf("it is %v, want it closed with the two labels and nothing of ours", now)
	}
	in.Write, in.Expect = intent.Delete, nil
	if _, err := a.send(t, con, in, 1); connectors.FateOf(err) != connectors.FateRefused {
		t.Errorf("a delete by number: %v, want it not sent, since the issue would still be there", err)
	}
}

// TestGitHubKeys: a marker without an exact query is refused.
func TestGitHubKeys(t *testing.T) {
	for _, marker := range []string{"a,b", "a -->", "-x", "", strings.Repeat("x", 41), "a\nb", "é"} {
		a, g := gitHub(fakerest.GitHubOptions{})
		con, _ := a.connector(t)
		in := hubIntent(intent.Create, 1)
		in.Key = intent.Fields{"marker": marker}
		if _, err := a.send(t, con, in, 1); connectors.FateOf(err) != connectors.FateNotSent {
			t.Errorf("%q: %v, want not sent", marker, err)
		}
		if _, err := con.Read(t.Context(), a.query(in, "")); err == nil {
			t.Errorf("%q: a read that cannot be exact says nothing is wrong", marker)
		}
		if writes, reads := g.Count(); writes+reads > 0 {
			t.Errorf("%q: %d requests arrived", marker, writes+reads)
		}
	}
}
