package command

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// A ledger is copied, used, and put back: what was sent since is adopted when its caller asks again,
// and what no caller asked for again is named.
func TestRecover(t *testing.T) {
	t.Parallel()
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	says(t, p.want(0, p.run("recover")), "No restore is recorded.")
	copied, err := os.ReadFile(p.ledger)
	if err != nil {
		t.Fatal(err)
	}
	since := time.Now().UTC().Format(time.RFC3339Nano)
	p.submit(exitVerified, order("A-2", ""))
	p.submit(exitVerified, order("A-3", ""))
	for _, name := range []string{"-wal", "-shm"} {
		if err := os.Remove(p.ledger + name); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.ledger, copied, 0o600); err != nil {
		t.Fatal(err)
	}

	says(t, p.want(0, p.run("recover", "--since", since, "--by", "ann", "--reason", "the disk failed")),
		"History is missing from", "as ann recorded: the disk failed.", "All sends are stopped.",
		"A step of the gate without an intent is allowed again")
	says(t, p.want(0, p.run("stops")), "Stopped: 1.", "recover: the disk failed")
	for _, shows := range []string{"status", "doctor"} {
		says(t, p.run(shows), "A restore was not ended: history is missing from", "readback recover --end --reason TEXT")
	}
	p.want(0, p.run("release", "--all", "--reason", "recover was run"))
	p.submit(exitVerified, order("A-1", ""))
	p.submit(exitVerified, order("A-2", ""))
	says(t, p.want(exitAttention, p.run("recover")), "3 records with a stamp", "2 of them by writes in the ledger",
		"1 belong to no write in the ledger", "rb-")
	answer := decode(t, p.want(exitAttention, p.run("recover", "--json")))
	if one := answer["destinations"].([]any)[0].(map[string]any); one["records"] != 3.0 || one["known"] != 2.0 || len(one["unknown"].([]any)) != 1 {
		t.Errorf("%v", one)
	}
	p.submit(exitVerified, order("A-3", ""))
	says(t, p.want(0, p.run("recover")), "3 of them by writes in the ledger")
	for _, id := range []string{"A-1", "A-2", "A-3"} {
		p.effects(1, id)
	}
	says(t, p.want(0, p.run("recover", "--end", "--by", "bob", "--reason", "all callers have ended")), "by bob: all callers have ended. New writes are sent as usual.")
	says(t, p.want(exitFailed, p.run("recover", "--end", "--reason", "again")), "it was ended before")
	if r := p.run("status"); strings.Contains(r.out, "restore") {
		t.Errorf("after its end: %s", r.out)
	}

	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"both":         {[]string{"--since", "1h", "--end", "--reason", "r"}, exitUsage, "want one of them"},
		"no reason":    {[]string{"--since", "1h"}, exitUsage, "--reason is missing"},
		"reason alone": {[]string{"--reason", "r"}, exitUsage, "without --since or --end"},
		"no time":      {[]string{"--since", "yesterday", "--reason", "r"}, exitUsage, "want a time such as"},
		"a wrong year": {[]string{"--since", "0226-02-01T12:00:00Z", "--reason", "r"}, exitUsage, "want a time within the last ten years"},
		"later":        {[]string{"--since", "2999-01-01T00:00:00Z", "--reason", "r"}, exitUsage, "want a time before that"},
	} {
		t.Run(name, func(t *testing.T) { says(t, p.want(c.code, p.run(append([]string{"recover"}, c.args...)...)), c.want) })
	}
	says(t, p.want(0, p.run("stops")), "Nothing is stopped.")
}

// A --since that is later than the newest write in the ledger, as by a wrong time zone, is not believed.
func TestRecoverSinceTooLate(t *testing.T) {
	t.Parallel()
	p := newPlace(t, orders.Plain.Options())
	p.submit(exitVerified, order("A-1", ""))
	newest := p.writes()[0].Updated
	v := decode(t, p.want(0, p.run("recover", "--json", "--since", time.Now().Format(time.RFC3339Nano), "--reason", "the disk failed")))
	if got, err := time.Parse(time.RFC3339Nano, v["restore"].(map[string]any)["since"].(string)); err != nil || !got.Equal(newest) {
		t.Errorf("history is missing since %s, %v; want since the newest write, %s", got, err, newest)
	}
}

// A restore is not ended while readback itself may ask for what was begun in the missing time.
func TestRecoverIsNotEndedUnderASaga(t *testing.T) {
	t.Parallel()
	p := newPlace(t, orders.Native.Options())
	p.configureClass("native")
	end := func(code int, want ...string) {
		t.Helper()
		says(t, p.want(code, p.run("recover", "--end", "--reason", "all callers have ended")), want...)
	}
	p.want(exitInProgress, p.run("saga", "run", "--wait", "0", p.write("plan.yaml", planYAML(nil))))
	p.want(0, p.run("recover", "--since", "1h", "--reason", "the disk failed"))
	p.want(0, p.run("release", "--all", "--reason", "recover was run"))
	end(exitRefused, "saga onboard-7 of tenant acme is running", "Nothing has changed.")
	p.want(exitVerified, p.run("saga", "resume", "onboard-7"))

	held := strings.Replace(planYAML(nil), "reversibility: pivot", "reversibility: pivot\n      risk: approve", 1)
	again := p.write("again.yaml", strings.NewReplacer("onboard-7", "onboard-8", "-1", "-2").Replace(held))
	p.want(exitInProgress, p.run("saga", "run", "--wait", "0", again))
	end(exitRefused, "saga onboard-8 of") // nothing shows whether it was begun in the missing time
	for began := time.Now(); len(p.world.Records("T-2")) == 0; {
		if p.run("saga", "resume", "--wait", "1s", "onboard-8"); time.Since(began) > time.Minute {
			t.Fatal("its second step was not sent")
		}
	}
	end(0, "New writes are sent as usual.") // its first step was sent since, so that none was sent then
}
