package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// liveEvery and plainEvery are how often progress is shown: on a terminal
	// one line changes, elsewhere each is a new line.
	liveEvery  = 100 * time.Millisecond
	plainEvery = 2 * time.Second
)

// screen shows how far the trials have come.
type screen struct {
	out  io.Writer
	live bool
	n    int // orders in each trial
	quit chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	ended map[string]int // by name of the trial
	kills map[string]int
	last  string
}

// newScreen shows nothing where out is nil. End it with end.
func newScreen(out io.Writer, n int) *screen {
	s := &screen{out: out, n: n, quit: make(chan struct{}), ended: map[string]int{}, kills: map[string]int{}}
	if out == nil {
		return s
	}
	every := plainEvery
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.live, every = true, liveEvery
	}
	s.print("%d trials of %d orders at the same time; about 15 seconds. Orders done:\n", len(trials()), n)
	s.draw()
	s.done.Go(func() { s.keepDrawing(every) })
	return s
}

func (s *screen) keepDrawing(every time.Duration) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			s.draw()
		case <-s.quit:
			return
		}
	}
}

// set receives the progress of a trial.
func (s *screen) set(t trial, ended, kills int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[t.name], s.kills[t.name] = ended, kills
}

// print writes; progress that cannot be shown is not shown.
func (s *screen) print(form string, args ...any) {
	_, _ = fmt.Fprintf(s.out, form, args...)
}

// draw shows the current line, if it has changed.
func (s *screen) draw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.line()
	if line == s.last {
		return
	}
	s.last = line
	if s.live {
		s.print("\r\x1b[K%s", line)
	} else {
		s.print("%s\n", line)
	}
}

// line fits 80 columns.
func (s *screen) line() string {
	var parts []string
	kills, open, waiting := 0, 0, true
	for _, t := range trials() {
		parts = append(parts, fmt.Sprintf("%s %d", t.short, s.ended[t.name]))
		kills += s.kills[t.name]
		left := s.n - s.ended[t.name]
		open += left
		waiting = waiting && (left == 0 || t.strategy == readback && left <= s.kills[t.name])
	}
	what := fmt.Sprintf("; kills %d", kills)
	if waiting && open > 0 {
		what = "; leases run out"
	}
	return strings.Join(parts, ", ") + what
}

// end shows the last line for good.
func (s *screen) end() {
	if s.out == nil {
		return
	}
	close(s.quit)
	s.done.Wait()
	s.draw()
	if s.live {
		s.print("\n")
	}
	s.print("\n")
}
