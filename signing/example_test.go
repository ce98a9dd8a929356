package signing_test

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/signing"
)

// A key pair, a signature, and its check by a program that has the public key only.
func Example() {
	private, public, err := signing.Generate()
	if err != nil {
		panic(err)
	}
	signer, err := signing.ReadSigner(private) // or signing.NewSigner with a KMS
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(context.Background(), "application/json", []byte(`{"paid": true}`))
	if err != nil {
		panic(err)
	}
	keys, err := signing.ReadKeys(public)
	if err != nil {
		panic(err)
	}
	payload, _, err := keys.Open(signed, "application/json")
	fmt.Println(string(payload), err)
	// Output: {"paid": true} <nil>
}
