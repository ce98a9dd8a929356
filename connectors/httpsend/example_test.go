package httpsend_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
)

// The HTTP calls of a connector of your own: never repeated, never redirected, and with an error
// that says what is known.
func Example() {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the amount is negative", http.StatusUnprocessableEntity)
	}))
	defer api.Close()
	client := httpsend.New(nil)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, api.URL+"/charges", strings.NewReader(`{"amount": -1}`))
	if err != nil {
		panic(err)
	}
	answer, err := client.Write(req)
	fmt.Println(answer.Status, connectors.FateOf(err))
	// Output: 422 refused
}
