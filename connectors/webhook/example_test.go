package webhook_test

import (
	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/webhook"
)

// A receiver of signed messages as a destination.
func Example() {
	hook, err := webhook.New(webhook.Options{
		URL:    "https://ops.example.com/hooks/readback",
		Secret: "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", // from a vault
	})
	if err != nil {
		panic(err)
	}
	var reg connectors.Registry
	if err := reg.Register("ops", hook.Destination()); err != nil {
		panic(err)
	}
	// Output:
}
