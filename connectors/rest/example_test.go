package rest_test

import (
	"context"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
)

// An included declaration with a login of yours. rest.Load reads a declaration of your own.
func Example() {
	d, err := rest.ShippedDeclaration("github-issues")
	if err != nil {
		panic(err)
	}
	github, err := rest.New(d, rest.Options{
		Parameters: map[string]string{"owner": "acme", "repo": "billing"},
		Secrets: map[string]func(context.Context) (string, error){
			"token": func(context.Context) (string, error) { return "from a vault", nil },
		},
	})
	if err != nil {
		panic(err)
	}
	var reg connectors.Registry
	if err := reg.Register("github", connectors.Destination{Connector: github, Profiles: github.Profiles()}); err != nil {
		panic(err)
	}
	for kind := range github.Profiles() {
		fmt.Println(kind)
	}
	// Output: issue
}
