package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

// scene is a list of requests to one fake, a line each:
//
//	METHOD PATH [BODY] [Name:value …] => STATUS TEXT…
//
// A body that does not begin with { is a form. Each TEXT, of which "~" stands for a blank, must be in
// the answer, in its headers or its body; with "!" before it, must not. Without an answer STATUS is
// "lost": timeout:D ends the request after D. "after D" waits.
type scene struct {
	fake  *rest.Fake
	login string // the header Authorization, unless a line has another
	lines string
	setup func()
}

func (s scene) play(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if s.setup != nil {
			s.setup()
		}
		for line := range strings.Lines(s.lines) {
			line = strings.TrimSpace(line)
			if wait, ok := strings.CutPrefix(line, "after "); ok {
				d, err := time.ParseDuration(wait)
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(d)
				synctest.Wait()
			} else if line != "" {
				s.line(t, line)
			}
		}
	})
}

func (s scene) line(t *testing.T, line string) {
	t.Helper()
	request, want, _ := strings.Cut(line, " => ")
	words := strings.Fields(request)
	ctx, body := t.Context(), ""
	header := http.Header{"Authorization": {s.login}}
	for _, word := range words[2:] {
		name, value, ok := strings.Cut(word, ":")
		switch word = strings.ReplaceAll(word, "~", " "); {
		case name == "timeout":
			d, err := time.ParseDuration(value)
			if err != nil {
				t.Fatal(err)
			}
			limited, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			ctx = limited
		case word[0] == '{' || !ok || strings.Contains(name, "="):
			body = word
			header.Set("Content-Type", "application/x-www-form-urlencoded")
			if word[0] == '{' {
				header.Set("Content-Type", "application/json")
			}
		default:
			header.Set(name, strings.ReplaceAll(value, "~", " "))
		}
	}
	r, err := http.NewRequestWithContext(ctx, words[0], "https://api.example.com"+words[1], strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	got := "lost"
	if res, err := s.fake.Transport().RoundTrip(r); err == nil {
		text, _ := io.ReadAll(res.Body)
		if len(text) > 0 && strings.Contains(res.Header.Get("Content-Type"), "json") && !json.Valid(text) {
			t.Errorf("%s: no JSON: %s", request, text)
		}
		var b strings.Builder
		_ = res.Header.Write(&b) // into memory
		got = strconv.Itoa(res.StatusCode) + "\n" + b.String() + string(text)
	}
	for i, text := range strings.Fields(want) {
		text = strings.ReplaceAll(text, "~", " ")
		absent := strings.HasPrefix(text, "!")
		if i == 0 && !strings.HasPrefix(got, text) || strings.Contains(got, strings.TrimPrefix(text, "!")) == absent {
			t.Errorf("%s: want %s in %s", request, text, got)
		}
	}
}

// TestDestinations states what declarations rely on, and what they must survive.
func TestDestinations(t *testing.T) {
	for name, s := range scenes(t) {
		t.Run(name, func(t *testing.T) { s.play(t) })
	}
}

// faults is a setup that sets faults.
func faults(t *testing.T, f *rest.Fake, all ...fault.Fault) func() {
	return func() {
		t.Helper()
		for _, one := range all {
			if err := f.Set(one); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func scenes(t *testing.T) map[string]scene {
	all := map[string]scene{}
	stripeScenes(t, all)
	slackScenes(t, all)
	return all
}

func stripeScenes(t *testing.T, all map[string]scene) {
	const login = "Bearer sk_test_readback"
	paid := rest.Object{"id": "pi_1", "amount": 1000, "currency": "usd", "status": "succeeded", "latest_charge": "ch_1", "customer": "cus_1"}
	add := func(name string, o rest.StripeOptions, lines string, met ...fault.Fault) {
		s := rest.NewStripe(o)
		all["stripe: "+name] = scene{s.Fake, login, lines, func() {
			s.Seed(rest.StripePaymentIntents, paid)
			s.Seed(rest.StripeCustomers, rest.Object{"id": "cus_1", "email": "a@b.c"})
			faults(t, s.Fake, met...)()
		}}
	}
	add("idempotency keys", rest.StripeOptions{}, `
		POST /v1/refunds payment_intent=pi_1&amount=100&metadata[readback]=k1 Idempotency-Key:a => 200 Request-Id "id":"re_3" "readback":"k1" "amount":100, "charge":"ch_1"
		POST /v1/refunds amount=100&metadata[readback]=k1&payment_intent=pi_1 Idempotency-Key:a => 200 "id":"re_3" Idempotent-Replayed:~true
		POST /v1/refunds payment_intent=pi_1&amount=200 Idempotency-Key:a => 400 "type":"idempotency_error" same~parameters !re_
		POST /v1/customers name=x Idempotency-Key:a => 400 idempotency_error
		POST /v1/refunds payment_intent=pi_1&amout=5 Idempotency-Key:b => 400 "code":"parameter_unknown" "param":"amout"
		POST /v1/refunds payment_intent=pi_1&amount=950 Idempotency-Key:b => 400 Refund~amount~($9.50)~is~greater~than~unrefunded~amount~on~charge~($9.00) !Replayed
		POST /v1/refunds payment_intent=pi_1&amount=950 Idempotency-Key:b => 400 unrefunded Replayed
		POST /v1/refunds payment_intent=pi_1&amount=900 => 200 "amount":900
		POST /v1/refunds payment_intent=pi_1 => 400 charge_already_refunded Charge~ch_1~has~already~been~refunded
		after 24h
		POST /v1/refunds payment_intent=pi_1&amount=100&metadata[readback]=k1 Idempotency-Key:a => 400 charge_already_refunded !Replayed
		GET /v1/refunds?payment_intent=pi_1 => 200 "readback":"k1" "has_more":false re_3`)
	add("a failure is kept, and may have applied", rest.StripeOptions{}, `
		POST /v1/refunds payment_intent=pi_1&amount=100 Idempotency-Key:a => 500 api_error
		POST /v1/refunds payment_intent=pi_1&amount=100 Idempotency-Key:a => 500 api_error Replayed
		GET /v1/refunds => 200 re_3 !re_4`, fault.Fault{Kind: fault.BadGateway, How: "500", Nth: 1})
	add("not now is not kept", rest.StripeOptions{}, `
		POST /v1/refunds payment_intent=pi_1 Idempotency-Key:a => 429 "code":"rate_limit"
		POST /v1/refunds payment_intent=pi_1 Idempotency-Key:a => 200 "amount":1000 !Replayed`, fault.Fault{Kind: fault.Throttled, Nth: 1})
	add("a repeat of one at work", rest.StripeOptions{}, `
		POST /v1/refunds payment_intent=pi_1 Idempotency-Key:a timeout:1s => lost
		POST /v1/refunds payment_intent=pi_1 Idempotency-Key:a => 409 "code":"idempotency_key_in_use"
		after 6s
		POST /v1/refunds payment_intent=pi_1 Idempotency-Key:a => 200 re_3 Replayed`, fault.Fault{Kind: fault.LateCommit, Nth: 1, Delay: 5 * time.Second})
	add("a refund ends later", rest.StripeOptions{RefundPending: time.Hour, RefundFails: 72 * time.Hour}, `
		POST /v1/refunds charge=ch_1&metadata[readback]=k => 200 "status":"pending"
		POST /v1/refunds charge=ch_1 => 400 charge_already_refunded
		after 61m
		GET /v1/refunds/re_3 => 200 "status":"succeeded"
		after 72h
		GET /v1/refunds/re_3 => 200 "status":"failed" "failure_reason":"lost_or_stolen_card"
		POST /v1/refunds charge=ch_1 => 200 "status":"pending"`)
	add("lists", rest.StripeOptions{}, `
		POST /v1/refunds payment_intent=pi_1&amount=1 => 200 re_3
		after 10s
		POST /v1/refunds payment_intent=pi_1&amount=1 => 200 re_4 "created":946684810
		POST /v1/refunds payment_intent=pi_1&amount=1 => 200 re_5
		GET /v1/refunds?limit=2 => 200 "has_more":true re_5 re_4 !re_3
		GET /v1/refunds?limit=2&starting_after=re_4 => 200 "has_more":false re_3 !re_5
		GET /v1/refunds?created[gte]=946684810 => 200 re_5 re_4 !re_3
		GET /v1/refunds?created[gt]=946684810 => 200 "data":[]
		GET /v1/refunds?payment_intent=pi_2 => 200 "data":[]
		GET /v1/refunds?metadata[readback]=k => 400 parameter_unknown
		GET /v1/refunds?limit=101 => 400
		GET /v1/refunds/re_9 => 404 resource_missing
		GET /v1/customers Authorization:Bearer~no => 401 Request-Id
		POST /v1/refunds {"charge":"ch_1"} => 400 content~type
		GET /v1/charges => 404 Unrecognized`)
	add("a deleted customer", rest.StripeOptions{}, `
		POST /v1/customers email=A@b.c&name=Ada&metadata[k]=v => 200 "email":"A@b.c" cus_3
		GET /v1/customers?email=A@b.c => 200 cus_3 !cus_1
		POST /v1/customers/cus_3 metadata[k]= => 200 "metadata":{}
		DELETE /v1/customers/cus_3 => 200 "deleted":true
		GET /v1/customers/cus_3 => 200 "deleted":true "object":"customer" !email
		GET /v1/customers => 200 cus_1 !cus_3
		POST /v1/invoiceitems customer=cus_3&amount=5&currency=usd => 400 No~such~customer
		POST /v1/invoiceitems customer=cus_1&amount=-5&currency=USD => 200 "amount":-5 "currency":"usd" "date":946684800
		GET /v1/invoiceitems?customer=cus_1&pending=true&created[gte]=946684800 => 200 ii_
		POST /v1/invoiceitems customer=cus_1&currency=usd => 400 Missing~required~param
		DELETE /v1/customers/cus_3 => 404`)
	add("a declined card leaves the intent", rest.StripeOptions{}, `
		POST /v1/payment_intents amount=5&currency=usd&confirm=true&payment_method=pm_card_chargeDeclined&metadata[k]=v => 402 card_declined decline_code "payment_intent":{ pi_3
		GET /v1/payment_intents/pi_3 => 200 "status":"requires_payment_method" "k":"v"
		POST /v1/payment_intents amount=5&currency=usd&confirm=true&payment_method=pm_1&capture_method=manual => 200 "status":"requires_capture" pi_4
		POST /v1/payment_intents/pi_4/capture => 200 "status":"succeeded" "amount_received":5
		POST /v1/payment_intents/pi_4/cancel => 400 payment_intent_unexpected_state
		POST /v1/payment_intents amount=0&currency=usd => 400 Invalid~integer`)
	add("faults", rest.StripeOptions{}, `
		POST /v1/refunds payment_intent=pi_1&amount=1&reason=duplicate => 200 "reason":"duplicate"
		after 1s
		GET /v1/refunds => 200 "reason":null re_3 re_4`, fault.Fault{Kind: fault.DroppedField, Nth: 1}, fault.Fault{Kind: fault.DuplicateBehindOurBack, Nth: 1})
}

func slackScenes(t *testing.T, all map[string]scene) {
	add := func(name string, o rest.SlackOptions, lines string, met ...fault.Fault) {
		s := rest.NewSlack(o)
		all["slack: "+name] = scene{s.Fake, "Bearer xoxb-readback", lines, func() {
			s.Seed("C1", "root", rest.Object{"ts": "946684700.000001"})
			faults(t, s.Fake, met...)()
		}}
	}
	free := rest.SlackOptions{PageLimit: 999, ReadEvery: -1}
	add("messages", free, `
		POST /api/chat.postMessage {"channel":"C1","text":"a~<~b~&~https://x.org/","metadata":{"event_type":"w","event_payload":{"key":"k1"}}} => 200 "ok":true "channel":"C1" "ts":"946684800.000002" "key":"k1"
		POST /api/chat.postMessage channel=C1&text=t&metadata={"event_type":"w","event_payload":{"key":"k2"}} => 200 "key":"k2"
		GET /api/conversations.history?channel=C1&oldest=946684800&include_all_metadata=true => 200 "key":"k1" \u0026lt; b~\u0026amp;~ \u003chttps://x.org/\u003e "has_more":false !root !C1
		GET /api/conversations.history?channel=C1 => 200 root !"key"
		GET /api/conversations.history?channel=C1&oldest=946684800.000002 => 200 946684800.000003 !946684800.000002
		GET /api/conversations.history?channel=C1&oldest=946684800.000002&inclusive=true => 200 946684800.000002
		GET /api/conversations.history?channel=C1&latest=946684800.000002 => 200 root !946684800
		GET /api/conversations.history?channel=C1&limit=2 => 200 .000003 .000002 !root "has_more":true "next_cursor":"946684800.000002"
		GET /api/conversations.history?channel=C1&limit=2&cursor=946684800.000002 => 200 root "has_more":false
		POST /api/conversations.history channel=C2 => 200 "messages":[]
		POST /api/chat.update {"channel":"C1","ts":"946684800.000002","text":"new"} => 200 "ts":"946684800.000002"
		POST /api/chat.update {"channel":"C1","ts":"946684700.000001","text":"new"} => 200 cant_update_message
		POST /api/chat.delete {"channel":"C1","ts":"946684800.000003"} => 200 "ok":true
		GET /api/conversations.history?channel=C1 => 200 "edited" "text":"new" !.000003`)
	add("replies", free, `
		POST /api/chat.postMessage {"channel":"C1","text":"first","thread_ts":"946684700.000001"} => 200
		after 10s
		POST /api/chat.postMessage {"channel":"C1","text":"second","thread_ts":"946684700.000001"} => 200
		POST /api/chat.postMessage {"channel":"C1","text":"x","thread_ts":"1.0"} => 200 thread_not_found
		GET /api/conversations.history?channel=C1 => 200 root "reply_count":2 !first
		GET /api/conversations.replies?channel=C1&ts=946684700.000001 => 200 root first second
		GET /api/conversations.replies?channel=C1&ts=946684700.000001&oldest=946684805 => 200 root second !first
		GET /api/conversations.replies?channel=C1&ts=1.0 => 200 thread_not_found`)
	add("outside the Marketplace", rest.SlackOptions{}, strings.Repeat(`
		POST /api/chat.postMessage {"channel":"C1","text":"t"} => 200`, 16)+`
		GET /api/conversations.history?channel=C1&limit=100 => 200 "has_more":true .000017 .000003 !.000002
		GET /api/conversations.history?channel=C1 => 429 "error":"ratelimited" Retry-After:~60
		GET /api/conversations.replies?channel=C1&ts=946684700.000001 => 200
		after 59500ms
		GET /api/conversations.history?channel=C1 => 429 Retry-After:~1
		after 1s
		GET /api/conversations.history?channel=C1&limit=2 => 200`)
	add("refusals", free, `
		POST /api/chat.postMessage {"channel":"C9","text":"t"} => 200 "ok":false channel_not_found
		POST /api/chat.postMessage {"channel":"C1"} => 200 no_text
		POST /api/chat.postMessage {"channel":"C1","text":"t","metadata":{"key":"k"}} => 200 invalid_metadata_format
		POST /api/chat.postMessage {"channel":"C1","text":"t","client_msg_id":"k"} => 200 "ok":true !client_msg_id
		POST /api/chat.postMessage {"channel":"C1","text":"t"} Authorization:x => 200 invalid_auth
		POST /api/chat.shout {} => 200 unknown_method`)
	add("a failure that posted", free, `
		POST /api/chat.postMessage {"channel":"C1","text":"posted"} => 200 "ok":false fatal_error
		GET /api/conversations.history?channel=C1 => 200 posted`, fault.Fault{Kind: fault.BadGateway, How: "500", Nth: 1})
	add("faults", free, `
		POST /api/chat.postMessage {"channel":"C1","text":"t"} => 429 ratelimited Retry-After:~5
		POST /api/chat.postMessage {"channel":"C1","text":"t"} => lost
		after 1s
		GET /api/conversations.history?channel=C1 => 200 "text":"T" .000002 .000003`,
		fault.Fault{Kind: fault.Throttled, Nth: 1, Delay: 5 * time.Second}, fault.Fault{Kind: fault.LostAnswer, Nth: 2}, fault.Fault{Kind: fault.NormalisedField}, fault.Fault{Kind: fault.DuplicateBehindOurBack})
}
