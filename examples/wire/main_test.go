package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets this binary be the orchestrator, which the stories kill.
func TestMain(m *testing.M) {
	if isOrchestrator() {
		main()
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil { // they wait, and need no processor for that
		panic(err)
	}
	os.Exit(m.Run())
}

// TestStories: without the gate there are two transfers; with it there is one,
// and one notification, however the orchestrator comes back.
func TestStories(t *testing.T) {
	cases := map[string]struct {
		story  int
		want   count
		says   []string
		fired  int // how often the transfer was made
		reason string
	}{
		"without the gate": {0, count{2, 1}, []string{"the orchestrator is dead"}, 2, "what is begun again begins at the beginning"},
		"the same workflow": {1, count{1, 1}, []string{"the orchestrator is dead", "transfer: gated_not_completed, and the bank has it: completed, not fired"}, 1,
			"the gate looks at the bank"},
		"another workflow": {2, count{1, 1}, []string{"the orchestrator is dead", "transfer: blocked, a prior workflow has begun it"}, 1,
			"the operation is the same, from any caller"},
		"no answer": {3, count{1, 1}, []string{"transfer: no answer", "transfer: gated_not_completed, and the bank has it: completed, not fired"}, 1,
			"what timed out is read back"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			got, err := stories[c.story].run(t.Context(), &out)
			if err != nil {
				t.Fatalf("%v; it printed:\n%s", err, &out)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("at the bank and the notifier (-want +got): %s\n%s\nsince %s", diff, &out, c.reason)
			}
			says := append(c.says, fmt.Sprintf("the bank has %d transfer(s), the notifier %d notification(s)", c.want.Transfers, c.want.Notifications))
			for _, want := range says {
				if !strings.Contains(out.String(), want) {
					t.Errorf("it printed no %q:\n%s", want, &out)
				}
			}
			if n := strings.Count(out.String(), "transfer: fired"); n != c.fired {
				t.Errorf("the transfer was fired %d times, want %d: %s\n%s", n, c.fired, c.reason, &out)
			}
		})
	}
}

// TestKilledAnywhere: wherever the orchestrator is killed, and however it comes
// back, there is one transfer and one notification.
func TestKilledAnywhere(t *testing.T) {
	for name, s := range map[string]story{
		"before the transfer, the same workflow":     {bank: killsEarly},
		"before the transfer, another workflow":      {bank: killsEarly, fresh: true},
		"after the notification, the same workflow":  {notifier: kills},
		"after the notification, another workflow":   {notifier: kills, fresh: true},
		"before the notification, the same workflow": {notifier: killsEarly},
		"before the notification, another workflow":  {notifier: killsEarly, fresh: true},
		"after both, another workflow each time":     {bank: kills, notifier: kills, fresh: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.gated = true
			var out bytes.Buffer
			got, err := s.run(t.Context(), &out)
			if err != nil {
				t.Fatalf("%v; it printed:\n%s", err, &out)
			}
			if diff := cmp.Diff(count{1, 1}, got); diff != "" {
				t.Errorf("at the bank and the notifier (-want +got): %s\n%s", diff, &out)
			}
			if !strings.Contains(out.String(), "the orchestrator is dead") {
				t.Errorf("no worker was killed:\n%s", &out)
			}
		})
	}
}
