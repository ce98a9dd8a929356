package rest_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/fakes/rest"
)

// TestSOAP: however an answer is spelled, it is an envelope with what was asked for.
func TestSOAP(t *testing.T) {
	s := rest.NewSOAP(rest.SOAPOptions{Seed: 3})
	spelled := map[string]bool{}
	post := func(token, body string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, "/soap", strings.NewReader(`<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>`+body+`</e:Body></e:Envelope>`))
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	type order struct {
		ID   string `xml:"id,attr"`
		Note string `xml:"note"`
	}
	var envelope struct {
		Fault struct {
			Says string `xml:"faultstring"`
			Code string `xml:"detail>error>code"`
		} `xml:"Body>Fault"`
		Made   string  `xml:"Body>createOrderResponse>id"`
		Orders []order `xml:"Body>findOrdersResponse>orders>order"`
	}
	const login, find = "soap-token", `<findOrders xmlns="urn:orders"><reference>r-1</reference></findOrders>`
	for name, c := range map[string]struct {
		token, body string
		status      int
		code        string
	}{
		"no login":    {"x", find, 401, "NotLoggedIn"},
		"no subject":  {login, `<createOrder xmlns="urn:orders"><reference>r-1</reference></createOrder>`, 500, "InvalidOrder"},
		"no envelope": {login, "<", 500, "InvalidRequest"},
	} {
		status, text := post(c.token, c.body)
		if envelope.Fault.Code = ""; xml.Unmarshal([]byte(text), &envelope) != nil || status != c.status || envelope.Fault.Code != c.code {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	for n := range 3 {
		note := []string{"<&> \"", "]]>", ""}[n]
		made, text := post(login, fmt.Sprintf(`<createOrder xmlns="urn:orders"><reference>r-1</reference><subject>a</subject><note>%s</note></createOrder>`, strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;").Replace(note)))
		if envelope.Made = ""; xml.Unmarshal([]byte(text), &envelope) != nil || made != 200 || envelope.Made == "" {
			t.Errorf("%d %s", made, text)
		}
		for range 20 {
			_, text := post(login, find)
			envelope.Orders, spelled[text] = nil, true
			if err := xml.Unmarshal([]byte(text), &envelope); err != nil || len(envelope.Orders) != n+1 || envelope.Orders[n].Note != note {
				t.Errorf("%v: %s", err, text)
			}
		}
	}
	if len(spelled) < 10 {
		t.Errorf("%d spellings of 60 answers", len(spelled))
	}
}
