package fault_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/readbacktest/fault"
)

var forms = fault.Forms{fault.LostAnswer: nil, fault.Throttled: nil, fault.LaggingRead: nil, fault.UnreadableRead: {"500", "empty"}}

// schedule has these faults.
func schedule(t *testing.T, faults ...fault.Fault) *fault.Schedule {
	t.Helper()
	s := fault.NewSchedule(forms, 1)
	for _, f := range faults {
		if err := s.Set(f); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestWhichRequests: a fault meets the requests that it names, and no other.
func TestWhichRequests(t *testing.T) {
	create, readCharge := fault.Request{Op: "create", Write: true, Key: "A-1"}, fault.Request{Op: "find", Key: "A-1"}
	for name, c := range map[string]struct {
		fault fault.Fault
		want  string // of create, find, create, find, …: x where it is met
	}{
		"each write":     {fault.Fault{Kind: fault.LostAnswer}, "x.x.x.x."},
		"each read":      {fault.Fault{Kind: fault.LaggingRead}, ".x.x.x.x"},
		"reads by op":    {fault.Fault{Kind: fault.LostAnswer, Ops: []fault.Op{fault.Read}}, ".x.x.x.x"},
		"both by op":     {fault.Fault{Kind: fault.LostAnswer, Ops: []fault.Op{"create", "find"}}, "xxxxxxxx"},
		"another op":     {fault.Fault{Kind: fault.LostAnswer, Ops: []fault.Op{"delete"}}, "........"},
		"another key":    {fault.Fault{Kind: fault.LostAnswer, Key: "A-2"}, "........"},
		"no match":       {fault.Fault{Kind: fault.LostAnswer, Match: func(fault.Request) bool { return false }}, "........"},
		"the third":      {fault.Fault{Kind: fault.LostAnswer, Nth: 3}, "....x..."},
		"the next":       {fault.Fault{Kind: fault.LostAnswer}.Once(), "x......."},
		"two":            {fault.Fault{Kind: fault.LostAnswer, Times: 2}, "x.x....."},
		"all but one":    {fault.Fault{Kind: fault.LostAnswer, Skip: 1}, "..x.x.x."},
		"one after one":  {fault.Fault{Kind: fault.LostAnswer, Skip: 1, Times: 1}, "..x....."},
		"for certain":    {fault.Fault{Kind: fault.LostAnswer, Chance: 1}, "x.x.x.x."},
		"hardly ever":    {fault.Fault{Kind: fault.LostAnswer, Chance: 1e-9}, "........"},
		"another's kind": {fault.Fault{Kind: fault.Throttled, Times: 2}, "x.x....."},
	} {
		s, got := schedule(t, c.fault), ""
		for range 4 {
			for _, r := range []fault.Request{create, readCharge} {
				f, met := s.First(r)
				got += map[bool]string{true: "x", false: "."}[met && f.Kind == c.fault.Kind]
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestFirstAndAll: several faults can meet one request. A fake that applies only one of them
// leaves the others to the next request, except those that name a past request.
func TestFirstAndAll(t *testing.T) {
	write := fault.Request{Op: "create", Write: true}
	a, b := fault.Fault{Kind: fault.LostAnswer}.Once(), fault.Fault{Kind: fault.Throttled}.Once()
	s := schedule(t, a, b)
	if all := s.All(write); len(all) != 2 || len(s.All(write)) != 0 {
		t.Errorf("a request met %v, want both, once", all)
	}
	s = schedule(t, a, b)
	first, _ := s.First(write)
	second, _ := s.First(write)
	if first.Kind != a.Kind || second.Kind != b.Kind || s.Left(a.Kind) != 0 || s.Left(b.Kind) != 0 {
		t.Errorf("two requests met %v, then %v", first, second)
	}
	s = schedule(t, a, b)
	if f, _ := s.First(write, b.Kind); f.Kind != b.Kind || s.Left(a.Kind) != 1 || s.Left(b.Kind) != 0 {
		t.Errorf("asked for one kind, met %v, and %d of the other are left", f, s.Left(a.Kind))
	}
	s = schedule(t, fault.Fault{Kind: fault.LostAnswer, Nth: 1}, fault.Fault{Kind: fault.Throttled, Nth: 1})
	_, _ = s.First(write)
	if f, met := s.First(write); met {
		t.Errorf("the second request met %v, which is for the first", f)
	}
	var unmet []string
	s.Unmet(func(f fault.Fault, concerned int) bool {
		unmet = append(unmet, fmt.Sprint(f, " of ", concerned))
		return true
	})
	if want := []string{"throttled on write 1 of 2"}; !slices.Equal(unmet, want) {
		t.Errorf("unmet are %q, want %q", unmet, want)
	}
	if err := s.Set(fault.Fault{Kind: fault.LostAnswer}); err != nil {
		t.Fatal(err)
	}
	if s.Clear(); len(s.All(write)) != 0 {
		t.Error("a request met a fault after Clear")
	}
}

// TestLeft: how many requests a fault will still meet, -1 for no bound.
func TestLeft(t *testing.T) {
	write := fault.Request{Op: "create", Write: true}
	for name, c := range map[string]struct {
		fault fault.Fault
		want  []int // before the first request, the second, …
	}{
		"each":   {fault.Fault{Kind: fault.LostAnswer}, []int{-1, -1, -1}},
		"two":    {fault.Fault{Kind: fault.LostAnswer, Times: 2}, []int{2, 1, 0, 0}},
		"second": {fault.Fault{Kind: fault.LostAnswer, Nth: 2}, []int{1, 1, 0, 0}},
		"other":  {fault.Fault{Kind: fault.Throttled}, []int{0, 0}},
	} {
		s := schedule(t, c.fault)
		for n, want := range c.want {
			if got := s.Left(fault.LostAnswer); got != want {
				t.Errorf("%s: %d are left before request %d, want %d", name, got, n+1, want)
			}
			s.All(write)
		}
	}
}

// TestChance: random faults follow from the seed and from the request's subject, whatever other
// requests come between.
func TestChance(t *testing.T) {
	play := func(seed uint64, others bool) string {
		s := fault.NewSchedule(forms, seed)
		if err := s.Set(fault.Fault{Kind: fault.LostAnswer, Chance: 0.5}); err != nil {
			t.Fatal(err)
		}
		got := ""
		for n := range 64 {
			if others {
				s.All(fault.Request{Op: "create", Write: true, Key: fmt.Sprint("other ", n)})
			}
			got += fmt.Sprint(len(s.All(fault.Request{Op: "create", Write: true, Key: "A-1"})))
		}
		return got
	}
	alone := play(1, false)
	if alone != play(1, true) || alone == play(2, false) || strings.Count(alone, "1") < 16 || strings.Count(alone, "1") > 48 {
		t.Errorf("at a chance of one half: %s, with other requests %s, with another seed %s", alone, play(1, true), play(2, false))
	}
	kinds := []fault.Kind{fault.LostAnswer, fault.Throttled}
	pick := func(seed uint64) (got []fault.Kind) {
		s := fault.NewSchedule(forms, seed)
		for range 64 {
			got = append(got, s.ByChance(fault.Request{Op: "create", Write: true}, 0.5, kinds))
		}
		return got
	}
	if one := pick(1); !slices.Equal(one, pick(1)) || slices.Equal(one, pick(2)) || !slices.Contains(one, fault.None) || !slices.Contains(one, kinds[0]) || !slices.Contains(one, kinds[1]) {
		t.Errorf("by chance: %q", one)
	}
}

// TestInvalid: a fault that a fake cannot have is refused, and the error names the valid ones.
func TestInvalid(t *testing.T) {
	for name, c := range map[string]struct {
		fault fault.Fault
		says  string
	}{
		"none":     {fault.Fault{}, `unknown kind ""; want one of`},
		"unknown":  {fault.Fault{Kind: "greed"}, `unknown kind "greed"; want one of ["lagging-read" "lost-answer"`},
		"not here": {fault.Fault{Kind: fault.Rollback}, `unknown kind "rollback"`},
		"form":     {fault.Fault{Kind: fault.UnreadableRead, How: "poem"}, `how "poem" is not one of ["500" "empty"]`},
		"no forms": {fault.Fault{Kind: fault.LostAnswer, How: "500"}, `how "500" is not one of []`},
		"nth":      {fault.Fault{Kind: fault.LostAnswer, Nth: -1}, "want 1 for the first"},
		"times":    {fault.Fault{Kind: fault.LostAnswer, Times: -1}, "must not be negative"},
		"skip":     {fault.Fault{Kind: fault.LostAnswer, Skip: -1}, "must not be negative"},
		"chance":   {fault.Fault{Kind: fault.LostAnswer, Chance: 1.5}, "is not in (0, 1]"},
	} {
		err := fault.NewSchedule(forms, 1).Set(c.fault)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
	}
	s := schedule(t)
	var err error
	for n := 0; n < 2000 && err == nil; n++ {
		err = s.Set(fault.Fault{Kind: fault.LostAnswer})
	}
	if !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("2000 faults: %v", err)
	}
}
