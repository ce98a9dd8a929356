package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestMasksKnowTheSpellingsOfASecret(t *testing.T) {
	for name, c := range map[string]struct{ secret, text string }{
		"JSON of browsers":     {`pa&ss<w`, `{"echo":"pa\u0026ss\u003cw"}`},
		"JSON":                 {`pa"ss\w`, `{"echo":"pa\"ss\\w"}`},
		"lower-case escapes":   {`pa/ss+w`, `/x/pa%2fss%2bw`},
		"as it is":             {`pa/ss+w`, `pa/ss+w`},
		"as a part of a query": {`pa ss`, `?k=pa+ss`},
	} {
		t.Run(name, func(t *testing.T) {
			var m masks
			m.add(c.secret)
			if got := m.text(c.text); got == c.text {
				t.Errorf("%s is not masked", got)
			}
		})
	}
	var m masks
	m.add("abcd")
	m.add("abcdEFGH")
	for i := range maxMasks - 2 {
		m.add(fmt.Sprint("token-", i))
	}
	m.add("abcdEFGH") // in use again
	m.add("one more")
	if got := m.text("abcdEFGH"); strings.Contains(got, "EFGH") {
		t.Errorf("%s: a secret that begins with another, or is in use, is not masked", got)
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
