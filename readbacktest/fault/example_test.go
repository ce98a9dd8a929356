package fault_test

import (
	"fmt"

	"github.com/readback-go/readback/readbacktest/fault"
)

// A fake declares the faults that it can have, and asks for each request which one it meets. The
// seed decides about faults that have a chance, so that a run can be repeated.
func Example() {
	faults := fault.NewSchedule(fault.Forms{fault.LostAnswer: nil}, 7)
	if err := faults.Set(fault.Fault{Kind: fault.LostAnswer, Nth: 2}); err != nil {
		panic(err)
	}
	for n := range 3 {
		met, ok := faults.First(fault.Request{Op: fault.Write, Write: true, Key: "A-1"}, fault.LostAnswer)
		if ok {
			fmt.Println("request", n+1, "meets", met.Kind)
		}
	}
	// Output: request 2 meets lost-answer
}
