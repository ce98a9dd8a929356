package fault

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parse reads a fault in the form of flags and of control requests: the kind, then any of op, key,
// nth, skip, times, chance, delay, after, field and how, for example
// "late-commit,op=create,times=2,delay=3s". op may occur more than once. Errors wrap [ErrInvalid].
// Check the result with [Fault.Check].
func Parse(s string) (Fault, error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(s), ",")
	f := Fault{Kind: Kind(name)}
	for part := range strings.SplitSeq(rest, ",") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		var err error
		want := "a whole number"
		switch key {
		case "op":
			f.Ops = append(f.Ops, Op(value))
		case "key":
			f.Key = value
		case "nth":
			f.Nth, err = strconv.Atoi(value)
		case "skip":
			f.Skip, err = strconv.Atoi(value)
		case "times":
			f.Times, err = strconv.Atoi(value)
		case "chance":
			want = "a number in (0, 1]"
			f.Chance, err = strconv.ParseFloat(value, 64)
		case "delay":
			want = "a duration such as 500ms or 3s"
			f.Delay, err = time.ParseDuration(value)
		case "after":
			f.After, err = strconv.Atoi(value)
		case "field":
			f.Field = value
		case "how":
			f.How = value
		default:
			return Fault{}, fmt.Errorf("%w %q: %q is unknown; want op, key, nth, skip, times, chance, delay, after, field or how", ErrInvalid, s, key)
		}
		if err != nil {
			return Fault{}, fmt.Errorf("%w %q: %s is %q; want %s", ErrInvalid, s, key, value, want)
		}
	}
	return f, nil
}
