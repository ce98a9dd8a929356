package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The collections of [Stripe].
const (
	StripeRefunds        = "refunds"
	StripePaymentIntents = "payment_intents"
	StripeCustomers      = "customers"
	StripeInvoiceItems   = "invoiceitems"
)

// StripeOptions are the choices of a [Stripe]. The zero value works.
type StripeOptions struct {
	// Secret is the API key. Default "sk_test_readback".
	Secret string
	// Window is how long an idempotency key is remembered. Default 24 hours.
	Window time.Duration
	// RefundPending is how long a refund is pending before it succeeds. Default 0: it never is.
	RefundPending time.Duration
	// RefundFails is how long after its creation a refund fails, also one that had succeeded.
	// Default 0: never.
	RefundFails time.Duration
}

// Stripe is the fake of Stripe's API (v1) for refunds, payment intents, customers and invoice items, in
// the shape of its OpenAPI document of 2026-08-26.
//
// Each POST honours Idempotency-Key: what was executed is kept, refusals and failures included, what
// did not get so far (429, invalid parameters) is not. Lists cannot be filtered by metadata, and lag;
// an object by its id does not. A refund of more than is left is refused.
type Stripe struct {
	*Fake
	o StripeOptions
}

// stripeKind is one kind of object.
type stripeKind struct {
	object, prefix string
	date           string // the member that the filter created is about
	create, update string // parameters
	filter         string // of the list
	text           string // the member that a fault drops or changes
	blank          Object
	check          func(o Object, given map[string]any, now View) (invalid, refused *Answer)
}

const stripeIntentUpdate = "amount amount_details application_fee_amount capture_method currency customer customer_account description excluded_payment_method_types expand hooks metadata payment_details payment_method payment_method_configuration payment_method_data payment_method_options payment_method_types receipt_email setup_future_usage shipping statement_descriptor statement_descriptor_suffix transfer_data transfer_group"

var stripeKinds = map[string]stripeKind{
	StripeRefunds: {
		object: "refund", prefix: "re_", date: "created", text: "reason", filter: "charge payment_intent", update: "expand metadata",
		create: "amount charge currency customer expand instructions_email metadata origin payment_intent reason refund_application_fee reverse_transfer",
		blank: Object{"amount": nil, "balance_transaction": nil, "charge": nil, "currency": nil, "payment_intent": nil,
			"reason": nil, "receipt_number": nil, "source_transfer_reversal": nil, "status": "succeeded", "transfer_reversal": nil},
		check: stripeRefund,
	},
	StripePaymentIntents: {
		object: "payment_intent", prefix: "pi_", date: "created", text: "description", filter: "customer customer_account", update: stripeIntentUpdate,
		create: stripeIntentUpdate + " allowed_payment_method_types automatic_payment_methods confirm confirmation_method confirmation_token error_on_requires_action mandate mandate_data off_session on_behalf_of radar_options return_url use_stripe_sdk",
		blank: Object{"amount": nil, "amount_capturable": Number(0), "amount_received": Number(0), "capture_method": "automatic_async", "currency": nil,
			"customer": nil, "description": nil, "last_payment_error": nil, "latest_charge": nil, "payment_method": nil, "receipt_email": nil,
			"setup_future_usage": nil, "statement_descriptor": nil, "status": "requires_payment_method", "transfer_group": nil},
		check: stripeIntent,
	},
	StripeCustomers: {
		object: "customer", prefix: "cus_", date: "created", text: "name", filter: "email test_clock",
		create: "address balance business_name cash_balance description email expand individual_name invoice_prefix invoice_settings metadata name next_invoice_sequence payment_method phone preferred_locales shipping source tax tax_exempt tax_id_data test_clock",
		update: "address balance bank_account business_name card cash_balance default_alipay_account default_bank_account default_card default_source description email expand individual_name invoice_prefix invoice_settings metadata name next_invoice_sequence phone preferred_locales shipping source tax tax_exempt",
		blank: Object{"address": nil, "balance": Number(0), "currency": nil, "default_source": nil, "delinquent": false, "description": nil,
			"email": nil, "name": nil, "phone": nil, "shipping": nil, "tax_exempt": "none"},
	},
	StripeInvoiceItems: {
		object: "invoiceitem", prefix: "ii_", date: "date", text: "description", filter: "customer customer_account invoice",
		create: "amount currency customer customer_account description discountable discounts expand invoice metadata period price_data pricing quantity quantity_decimal subscription tax_behavior tax_code tax_rates unit_amount_decimal",
		update: "amount description discountable discounts expand metadata period price_data pricing quantity quantity_decimal tax_behavior tax_code tax_rates unit_amount_decimal",
		blank: Object{"amount": nil, "currency": nil, "customer": nil, "description": nil, "discountable": true, "discounts": []any{},
			"invoice": nil, "proration": false, "quantity": Number(1), "tax_rates": []any{}},
		check: stripeItem,
	},
}

// NewStripe makes one.
func NewStripe(o StripeOptions) *Stripe {
	o.Secret, o.Window = cmp.Or(o.Secret, "sk_test_readback"), cmp.Or(o.Window, 24*time.Hour)
	s := &Stripe{o: o}
	s.Fake = New(Manners{
		Authorized: func(r *http.Request) bool {
			user, _, basic := r.BasicAuth()
			return r.Header.Get("Authorization") == "Bearer "+o.Secret || basic && user == o.Secret
		},
		Unauthorized: func() Answer { return stripeError(401, "invalid_request_error", "", "", "Invalid API Key provided") },
		NotFound: func(r *http.Request) Answer {
			return stripeError(404, "invalid_request_error", "", "", fmt.Sprintf("Unrecognized request URL (%s: %s).", r.Method, r.URL.Path))
		},
		Malformed: func() Answer { return stripeError(400, "invalid_request_error", "", "", "Invalid request") },
		Refused:   stripeRefused,
		Throttled: func(how string, _ time.Duration) (Answer, bool) { // no time to wait is promised
			code := cmp.Or(how, "rate_limit")
			return stripeError(429, "invalid_request_error", code, "", "Request rate limit exceeded."), code == "rate_limit" || code == "lock_timeout"
		},
		Forms: true, RequestID: "Request-Id",
		Failed: func() Answer { return stripeError(500, "api_error", "", "", "An unknown error occurred") },
		Key:    func(r *Request) string { return r.Header.Get("Idempotency-Key") },
		Busy: func(*Request) Answer {
			return stripeError(409, "idempotency_error", "idempotency_key_in_use", "", "There is currently another in-progress request using this Idempotency Key.")
		},
	})
	for name := range stripeKinds {
		s.HandleRead("GET /v1/"+name, false, s.list(name))
		s.HandleRead("GET /v1/"+name+"/{id}", true, func(r *Request, seen View) Answer {
			if o := seen.Get(name, r.PathValue("id")); o != nil {
				return Answer{Status: 200, Body: o.Shown()}
			}
			return *stripeMissing(404, stripeKinds[name].object, r.PathValue("id"), "id")
		})
		s.HandleWrite("POST /v1/"+name, s.post(s.create(name)))
		s.HandleWrite("POST /v1/"+name+"/{id}", s.post(s.update(name)))
	}
	s.HandleWrite("POST /v1/payment_intents/{id}/{action}", s.post(s.act))
	s.HandleWrite("DELETE /v1/customers/{id}", s.delete(StripeCustomers))
	s.HandleWrite("DELETE /v1/invoiceitems/{id}", s.delete(StripeInvoiceItems))
	return s
}

// Seed stores an object as another actor would. more are members that override the others: a payment
// that can be refunded is {"amount": 900, "currency": "usd", "status": "succeeded", "latest_charge":
// "ch_1"}.
func (s *Stripe) Seed(name string, more Object) Object {
	_, o := s.Put(name, func(now View) (string, Object) {
		o := stripeBlank(name, now)
		for member, v := range more.Clone() {
			o[member] = v
		}
		return o.Text("id"), o
	})
	return o
}

func stripeBlank(name string, now View) Object {
	kind := stripeKinds[name]
	o := kind.blank.Clone()
	o["id"], o["object"], o["metadata"] = kind.prefix+strconv.FormatInt(now.Next(), 10), kind.object, map[string]any{}
	o[kind.date] = Number(now.At().Unix())
	if name != StripeRefunds {
		o["livemode"] = false
	}
	return o
}

func stripeError(status int, class, code, param, says string) Answer {
	e := map[string]any{"type": class, "message": says}
	if code != "" {
		e["code"] = code
	}
	if param != "" {
		e["param"] = param
	}
	return Answer{Status: status, Body: map[string]any{"error": e}}
}

func stripeInvalid(code, param, says string) *Answer {
	a := stripeError(400, "invalid_request_error", code, param, says)
	return &a
}

func stripeMissing(status int, object, id, param string) *Answer {
	a := stripeError(status, "invalid_request_error", "resource_missing", param, fmt.Sprintf("No such %s: '%s'", object, id))
	return &a
}

func stripeRefused(how string) (Answer, bool) {
	switch how {
	case "", "400":
		return *stripeInvalid("charge_disputed", "", "Charge ch_1 has been charged back; cannot issue a refund."), true
	case "402":
		return stripeError(402, "card_error", "card_declined", "", "Your card was declined."), true
	case "403":
		return stripeError(403, "invalid_request_error", "", "", "The provided key does not have the required permissions for this endpoint."), true
	case "404":
		return *stripeMissing(404, "payment_intent", "pi_0", "intent"), true
	}
	return Answer{}, false
}

// post is what all POSTs have in common: the idempotency key.
func (s *Stripe) post(plan func(*Request, View) (Plan, *Answer)) func(*Request, View) (Plan, *Answer) {
	return func(r *Request, now View) (Plan, *Answer) {
		key := r.Header.Get("Idempotency-Key")
		if len(key) > 255 {
			return Plan{}, stripeInvalid("", "", "Idempotency keys may only be up to 255 characters.")
		}
		if a, same, known := s.Used(key, s.o.Window, r); known && same {
			a = a.With("Idempotent-Replayed", "true")
			return Plan{}, &a
		} else if known {
			a = stripeError(400, "idempotency_error", "", "", "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '"+key+"' if you meant to execute a different request.")
			return Plan{}, &a
		}
		if len(r.Raw) > 0 && r.form == nil {
			return Plan{}, stripeInvalid("", "", "Invalid request (check that your POST content type is application/x-www-form-urlencoded).")
		}
		p, instead := plan(r, now)
		p.Key = key
		return p, instead
	}
}

// stripeKept is a plan that does nothing but answer, which is kept under the key.
func stripeKept(a *Answer) Plan { return Plan{Answer: func(Object) Answer { return *a }} }

func (s *Stripe) create(name string) func(*Request, View) (Plan, *Answer) {
	kind := stripeKinds[name]
	return func(r *Request, now View) (Plan, *Answer) {
		o := stripeBlank(name, now)
		if a := stripeFill(o, r.Body, kind.create); a != nil {
			return Plan{}, a
		}
		var refused *Answer
		if kind.check != nil {
			invalid, no := kind.check(o, r.Body, now)
			if refused = no; invalid != nil {
				return Plan{}, invalid
			}
		}
		if refused != nil && refused.Status != http.StatusPaymentRequired {
			return stripeKept(refused), nil
		}
		p := s.stored(name, nil, o)
		p.Duplicate = func(stored Object, now View) (string, Object) {
			stored["id"] = stripeBlank(name, now)["id"]
			return stored.Text("id"), stored
		}
		if name == StripeRefunds {
			s.settle(&p)
		}
		if refused != nil { // a declined card leaves the payment intent behind
			p.Answer = func(stored Object) Answer {
				refused.Body.(map[string]any)["error"].(map[string]any)["payment_intent"] = stored.Shown()
				return *refused
			}
		}
		return p, nil
	}
}

// settle sets what becomes of a refund.
func (s *Stripe) settle(p *Plan) {
	if s.o.RefundPending > 0 {
		p.After["status"], p.After["pending_reason"] = "pending", "processing"
		p.Later = append(p.Later, Later{s.o.RefundPending, func(o Object) {
			if o["status"] == "pending" {
				o["status"] = "succeeded"
				delete(o, "pending_reason")
			}
		}})
	}
	if s.o.RefundFails > 0 {
		p.Later = append(p.Later, Later{s.o.RefundFails, func(o Object) {
			o["status"], o["failure_reason"], o["failure_balance_transaction"] = "failed", "lost_or_stolen_card", "txn_"+o.Text("id")
			delete(o, "pending_reason")
		}})
	}
}

// stored is a plan that stores an object and shows it.
func (s *Stripe) stored(name string, before, o Object) Plan {
	return storing(name, o.Text("id"), before, o, stripeKinds[name].text, shows(200))
}

func (s *Stripe) update(name string) func(*Request, View) (Plan, *Answer) {
	return func(r *Request, now View) (Plan, *Answer) {
		before := now.Get(name, r.PathValue("id"))
		if before == nil || before["deleted"] == true {
			return Plan{}, stripeMissing(404, stripeKinds[name].object, r.PathValue("id"), "id")
		}
		o := before.Clone()
		if a := stripeFill(o, r.Body, stripeKinds[name].update); a != nil {
			return Plan{}, a
		}
		return s.stored(name, before, o), nil
	}
}

// stripeFill stores parameters of which the object has a member. Empty text removes a value.
func stripeFill(o Object, given map[string]any, allowed string) *Answer {
	if name := unknown(given, allowed); name != "" {
		return stripeInvalid("parameter_unknown", name, "Received unknown parameter: "+name)
	}
	for name, v := range given {
		text, isText := v.(string)
		switch _, has := o[name]; {
		case name == "metadata":
			if a := stripeMetadata(o, v); a != nil {
				return a
			}
		case !has:
		case name == "amount" || name == "balance" || name == "quantity":
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || (n < 1 && o["object"] != "invoiceitem" && name == "amount") {
				return stripeInvalid("parameter_invalid_integer", name, "Invalid integer: "+text)
			}
			o[name] = Number(n)
		case name == "currency":
			if o[name] = strings.ToLower(text); len(text) != 3 {
				return stripeInvalid("", name, "Invalid currency: "+text)
			}
		case name == "discountable":
			o[name] = text == "true"
		case isText && text == "":
			o[name] = nil
		default:
			o[name] = v
		}
	}
	return nil
}

func stripeMetadata(o Object, given any) *Answer {
	kept, _ := o["metadata"].(map[string]any)
	if given == "" {
		o["metadata"] = map[string]any{}
		return nil
	}
	pairs, ok := given.(map[string]any)
	if !ok {
		return stripeInvalid("", "metadata", "Invalid hash")
	}
	for key, v := range pairs {
		text, ok := v.(string)
		switch {
		case !ok || len(key) > 40 || len(text) > 500:
			return stripeInvalid("", "metadata["+key+"]", "Metadata keys can have up to 40 characters, values up to 500.")
		case text == "":
			delete(kept, key)
		default:
			kept[key] = text
		}
	}
	if len(kept) > 50 {
		return stripeInvalid("", "metadata", "Metadata can have up to 50 keys.")
	}
	return nil
}

func stripeRequired(o Object, names ...string) *Answer {
	for _, name := range names {
		if o[name] == nil {
			return stripeInvalid("parameter_missing", name, "Missing required param: "+name+".")
		}
	}
	return nil
}

func stripeRefund(o Object, given map[string]any, now View) (invalid, refused *Answer) {
	by, member := "payment_intent", "id"
	if o[by] == nil {
		by, member = "charge", "latest_charge"
	}
	if o[by] == nil {
		return stripeInvalid("parameter_missing", "", "One of the following params should be provided for this request: payment_intent or charge."), nil
	}
	if reason := o["reason"]; reason != nil && !slices.Contains([]any{"duplicate", "fraudulent", "requested_by_customer"}, reason) {
		return stripeInvalid("", "reason", "Invalid reason: must be one of duplicate, fraudulent, or requested_by_customer"), nil
	}
	all := now.List(StripePaymentIntents)
	i := slices.IndexFunc(all, func(p Object) bool { return p[member] == o[by] })
	if i < 0 {
		a := stripeError(404, "invalid_request_error", "resource_missing", by, fmt.Sprintf("No such %s: '%s'", by, o[by]))
		return &a, nil
	}
	paid := all[i]
	if paid["status"] != "succeeded" {
		return nil, stripeInvalid("", "", fmt.Sprintf("This PaymentIntent (%s) does not have a successful charge to refund.", paid["id"]))
	}
	rest := stripeAmount(paid)
	for _, other := range now.List(StripeRefunds) {
		if other["payment_intent"] == paid["id"] && other["status"] != "failed" && other["status"] != "canceled" {
			rest -= stripeAmount(other)
		}
	}
	if o["amount"] == nil {
		o["amount"] = Number(rest)
	}
	charge := paid.Text("latest_charge")
	o["payment_intent"], o["charge"], o["currency"] = paid["id"], charge, paid["currency"]
	o["balance_transaction"] = "txn_" + o.Text("id")
	switch amount := stripeAmount(o); {
	case rest <= 0:
		return nil, stripeInvalid("charge_already_refunded", "", "Charge "+charge+" has already been refunded.")
	case amount > rest:
		return nil, stripeInvalid("", "amount", fmt.Sprintf("Refund amount (%s) is greater than unrefunded amount on charge (%s)", stripeMoney(amount, paid), stripeMoney(rest, paid)))
	}
	return nil, nil
}

func stripeAmount(o Object) int64 {
	n, _ := o["amount"].(json.Number)
	amount, _ := n.Int64()
	return amount
}

func stripeMoney(n int64, of Object) string {
	sign := map[string]string{"usd": "$", "eur": "€", "gbp": "£"}[of.Text("currency")]
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}

func stripeIntent(o Object, given map[string]any, now View) (invalid, refused *Answer) {
	if a := stripeRequired(o, "amount", "currency"); a != nil {
		return a, nil
	}
	if a := stripeCustomer(o, now); a != nil {
		return a, nil
	}
	if o["payment_method"] != nil {
		o["status"] = "requires_confirmation"
	}
	if given["confirm"] != "true" {
		return nil, nil
	}
	return nil, stripeConfirm(o)
}

// stripeConfirm pays. The payment method pm_card_chargeDeclined is declined.
func stripeConfirm(o Object) *Answer {
	switch {
	case o["payment_method"] == nil:
		return stripeInvalid("payment_intent_unexpected_state", "", "You cannot confirm this PaymentIntent because it's missing a payment method.")
	case o["payment_method"] == "pm_card_chargeDeclined":
		a := stripeError(402, "card_error", "card_declined", "", "Your card was declined.")
		a.Body.(map[string]any)["error"].(map[string]any)["decline_code"] = "generic_decline"
		o["payment_method"], o["status"] = nil, "requires_payment_method"
		return &a
	}
	o["latest_charge"] = "ch_" + strings.TrimPrefix(o.Text("id"), "pi_")
	if o["capture_method"] == "manual" {
		o["status"], o["amount_capturable"] = "requires_capture", o["amount"]
	} else {
		o["status"], o["amount_received"] = "succeeded", o["amount"]
	}
	return nil
}

func stripeCustomer(o Object, now View) *Answer {
	id := o.Text("customer")
	if known := now.Get(StripeCustomers, id); id != "" && (known == nil || known["deleted"] == true) {
		return stripeMissing(400, "customer", id, "customer")
	}
	return nil
}

func stripeItem(o Object, _ map[string]any, now View) (invalid, refused *Answer) {
	if a := stripeRequired(o, "customer", "amount", "currency"); a != nil {
		return a, nil
	}
	o["period"] = map[string]any{"start": o["date"], "end": o["date"]}
	return stripeCustomer(o, now), nil
}

// act captures or cancels a payment intent.
func (s *Stripe) act(r *Request, now View) (Plan, *Answer) {
	o := now.Get(StripePaymentIntents, r.PathValue("id"))
	if o == nil {
		return Plan{}, stripeMissing(404, "payment_intent", r.PathValue("id"), "intent")
	}
	action, status := r.PathValue("action"), o.Text("status")
	switch {
	case action == "capture" && status == "requires_capture":
		o["status"], o["amount_received"], o["amount_capturable"] = "succeeded", o["amount"], Number(0)
	case action == "cancel" && strings.HasPrefix(status, "requires_"):
		o["status"], o["canceled_at"], o["cancellation_reason"] = "canceled", Number(now.At().Unix()), r.Body["cancellation_reason"]
	default:
		return stripeKept(stripeInvalid("payment_intent_unexpected_state", "", "This PaymentIntent could not be "+action+"ed because it has a status of "+status+".")), nil
	}
	return s.stored(StripePaymentIntents, now.Get(StripePaymentIntents, o.Text("id")), o), nil
}

// delete leaves a customer's id behind, and nothing of an invoice item.
func (s *Stripe) delete(name string) func(*Request, View) (Plan, *Answer) {
	return func(r *Request, now View) (Plan, *Answer) {
		id := r.PathValue("id")
		o := now.Get(name, id)
		switch {
		case o == nil || o["deleted"] == true:
			return Plan{}, stripeMissing(404, stripeKinds[name].object, id, "id")
		case o["invoice"] != nil:
			return Plan{}, stripeInvalid("", "", "This invoice item is attached to an invoice that is no longer editable.")
		}
		gone := Object{"id": id, "object": o["object"], "deleted": true}
		p := Plan{Collection: name, ID: id, Answer: func(Object) Answer { return Answer{Status: 200, Body: gone} }}
		if name == StripeCustomers {
			p.After = gone
		}
		return p, nil
	}
}

// list shows the newest first.
func (s *Stripe) list(name string) func(*Request, View) Answer {
	kind := stripeKinds[name]
	return func(r *Request, seen View) Answer {
		q, err := nested(r.URL.Query())
		if err != nil {
			return *stripeInvalid("", "", "Invalid request")
		}
		if name := unknown(q, "created expand limit starting_after pending "+kind.filter); name != "" || q["pending"] != nil && kind.date != "date" {
			name = cmp.Or(name, "pending")
			return *stripeInvalid("parameter_unknown", name, "Received unknown parameter: "+name)
		}
		size := limit(r.URL.Query().Get("limit"), 10, 100)
		if size == 0 {
			return *stripeInvalid("parameter_invalid_integer", "limit", "This value must be between 1 and 100.")
		}
		all := slices.DeleteFunc(newest(seen.List(name)), func(o Object) bool { return o["deleted"] == true })
		start, _ := q["starting_after"].(string)
		all, known := after(all, "id", start)
		if !known {
			return *stripeMissing(400, kind.object, start, "starting_after")
		}
		all = slices.DeleteFunc(all, func(o Object) bool {
			for _, member := range strings.Fields(kind.filter) {
				if want, given := q[member]; given && o[member] != want {
					return true
				}
			}
			at, _ := o[kind.date].(json.Number)
			return !within(at, q["created"]) || q["pending"] == "true" && o["invoice"] != nil || q["pending"] == "false" && o["invoice"] == nil
		})
		shown, more := page(all, size)
		return Answer{Status: 200, Body: map[string]any{"object": "list", "url": "/v1/" + name, "has_more": more, "data": shown}}
	}
}
