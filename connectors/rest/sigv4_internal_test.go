package rest

import (
	"net/http"
	"net/url"
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

// The parameters of a signed request are in the order of their names: "part" before "part2", although
// "=" comes after "2". Two requests that differ by that order alone have one signature.
func TestSignedParametersAreInTheOrderOfNames(t *testing.T) {
	a := &auth{service: "ses", region: &pattern{pieces: []piece{{literal: "us-east-1"}}}, clientID: &pattern{pieces: []piece{{literal: "AKID"}}}}
	sign := func(raw string) string {
		req := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "h.example", Path: "/x", RawQuery: raw}, Header: http.Header{}}
		if err := a.sign(req, values{}, "S", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
		return req.Header.Get("Authorization")
	}
	for _, c := range []struct{ raw, signature string }{
		{"part=1&part2=2", "af13f016b04e7f1a7317bee10accfe47b3eb89929c71b371ea3239fb4f7d260c"},
		{"a=1&a-b=2", "b3800679f8dc4731fd627a685f76e7ecbc8a75900da3e5baffbe27b84eb26a42"},
	} {
		if got := sign(c.raw); !strings.HasSuffix(got, c.signature) {
			t.Errorf("%s: %s, want %s", c.raw, got, c.signature)
		}
	}
}
