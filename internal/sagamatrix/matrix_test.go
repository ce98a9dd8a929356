package sagamatrix

import (
	"flag"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/readback-go/readback/internal/need"
)

var (
	only        = flag.String("only", "", "run the cells whose name contains this")
	dispatching = flag.Bool("sagamatrix.dispatch", false, "workers hand their sagas over to a scheduler")
	whole       = flag.Bool("whole", false, "fail at every point of every cell, which takes some ten minutes")
)

// moments is how many moments of failure far from a fault there are for each one that is tried:
// the fault is long over then, or not yet reached. Neighbouring cells try different ones; all are
// tried at the fault, without a fault, and with -whole.
const moments = 30

// rows is how many cells are run at once.
const rows = 4

// maxLogged is how many failures are logged in full.
const maxLogged = 3

// TestMatrix lets the process that carries a saga fail at every point of it, in
// every cell, and prints what came of them.
func TestMatrix(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // many short lives, little of each is kept
	every := 4 * need.OneIn(8)
	var cells []cell
	for i, c := range all() {
		if strings.Contains(c.String(), *only) && (*whole || i%every == 0) {
			cells = append(cells, c)
		}
	}
	var mu sync.Mutex
	var results []result
	logged := 0
	t.Run("cells", func(t *testing.T) {
		for lane := range rows {
			t.Run(string(rune('a'+lane)), func(t *testing.T) {
				t.Parallel()
				for i := lane; i < len(cells); i += rows {
					mine, story := explore(t, cells[i], i)
					mu.Lock()
					results = append(results, mine...)
					for _, r := range mine {
						for _, f := range r.flaws {
							t.Errorf("%s; %s; %s", r.cell, r.point, f)
						}
					}
					if story != "" && logged < maxLogged {
						logged++
						t.Log(story)
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Log("\n" + table(results))
}

// near reports whether the process fails where the fault applies, or there is no fault.
func (c cell) near(at point) bool {
	return c.fault == "" || strings.HasSuffix(at.Stage.about, c.step) && at.Stage.undoes() == c.undoing
}

// result is what is kept of a run.
type result struct {
	cell  cell
	point point
	end   end
	why   string // a reviewer was needed
	flaws []string
}

// explore runs a cell undisturbed and then with a failure at each point of that. It logs the
// first run with flaws in full.
func explore(t *testing.T, c cell, nth int) (found []result, story string) {
	undisturbed := live(t, c, point{})
	if c.fault != "" && !undisturbed.met {
		undisturbed.flaw("%s: the fault was never met", wrong)
	}
	for i, at := range undisturbed.first.Points(fates) {
		r := undisturbed
		if at != (point{}) {
			if !*whole && !c.near(at) && (i+nth)%moments > 0 {
				continue
			}
			r = live(t, c, at)
		}
		if len(r.flaws) > 0 && story == "" {
			story = r.describe()
		}
		one := result{cell: c, point: at, end: r.end, flaws: r.flaws}
		if one.end == reviewerDecides {
			one.why = r.wants().why
		}
		found = append(found, one)
	}
	return found, story
}
