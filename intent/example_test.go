package intent_test

import (
	"errors"
	"fmt"

	"github.com/readback-go/readback/intent"
)

// Ticket is a record of the Go program.
type Ticket struct {
	Reference string   `json:"reference" readback:"key"`
	Title     string   `json:"title"`
	Labels    []string `json:"labels"`
	Assignee  *string  `json:"assignee"`
	Template  string   `json:"template,omitempty" readback:"payload"`
	Rank      string   `json:"rank" readback:"ignore"`
}

// A Go struct with tags becomes an intent, without a map[string]any.
func Example_typed() {
	base := intent.WriteIntent{
		Tenant: "acme", Workflow: "wf_1a2b", Step: "open-ticket", Tool: "create_ticket",
		Destination: "tracker", Kind: "ticket", Write: intent.Create, Risk: intent.RiskLog,
	}
	w, err := intent.From(base, Ticket{
		Reference: "INV-7721", Title: "Invoice 7721 is unpaid", Labels: []string{"billing"}, Template: "reminder",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	text, _ := w.Encode()
	fmt.Println(string(text))
	fmt.Println(w.Stamp())
	// Output:
	// {"destination":"tracker","expect":{"assignee":null,"labels":["billing"],"title":"Invoice 7721 is unpaid"},"ignore":["/rank"],"key":{"reference":"INV-7721"},"kind":"ticket","payload":{"template":"reminder"},"risk":"log","step":"open-ticket","tenant":"acme","tool":"create_ticket","workflow":"wf_1a2b","write":"create"}
	// rb-pldqxqebo7ad357tq62jdn43mnf2yy5a
}

// Every problem is reported at once, by JSON path.
func ExampleDecode() {
	_, err := intent.Decode([]byte(`{
		"tenant": "acme", "workflow": "wf_1a2b", "tool": "charge", "destination": "bank", "kind": "charge",
		"key": {"invoice": null}, "write": "create", "expect": {"amount": 12345678901234567890}
	}`))
	var invalid *intent.InvalidError
	if errors.As(err, &invalid) {
		for _, p := range invalid.Problems {
			fmt.Println(p)
		}
	}
	// Output:
	// /expect/amount is 12345678901234567890, which canonical JSON cannot hold exactly; want a number that fits an IEEE double (about 15 digits); send it as a string
	// /key/invoice is null; want a string that is not empty, a number or a boolean; a record cannot be looked up by anything else
}
