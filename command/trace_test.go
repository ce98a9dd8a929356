package command

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// A user who runs a command in a trace finds the trace in what the command recorded, and
// at the destination.
func TestCommandsAreInTheTraceOfWhoRunsThem(t *testing.T) {
	const asked, decided = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
	var mu sync.Mutex
	got := map[string]int{}
	p := newPlaceIn(t, t.TempDir(), orders.Plain.Options(), func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			got[r.Method+" "+strings.Join(r.Header.Values("Traceparent"), ",")]++
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	})
	in := func(id string) { p.variable["TRACEPARENT"] = "00-" + id + "-00f067aa0ba902b7-01" }
	if p.variable == nil {
		p.variable = map[string]string{}
	}
	in(asked)
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	held := id(t, p.submit(exitReview, order("A-2", `, "risk": "approve"`)))
	p.want(exitVerified, p.runIn(planYAML(nil), "saga", "run", "-"))
	mu.Lock()
	for call := range got {
		if !strings.Contains(call, asked) {
			t.Errorf("the destination was called without the trace: %s", call)
		}
	}
	if len(got) != 2 {
		t.Errorf("calls of the destination: %v", got)
	}
	mu.Unlock()
	says(t, p.want(0, p.run("saga", "show", "onboard-7")), asked)
	says(t, p.want(exitVerified, p.run("show", write)), "trace "+asked, "correlation "+asked)
	in(decided)
	p.want(exitNotApplied, p.run("review", held, "deny", "--by", "ann", "--reason", "no"))
	says(t, p.want(exitVerified, p.run("show", held)), "trace "+asked, decided)
}
