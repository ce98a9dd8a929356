package rest

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// SOAPOrders is the collection of [SOAP]: {"id", "reference", "subject", "amount", "note"}.
const SOAPOrders = "orders"

// SOAPOptions are the choices of a [SOAP]. The zero value works.
type SOAPOptions struct {
	// Token is the access token. Default "soap-token".
	Token string
	// Seed decides about the spelling of answers.
	Seed uint64
}

// SOAP is a fake of a SOAP 1.1 service for orders, of no certain vendor: createOrder and findOrders, both a
// POST to one path.
//
// What XML leaves open is different in each answer: prefixes, indentation, CDATA, a type or a language as an
// attribute, how an empty element is written. Errors are a Fault with status 500, also refusals and limits.
// Finding lags. A request that is no envelope is refused.
type SOAP struct {
	*Fake
	random *rand.Rand
}

type soapOrder struct {
	Reference string `xml:"reference"`
	Subject   string `xml:"subject"`
	Amount    string `xml:"amount"`
	Note      string `xml:"note"`
}

type soapEnvelope struct {
	XMLName xml.Name `xml:"http://schemas.xmlsoap.org/soap/envelope/ Envelope"`
	Body    struct {
		Create *soapOrder `xml:"urn:orders createOrder"`
		Find   *soapOrder `xml:"urn:orders findOrders"`
	} `xml:"http://schemas.xmlsoap.org/soap/envelope/ Body"`
}

// NewSOAP makes one.
func NewSOAP(o SOAPOptions) *SOAP {
	o.Token = cmp.Or(o.Token, "soap-token")
	s := &SOAP{random: rand.New(rand.NewPCG(o.Seed, 1))}
	m := usual(bearer(o.Token), 400, func(int) Answer { return *s.fault("Client", "InvalidOrder", "The order is not valid & was refused") })
	m.Unauthorized = func() Answer {
		a := *s.fault("Client.Authentication", "NotLoggedIn", "The token is not valid")
		a.Status = http.StatusUnauthorized
		return a
	}
	m.Throttled = func(how string, _ time.Duration) (Answer, bool) {
		return *s.fault("Server", "LimitExceeded", "Too many requests"), how == ""
	}
	m.Failed = func() Answer { return *s.fault("Server", "Internal", "Object reference not set to an instance") }
	m.Opaque = true
	s.Fake = New(m)
	s.HandleBoth("POST /soap", func(raw []byte) bool {
		e, err := soapRequest(raw)
		return err == nil && e.Body.Create != nil
	}, s.create, func(*Request) bool { return false }, s.find)
	return s
}

func soapRequest(raw []byte) (soapEnvelope, error) {
	var e soapEnvelope
	return e, xml.Unmarshal(raw, &e)
}

// fault is an error, with the id of its request.
func (s *SOAP) fault(code, detail, says string) *Answer {
	a := s.answer(http.StatusInternalServerError, "Fault", fmt.Sprintf("<faultcode>soap:%s</faultcode><faultstring>%s</faultstring><detail><error><code>%s</code><requestId>req-7</requestId></error></detail>",
		code, html.EscapeString(says), detail))
	return &a
}

// answer is an envelope, with a prefix of chance.
func (s *SOAP) answer(status int, name, content string) Answer {
	p, space := []string{"soap", "SOAP-ENV", "s"}[s.random.IntN(3)], []string{"", "\n  "}[s.random.IntN(2)]
	inner := `<` + name + ` xmlns="urn:orders">` + content + `</` + name + `>`
	if name == "Fault" {
		inner = `<` + p + `:Fault>` + content + `</` + p + `:Fault>`
	}
	return Answer{Status: status, Type: "text/xml; charset=utf-8", Text: `<?xml version="1.0" encoding="utf-8"?>` + space + `<` + p + `:Envelope xmlns:` + p + `="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">` +
		space + `<` + p + `:Body>` + inner + space + `</` + p + `:Body>` + space + `</` + p + `:Envelope>`}
}

// element is an element with a text, in a spelling of chance.
func (s *SOAP) element(name string, v any) string {
	if v == nil {
		v = ""
	}
	text := html.EscapeString(fmt.Sprint(v))
	attribute := []string{"", ` xsi:type="xsd:string"`, ` lang="en"`}[s.random.IntN(3)]
	switch {
	case text == "":
		return []string{"", "<" + name + "/>"}[s.random.IntN(2)]
	case s.random.IntN(3) == 0 && !strings.Contains(fmt.Sprint(v), "]]>"):
		text = "<![CDATA[" + fmt.Sprint(v) + "]]>"
	}
	return "<" + name + attribute + ">" + text + "</" + name + ">"
}

func (s *SOAP) create(r *Request, now View) (Plan, *Answer) {
	e, err := soapRequest(r.Raw)
	if err != nil || e.Body.Create == nil || e.Body.Create.Reference == "" || e.Body.Create.Subject == "" {
		return Plan{}, s.fault("Client", "InvalidOrder", "A reference and a subject are required")
	}
	o, n := e.Body.Create, now.Next()
	id := strconv.FormatInt(n, 10)
	after := Object{"id": id, "reference": o.Reference, "subject": o.Subject, "amount": o.Amount, "note": o.Note}
	return storing(SOAPOrders, id, nil, after, "subject", func(stored Object) Answer {
		return s.answer(http.StatusOK, "createOrderResponse", s.element("id", stored["id"]))
	}).again(func(now View) (string, Object) {
		id := numbered(now)
		return id, Object{"id": id}
	}), nil
}

func (s *SOAP) find(r *Request, seen View) Answer {
	e, err := soapRequest(r.Raw)
	if err != nil || e.Body.Find == nil {
		return *s.fault("Client", "InvalidRequest", "Want createOrder or findOrders")
	}
	var b strings.Builder
	for _, o := range seen.List(SOAPOrders) {
		if o.Text("reference") != e.Body.Find.Reference {
			continue
		}
		b.WriteString(`<order id="` + o.Text("id") + `">`)
		for _, name := range []string{"reference", "subject", "amount", "note"} {
			b.WriteString(s.element(name, o[name]))
		}
		b.WriteString("</order>")
	}
	if b.Len() == 0 {
		return s.answer(http.StatusOK, "findOrdersResponse", []string{"<orders/>", "<orders></orders>", "<orders>\n</orders>"}[s.random.IntN(3)])
	}
	return s.answer(http.StatusOK, "findOrdersResponse", "<orders>"+b.String()+"</orders>")
}
