package readbacktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/chaos"
	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	// defaultStories bounds the stories of one Replay: a loop of ten requests has some twenty
	// points, each under a dozen faults at several requests.
	defaultStories = 1000
	// defaultLives is how often a loop is started in one story.
	defaultLives = 6
	// maxPoints bounds the points of one life: a loop with more of them does not end.
	maxPoints = 10_000
	// maxFailed is after how many failed stories a Replay stops: they usually have the same
	// cause.
	maxFailed = 3
)

// Plan selects the stories of a [Replay]. The zero value runs all of them.
type Plan struct {
	// Kinds are the faults of the network and the destination, one in each story, at each request
	// in turn; the stories without a fault always run too. Default: Kinds(). For kills only:
	// []Kind{None}.
	Kinds []Kind
	// Kills is how often the loop is killed in a story: first at each point in turn, of all lives
	// that it would have without, then again at points chosen by seed. Default 1; negative:
	// never.
	Kills int
	// Lives is how often the loop is started in a story at most: after a kill, and after an
	// error, as an orchestrator does. Default 6.
	Lives int
	// Stories bounds how many run; the seed decides which are left out, and they are logged.
	// Default 1000.
	Stories int
	// Seed is as in Options, with the same default.
	Seed uint64
}

// Story is one run: one fault at one request, one kill at one point, in a world of its own. It is
// a [testing.TB] whose failures name the story.
type Story struct {
	testing.TB
	seed  uint64
	lives int
	kind  Kind
	nth   int
	kills []int // the points at which a life ends, counted over all lives

	points  atomic.Int64 // of all lives
	matched atomic.Int64 // requests that the fault matches, over all ways

	logs     []*Log
	runs     []*Run
	cleanups []func()
	failed   atomic.Bool
}

// Replay runs a story for each point of a loop at which it can be killed, under each fault. It
// calls tell once for each. tell builds a world, runs the loop in it ([Story.Run]), and asserts
// the result:
//
//	readbacktest.Replay(t, readbacktest.Plan{}, func(s *readbacktest.Story) {
//		bank := newBank()
//		proxy := s.Proxy(bank, readbacktest.Options{})
//		_ = s.Run(func(ctx context.Context, run *readbacktest.Run) error {
//			return agent(ctx, run.Client(proxy))
//		})
//		readbacktest.Effects(s, bank.Charges, "INV-7721").Exactly(1)
//	})
//
// Stories run one after the other, in the goroutine of the test. The points of a loop should come
// in the same order each time: a loop that makes requests from several goroutines at once is
// still killed, but is not repeated exactly.
func Replay(tb testing.TB, p Plan, run func(*Story)) {
	tb.Helper()
	r := replay{TB: tb, plan: p.checked(tb), run: run}
	if name := os.Getenv(storyVar); name != "" {
		s := r.story(None, 0)
		s.called(name)
		r.next(s)
		return
	}
	r.Helper()
	writes, reads := r.kills(None, 0)
	var scenes []Fault
	for _, v := range r.plan.Kinds {
		most := writes
		if v.OfReads() {
			most = reads
		}
		for n := range most {
			scenes = append(scenes, Fault{Kind: v, Nth: n + 1})
		}
	}
	if r.stories*(1+len(scenes)) > r.plan.Stories {
		rand.New(rand.NewPCG(r.plan.Seed, 0)).Shuffle(len(scenes), func(i, j int) { scenes[i], scenes[j] = scenes[j], scenes[i] })
	}
	for _, f := range scenes {
		r.kills(f.Kind, f.Nth)
	}
	tb.Logf("readbacktest: %d stories run, seed %d; undisturbed the loop reaches the points %q", r.stories, r.plan.Seed, r.points)
	if r.left > 0 {
		tb.Logf("readbacktest: at least %d left out, by Plan.Stories or since %d failed", r.left, maxFailed)
	}
}

func (p Plan) checked(tb testing.TB) Plan {
	tb.Helper()
	if p.Kinds == nil {
		p.Kinds = Kinds()
	}
	p.Kinds = slices.DeleteFunc(slices.Clone(p.Kinds), func(v Kind) bool { return v == None })
	for _, v := range p.Kinds {
		check(tb, Fault{Kind: v})
	}
	if p.Kills == 0 {
		p.Kills = 1
	}
	if p.Lives <= 0 {
		p.Lives = defaultLives
	}
	p.Lives = max(p.Lives, p.Kills+1)
	if p.Stories <= 0 {
		p.Stories = defaultStories
	}
	p.Seed = seedOf(tb, p.Seed)
	return p
}

// replay is one call of Replay.
type replay struct {
	testing.TB
	plan                  Plan
	run                   func(*Story)
	stories, left, failed int
	points                []string // of the story without a fault
}

func (r *replay) story(v Kind, nth int) *Story {
	return &Story{TB: r.TB, seed: r.plan.Seed, lives: r.plan.Lives, kind: v, nth: nth}
}

// kills runs the stories of one fault: undisturbed, and killed at each point of that one. It
// returns the most writes and reads that one of them had.
func (r *replay) kills(v Kind, nth int) (writes, reads int) {
	calm := r.next(r.story(v, nth))
	if calm == nil {
		return 0, 0
	}
	if v == None {
		r.points = slices.Concat(calm.Lives()...)
		if len(calm.logs) == 0 && len(r.plan.Kinds) > 0 {
			r.Fatalf("readbacktest: no fault of the plan can happen, since the story calls neither Proxy nor Around of its Story; for kills alone set Plan.Kinds to []Kind{None}")
		}
	}
	writes, reads = calm.calls()
	if r.plan.Kills < 0 {
		return writes, reads
	}
	if v == None && writes+reads > 0 && !slices.ContainsFunc(r.points, func(p string) bool { return p != theEnd }) {
		r.Fatalf("readbacktest: the loop made requests, and none of them is a point at which it can be killed; give it run.Client, run.Transport, run.URL or run.Connector, or set Plan.Kills to -1")
	}
	points := int(calm.points.Load())
	for k := range points {
		s := r.story(v, nth)
		s.kills = []int{k + 1}
		for n := 2; n <= r.plan.Kills; n++ {
			s.kills = append(s.kills, s.kills[n-2]+1+fault.Roll(r.plan.Seed, s.name(), n).IntN(points))
		}
		if s = r.next(s); s != nil {
			w, rd := s.calls()
			writes, reads = max(writes, w), max(reads, rd)
		}
	}
	return writes, reads
}

// next runs one story; it returns nil once there have been enough.
func (r *replay) next(s *Story) *Story {
	if r.stories >= r.plan.Stories || r.failed >= maxFailed {
		r.left++
		return nil
	}
	r.stories++
	defer func() {
		if s.Failed() {
			r.failed++
		}
	}()
	defer s.clean()
	r.run(s)
	if len(s.runs) == 0 {
		s.Fatalf("the story never called Run")
	}
	return s
}

// Proxy returns a proxy for this story, with the story's fault at its request, counted over all
// proxies and links of the story. The script of the options applies as well.
func (s *Story) Proxy(target http.Handler, o Options) *Proxy {
	s.Helper()
	p := NewProxy(s, target, s.options(o))
	s.logs = append(s.logs, p.Log)
	return p
}

// Around wraps a connector likewise.
func (s *Story) Around(conn connectors.Connector, o Options) *Link {
	s.Helper()
	l := Around(s, conn, s.options(o))
	s.logs = append(s.logs, l.Log)
	return l
}

func (s *Story) options(o Options) Options {
	if s.kind != None {
		// Counted over all ways: one fault at one request. A log asks once for each.
		nth := func(Request) bool { return s.matched.Add(1) == int64(s.nth) }
		o.Script = append([]Fault{{Kind: s.kind, Match: nth}}, o.Script...)
	}
	if o.Seed == 0 {
		o.Seed = s.seed
	}
	return o
}

// Run runs the loop through its lives: again from the beginning after a kill, and after an error,
// until it returns without one or Plan.Lives is reached. Then all held requests arrive. It
// returns the error of the last life.
func (s *Story) Run(loop func(ctx context.Context, run *Run) error) error {
	s.Helper()
	var err error
	for life := 1; life <= s.lives; life++ {
		run := &Run{Life: life, story: s}
		run.ctx, run.cancel = context.WithCancel(s.Context())
		s.runs = append(s.runs, run)
		end := run.live(loop)
		run.cancel()
		switch {
		case len(run.points()) > maxPoints:
			s.Fatalf("life %d came to more than %d points, and was ended there: it does not end by itself", life, maxPoints)
		case end.panicked != "":
			s.Fatalf("the loop panicked: %s", end.panicked)
		case run.killed():
			err = ErrDead
			continue
		case !end.returned: // it called FailNow
			s.FailNow()
		}
		if err = end.err; err == nil {
			break
		}
	}
	for _, r := range s.runs {
		if !r.making.Wait() { // a request of a dead life's goroutine may still arrive
			s.Errorf("life %d: a call has been under way for %v after its life", r.Life, chaos.Grace)
		}
	}
	for _, l := range s.logs {
		l.settle(s)
	}
	for _, r := range s.runs {
		r.outlast()
	}
	return err
}

// calls are how many writes and reads came, over all ways.
func (s *Story) calls() (writes, reads int) {
	for _, l := range s.logs {
		for _, c := range l.Calls() {
			if c.Write {
				writes++
			} else {
				reads++
			}
		}
	}
	return writes, reads
}

// Fault returns the fault of this story, None for none, and which of the matching requests it
// meets, from 1.
func (s *Story) Fault() (k Kind, nth int) { return s.kind, s.nth }

// Lives returns the points that each life so far reached, in order; the last of a killed one is
// where it was killed.
func (s *Story) Lives() [][]string {
	var all [][]string
	for _, r := range s.runs {
		all = append(all, r.points())
	}
	return all
}

// deadly counts a point, and reports whether a life ends there.
func (s *Story) deadly() bool { return slices.Contains(s.kills, int(s.points.Add(1))) }

// name is short and can be passed to [storyVar].
func (s *Story) name() string {
	what := "undisturbed"
	if s.kind != None {
		what = fmt.Sprintf("%s@%d", s.kind, s.nth)
	}
	if len(s.kills) == 0 {
		return what
	}
	return what + " killed@" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.kills), " ", ","), "[]")
}

// called makes it the story of that name.
func (s *Story) called(name string) {
	s.Helper()
	what, kills, killed := strings.Cut(name, " killed@")
	var err error
	if what != "undisturbed" {
		v, nth, _ := strings.Cut(what, "@")
		s.kind = Kind(v)
		_, err = fmt.Sscan(nth, &s.nth)
		check(s.TB, Fault{Kind: s.kind})
	}
	for k := range strings.SplitSeq(kills, ",") {
		if !killed || err != nil {
			break
		}
		point := 0
		_, err = fmt.Sscan(k, &point)
		s.kills = append(s.kills, point)
	}
	if err != nil {
		s.TB.Fatalf("readbacktest: %s is %q; want the name of a story, as a failure gives it: %v", storyVar, name, err)
	}
}

// String describes the story: the fault, and where each life was killed.
func (s *Story) String() string {
	var parts []string
	if s.kind != None {
		parts = append(parts, Fault{Kind: s.kind, Nth: s.nth}.String())
	}
	for _, r := range s.runs {
		if r.killed() {
			parts = append(parts, fmt.Sprintf("life %d killed at point %d, %q", r.Life, len(r.points()), last(r.points())))
		}
	}
	if len(parts) == 0 {
		return "nothing happens"
	}
	return strings.Join(parts, ", ")
}
