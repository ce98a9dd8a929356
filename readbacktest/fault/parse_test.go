package fault_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/readbacktest/fault"
)

func TestParse(t *testing.T) {
	got, err := fault.Parse(" late-commit,op=POST /charges,op=read,key=A-1,nth=3,skip=1,times=2,chance=0.5,delay=3s,after=-1,field=note,how=503\n")
	want := fault.Fault{
		Kind: fault.LateCommit, Ops: []fault.Op{"POST /charges", fault.Read}, Key: "A-1",
		Nth: 3, Skip: 1, Times: 2, Chance: 0.5, Delay: 3 * time.Second, After: -1, Field: "note", How: "503",
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for text, says := range map[string]string{
		"lost-answer,nth=first":   `nth is "first"; want a whole number`,
		"lost-answer,nth":         `nth is ""; want a whole number`,
		"lost-answer,chance=much": `chance is "much"; want a number in (0, 1]`,
		"lost-answer,delay=3":     `delay is "3"; want a duration such as 500ms`,
		"lost-answer,often=1":     `"often" is unknown; want op, key, nth`,
	} {
		if _, err := fault.Parse(text); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v; want %q", text, err, says)
		}
	}
}
