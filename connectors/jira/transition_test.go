package jira_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/jira"
	"github.com/readback-go/readback/intent"
	fakejira "github.com/readback-go/readback/internal/fakes/jira"
	"github.com/readback-go/readback/readbacktest/fault"
)

// TestTransition: a status changes by one transition and never by an edit,
// which answers 204 and ignores it.
func TestTransition(t *testing.T) {
	cases := map[string]struct {
		from    string
		expect  intent.Fields
		payload intent.Fields
		attempt int
		says    string // word of the error
		names   string // what the error names
		sends   string // the one request, "" for none
		reason  string
	}{
		"an edge":               {fakejira.ToDo, intent.Fields{"status": fakejira.InProgress}, nil, 1, "yes", "", "POST transitions", "the edge leads there"},
		"no edge":               {fakejira.ToDo, intent.Fields{"status": fakejira.Done}, nil, 1, "no", `"In Progress"`, "", "the error says where the issue can go"},
		"no edge, repeated":     {fakejira.Done, intent.Fields{"status": fakejira.InProgress}, nil, 2, "no!", "/expect/status", "", "an earlier send may have taken the edge"},
		"several edges":         {fakejira.InProgress, intent.Fields{"status": fakejira.Done}, nil, 1, "no", "/payload/transition", "", "each does other things beside"},
		"one of several":        {fakejira.InProgress, intent.Fields{"status": fakejira.Done}, intent.Fields{"transition": "Drop"}, 1, "yes", "", "POST transitions", "the payload names it"},
		"one by its id":         {fakejira.InProgress, intent.Fields{"status": fakejira.Done}, intent.Fields{"transition": "21"}, 1, "yes", "", "POST transitions", "an id is a name"},
		"a wrong name":          {fakejira.InProgress, intent.Fields{"status": fakejira.Done}, intent.Fields{"transition": "Reopen"}, 1, "no", "/expect/status", "", "it leads elsewhere"},
		"with its field":        {fakejira.InProgress, intent.Fields{"status": fakejira.Done, "resolution": "Duplicate"}, intent.Fields{"transition": "Resolve"}, 1, "yes", "", "POST transitions", "the screen has it"},
		"with another field":    {fakejira.InProgress, intent.Fields{"status": fakejira.Done, "summary": "x"}, intent.Fields{"transition": "Resolve"}, 1, "no", "/expect/summary", "", "two sends would be needed"},
		"in other letters":      {fakejira.ToDo, intent.Fields{"status": "in progress"}, nil, 1, "no", "/expect/status", "", "names are compared exactly"},
		"there already":         {fakejira.Done, intent.Fields{"status": fakejira.Done}, nil, 1, "yes", "", "", "nothing is left to send"},
		"there, another field":  {fakejira.Done, intent.Fields{"status": fakejira.Done, "summary": "x"}, nil, 1, "yes", "", "PUT", "the field alone changes"},
		"a number":              {fakejira.ToDo, intent.Fields{"status": true}, nil, 1, "no", "/expect/status", "", "a status is a name"},
		"in the payload":        {fakejira.ToDo, intent.Fields{"summary": "x"}, intent.Fields{"status": fakejira.Done}, 1, "no", "/payload/status", "", "it would not be verified"},
		"the pick alone":        {fakejira.ToDo, intent.Fields{"status": fakejira.InProgress}, intent.Fields{"transition": ""}, 1, "no", "/payload/transition", "", "it names nothing"},
		"a key of Jira's":       {fakejira.ToDo, intent.Fields{"updated": "2026-01-01T00:00:00Z"}, nil, 1, "no", "/expect/updated", "", "Jira sets it"},
		"only what is readable": {fakejira.ToDo, intent.Fields{"issue": "OPS-2"}, nil, 1, "no", "/expect", "", "there is nothing to change"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, connector := stage(t, false)
			s.Edit("OPS-2", map[string]any{"status": map[string]any{"name": c.from}})
			in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"}, Expect: c.expect, Payload: c.payload}, 1)
			before := read(t, connector, in)
			asked, sends := len(s.Requests()), s.Sends()
			r := request(in, &before)
			r.Attempt = c.attempt
			_, err := connector.Write(t.Context(), r)
			if got := word(err); got != c.says {
				t.Errorf("it says %q (%v), want %q: %s", got, err, c.says, c.reason)
			}
			if c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names)) {
				t.Errorf("%v does not name %s: %s", err, c.names, c.reason)
			}
			if c.sends == "" && s.Sends() != sends || c.sends != "" && s.Sends() != sends+1 {
				t.Errorf("%d sends, want %q", s.Sends()-sends, c.sends)
			}
			checkLast(t, s.Requests()[asked:], c.sends)
			if c.says == "yes" && !happened(in, before, read(t, connector, in)) {
				t.Errorf("it is not as wanted: %v", read(t, connector, in).Records)
			}
		})
	}
}

// checkLast checks what the last of some requests was.
func checkLast(t *testing.T, requests []string, want string) {
	t.Helper()
	method, path, _ := strings.Cut(want, " ")
	for _, r := range requests {
		if strings.HasPrefix(r, "PUT ") && method != "PUT" {
			t.Errorf("an edit was sent: %s", r)
		}
	}
	if want == "" {
		return
	}
	if last := requests[len(requests)-1]; !strings.HasPrefix(last, method+" ") || !strings.HasSuffix(last, path) {
		t.Errorf("the last request is %s, want %s", last, want)
	}
}

// TestTransitionUnreadable: without the list of transitions nothing is sent.
func TestTransitionUnreadable(t *testing.T) {
	for _, how := range fakejira.Unreadable() {
		s, c := stage(t, false)
		in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"}, Expect: intent.Fields{"status": fakejira.InProgress}}, 1)
		before := read(t, c, in)
		if err := s.Set(fault.Fault{Kind: fault.UnreadableRead, How: how}.Once()); err != nil {
			t.Fatal(err)
		}
		sends := s.Sends()
		_, err := c.Write(t.Context(), request(in, &before))
		if connectors.FateOf(err) != connectors.FateNotSent || s.Sends() != sends {
			t.Errorf("%s: %v, %d sends; want not sent", how, err, s.Sends()-sends)
		}
	}
}

// TestUndoOfTransition: a way back is taken where the workflow has one, and
// refused where not.
func TestUndoOfTransition(t *testing.T) {
	for from, c := range map[string]struct {
		to   string
		says string
	}{
		fakejira.ToDo: {fakejira.InProgress, "no"}, // no edge back
		fakejira.Done: {fakejira.ToDo, "no"},       // only by way of In Progress
	} {
		s, connector := stage(t, false)
		s.Edit("OPS-2", map[string]any{"status": map[string]any{"name": from}})
		in := named(intent.WriteIntent{Kind: jira.KindIssue, Write: intent.Update, Key: intent.Fields{"issue": "OPS-2"}, Expect: intent.Fields{"status": c.to}}, 1)
		before := read(t, connector, in)
		if _, err := connector.Write(t.Context(), request(in, &before)); err != nil {
			t.Fatal(err)
		}
		after := read(t, connector, in)
		undo, err := connector.Invert(in, &before, after)
		if err != nil {
			t.Fatal(err)
		}
		_, err = connector.Write(t.Context(), request(named(undo, 2), &after))
		if got := word(err); got != c.says || !errors.Is(err, jira.ErrTransition) {
			t.Errorf("from %s to %s and back: %q (%v), want %q", from, c.to, got, err, c.says)
		}
	}
}
