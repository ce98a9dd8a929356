package chaos

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	// maxQuestions bounds the different reads whose answers are kept for lagging ones: each is
	// repeated before each write.
	maxQuestions = 64
	// maxStates bounds the states kept for lagging reads, one per write.
	maxStates = 256
	// defaultBehind is how many requests a lagging read is behind: the two reads after a write do
	// not see it.
	defaultBehind = 3
)

// Past keeps the answers of reads before each write. The state does not change in between, except
// by other ways.
type Past[A any] struct {
	Log *Log // its faults say whether they are needed

	mu        sync.Mutex
	questions []string
	ask       map[string]func(context.Context) A
	states    []state[A]
}

// state is the answers before the write with a number, at a time.
type state[A any] struct {
	n       int
	at      time.Time
	answers map[string]A
}

// Know records a question, which is asked before each later write.
func (p *Past[A]) Know(question string, ask func(context.Context) A) {
	if !p.Log.lags.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ask == nil {
		p.ask = map[string]func(context.Context) A{}
	}
	if _, known := p.ask[question]; known || len(p.questions) >= maxQuestions {
		return
	}
	p.questions = append(p.questions, question)
	p.ask[question] = ask
}

// Keep asks all questions, before a write reaches the target.
func (p *Past[A]) Keep(ctx context.Context, n int) {
	if !p.Log.lags.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := state[A]{n: n, at: time.Now(), answers: map[string]A{}}
	for _, q := range p.questions {
		s.answers[q] = p.ask[q](ctx)
	}
	p.states = append(p.states, s)
	if len(p.states) > maxStates {
		p.states = slices.Delete(p.states, 0, 1)
	}
}

// asOf is the answer to a question at the time of an earlier call: the state before the first
// write since then. It reports false if nothing was written since, or the question was not known
// then.
func (p *Past[A]) asOf(question string, since func(state[A]) bool) (a A, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.states {
		if since(s) {
			a, ok = s.answers[question]
			return a, ok
		}
	}
	return a, false
}

// Lagging is the answer to a call that meets a lagging read.
func (p *Past[A]) Lagging(question string, c *Call, f fault.Fault) (A, bool) {
	return p.asOf(question, func(s state[A]) bool {
		if f.Delay > 0 {
			return s.at.After(c.At.Add(-f.Delay))
		}
		behind := f.After
		if behind <= 0 {
			behind = defaultBehind
		}
		return s.n >= c.N-behind
	})
}
