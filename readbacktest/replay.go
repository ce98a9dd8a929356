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
)

// Plan is which stories a [Replay] tells. The zero value tells all there are.
type Plan struct {
	// Vices are what the network and the destination do, one in each story, at
	// each request in turn; beside them there are always the stories in which
	// nothing happens. Default: Vices(). For kills alone: []Vice{NoVice}.
	Vices []Vice
	// Kills is how often the loop is killed in a story: first at each point in
	// turn, of all lives that it would have without, then again at points chosen
	// by seed. Default 1; negative: never.
	Kills int
	// Lives is how often the loop is begun in a story at most: after a kill, and
	// after an error, as an orchestrator does. Default 6.
	Lives int
	// Stories bounds how many are told; which are left out follows from the seed,
	// and is logged. Default 1000.
	Stories int
	// Seed as in Options. Default likewise.
	Seed uint64
}

// Story is one telling: one vice at one request, one kill at one point, in a
// world of its own. It is a [testing.TB] whose failures name the story.
type Story struct {
	testing.TB
	seed  uint64
	lives int
	vice  Vice
	nth   int
	kills []int // the points at which a life ends, counted over all lives

	points atomic.Int64 // that lives came to
	turns  atomic.Int64 // requests that the vice concerns, over all ways

	logs     []*Log
	runs     []*Run
	cleanups []func()
	failed   atomic.Bool
}

// Replay tells a story for each point of a loop at which it can be killed, under
// each vice. tell is called once for each, and builds a world, runs the loop in
// it ([Story.Run]), and asserts what came of it:
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
// Stories are told one after the other, in the goroutine of the test. The points
// of a loop should come in the same order each time: a loop that makes requests
// from several goroutines at once is killed somewhere all the same, and is not
// repeated exactly.
func Replay(tb testing.TB, p Plan, tell func(*Story)) {
	tb.Helper()
	r := replay{TB: tb, plan: p.checked(tb), tell: tell}
	if name := os.Getenv(storyVar); name != "" {
		s := r.story(NoVice, 0)
		s.called(name)
		r.telling(s)
		return
	}
	r.Helper()
	writes, reads := r.kills(NoVice, 0)
	var scenes []Fault
	for _, v := range r.plan.Vices {
		most := writes
		if slices.Contains(onlyReads, v) {
			most = reads
		}
		for n := range most {
			scenes = append(scenes, Fault{Vice: v, Nth: n + 1})
		}
	}
	if r.told*(1+len(scenes)) > r.plan.Stories {
		rand.New(rand.NewPCG(r.plan.Seed, 0)).Shuffle(len(scenes), func(i, j int) { scenes[i], scenes[j] = scenes[j], scenes[i] })
	}
	for _, f := range scenes {
		r.kills(f.Vice, f.Nth)
	}
	tb.Logf("readbacktest: %d stories told, seed %d; undisturbed the loop comes to the points %q", r.told, r.plan.Seed, r.points)
	if r.left > 0 {
		tb.Logf("readbacktest: at least %d left out, by Plan.Stories or since %d failed", r.left, maxFailed)
	}
}

func (p Plan) checked(tb testing.TB) Plan {
	tb.Helper()
	if p.Vices == nil {
		p.Vices = Vices()
	}
	p.Vices = slices.DeleteFunc(slices.Clone(p.Vices), func(v Vice) bool { return v == NoVice })
	for _, v := range p.Vices {
		Fault{Vice: v}.check(tb)
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
	plan               Plan
	tell               func(*Story)
	told, left, failed int
	points             []string // of the story in which nothing happens
}

func (r *replay) story(v Vice, nth int) *Story {
	return &Story{TB: r.TB, seed: r.plan.Seed, lives: r.plan.Lives, vice: v, nth: nth}
}

// kills tells the stories of one scene: undisturbed, and killed at each point of
// that one. It returns the most writes and reads that one of them had.
func (r *replay) kills(v Vice, nth int) (writes, reads int) {
	calm := r.telling(r.story(v, nth))
	if calm == nil {
		return 0, 0
	}
	if v == NoVice {
		r.points = slices.Concat(calm.Lives()...)
		if len(calm.logs) == 0 && len(r.plan.Vices) > 0 {
			r.Fatalf("readbacktest: no vice of the plan can happen, since the story calls neither Proxy nor Around of its Story; for kills alone set Plan.Vices to []Vice{NoVice}")
		}
	}
	writes, reads = calm.calls()
	if r.plan.Kills < 0 {
		return writes, reads
	}
	if v == NoVice && writes+reads > 0 && !slices.ContainsFunc(r.points, func(p string) bool { return p != theEnd }) {
		r.Fatalf("readbacktest: the loop made requests, and none of them is a point at which it can be killed; give it run.Client, run.Transport, run.URL or run.Connector, or set Plan.Kills to -1")
	}
	points := int(calm.points.Load())
	for k := range points {
		s := r.story(v, nth)
		s.kills = []int{k + 1}
		for n := 2; n <= r.plan.Kills; n++ {
			s.kills = append(s.kills, s.kills[n-2]+1+roll(r.plan.Seed, s.name(), n).IntN(points))
		}
		if s = r.telling(s); s != nil {
			w, rd := s.calls()
			writes, reads = max(writes, w), max(reads, rd)
		}
	}
	return writes, reads
}

// telling tells one story, nil where there have been enough.
func (r *replay) telling(s *Story) *Story {
	if r.told >= r.plan.Stories || r.failed >= maxFailed {
		r.left++
		return nil
	}
	r.told++
	defer func() {
		if s.Failed() {
			r.failed++
		}
	}()
	defer s.clean()
	r.tell(s)
	if len(s.runs) == 0 {
		s.Fatalf("the story never called Run")
	}
	return s
}

// Proxy is a proxy for this story, with its vice at the request whose turn it is,
// counted over all proxies and links of the story.
// What the options script happens besides.
func (s *Story) Proxy(target http.Handler, o Options) *Proxy {
	s.Helper()
	p := NewProxy(s, target, s.options(o))
	s.logs = append(s.logs, p.Log)
	return p
}

// Around stands before a connector likewise.
func (s *Story) Around(conn connectors.Connector, o Options) *Link {
	s.Helper()
	l := Around(s, conn, s.options(o))
	s.logs = append(s.logs, l.Log)
	return l
}

func (s *Story) options(o Options) Options {
	if s.vice != NoVice {
		// Counted over all ways: one vice at one request. A log asks once for each.
		turn := func(Call) bool { return s.turns.Add(1) == int64(s.nth) }
		o.Script = append([]Fault{{Vice: s.vice, Match: turn}}, o.Script...)
	}
	if o.Seed == 0 {
		o.Seed = s.seed
	}
	return o
}

// Run lives the loop through its lives: from the beginning again after a kill,
// and after an error, until it returns without one or Plan.Lives are over. Then
// everything that is held lands. It returns the error of the last life.
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
		if !r.making.wait() { // what a goroutine of a dead life was about may land yet
			s.Errorf("life %d: a call has been under way for %v after its life", r.Life, grace)
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

// Vice is what happens in this story, NoVice for nothing, and at which of the
// requests that it concerns, from 1.
func (s *Story) Vice() (v Vice, nth int) { return s.vice, s.nth }

// Lives are the points that each life so far came to, in their order; the last
// of a killed one is where it was killed.
func (s *Story) Lives() [][]string {
	var all [][]string
	for _, r := range s.runs {
		all = append(all, r.points())
	}
	return all
}

// deadly counts a point, and says whether a life ends there.
func (s *Story) deadly() bool { return slices.Contains(s.kills, int(s.points.Add(1))) }

// name is short and can be given again ([storyVar]).
func (s *Story) name() string {
	vice := "undisturbed"
	if s.vice != NoVice {
		vice = fmt.Sprintf("%s@%d", s.vice, s.nth)
	}
	if len(s.kills) == 0 {
		return vice
	}
	return vice + " killed@" + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.kills), " ", ","), "[]")
}

// called makes it the story of that name.
func (s *Story) called(name string) {
	s.Helper()
	vice, kills, killed := strings.Cut(name, " killed@")
	var err error
	if vice != "undisturbed" {
		v, nth, _ := strings.Cut(vice, "@")
		s.vice = Vice(v)
		_, err = fmt.Sscan(nth, &s.nth)
		Fault{Vice: s.vice}.check(s.TB)
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

// String is the story for people: the vice, and where each life was killed.
func (s *Story) String() string {
	var parts []string
	if s.vice != NoVice {
		parts = append(parts, Fault{Vice: s.vice, Nth: s.nth}.String())
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
