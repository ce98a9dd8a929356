package jira_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/readbacktest/fault"
)

var update = flag.Bool("update", false, "write the tables into doc.go")

// operation is one kind of write on a site that has what it needs.
type operation struct {
	name  string
	write intent.WriteType
	in    intent.WriteIntent
}

// operations are the columns of the table of losses.
func operations() []operation {
	move := intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"},
		Expect: intent.Fields{"status": fakejira.InProgress}}
	edit, gone := issueIntent(intent.Update, 0), issueIntent(intent.Delete, 0)
	edit.Key, gone.Key = intent.Fields{"issue": "OPS-2"}, intent.Fields{"issue": "OPS-2"}
	return []operation{
		{"create", intent.Create, issueIntent(intent.Create, 1)},
		{"edit", intent.Update, edit},
		{"transition", intent.Update, move},
		{"delete", intent.Delete, gone},
		{"comment", intent.Create, commentIntent(intent.Create, 1)},
		{"its edit", intent.Update, commentIntent(intent.Update, 0)},
		{"its delete", intent.Delete, commentIntent(intent.Delete, 0)},
	}
}

// loss is one way in which an answer is lost, and the result of each operation.
type loss struct {
	answer string
	fault  fault.Fault
	down   bool // nothing answers at all
	says   [7]string
	lands  bool // it was applied, or will be
	why    string
}

func all(says string) (s [7]string) {
	for n := range s {
		s[n] = says
	}
	return s
}

// changes is all, with another word for what the record was there for.
func changes(create, change string) [7]string {
	return [7]string{create, change, change, change, create, change, change}
}

var losses = []loss{
	{answer: "no connection", fault: fault.Fault{Kind: fault.Unreachable}, says: all("-"), why: "the transport never had one: nothing can have left us"},
	{answer: "serverInfo fails", down: true, says: all("-"), why: "it is asked before anything is sent"},
	{answer: "cut, applied", fault: fault.Fault{Kind: fault.LostAnswer}, says: all("?"), lands: true, why: "the server received the request or not; the client cannot distinguish the two"},
	{answer: "cut, not applied", fault: fault.Fault{Kind: fault.DroppedBefore}, says: all("?"), why: "as above"},
	{answer: "none in time", fault: fault.Fault{Kind: fault.LateCommit}, says: all("?"), lands: true, why: "it may land after we gave up: absence counts only after Horizon"},
	{answer: "2xx, body cut", fault: fault.Fault{Kind: fault.CutBody}, says: all("yes"), lands: true, why: "the status counts, whatever the library makes of the body"},
	{answer: "2xx, nothing done", fault: fault.Fault{Kind: fault.PhantomSuccess}, says: all("yes"), why: "a yes is evidence; the read finds nothing done"},
	{answer: "301", fault: fault.Fault{Kind: fault.Refused, How: "301"}, says: all("?"), why: "never followed: it would turn the write into a GET that looks like success"},
	{answer: "400", fault: fault.Fault{Kind: fault.Refused}, says: all("no"), why: "validated before it is stored"},
	{answer: "401", fault: fault.Fault{Kind: fault.Refused, How: "401"}, says: all("login"), why: "not let in"},
	{answer: "404", fault: fault.Fault{Kind: fault.Refused, How: "404"}, says: changes("no", "no!"), why: "what was read before is gone or hidden; an earlier send may have done it"},
	{answer: "409, applied", fault: fault.Fault{Kind: fault.BadGateway, How: "409"}, says: changes("?", "?!"), lands: true, why: "a conflicting update: whose went in, it does not say"},
	{answer: "409, not applied", fault: fault.Fault{Kind: fault.Refused, How: "409"}, says: changes("?", "?!"), why: "as above"},
	{answer: "429", fault: fault.Fault{Kind: fault.Throttled}, says: all("wait"), why: "Retry-After, or X-RateLimit-Reset, which may go without seconds"},
	{answer: "502, applied", fault: fault.Fault{Kind: fault.BadGateway}, says: all("?"), lands: true, why: "a gateway speaks for itself, not for Jira"},
	{answer: "503 + Retry-After", fault: fault.Fault{Kind: fault.BadGateway, How: "503"}, says: all("?"), lands: true, why: "the header says when to ask again, not that nothing was done"},
}

// word is the code of an error in the table.
func word(err error) string {
	code := map[connectors.Fate]string{connectors.FateUnknown: "?", connectors.FateAnswered: "yes",
		connectors.FateNotSent: "-", connectors.FateRefused: "no", connectors.FateThrottled: "wait", connectors.FateLogin: "login"}[connectors.FateOf(err)]
	var e *connectors.Error
	if errors.As(err, &e) && e.Conflict {
		code += "!"
	}
	return code
}

// stage is a site with OPS-1 for comments, OPS-2 with the reference Invoice-000,
// and the comment Note-000.
func stage(t *testing.T, dataCenter bool) (*fakejira.Site, *jira.Connector) {
	t.Helper()
	s := fakejira.New(fakejira.Options{DataCenter: dataCenter, Projects: []string{"OPS", "DEV"}})
	c := connect(t, s, nil)
	if _, err := s.Seed("OPS", map[string]any{"summary": "the issue of the comments"}); err != nil {
		t.Fatal(err)
	}
	for n, in := range []intent.WriteIntent{issueIntent(intent.Create, 0), commentIntent(intent.Create, 0)} {
		if _, err := c.Write(t.Context(), request(named(in, n), nil)); err != nil {
			t.Fatal(err)
		}
	}
	return s, c
}

// named gives an intent an origin.
func named(in intent.WriteIntent, call int) intent.WriteIntent {
	in.Tenant, in.Workflow, in.Tool, in.Call, in.Destination = "acme", "run", string(in.Write), call, "jira"
	return in
}

func request(in intent.WriteIntent, before *connectors.Observation) connectors.Request {
	return connectors.Request{Intent: in, Stamp: in.Stamp(), Attempt: 1, Before: before}
}

func query(in intent.WriteIntent) connectors.Query {
	return connectors.Query{Intent: in, Stamp: in.Stamp()}
}

func read(t *testing.T, c *jira.Connector, in intent.WriteIntent) connectors.Observation {
	t.Helper()
	o, err := c.Read(t.Context(), query(in))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestLosses runs every cell of the table, on both kinds of Jira.
func TestLosses(t *testing.T) {
	for deployment, dataCenter := range deployments {
		for _, l := range losses {
			for n, op := range operations() {
				t.Run(deployment+"/"+l.answer+"/"+op.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { runLoss(t, l, op, l.says[n], dataCenter) })
				})
			}
		}
	}
}

func runLoss(t *testing.T, l loss, op operation, want string, dataCenter bool) {
	s, c := stage(t, dataCenter)
	in := named(op.in, 7)
	before := read(t, c, in)
	if l.down {
		c = connect(t, s, func(o *jira.Options) { o.Transport = failing{} })
	} else if err := s.Set(l.fault.Once()); err != nil {
		t.Fatal(err)
	}
	sends, effects := s.Sends(), len(s.Effects())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := c.Write(ctx, request(in, &before))
	if got := word(err); got != want {
		t.Errorf("it says %q (%v), want %q: %s", got, err, want, l.why)
	}
	if sent := s.Sends() - sends; sent > 1 || (want == "-" && sent > 0) {
		t.Errorf("%d sends reached Jira", sent)
	}
	<-time.After(time.Second) // late sends have arrived
	landed := len(s.Effects()) - effects
	if (landed == 1) != l.lands || landed > 1 {
		t.Errorf("the store has %d effects; the row says that it lands: %v", landed, l.lands)
	}
	// A separate read shows what the answer did not.
	o := read(t, connect(t, s, nil), in)
	if done := happened(in, before, o); done != l.lands {
		t.Errorf("the read shows that it happened: %v, want %v; records %v", done, l.lands, o.Records)
	}
}

// happened reports whether an observation shows what the write wants.
func happened(in intent.WriteIntent, before, now connectors.Observation) bool {
	switch in.Write {
	case intent.Create:
		return len(now.Records) == len(before.Records)+1 && now.Records[0].Stamp == in.Stamp()
	case intent.Delete:
		return len(now.Records) == 0
	}
	if len(now.Records) != 1 {
		return false
	}
	for name, v := range in.Expect {
		if name != "labels" && fmt.Sprint(now.Records[0].Fields[name]) != fmt.Sprint(v) {
			return false
		}
	}
	return true
}

// failing is a network on which every answer is lost.
type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("cut") }

// lookup is one way in which a record is read.
type lookup struct {
	key, write, by string
	path           string
	strength       connectors.Strength
	absence        string
	in             intent.WriteIntent
}

func lookups() []lookup {
	byRef := func(w intent.WriteType) intent.WriteIntent { return issueIntent(w, 0) }
	byIssue := intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"}, Expect: intent.Fields{"summary": "x"}}
	byComment := intent.WriteIntent{Kind: jira.KindComment, Write: intent.Delete, Key: intent.Fields{"issue": "OPS-1", "comment": "10003"}}
	return []lookup{
		{"project, reference", "create", "labels; the issues found are read themselves, and the one that the answer named", "search", connectors.Weak, "after Settle and Horizon", byRef(intent.Create)},
		{"project, reference", "update", "the label of the reference, as above", "search", connectors.Weak, "after Settle and Horizon", byRef(intent.Update)},
		{"project, reference", "delete", "the label of the reference, as above", "search", connectors.Weak, "after Settle", byRef(intent.Delete)},
		{"issue", "update", "the issue itself, and the permission for its project where it is not there", "get", connectors.Strong, "at once", byIssue},
		{"issue, reference", "comment", "all comments of the issue, and the property of each", "list", connectors.Strong, "after Horizon", commentIntent(intent.Create, 0)},
		{"issue, comment", "its delete", "the comment itself, and the issue where it is not there", "get", connectors.Strong, "at once", byComment},
	}
}

// TestLookups runs every row of the table, on both kinds of Jira.
func TestLookups(t *testing.T) {
	for deployment, dataCenter := range deployments {
		for _, l := range lookups() {
			t.Run(deployment+"/"+l.key+"/"+l.write, func(t *testing.T) {
				s, c := stage(t, dataCenter)
				in := named(l.in, 9)
				o := read(t, c, in)
				if o.Path != l.path || o.Strength != l.strength || len(o.Records) != 1 {
					t.Errorf("path %q, strength %q, %d records; want %q, %q and 1", o.Path, o.Strength, len(o.Records), l.path, l.strength)
				}
				settle, declared := c.Profiles()[in.Kind].Settle.Declared()
				if waits := strings.Contains(l.absence, "Settle"); !declared || waits != (settle > 0 && o.Strength == connectors.Weak) {
					t.Errorf("absence counts %q, and settle is %v", l.absence, settle)
				}
				s.Hide("OPS", true)
				if o, err := c.Read(t.Context(), query(in)); err == nil {
					t.Errorf("a user without permission reads %d records, want an error", len(o.Records))
				}
			})
		}
	}
}

// TestConflictOnRepeat: on a repeat, a conflict is a hint that an earlier send was applied, even
// of a create.
func TestConflictOnRepeat(t *testing.T) {
	for _, op := range operations() {
		s, c := stage(t, false)
		in := named(op.in, 7)
		before := read(t, c, in)
		if err := s.Set(fault.Fault{Kind: fault.Refused, How: "409"}.Once()); err != nil {
			t.Fatal(err)
		}
		r := request(in, &before)
		r.Attempt = 2
		if _, err := c.Write(t.Context(), r); word(err) != "?!" {
			t.Errorf("%s: %v, want unknown with a hint", op.name, err)
		}
	}
}

// TestDocHasTheTables keeps the words of the package comment and what is tested
// from drifting apart.
func TestDocHasTheTables(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for name, table := range map[string]string{"losses": renderLosses(), "lookups": renderLookups()} {
		if *update {
			doc = strings.Replace(doc, "// TABLE "+name+"\n", table, 1)
		}
		if !strings.Contains(doc, table) {
			t.Errorf("doc.go does not have the table of %s as it is tested; put the line \"// TABLE %s\" in its place and run the test with -update. It is:\n%s", name, name, table)
		}
	}
	if *update {
		if err := os.WriteFile("doc.go", []byte(doc), 0o644); err != nil { //nolint:gosec // source
			t.Fatal(err)
		}
	}
}

func renderLosses() string {
	var b strings.Builder
	line := func(first string, cells []string) {
		row := fmt.Sprintf("%-18s", first)
		for n, cell := range cells {
			row += fmt.Sprintf("  %-*s", len(operations()[n].name), cell)
		}
		b.WriteString("//\t" + strings.TrimRight(row, " ") + "\n")
	}
	var names []string
	for _, op := range operations() {
		names = append(names, op.name)
	}
	line("the answer", names)
	for _, l := range losses {
		line(l.answer, l.says[:])
		b.WriteString("//\t    " + l.why + "\n")
	}
	return b.String()
}

func renderLookups() string {
	var b strings.Builder
	fmt.Fprintf(&b, "//\t%-18s  %-10s  %-6s  %-8s  %s\n", "key", "write", "path", "strength", "absence counts")
	for _, l := range lookups() {
		strength := "weak"
		if l.strength == connectors.Strong {
			strength = "strong"
		}
		fmt.Fprintf(&b, "//\t%-18s  %-10s  %-6s  %-8s  %s\n//\t    %s\n", l.key, l.write, l.path, strength, l.absence, l.by)
	}
	return b.String()
}
