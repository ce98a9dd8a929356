package jsonkind_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/jsonkind"
)

// What is too much is not read to its end, whatever follows.
func TestNoMoreIsReadThanAllowed(t *testing.T) {
	var many strings.Builder
	many.WriteString("{")
	for i := range 80_000 {
		fmt.Fprintf(&many, `"m%d":1,`, i)
	}
	broken := many.String() + "%%"
	if got := jsonkind.Members([]byte(broken), 64); got != nil {
		t.Errorf("%d members", len(got))
	}
	if !jsonkind.TooMany([]byte(broken), 1000) {
		t.Error("80,000 members are not too many")
	}
	if cost := testing.AllocsPerRun(3, func() { jsonkind.Members([]byte(broken), 64) }); cost > 1000 {
		t.Errorf("%g allocations for what is refused", cost)
	}
	for text, want := range map[string]int{
		`{}`: 0, `{"a":1,"b":{"c":2}}`: 2, ` {"a":[]} `: 1,
		``: -1, `[]`: -1, `{"a":1`: -1, `{"a":1} {}`: -1, `{"a":1,"a":2}`: -1, `{"a":1,"b":2,"c":3}`: -1,
	} {
		got := jsonkind.Members([]byte(text), 2)
		if want < 0 && got != nil || want >= 0 && (got == nil || len(got) != want) {
			t.Errorf("%s: %v; want %d members", text, got, want)
		}
	}
	for text, want := range map[string]bool{`{"a":1}`: false, `{"a":[]}`: true, `{"a"`: false} { // four tokens, five, too few
		if got := jsonkind.TooMany([]byte(text), 4); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
