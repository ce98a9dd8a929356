package fault

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
)

// maxFaults bounds the faults of one schedule: each request is compared with all.
const maxFaults = 1000

// Schedule decides which faults a request meets. It is safe for concurrent use. Create it with
// [NewSchedule].
type Schedule struct {
	forms Forms
	seed  uint64

	mu    sync.Mutex
	lines []*line
	came  map[string]int // requests by subject, for chance
}

// line is a fault, how many requests it matched, and how many it met.
type line struct {
	Fault
	came, met int
}

// NewSchedule returns a schedule without faults for a fake with these forms; nil: the fake checks
// its faults itself. The seed decides random choices.
func NewSchedule(forms Forms, seed uint64) *Schedule {
	return &Schedule{forms: forms, seed: seed, came: map[string]int{}}
}

// Set adds a fault for later requests. Errors wrap [ErrInvalid].
func (s *Schedule) Set(f Fault) error {
	if s.forms != nil {
		if err := f.Check(s.forms); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = slices.DeleteFunc(s.lines, func(l *line) bool { return l.Times > 0 && l.left() == 0 })
	if len(s.lines) >= maxFaults {
		return fmt.Errorf("%w: there are %d already", ErrInvalid, maxFaults)
	}
	s.lines = append(s.lines, &line{Fault: f})
	return nil
}

// Clear removes all faults, or those of some kinds. Requests in flight keep theirs.
func (s *Schedule) Clear(kinds ...Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = slices.DeleteFunc(s.lines, func(l *line) bool { return len(kinds) == 0 || slices.Contains(kinds, l.Kind) })
}

// Left returns how many requests faults of a kind will still meet, -1 for no bound. Compare with
// 0 to check that they have happened.
func (s *Schedule) Left(k Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, l := range s.lines {
		switch {
		case l.Kind != k:
		case l.left() < 0:
			return -1
		default:
			n += l.left()
		}
	}
	return n
}

// First returns the first fault of some kinds, or of any, that a request meets. The other faults
// wait for the next request.
func (s *Schedule) First(r Request, kinds ...Kind) (Fault, bool) {
	met := s.meet(r, kinds, 1)
	if len(met) == 0 {
		return Fault{}, false
	}
	return met[0], true
}

// All returns each fault of some kinds, or of any, that a request meets.
func (s *Schedule) All(r Request, kinds ...Kind) []Fault { return s.meet(r, kinds, maxFaults) }

func (s *Schedule) meet(r Request, kinds []Kind, most int) []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	subject := string(r.Op) + " " + r.Key
	if slices.ContainsFunc(s.lines, func(l *line) bool { return l.Chance > 0 }) {
		s.came[subject]++
	}
	var met []Fault
	for _, l := range s.lines {
		if len(kinds) > 0 && !slices.Contains(kinds, l.Kind) || !l.Concerns(r) {
			continue
		}
		l.came++
		if len(met) >= most || !l.due() || l.Chance > 0 && Roll(s.seed, string(l.Kind)+" "+subject, s.came[subject]).Float64() >= l.Chance {
			continue
		}
		l.met++
		met = append(met, l.Fault)
	}
	return met
}

// due reports whether the fault meets the latest request.
func (l *line) due() bool {
	if l.Nth > 0 {
		return l.came == l.Nth
	}
	return l.came > l.Skip && l.left() != 0
}

// left is how many requests it will still meet, -1 for no bound.
func (l *line) left() int {
	switch {
	case l.Nth > l.came:
		return 1
	case l.Nth > 0:
		return 0
	case l.Times > 0:
		return l.Times - l.met
	}
	return -1
}

// ByChance returns one of some kinds, or none. It follows from the seed, from the request's
// subject and from how often that came.
func (s *Schedule) ByChance(r Request, chance float64, kinds []Kind) Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	subject := fmt.Sprint(r.Write, string(r.Op), r.Key)
	s.came[subject]++
	dice := Roll(s.seed, subject, s.came[subject])
	if dice.Float64() >= chance || len(kinds) == 0 {
		return None
	}
	return kinds[dice.IntN(len(kinds))]
}

// Unmet calls yield with each fault that no request met, and with how many requests it matched.
func (s *Schedule) Unmet(yield func(f Fault, concerned int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if l.met == 0 && !yield(l.Fault, l.came) {
			return
		}
	}
}

// Roll returns a source of random numbers that follows only from the seed, the subject and how
// often the subject came. Other requests do not shift it, in whatever order goroutines make them.
func Roll(seed uint64, subject string, nth int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d", subject, nth)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
