package need_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/readback-go/readback/internal/need"
)

// ended is a test that notes how it ended.
type ended struct {
	testing.TB
	how string
}

func (e *ended) Helper()              {}
func (e *ended) Skip(...any)          { e.how = "skipped" }
func (e *ended) Skipf(string, ...any) { e.how = "skipped" }
func (e *ended) Fatal(...any)         { e.how = "failed" }

func TestHave(t *testing.T) {
	missing := fmt.Errorf("a server: %w", need.ErrMissing)
	for name, c := range map[string]struct {
		err          error
		strict, want string
		reason       string
	}{
		"there":           {nil, "1", "", "it is tested"},
		"missing":         {missing, "", "skipped", "not every machine has everything"},
		"missing, strict": {missing, "1", "failed", "nothing may be left out"},
		"broken":          {errors.New("it does not start"), "", "failed", "what is there must work"},
		"no such word":    {missing, "yes", "skipped", "only 1 is strict"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("READBACK_STRICT", c.strict)
			e := &ended{TB: t}
			need.Have(e, c.err)
			if e.how != c.want {
				t.Errorf("%q, want %q: %s", e.how, c.want, c.reason)
			}
		})
	}
}

func TestProgram(t *testing.T) {
	t.Setenv("READBACK_STRICT", "1")
	e := &ended{TB: t}
	if need.Program(e, "a program that does not exist"); e.how != "failed" {
		t.Errorf("a missing program: %q", e.how)
	}
	if path := need.Program(t, "go"); path == "" {
		t.Error("the go command has no path")
	}
}

// A short run leaves a long test out, with the reason; where nothing may be left out the test
// runs.
func TestLong(t *testing.T) {
	left, one := "", 1
	if testing.Short() {
		left, one = "skipped", 7
	}
	for strict, want := range map[string]string{"": left, "1": ""} {
		t.Setenv("READBACK_STRICT", strict)
		e := &ended{TB: t}
		if need.Long(e); e.how != want {
			t.Errorf("-short is %t, READBACK_STRICT %q, and the test %q, want %q", testing.Short(), strict, e.how, want)
		}
	}
	if n := need.OneIn(7); n != one {
		t.Errorf("-short is %t, and one of %d cases is tried, want of %d", testing.Short(), n, one)
	}
}
