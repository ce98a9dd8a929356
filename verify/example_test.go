package verify_test

import (
	"encoding/json"
	"fmt"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// What differs between an intent and a record that was read. Numbers are compared by value.
func ExampleDiff() {
	w := intent.WriteIntent{
		Kind: "contact", Write: intent.Update,
		Key:    intent.Fields{"email": "ada@example.org"},
		Expect: intent.Fields{"name": "Ada", "score": json.Number("1.0"), "city": nil},
	}
	seen := intent.Fields{"email": "ada@example.org", "name": "ADA", "score": json.Number("1"), "city": "London"}
	for _, m := range verify.Diff(w, nil, seen) {
		fmt.Println(m.Path, "is", m.Got, "want", m.Want)
	}
	// Output:
	// /city is London want <nil>
	// /name is ADA want Ada
}
