package rest

import (
	"cmp"
	"encoding/json"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The collections of [QuickBooks].
const (
	QuickBooksInvoices = "Invoice"
	QuickBooksPayments = "Payment"
)

// QuickBooksOptions are the choices of a [QuickBooks]. The zero value works.
type QuickBooksOptions struct {
	// Token is the access token. Default "qb-readback".
	Token string
	// Realm is the company. Default "9130".
	Realm string
	// HonoursRequestID means that a repeat with the same requestid gets the first answer, as is
	// documented. Default: requestid is ignored, as was observed.
	HonoursRequestID bool
	// Window is how long a requestid is remembered. Default 24 hours; nothing is published.
	Window time.Duration
	// UniqueDocNumbers means that the company forbids a number twice.
	UniqueDocNumbers bool
}

// QuickBooks is the fake of QuickBooks Online's accounting API for invoices and payments.
//
// What a query does not find is a member that is missing. Without "Accept: application/json" answers are
// XML. The form "200" of a refusal is one that QuickBooks documents: a Fault with status 200. Queries
// lag; a record by its id does not.
type QuickBooks struct {
	*Fake
	o QuickBooksOptions
}

// NewQuickBooks makes one.
func NewQuickBooks(o QuickBooksOptions) *QuickBooks {
	o.Token, o.Realm, o.Window = cmp.Or(o.Token, "qb-readback"), cmp.Or(o.Realm, "9130"), cmp.Or(o.Window, 24*time.Hour)
	s := &QuickBooks{o: o}
	m := usual(bearer(o.Token), 400, func(status int) Answer {
		switch status {
		case 401: // in other letters
			return Answer{Status: 401, Body: map[string]any{"warnings": nil, "intuitObject": nil, "fault": map[string]any{
				"error": []any{map[string]any{"message": "message=AuthenticationFailed; errorCode=003200; statusCode=401", "detail": "Token expired", "code": "3200", "element": nil}}, "type": "AUTHENTICATION"}}}
		case 400:
			return *quickBooksFault(400, "6000", "A business validation error has occurred while processing your request", "Business Validation Error: the books are closed for this date")
		}
		return *quickBooksFault(status, map[int]string{403: "3100", 404: "500", 429: "3001"}[status], http.StatusText(status), "message="+http.StatusText(status)+"; errorCode=00"+strconv.Itoa(status))
	})
	refused := m.Refused
	m.Refused = func(how string) (Answer, bool) {
		if how != "200" {
			return refused(how)
		}
		a, _ := refused("400")
		a.Status = 200
		return a, true
	}
	m.RequestID = "Intuit_tid"
	s.Fake = New(m)
	base := "/v3/company/" + o.Realm + "/"
	for _, kind := range []string{QuickBooksInvoices, QuickBooksPayments} {
		s.HandleWrite("POST "+base+strings.ToLower(kind), s.write(kind))
		s.HandleRead("GET "+base+strings.ToLower(kind)+"/{id}", true, quickBooksXML(func(r *Request, seen View) Answer {
			o := seen.Get(kind, r.PathValue("id"))
			if o == nil {
				return *quickBooksMissing()
			}
			return quickBooksShown(kind, o, seen)
		}))
	}
	s.HandleRead("GET "+base+"query", false, quickBooksXML(s.query))
	return s
}

// Seed stores an invoice or a payment as another actor would.
func (s *QuickBooks) Seed(kind string, more Object) Object {
	_, o := s.Put(kind, func(now View) (string, Object) {
		o := quickBooksBlank(now)
		o["CustomerRef"], o["TotalAmt"], o["Line"] = map[string]any{"value": "1"}, Number(0), []any{}
		for member, v := range more.Clone() {
			o[member] = v
		}
		return o.Text("Id"), o
	})
	return o
}

// quickBooksXML answers in XML where JSON was not asked for.
func quickBooksXML(show func(*Request, View) Answer) func(*Request, View) Answer {
	return func(r *Request, seen View) Answer {
		if a := show(r, seen); strings.Contains(r.Header.Get("Accept"), "json") {
			return a
		}
		return Answer{Status: 200, Type: "application/xml", Text: `<?xml version="1.0" encoding="UTF-8"?><IntuitResponse xmlns="http://schema.intuit.com/finance/v3"/>`}
	}
}

func quickBooksFault(status int, code, says, detail string) *Answer {
	return &Answer{Status: status, Body: map[string]any{"time": "2000-01-01T00:00:00.000-08:00", "Fault": map[string]any{
		"Error": []any{map[string]any{"Message": says, "Detail": detail, "code": code, "element": ""}}, "type": "ValidationFault"}}}
}

func quickBooksMissing() *Answer {
	return quickBooksFault(400, "610", "Object Not Found", "Object Not Found : Something you're trying to use has been made inactive. Check the fields with accounts, customers, items, vendors or employees.")
}

func quickBooksTime(at time.Time) string {
	return at.In(time.FixedZone("PST", -8*3600)).Format("2006-01-02T15:04:05-07:00")
}

func quickBooksBlank(now View) Object {
	at := quickBooksTime(now.At())
	return Object{"Id": strconv.FormatInt(now.Next(), 10), "SyncToken": "0", "domain": "QBO", "sparse": false, "TxnDate": at[:10], "CurrencyRef": map[string]any{"value": "USD", "name": "United States Dollar"},
		"MetaData": map[string]any{"CreateTime": at, "LastUpdatedTime": at}}
}

// quickBooksSum is the sum of the amounts of lines, without the subtotal.
func quickBooksSum(lines any) *big.Rat {
	sum := new(big.Rat)
	all, _ := lines.([]any)
	for _, line := range all {
		if one, _ := line.(map[string]any); one["DetailType"] != "SubTotalLineDetail" {
			sum.Add(sum, shopifyAmount(one["Amount"]))
		}
	}
	return sum
}

func quickBooksNumber(n *big.Rat) json.Number {
	text := n.FloatString(2)
	if strings.HasSuffix(text, ".00") {
		return json.Number(text[:len(text)-1]) // 5.0
	}
	return json.Number(strings.TrimSuffix(text, "0"))
}

// quickBooksShown is a record; the balance of an invoice is what payments have left.
func quickBooksShown(kind string, o Object, seen View) Answer {
	return Answer{Status: 200, Body: map[string]any{kind: quickBooksBalanced(kind, o, seen), "time": quickBooksTime(seen.At())}}
}

func quickBooksBalanced(kind string, o Object, seen View) Object {
	o = o.Shown()
	if kind != QuickBooksInvoices {
		return o
	}
	rest := shopifyAmount(o["TotalAmt"])
	for _, payment := range seen.List(QuickBooksPayments) {
		lines, _ := payment["Line"].([]any)
		for _, line := range lines {
			one, _ := line.(map[string]any)
			if linked, _ := json.Marshal(one["LinkedTxn"]); strings.Contains(string(linked), `"TxnId":"`+o.Text("Id")+`"`) {
				rest.Sub(rest, shopifyAmount(one["Amount"]))
			}
		}
	}
	o["Balance"] = quickBooksNumber(rest)
	return o
}

// quickBooksKnown are the members that a request may have. Others are refused.
var quickBooksKnown = map[string]string{
	QuickBooksInvoices: "Id SyncToken sparse domain MetaData Balance CustomerRef DocNumber TxnDate DueDate Line PrivateNote CustomerMemo CurrencyRef BillEmail BillAddr ShipAddr SalesTermRef TxnTaxDetail EmailStatus CustomField TotalAmt",
	QuickBooksPayments: "Id SyncToken sparse domain MetaData CustomerRef TxnDate Line PrivateNote CurrencyRef TotalAmt UnappliedAmt PaymentRefNum PaymentMethodRef DepositToAccountRef ARAccountRef",
}

// write creates, changes, voids and deletes.
func (s *QuickBooks) write(kind string) func(*Request, View) (Plan, *Answer) {
	return func(r *Request, now View) (Plan, *Answer) {
		q, given := r.URL.Query(), Object(r.Body)
		key := q.Get("requestid")
		if len(key) > 50 {
			return Plan{}, quickBooksFault(400, "2050", "String length is either shorter or longer than supported by specification", "Request ID")
		}
		if !s.o.HonoursRequestID {
			key = ""
		}
		if a, _, known := s.Used(key, s.o.Window, r); known { // whatever the request is now
			return Plan{}, &a
		}
		if name := unknown(given, quickBooksKnown[kind]); name != "" {
			return Plan{}, quickBooksFault(400, "2010", "Request has invalid or unsupported property", "Property Name:"+name+" is unsupported or invalid")
		}
		o, gone := quickBooksBlank(now), false
		id := given.Text("Id")
		before := now.Get(kind, id)
		switch operation := q.Get("operation"); {
		case id == "" && operation == "":
			if a := quickBooksFill(kind, o, given); a != nil {
				return Plan{}, a
			}
		case before == nil:
			return Plan{}, quickBooksMissing()
		case before["SyncToken"] != given["SyncToken"]:
			return Plan{}, quickBooksFault(400, "5010", "Stale Object Error", "Stale Object Error : You and another were working on this at the same time.")
		default:
			o = before.Clone()
			n, _ := strconv.Atoi(before.Text("SyncToken"))
			o["SyncToken"] = strconv.Itoa(n + 1)
			o["MetaData"].(map[string]any)["LastUpdatedTime"] = quickBooksTime(now.At())
			switch gone = operation == "delete"; operation {
			case "void":
				o["PrivateNote"], o["TotalAmt"], o["Line"] = "Voided", json.Number("0"), []any{}
			case "":
				if a := quickBooksFill(kind, o, given); a != nil {
					return Plan{}, a
				}
			}
		}
		if number := o.Text("DocNumber"); kind == QuickBooksInvoices && number == "" {
			o["DocNumber"] = strconv.Itoa(1000 + len(now.List(kind)) + 1)
		} else if s.o.UniqueDocNumbers && q.Get("include") != "allowduplicatedocnum" && slices.ContainsFunc(now.List(kind), func(other Object) bool { return number != "" && other["DocNumber"] == number && other["Id"] != o["Id"] }) {
			return Plan{}, quickBooksFault(400, "6140", "Duplicate Document Number Error", "Duplicate Document Number Error : You must specify a different number. This number has already been used. DocNumber="+number+" is assigned to TxnType=Invoice")
		}
		p := Plan{
			Collection: kind, ID: o.Text("Id"), After: o, Create: before == nil, Key: key,
			Answer: func(stored Object) Answer {
				return quickBooksXML(func(*Request, View) Answer { return quickBooksShown(kind, stored, s.now()) })(r, now)
			},
			Drop:      func(stored Object) { delete(stored, "PrivateNote") },
			Normalise: func(stored Object) { stored["PrivateNote"] = strings.ToUpper(stored.Text("PrivateNote")) },
			Duplicate: func(stored Object, now View) (string, Object) {
				stored["Id"] = quickBooksBlank(now)["Id"]
				return stored.Text("Id"), stored
			},
		}
		if gone {
			p.After, p.Answer = nil, func(Object) Answer {
				return Answer{Status: 200, Body: map[string]any{kind: map[string]any{"Id": id, "status": "Deleted", "domain": "QBO"}}}
			}
		}
		return p, nil
	}
}

// quickBooksFill stores a request. An invoice gets a line with the subtotal.
func quickBooksFill(kind string, o, given Object) *Answer {
	for member, v := range given {
		if !slices.Contains([]string{"Id", "SyncToken", "sparse", "domain", "MetaData", "Balance"}, member) {
			o[member] = v
		}
	}
	missing := func(name string) *Answer {
		return quickBooksFault(400, "2020", "Required param missing, need to supply the required value for the API", "Required parameter "+name+" is missing in the request")
	}
	customer, _ := o["CustomerRef"].(map[string]any)
	lines, _ := o["Line"].([]any)
	switch {
	case customer["value"] == nil:
		return missing("CustomerRef")
	case len(o.Text("DocNumber")) > 21 || len(o.Text("PaymentRefNum")) > 21:
		return quickBooksFault(400, "2050", "String length is either shorter or longer than supported by specification", "String length specified does not match the supported length. Max:21")
	case kind == QuickBooksPayments && o["TotalAmt"] == nil:
		return missing("TotalAmt")
	case kind == QuickBooksPayments:
		o["UnappliedAmt"] = quickBooksNumber(new(big.Rat).Sub(shopifyAmount(o["TotalAmt"]), quickBooksSum(lines)))
		return nil
	case len(lines) == 0:
		return missing("Line")
	}
	kept := []any{}
	for _, line := range lines {
		if one, _ := line.(map[string]any); one["DetailType"] != "SubTotalLineDetail" {
			one["Id"], one["LineNum"] = strconv.Itoa(len(kept)+1), Number(int64(len(kept)+1))
			kept = append(kept, one)
		}
	}
	o["TotalAmt"] = quickBooksNumber(quickBooksSum(kept))
	o["Line"] = append(kept, map[string]any{"Amount": o["TotalAmt"], "DetailType": "SubTotalLineDetail", "SubTotalLineDetail": map[string]any{}})
	return nil
}

var (
	quickBooksSelect = regexp.MustCompile(`(?i)^\s*select\s+(\*|count\(\*\))\s+from\s+(Invoice|Payment)\s*(?:where\s+)?`)
	quickBooksEnd    = regexp.MustCompile(`(?i)^\s*(?:order\s*by\s+[A-Za-z.]+(?:\s+(?:asc|desc))?)?\s*(?:startposition\s+(\d+))?\s*(?:maxresults\s+(\d+))?\s*$`)
)

const quickBooksQueryable = "Id DocNumber TxnDate TotalAmt Balance CustomerRef PaymentRefNum MetaData.CreateTime MetaData.LastUpdatedTime"

func (s *QuickBooks) query(r *Request, seen View) Answer {
	query := r.URL.Query().Get("query")
	m := quickBooksSelect.FindStringSubmatch(query)
	if m == nil {
		return *quickBooksFault(400, "4000", "Error parsing query", "QueryParserError: Encountered an error in "+query)
	}
	all, rest := conditions(query[len(m[0]):])
	end := quickBooksEnd.FindStringSubmatch(rest)
	if end == nil {
		return *quickBooksFault(400, "4000", "Error parsing query", "QueryParserError: Encountered an error at "+rest)
	}
	kind := map[bool]string{true: QuickBooksInvoices, false: QuickBooksPayments}[strings.EqualFold(m[2], QuickBooksInvoices)]
	found := []Object{}
	for _, o := range seen.List(kind) {
		o = quickBooksBalanced(kind, o, seen)
		holds := true
		for _, c := range all {
			if unknown(map[string]bool{c.field: true}, quickBooksQueryable) != "" {
				return *quickBooksFault(400, "4001", "Invalid query", "QueryValidationError: Property "+c.field+" not found for Entity "+kind)
			}
			first, second, nested := strings.Cut(c.field, ".")
			v := o[first]
			if inner, ok := v.(map[string]any); ok {
				v = inner["value"]
				if nested {
					v = inner[second]
				}
			}
			holds = holds && c.holds(v)
		}
		if holds {
			found = append(found, o)
		}
	}
	from, _ := strconv.Atoi(cmp.Or(end[1], "1")) // digits
	found = found[min(max(from, 1)-1, len(found)):]
	shown, _ := page(found, cmp.Or(limit(end[2], 100, 1000), 100))
	body := map[string]any{}
	switch {
	case m[1] != "*":
		body["totalCount"] = len(found)
	case len(shown) > 0:
		body[kind], body["startPosition"], body["maxResults"] = shown, from, len(shown)
	}
	return Answer{Status: 200, Body: map[string]any{"QueryResponse": body, "time": quickBooksTime(seen.At())}}
}
