package rest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The collections of [Shopify]. Metafields are in their order, under ".metafields".
const (
	ShopifyOrders  = "orders"
	ShopifyRefunds = "refunds"
)

// ShopifyOptions are the choices of a [Shopify]. The zero value works.
type ShopifyOptions struct {
	// Token is the access token. Default "shpat_readback".
	Token string
	// Window is how long an idempotency key is remembered. Default 24 hours.
	Window time.Duration
}

// Shopify is the fake of Shopify's GraphQL API for shops: refundCreate, orderUpdate, metafieldsSet; order,
// orders, refund.
//
// All answers to an authorised request have status 200. A refund needs the directive idempotent from
// version 2026-04 on; a repeat is answered with the refund as it is now. The query orders lags and leaves
// out of account filters that it does not know; an order by its id does not lag.
type Shopify struct {
	*Fake
	o ShopifyOptions
}

// NewShopify makes one.
func NewShopify(o ShopifyOptions) *Shopify {
	o.Token, o.Window = cmp.Or(o.Token, "shpat_readback"), cmp.Or(o.Window, 24*time.Hour)
	s := &Shopify{o: o}
	s.Fake = New(Manners{
		Authorized: func(r *http.Request) bool { return r.Header.Get("X-Shopify-Access-Token") == o.Token },
		Unauthorized: func() Answer {
			return Answer{Status: 401, Body: map[string]any{"errors": "[API] Invalid API key or access token (unrecognized login or wrong password)"}}
		},
		NotFound:  func(*http.Request) Answer { return Answer{Status: 404, Body: map[string]any{"errors": "Not Found"}} },
		Malformed: func() Answer { return Answer{Status: 400, Body: map[string]any{"errors": "Bad Request"}} },
		Refused: func(how string) (Answer, bool) {
			if how == "userErrors" { // of a refund
				return Answer{Status: 200, Body: map[string]any{"data": map[string]any{"refundCreate": map[string]any{"refund": nil, "userErrors": []any{shopifyProblem("", "Order cannot be refunded")}}}}}, true
			}
			return *shopifyError("ACCESS_DENIED", "Access denied for refundCreate field. Required access: `write_orders` access scope."), how == ""
		},
		Throttled: func(how string, _ time.Duration) (Answer, bool) { // no time to wait
			return *shopifyError("THROTTLED", "Throttled"), how == ""
		},
		RequestID: "X-Request-Id",
		Failed: func() Answer {
			return *shopifyError("INTERNAL_SERVER_ERROR", "Internal error. Looks like something went wrong on our end.")
		},
		Key: func(r *Request) string {
			_, fields, err := graphQL(r.Raw)
			if err != nil || len(fields) != 1 {
				return ""
			}
			key, _ := fields[0].directives["idempotent"]["key"].(string)
			return key
		},
		Busy: func(r *Request) Answer {
			_, fields, _ := graphQL(r.Raw) // it has a key
			return shopifyRefusal(fields[0], shopifyProblem("IDEMPOTENCY_CONCURRENT_REQUEST", "A request with this idempotency key is being processed."))
		},
	})
	s.HandleBoth("POST /admin/api/{version}/graphql.json", func(body []byte) bool {
		mutation, _, _ := graphQL(body)
		return mutation
	}, s.mutate, func(r *Request) bool {
		_, fields, _ := graphQL(r.Raw)
		return !slices.ContainsFunc(fields, func(f selected) bool { return f.name == "orders" })
	}, s.query)
	return s
}

// Seed stores an order as another actor would. more are members that override the others: total
// ("100.00"), tags, note, sourceIdentifier.
func (s *Shopify) Seed(more Object) Object {
	_, o := s.Put(ShopifyOrders, func(now View) (string, Object) {
		n, at := now.Next(), now.At().UTC().Format(time.RFC3339)
		o := Object{"id": fmt.Sprintf("gid://shopify/Order/%d", n), "legacyResourceId": strconv.FormatInt(n, 10), "name": fmt.Sprintf("#%d", 1000+n),
			"createdAt": at, "updatedAt": at, "email": nil, "note": nil, "tags": []any{}, "sourceIdentifier": nil, "currencyCode": "USD",
			".total": "100.00", ".metafields": map[string]any{}}
		for member, v := range more.Clone() {
			if member == "total" {
				member = ".total"
			}
			o[member] = v
		}
		return o.Text("id"), o
	})
	return o
}

func shopifyError(code, says string) *Answer {
	return &Answer{Status: 200, Body: map[string]any{"errors": []any{map[string]any{"message": says, "extensions": map[string]any{"code": code}}}}}
}

// shopifyProblem is an entry of userErrors.
func shopifyProblem(code, says string, field ...any) map[string]any {
	p := map[string]any{"field": nil, "message": says, "code": nil, "elementIndex": nil}
	if len(field) > 0 {
		p["field"] = field
	}
	if code != "" {
		p["code"] = code
	}
	return p
}

// shopifyRefusal answers a mutation with userErrors.
func shopifyRefusal(f selected, problem map[string]any) Answer {
	return shopifyData([]selected{f}, map[string]any{f.name: map[string]any{
		"refund": nil, "order": nil, "metafields": nil, "userErrors": []any{problem},
	}})
}

// shopifyData shows what was selected, and the cost.
func shopifyData(fields []selected, v any) Answer {
	data, err := selects(fields, v)
	if err != nil {
		return *shopifyError("undefinedField", err.Error())
	}
	return Answer{Status: 200, Body: map[string]any{"data": data, "extensions": map[string]any{"cost": map[string]any{
		"requestedQueryCost": 10, "actualQueryCost": 10,
		"throttleStatus": map[string]any{"maximumAvailable": 2000, "currentlyAvailable": 1990, "restoreRate": 100},
	}}}}
}

func shopifyMoney(amount *big.Rat) map[string]any {
	money := map[string]any{"amount": amount.FloatString(2), "currencyCode": "USD"}
	return map[string]any{"shopMoney": money, "presentmentMoney": money}
}

func shopifyAmount(text any) *big.Rat {
	amount, ok := new(big.Rat).SetString(fmt.Sprint(text))
	if !ok {
		return new(big.Rat)
	}
	return amount
}

// order is an order as it is shown, with its refunds and metafields.
func (s *Shopify) order(o Object, seen View) map[string]any {
	if o == nil {
		return nil
	}
	refunds, sum := []any{}, new(big.Rat)
	for _, refund := range seen.List(ShopifyRefunds) {
		if refund[".order"] == o["id"] {
			refunds = append(refunds, s.refund(refund, o))
			sum.Add(sum, shopifyAmount(refund[".amount"]))
		}
	}
	kept, _ := o[".metafields"].(map[string]any)
	shown := map[string]any(o.Shown())
	shown["totalPriceSet"], shown["totalRefundedSet"] = shopifyMoney(shopifyAmount(o[".total"])), shopifyMoney(sum)
	shown["refunds"] = resolver(func(args map[string]any) (any, error) {
		if n, err := strconv.Atoi(fmt.Sprint(args["first"])); err == nil {
			return refunds[:min(n, len(refunds))], nil
		}
		return refunds, nil
	})
	shown["metafield"] = resolver(func(args map[string]any) (any, error) {
		return kept[fmt.Sprint(args["namespace"], ".", args["key"])], nil
	})
	shown["metafields"] = resolver(func(args map[string]any) (any, error) {
		all := []any{}
		for _, name := range slices.Sorted(maps.Keys(kept)) {
			if space, ok := args["namespace"].(string); !ok || strings.HasPrefix(name, space+".") {
				all = append(all, kept[name])
			}
		}
		return connection(all)(args)
	})
	return shown
}

func (s *Shopify) refund(o, order Object) map[string]any {
	shown := map[string]any(o.Shown())
	amount := shopifyAmount(o[".amount"])
	shown["totalRefundedSet"] = shopifyMoney(amount)
	shown["order"] = map[string]any{"id": order["id"], "name": order["name"]}
	shown["transactions"] = connection([]any{map[string]any{
		"id": "gid://shopify/OrderTransaction/" + o.Text("legacyResourceId"), "kind": "REFUND", "status": "SUCCESS", "amountSet": shopifyMoney(amount),
	}})
	return shown
}

func (s *Shopify) query(r *Request, seen View) Answer {
	_, fields, err := graphQL(r.Raw)
	if err != nil {
		return *shopifyError("parseError", err.Error())
	}
	text := func(args map[string]any, name string) string { v, _ := args[name].(string); return v }
	return shopifyData(fields, map[string]any{
		"shop": map[string]any{"id": "gid://shopify/Shop/1", "name": "Example", "myshopifyDomain": "example.myshopify.com"},
		"order": resolver(func(args map[string]any) (any, error) {
			if o := s.order(seen.Get(ShopifyOrders, text(args, "id")), seen); o != nil {
				return o, nil
			}
			return nil, nil
		}),
		"refund": resolver(func(args map[string]any) (any, error) {
			o := seen.Get(ShopifyRefunds, text(args, "id"))
			if o == nil {
				return nil, nil
			}
			return s.refund(o, seen.Get(ShopifyOrders, o.Text(".order"))), nil
		}),
		"orders": resolver(func(args map[string]any) (any, error) {
			found := []any{}
			for _, o := range seen.List(ShopifyOrders) {
				if shopifyMatches(o, text(args, "query")) {
					found = append(found, s.order(o, seen))
				}
			}
			return connection(found)(args)
		}),
	})
}

var shopifyTerm = regexp.MustCompile(`([\w.-]+):(?:'([^']*)'|"([^"]*)"|(\S+))`)

// shopifyMatches leaves out of account what it does not know.
func shopifyMatches(o Object, query string) bool {
	kept, _ := o[".metafields"].(map[string]any)
	for _, m := range shopifyTerm.FindAllStringSubmatch(query, -1) {
		want := m[2] + m[3] + m[4]
		switch field := m[1]; {
		case field == "source_identifier" && o["sourceIdentifier"] != want,
			field == "name" && o["name"] != want && o["name"] != "#"+want,
			field == "id" && o["legacyResourceId"] != want,
			field == "tag" && !slices.Contains(texts(o["tags"]), want):
			return false
		case strings.HasPrefix(field, "metafields."):
			if one, _ := kept[strings.TrimPrefix(field, "metafields.")].(map[string]any); one["value"] != want {
				return false
			}
		}
	}
	return true
}

func (s *Shopify) mutate(r *Request, now View) (Plan, *Answer) {
	_, fields, err := graphQL(r.Raw)
	if err == nil && len(fields) != 1 {
		err = errors.New("this fake knows one mutation for each request")
	}
	if err != nil {
		return Plan{}, shopifyError("parseError", err.Error())
	}
	do := map[string]func(*Request, selected, View) (Plan, *Answer){"refundCreate": s.createRefund, "orderUpdate": s.updateOrder, "metafieldsSet": s.setMetafields}[fields[0].name]
	if do == nil {
		return Plan{}, shopifyError("undefinedField", "Field '"+fields[0].name+"' doesn't exist on type 'Mutation'")
	}
	// What is selected is checked before anything is done.
	probe := s.order(Object{"id": "", "legacyResourceId": "", "name": "", "createdAt": "", "updatedAt": "", "email": "", "note": "", "tags": "", "sourceIdentifier": "", "currencyCode": ""}, now)
	refund := s.refund(Object{"id": "", "legacyResourceId": "", "note": "", "createdAt": "", "updatedAt": ""}, Object{})
	metafield := shopifyMetafield(map[string]any{}, now)
	if _, err := selects(fields, map[string]any{fields[0].name: map[string]any{"refund": refund, "order": probe, "metafields": []any{metafield}, "userErrors": []any{shopifyProblem("", "")}}}); err != nil {
		return Plan{}, shopifyError("undefinedField", err.Error())
	}
	return do(r, fields[0], now)
}

// shopifyInput is the input of a mutation. Members that it does not know are refused.
func shopifyInput(f selected, kind, allowed string) (Object, *Answer) {
	given, ok := f.args["input"].(map[string]any)
	if !ok {
		return nil, shopifyError("missingRequiredArguments", "Field '"+f.name+"' is missing required arguments: input")
	}
	if name := unknown(given, allowed); name != "" {
		return nil, shopifyError("INVALID_VARIABLE", "Variable $input of type "+kind+"! was provided invalid value for "+name+" (Field is not defined on "+kind+")")
	}
	return given, nil
}

func (s *Shopify) createRefund(r *Request, f selected, now View) (Plan, *Answer) {
	refuse := func(code, says string, field ...any) (Plan, *Answer) {
		a := shopifyRefusal(f, shopifyProblem(code, says, field...))
		return Plan{}, &a
	}
	given, a := shopifyInput(f, "RefundInput", "allowOverRefunding currency discrepancyReason note notify orderId processedAt refundDuties refundLineItems refundMethods shipping transactions")
	if a != nil {
		return Plan{}, a
	}
	key, _ := f.directives["idempotent"]["key"].(string)
	if key == "" && r.PathValue("version") >= "2026-04" {
		return Plan{}, shopifyError("BAD_REQUEST", "The @idempotent directive is required for this mutation but was not provided.")
	}
	order := now.Get(ShopifyOrders, given.Text("orderId"))
	if order == nil {
		return refuse("", "Order does not exist", "orderId")
	}
	if _, same, known := s.Used(key, s.o.Window, r); known && !same {
		return refuse("IDEMPOTENCY_KEY_PARAMETER_MISMATCH", "The idempotency key was used with other parameters.")
	} else if known {
		all := now.List(ShopifyRefunds)
		i := slices.IndexFunc(all, func(o Object) bool { return o[".key"] == key })
		if i < 0 {
			return refuse("IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED", "The previous attempt with this idempotency key failed.")
		}
		a := shopifyData([]selected{f}, s.refunded(f, all[i], order, now))
		return Plan{}, &a
	}
	amount, _ := given["transactions"].([]any)
	sum, paid := new(big.Rat), shopifyAmount(order[".total"])
	for _, one := range amount {
		transaction, _ := one.(map[string]any)
		sum.Add(sum, shopifyAmount(transaction["amount"]))
	}
	for _, other := range now.List(ShopifyRefunds) {
		if other[".order"] == order["id"] {
			paid.Sub(paid, shopifyAmount(other[".amount"]))
		}
	}
	if sum.Cmp(paid) > 0 && given["allowOverRefunding"] != true {
		return refuse("", "Refund amount cannot be greater than the refundable amount of "+paid.FloatString(2), "transactions")
	}
	n, at := now.Next(), now.At().UTC().Format(time.RFC3339)
	o := Object{"id": fmt.Sprintf("gid://shopify/Refund/%d", n), "legacyResourceId": strconv.FormatInt(n, 10), "note": given["note"],
		"createdAt": at, "updatedAt": at, ".order": order["id"], ".amount": sum.FloatString(2), ".key": key}
	return Plan{
		Collection: ShopifyRefunds, ID: o.Text("id"), After: o, Create: true, Key: key,
		Answer: func(stored Object) Answer {
			return shopifyData([]selected{f}, s.refunded(f, stored, order, s.now()))
		},
		Drop:      func(stored Object) { stored["note"] = nil },
		Normalise: func(stored Object) { stored["note"] = strings.ToUpper(stored.Text("note")) },
		Duplicate: func(stored Object, now View) (string, Object) {
			stored["id"] = fmt.Sprintf("gid://shopify/Refund/%d", now.Next())
			return stored.Text("id"), stored
		},
	}, nil
}

func (s *Shopify) refunded(f selected, refund, order Object, now View) map[string]any {
	return map[string]any{f.name: map[string]any{"refund": s.refund(refund, order), "order": s.order(order, now), "userErrors": []any{}}}
}

func (s *Shopify) updateOrder(_ *Request, f selected, now View) (Plan, *Answer) {
	given, a := shopifyInput(f, "OrderInput", "customAttributes email id localizedFields metafields note phone poNumber shippingAddress tags")
	if a != nil {
		return Plan{}, a
	}
	o := now.Get(ShopifyOrders, given.Text("id"))
	if o == nil {
		a := shopifyRefusal(f, shopifyProblem("", "Order does not exist", "id"))
		return Plan{}, &a
	}
	before := o.Clone()
	for _, member := range []string{"note", "email"} {
		if v, ok := given[member]; ok {
			o[member] = v
		}
	}
	if v, ok := given["tags"]; ok {
		all := texts(v)
		slices.Sort(all)
		o["tags"] = slices.Compact(all)
	}
	o["updatedAt"] = now.At().UTC().Format(time.RFC3339)
	return Plan{
		Collection: ShopifyOrders, ID: o.Text("id"), After: o,
		Answer: func(stored Object) Answer {
			return shopifyData([]selected{f}, map[string]any{f.name: map[string]any{"order": s.order(stored, s.now()), "userErrors": []any{}}})
		},
		Drop:      func(stored Object) { stored["note"] = before["note"] },
		Normalise: func(stored Object) { stored["note"] = strings.ToUpper(stored.Text("note")) },
	}, nil
}

func shopifyMetafield(given map[string]any, now View) map[string]any {
	raw, _ := json.Marshal(given["value"]) // decoded JSON
	return map[string]any{"id": fmt.Sprintf("gid://shopify/Metafield/%v.%v", given["namespace"], given["key"]), "namespace": given["namespace"], "key": given["key"],
		"type": given["type"], "value": given["value"], "compareDigest": hash(raw), "ownerType": "ORDER", "updatedAt": now.At().UTC().Format(time.RFC3339)}
}

// setMetafields sets all or none; it knows those of one order for each request.
func (s *Shopify) setMetafields(_ *Request, f selected, now View) (Plan, *Answer) {
	all, _ := f.args["metafields"].([]any)
	refuse := func(i int, code, says, field string) (Plan, *Answer) {
		p := shopifyProblem(code, says, "metafields", strconv.Itoa(i), field)
		p["elementIndex"] = i
		a := shopifyRefusal(f, p)
		return Plan{}, &a
	}
	if len(all) < 1 || len(all) > 25 {
		return refuse(0, "LESS_THAN_OR_EQUAL_TO", "Exceeded the maximum metafields input limit of 25.", "")
	}
	var order Object
	set := []any{}
	for i, one := range all {
		given, _ := one.(map[string]any)
		if name := unknown(given, "compareDigest key namespace ownerId type value"); name != "" {
			return Plan{}, shopifyError("INVALID_VARIABLE", "Variable $metafields of type [MetafieldsSetInput!]! was provided invalid value for "+name)
		}
		if order == nil {
			order = now.Get(ShopifyOrders, Object(given).Text("ownerId"))
		}
		if order == nil || order["id"] != given["ownerId"] {
			return refuse(i, "INVALID", "Owner does not exist.", "ownerId")
		}
		kept, name := order[".metafields"].(map[string]any), fmt.Sprint(given["namespace"], ".", given["key"])
		before, _ := kept[name].(map[string]any)
		if digest, ok := given["compareDigest"]; ok && digest != before["compareDigest"] {
			return refuse(i, "STALE_OBJECT", "The resource has been updated since it was loaded. Try again with an updated `compareDigest` value.", "compareDigest")
		}
		if Object(given).Text("value") == "" {
			return refuse(i, "BLANK", "Value can't be blank.", "value")
		}
		kept[name] = shopifyMetafield(given, now)
		set = append(set, kept[name])
	}
	return Plan{Collection: ShopifyOrders, ID: order.Text("id"), After: order, Answer: func(Object) Answer {
		return shopifyData([]selected{f}, map[string]any{f.name: map[string]any{"metafields": set, "userErrors": []any{}}})
	}}, nil
}
