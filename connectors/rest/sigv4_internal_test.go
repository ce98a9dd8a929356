package rest

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The example that AWS publishes: a request whose signature is known.
func TestSigV4OfThePublishedExample(t *testing.T) {
	fixed := func(s string) *pattern { return &pattern{pieces: []piece{{literal: s}}} }
	a := &auth{service: "iam", region: fixed("us-east-1"), clientID: fixed("AKIDEXAMPLE")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	req.Header.Set("Accept", "application/json")
	if err := a.sign(req, values{}, "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	const want = "SignedHeaders=content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
	if got := req.Header.Get("Authorization"); !strings.HasSuffix(got, want) {
		t.Errorf("%s, want it to end with %s", got, want)
	}
}
