package matrix

import (
	"flag"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/crashtest"
	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
)

var (
	update = flag.Bool("update", false, "render docs/reference/guarantees.md anew")
	only   = flag.String("only", "", "run the cells whose name contains this, and do not compare the document")
)

// changes reports whether the call changes what is known of the write, or the
// destination.
func (s stage) changes() bool {
	switch s {
	case stBefore, stReadBack, stReadAgain, stClaim, stPutBack:
		return false
	}
	return true
}

// fates are the ways in which a process can fail at a call. Of a row of equal calls (polling,
// repeats) the first is taken, and the last where they change something; of sends the second too.
// Only time lies between two calls, so that to die after one that changes nothing is to die
// before it, and before the next.
func fates(s stage, nth, of int) []crashtest.Fate {
	switch {
	case nth > 1 && (!s.changes() || nth < of && (nth > 2 || s != stSend)):
		return nil
	case s == stSend:
		return []crashtest.Fate{crashtest.Before, crashtest.After, crashtest.UnderWay, crashtest.Suspends}
	case s.changes():
		return []crashtest.Fate{crashtest.Before, crashtest.After, crashtest.Suspends}
	case s == stPutBack:
		return []crashtest.Fate{crashtest.Before, crashtest.After}
	case s == stReadBack, s == stReadAgain:
		return []crashtest.Fate{crashtest.After, crashtest.Suspends}
	}
	return []crashtest.Fate{crashtest.After}
}

// maxLogged is how many failures are logged in full.
const maxLogged = 3

func TestMatrix(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // many short lives, little of each is kept
	every := need.OneIn(17)
	var mu sync.Mutex
	var runs []result
	logged := 0
	t.Run("cells", func(t *testing.T) {
		groups := map[string][]cell{}
		for i, c := range all() {
			if !strings.Contains(c.String(), *only) || i%every > 0 {
				continue
			}
			name := c.class.name + "/" + c.variant.name
			groups[name] = append(groups[name], c)
		}
		for name, cells := range groups {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, c := range cells {
					mine, story := explore(t, c)
					mu.Lock()
					for _, r := range mine {
						for _, f := range r.flaws {
							t.Errorf("%s; %s; %s", r.cell, r.point, f)
						}
					}
					if logged += len(story); logged > 0 && logged <= maxLogged {
						t.Log(strings.Join(story, "\n"))
					}
					runs = append(runs, mine...)
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d runs", len(runs))
	if every > 1 || *only != "" {
		t.Log("the document is not compared: not every cell was run")
		return
	}
	need.Document(t, "../../docs/reference/guarantees.md", "go test ./internal/matrix -update", summarize(runs).render(), *update)
}

// result is what is kept of a run.
type result struct {
	cell   cell
	point  point
	status ledger.Status
	why    string // of a review
	reason string // the engine's own reason for it
	flaws  []string
}

// explore runs a cell undisturbed and then with a failure at each point of that. It logs the
// first run with flaws in full.
func explore(t *testing.T, c cell) (all []result, story []string) {
	undisturbed := live(t, c, point{})
	runs := undisturbed.first.Points(fates)
	for _, at := range runs {
		r := undisturbed
		if at != (point{}) {
			r = live(t, c, at)
		}
		if len(r.flaws) > 0 && len(story) == 0 {
			story = append(story, r.life())
		}
		res := result{cell: c, point: at, status: r.status(), flaws: r.flaws}
		if res.status == review {
			res.why, res.reason = r.wanted().why, r.final.Reason
		}
		all = append(all, res)
	}
	return all, story
}
