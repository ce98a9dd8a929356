package rest_test

import (
	"context"
	"encoding/base64"
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
	edit  func()                             // what another actor does at the line "edit"
	sign  func(r *http.Request, body string) // nil: not signed
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
			} else if line == "edit" {
				s.edit()
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
	header := http.Header{}
	if s.login != "" {
		header.Set("Authorization", s.login)
	}
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
	if s.sign != nil && header.Get("Authorization") == "" {
		s.sign(r, body)
	}
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
	mailScenes(t, all)
	shopifyScenes(t, all)
	quickBooksScenes(t, all)
	chatScenes(t, all)
	return all
}

func stripeScenes(t *testing.T, all map[string]scene) {
	const login = "Bearer sk_test_readback"
	paid := rest.Object{"id": "pi_1", "amount": 1000, "currency": "usd", "status": "succeeded", "latest_charge": "ch_1", "customer": "cus_1"}
	add := func(name string, o rest.StripeOptions, lines string, met ...fault.Fault) {
		s := rest.NewStripe(o)
		all["stripe: "+name] = scene{fake: s.Fake, login: login, lines: lines, setup: func() {
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
		all["slack: "+name] = scene{fake: s.Fake, login: "Bearer xoxb-readback", lines: lines, setup: func() {
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

func mailScenes(t *testing.T, all map[string]scene) {
	const twilio = "/2010-04-01/Accounts/AC1/Messages"
	add := func(name string, f *rest.Fake, login, lines string, met ...fault.Fault) {
		all[name] = scene{fake: f, login: login, lines: strings.ReplaceAll(lines, "TW", twilio), setup: faults(t, f, met...)}
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("AC1:twilio-token"))
	add("twilio: messages", rest.NewTwilio(rest.TwilioOptions{}).Fake, basic, `
		POST TW.json To=%2B15550001111&From=%2B15550002222&Body=hello&Colour=red I-Twilio-Idempotency-Token:k Idempotency-Key:k => 201 "status":"queued" "date_sent":null SM00000000000000000000000000000001 !red !k"
		POST TW.json To=%2B15550001111&From=%2B15550002222&Body=hello I-Twilio-Idempotency-Token:k Idempotency-Key:k => 201 SM00000000000000000000000000000002
		GET TW.json?To=%2B15550001111 => 200 000001" 000002" "date_created":"Sat,~01~Jan~2000~00:00:00~+0000" "next_page_uri":null
		GET TW.json?To=%2B15550001111&DateSent>=2000-01-01 => 200 "messages":[]
		GET TW.json?DateSent<=2000-01-02 => 200 "messages":[]
		after 2500ms
		GET TW.json?To=%2B15550001111&DateSent>=2000-01-01 => 200 000001" "status":"sent" "date_sent":"Sat,~01~Jan~2000~00:00:02~+0000"
		GET TW.json?DateSent<=2000-01-01 => 200 000001"
		GET TW.json?DateSent>=2000-01-02 => 200 "messages":[]
		GET TW.json?DateSent<=1999-12-31 => 200 "messages":[]
		GET TW.json?DateSent=yesterday => 400
		GET TW.json?PageSize=1 => 200 000002" !000001" Page=1 PageToken=PASM00000000000000000000000000000002
		GET TW.json?PageSize=1&Page=1&PageToken=PASM00000000000000000000000000000002 => 200 000001" "page":1 "next_page_uri":null
		GET TW.json?To=%2B15550009999 => 200 "messages":[]
		POST TW.json To=%2B15550001111&From=%2B15550002222&Body=“a”…&SmartEncoded=true => 201 "body":"\"a\"..."
		POST TW.json To=%2B15550001111&MessagingServiceSid=MG1&Body=x => 201 "status":"accepted" "from":null
		POST TW.json From=%2B15550002222&Body=x => 400 "code":21604 more_info
		POST TW.json To=bob&From=%2B15550002222&Body=x => 400 "code":21211
		POST TW.json To=%2B15550001111&From=%2B15550002222 => 400 "code":21602
		DELETE TW/SM00000000000000000000000000000001.json => 204
		GET TW/SM00000000000000000000000000000001.json => 404 "code":20404
		GET TW.json Authorization:Basic~x => 401 "code":20003
		GET /2010-04-01/Accounts/AC2/Messages.json => 404`)
	add("twilio: a message fails after it was accepted", rest.NewTwilio(rest.TwilioOptions{Undelivered: time.Minute}).Fake, basic, `
		POST TW.json To=%2B15550001111&From=%2B15550002222&Body=x => 500 "code":20500
		GET TW.json => 200 "status":"queued"
		after 61s
		GET TW.json => 200 "status":"undelivered" "error_code":30003`, fault.Fault{Kind: fault.BadGateway, How: "500", Nth: 1})

	const mail = `{"from":"a@x.org","to":"b@y.org","subject":"s","text":"t","tags":[{"name":"readback","value":"k1"}],"headers":{"X-Readback":"k1"}}`
	const re = "Bearer re_readback"
	add("resend: keys", rest.NewResend(rest.ResendOptions{}).Fake, re, `
		POST /emails `+mail+` Idempotency-Key:k => 200 {"id":"00000001-
		POST /emails `+mail+` Idempotency-Key:k => 200 {"id":"00000001-
		POST /emails `+strings.Replace(mail, `{"from"`, `{~"from"`, 1)+` Idempotency-Key:k => 409 "name":"invalid_idempotent_request"
		POST /emails `+mail+` => 200 {"id":"00000002-
		POST /emails `+mail+` Idempotency-Key: => 400 invalid_idempotency_key
		GET /emails/00000001-0000-4000-8000-000000000000 => 200 "to":["b@y.org"] "last_event":"sent" !k1
		after 3s
		GET /emails?limit=1 => 200 00000002 !00000001 "has_more":true "last_event":"delivered" !k1
		GET /emails?after=00000002-0000-4000-8000-000000000000 => 200 00000001 !00000002
		GET /emails/x => 404 not_found
		POST /emails {"from":"a@x.org","to":[],"subject":"s","text":"t"} => 422 missing_required_field
		GET /emails Authorization:x => 401 missing_api_key
		after 24h
		POST /emails `+mail+` Idempotency-Key:k => 200 {"id":"00000003-`)
	add("resend: scheduled, at work, not now", rest.NewResend(rest.ResendOptions{}).Fake, re, `
		POST /emails `+strings.Replace(mail, `{`, `{"scheduled_at":"2000-01-02T00:00:00Z",`, 1)+` => 200 00000001
		POST /emails/00000001-0000-4000-8000-000000000000/cancel => 200
		GET /emails/00000001-0000-4000-8000-000000000000 => 200 "last_event":"canceled"
		POST /emails `+mail+` Idempotency-Key:k timeout:1s => lost
		POST /emails `+mail+` Idempotency-Key:k => 409 concurrent_idempotent_requests
		POST /emails `+mail+` => 200 00000002
		after 2s
		POST /emails `+mail+` Idempotency-Key:k => 200 00000003
		POST /emails `+mail+` Idempotency-Key:n => 429 rate_limit_exceeded Ratelimit-Reset:~1`,
		fault.Fault{Kind: fault.LateCommit, Nth: 3, Delay: time.Second}, fault.Fault{Kind: fault.Throttled, Nth: 7})

	const send = `{"personalizations":[{"to":[{"email":"b@y.org"}],"custom_args":{"readback":"k1"}}],"from":{"email":"a@x.org"},"subject":"s","content":[{"type":"text/plain","value":"t"}]}`
	const sg = "Bearer SG.readback"
	add("sendgrid: write-only", rest.NewSendGrid(rest.SendGridOptions{}).Fake, sg, `
		POST /v3/mail/send `+send+` Idempotency-Key:k => 202 X-Message-Id:~m1 !{
		POST /v3/mail/send `+send+` Idempotency-Key:k => 202 X-Message-Id:~m2
		GET /v3/messages?query=to_email%3D%22b@y.org%22 => 403 access~forbidden
		GET /v3/messages/m1.recvd-1-0 => 403`)
	add("sendgrid: with messages", rest.NewSendGrid(rest.SendGridOptions{Messages: true}).Fake, sg, `
		POST /v3/mail/send `+send+` => 429 X-Ratelimit-Reset:~946684807 too~many !Retry-After
		POST /v3/mail/send `+send+` => 202
		GET /v3/messages?query=to_email%3D%22b@y.org%22 => 200 "messages":[]
		after 3m
		GET /v3/messages?query=to_email%3D%22b@y.org%22&limit=5 => 200 "msg_id":"m1.recvd-1-0" "status":"delivered" !k1
		GET /v3/messages?query=unique_args['readback']%3D%22k1%22%20AND%20subject%3D%22s%22 => 200 m1.recvd
		GET /v3/messages?query=unique_args['readback']%3D%22k2%22 => 200 "messages":[]
		GET /v3/messages?query=msg_id%20LIKE%20'm1%25' => 200 m1.recvd
		GET /v3/messages?query=nonsense => 400
		GET /v3/messages/m1.recvd-1-0 => 200 "unique_args":{"readback":"k1"}
		POST /v3/mail/send `+strings.Replace(send, `"subject"`, `"mail_settings":{"sandbox_mode":{"enable":true}},"subject"`, 1)+` => 200 !{
		POST /v3/mail/send {"personalizations":[]} => 400 "field":"personalizations"
		POST /v3/mail/send `+strings.Replace(send, `a@x.org`, `a`, 1)+` => 400 "field":"from.email"
		GET /v3/messages?limit=1001 => 400
		POST /v3/mail/send `+send+` Authorization:x => 401`, fault.Fault{Kind: fault.Throttled, Nth: 1, Delay: 7 * time.Second})

	const out = `{"FromEmailAddress":"a@x.org","Destination":{"ToAddresses":["b@y.org"]},"Content":{"Simple":{"Subject":{"Data":"s"},"Body":{"Text":{"Data":"t"}}}},"EmailTags":[{"Name":"readback","Value":"k1"}]}`
	ses := func(name string, o rest.SESOptions, secret, lines string) {
		f := rest.NewSES(o).Fake
		all["ses: "+name] = scene{fake: f, lines: lines, setup: func() {}, sign: func(r *http.Request, body string) { rest.Sign(r, "AKIDREADBACK", secret, "us-east-1", "ses", body) }}
	}
	ses("with insights", rest.SESOptions{Insights: true, Bounces: true}, "ses-secret", `
		POST /v2/email/outbound-emails `+out+` => 200 "MessageId":"0000000000000001-ses-000000"
		POST /v2/email/outbound-emails `+out+` => 200 "MessageId":"0000000000000002-ses-000000"
		GET /v2/email/insights/0000000000000001-ses-000000/ => 200 "Value":"k1" "Type":"SEND" !BOUNCE
		GET /v2/email/insights/0000000000000001-ses-000000/ => 429 TooManyRequestsException
		after 3s
		GET /v2/email/insights/0000000000000001-ses-000000/ => 200 BOUNCE
		after 3s
		GET /v2/email/insights/x/ => 404 X-Amzn-Errortype:~NotFoundException
		GET /v2/email/outbound-emails => 404
		POST /v2/email/outbound-emails {"FromEmailAddress":"a@x.org"} => 400 BadRequestException
		POST /v2/email/outbound-emails `+out+` Authorization:x => 403 InvalidSignatureException`)
	ses("without insights", rest.SESOptions{}, "ses-secret", `
		POST /v2/email/outbound-emails `+out+` => 200
		GET /v2/email/insights/0000000000000001-ses-000000/ => 400 BadRequestException`)
	ses("a wrong secret", rest.SESOptions{}, "no", `
		POST /v2/email/outbound-emails `+out+` => 403 InvalidSignatureException`)
}

// TestSignature: the signature of a request that AWS published, with its example key.
func TestSignature(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)))
		r, err := http.NewRequestWithContext(t.Context(), "GET", "https://example.amazonaws.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		rest.Sign(r, "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1", "service", "")
		if _, got, _ := strings.Cut(r.Header.Get("Authorization"), "Signature="); got != "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" {
			t.Error(got)
		}
	})
}

func shopifyScenes(t *testing.T, all map[string]scene) {
	ask := func(query string, variables map[string]any) string {
		raw, err := json.Marshal(map[string]any{"query": query, "variables": variables})
		if err != nil {
			t.Fatal(err)
		}
		return "POST /admin/api/2026-07/graphql.json " + strings.ReplaceAll(string(raw), " ", "~") + " X-Shopify-Access-Token:shpat_readback"
	}
	const order = "gid://shopify/Order/1"
	refund := func(key, amount string) string {
		return ask(`mutation M($input: RefundInput!, $k: String!) { refundCreate(input: $input) @idempotent(key: $k) { refund { id note totalRefundedSet { shopMoney { amount } } } userErrors { field message code } } }`,
			map[string]any{"k": key, "input": map[string]any{"orderId": order, "note": "k1", "transactions": []any{map[string]any{"orderId": order, "amount": amount, "kind": "REFUND", "gateway": "bogus"}}}})
	}
	read := ask(`{ order(id: "`+order+`") { note tags refunds(first: 5) { id note } totalRefundedSet { shopMoney { amount } } metafield(namespace: "readback", key: "key") { value compareDigest } } }`, nil)
	add := func(name, lines string, met ...fault.Fault) *rest.Shopify {
		s := rest.NewShopify(rest.ShopifyOptions{})
		all["shopify: "+name] = scene{fake: s.Fake, lines: lines, setup: func() {
			s.Seed(rest.Object{"total": "100.00", "tags": []any{"k0"}})
			s.SetLag(30 * time.Second)
			faults(t, s.Fake, met...)()
		}}
		return s
	}
	s := add("refunds", refund("a", "40.00")+` => 200 "id":"gid://shopify/Refund/2" "note":"k1" "amount":"40.00" "userErrors":[] throttleStatus X-Request-Id
		`+refund("a", "40.00")+` => 200 gid://shopify/Refund/2
		`+refund("a", "50.00")+` => 200 "refund":null IDEMPOTENCY_KEY_PARAMETER_MISMATCH
		`+refund("b", "61.00")+` => 200 "field":["transactions"] greater~than~the~refundable~amount~of~60.00
		`+read+` => 200 gid://shopify/Refund/2 "amount":"40.00" !Refund/3
		edit
		`+refund("a", "40.00")+` => 200 gid://shopify/Refund/2 "note":"by~hand"
		`+ask(`mutation { refundCreate(input: {orderId: "`+order+`"}) { refund { id } } }`, nil)+` => 200 "errors" idempotent~directive~is~required !"data"
		`+strings.Replace(ask(`mutation { refundCreate(input: {orderId: "`+order+`", amout: 5}) { refund { id } } }`, nil), "2026-07", "2025-10", 1)+` => 200 not~defined~on~RefundInput
		`+ask(`mutation($k: String!) { refundCreate(input: {orderId: "gid://shopify/Order/9"}) @idempotent(key: $k) { userErrors { message } } }`, map[string]any{"k": "z"})+` => 200 Order~does~not~exist
		`+ask(`mutation($k: String!) { refundCreate(input: {orderId: "`+order+`"}) @idempotent(key: $k) { userErrors { message } } }`, nil)+` => 200 "errors" invalid~value
		`+ask(`mutation($k: String!) { refundCreate(input: {orderId: "`+order+`"}) @idempotent(key: $k) { refund { nonsense } } }`, map[string]any{"k": "y"})+` => 200 "errors" 'nonsense'
		`+strings.Replace(read, "shpat_readback", "x", 1)+` => 401 [API]
		after 24h
		`+refund("a", "40.00")+` => 200 gid://shopify/Refund/3`)
	all["shopify: refunds"] = func(sc scene) scene {
		sc.edit = func() {
			s.Edit(rest.ShopifyRefunds, "gid://shopify/Refund/2", func(o rest.Object) { o["note"] = "by hand" })
		}
		return sc
	}(all["shopify: refunds"])
	add("throttled, failed, at work", refund("a", "1.00")+` => 200 "message":"Throttled" !"data"
		`+refund("a", "1.00")+` => 200 INTERNAL_SERVER_ERROR !"data"
		`+read+` => 200 gid://shopify/Refund/2
		`+refund("b", "1.00")+` timeout:1s => lost
		`+refund("b", "1.00")+` => 200 IDEMPOTENCY_CONCURRENT_REQUEST
		after 5s
		`+refund("b", "1.00")+` => 200 gid://shopify/Refund/3
		`+refund("c", "1.00")+` => 200 gid://shopify/Refund/4
		`+refund("c", "1.00")+` => 200 IDEMPOTENCY_PREVIOUS_ATTEMPT_FAILED`,
		fault.Fault{Kind: fault.Throttled, Nth: 1}, fault.Fault{Kind: fault.BadGateway, How: "500", Nth: 2}, fault.Fault{Kind: fault.LateCommit, Nth: 3, Delay: 2 * time.Second}, fault.Fault{Kind: fault.PhantomSuccess, Nth: 6})
	orders := func(query string) string {
		return ask(`query($q: String) { orders(first: 5, query: $q) { nodes { id note tags } pageInfo { hasNextPage } } }`, map[string]any{"q": query})
	}
	metafield := func(input string) string {
		return ask(`mutation { metafieldsSet(metafields: [{ownerId: "`+order+`", namespace: "readback", key: "key", type: "single_line_text_field", `+input+`}]) { metafields { value compareDigest } userErrors { code elementIndex } } }`, nil)
	}
	add("orders", ask(`mutation($i: OrderInput!) { orderUpdate(input: $i) { order { id note tags } userErrors { field message } } }`, map[string]any{"i": map[string]any{"id": order, "note": "new", "tags": []string{"k1", "a", "a"}}})+` => 200 "note":"new" "tags":["a","k1"] "userErrors":[]
		`+read+` => 200 "note":"new" "metafield":null
		`+orders("tag:k1")+` => 200 "nodes":[]
		after 31s
		`+orders("tag:k1")+` => 200 "note":"new"
		`+orders("tag:k2")+` => 200 "nodes":[]
		`+orders("colour:red")+` => 200 "note":"new"
		`+metafield(`value: "k1", compareDigest: null`)+` => 200 "value":"k1" "userErrors":[]
		`+metafield(`value: "k2", compareDigest: null`)+` => 200 STALE_OBJECT
		`+metafield(`value: ""`)+` => 200 BLANK
		`+read+` => 200 "value":"k1"
		after 31s
		`+orders("metafields.readback.key:k1")+` => 200 "note":"new"
		`+ask(`{ orders(first: 1) { nodes { ...F } } } fragment F on Order { id }`, nil)+` => 200 "errors"`)
}

func quickBooksScenes(t *testing.T, all map[string]scene) {
	add := func(name string, o rest.QuickBooksOptions, lines string, met ...fault.Fault) {
		s := rest.NewQuickBooks(o)
		lines = strings.ReplaceAll(strings.ReplaceAll(lines, " /", " /v3/company/9130/"), " => ", " Accept:application/json => ")
		all["quickbooks: "+name] = scene{fake: s.Fake, login: "Bearer qb-readback", lines: lines, setup: faults(t, s.Fake, met...)}
	}
	const invoice = `{"CustomerRef":{"value":"7"},"DocNumber":"K1","PrivateNote":"k1","Line":[{"Amount":12.5,"DetailType":"SalesItemLineDetail","SalesItemLineDetail":{"ItemRef":{"value":"1"}}}]}`
	const find = "/query?query=select%20*%20from%20Invoice%20where%20DocNumber%20=%20'K1'"
	add("requestid honoured", rest.QuickBooksOptions{HonoursRequestID: true}, `
		POST /invoice?requestid=r1 `+invoice+` => 200 "Id":"1" "SyncToken":"0" "TotalAmt":12.5 "Balance":12.5 SubTotalLineDetail Intuit_tid
		POST /invoice?requestid=r1 `+invoice+` => 200 "Id":"1"
		POST /invoice?requestid=r1 `+strings.Replace(invoice, "K1", "K2", 1)+` => 200 "Id":"1" "DocNumber":"K1"
		GET `+find+` => 200 "Id":"1" "maxResults":1
		after 24h
		POST /invoice?requestid=r1 `+invoice+` => 200 "Id":"2"`)
	add("requestid ignored, numbers twice", rest.QuickBooksOptions{}, `
		GET `+find+` => 200 "QueryResponse":{}
		POST /invoice?requestid=r1 `+invoice+` => 200 "Id":"1"
		POST /invoice?requestid=r1 `+invoice+` => 200 "Id":"2"
		GET `+find+` => 200 "Id":"1" "Id":"2" "maxResults":2
		GET /query?query=select%20count(*)%20from%20Invoice => 200 "totalCount":2
		GET /query?query=select%20*%20from%20Invoice%20where%20DocNumber%20in%20('K0','K1')%20maxresults%201 => 200 "Id":"1" "maxResults":1
		GET /query?query=select%20*%20from%20Invoice%20where%20TotalAmt%20>%20'9'%20and%20CustomerRef%20=%20'7'%20startposition%202 => 200 "Id":"2" "maxResults":1 "startPosition":2
		GET /query?query=select%20*%20from%20Invoice%20where%20PrivateNote%20=%20'k1' => 400 "code":"4001"
		GET /query?query=choose => 400 "code":"4000"
		POST /payment {"CustomerRef":{"value":"7"},"TotalAmt":12.5,"PaymentRefNum":"P1","Line":[{"Amount":10,"LinkedTxn":[{"TxnId":"1","TxnType":"Invoice"}]}]} => 200 "Payment" "UnappliedAmt":2.5
		GET /invoice/1 => 200 "Balance":2.5
		GET /invoice/2 => 200 "Balance":12.5
		POST /invoice {"Id":"1","SyncToken":"5","PrivateNote":"x"} => 400 Stale~Object
		POST /invoice {"Id":"1","SyncToken":"0","PrivateNote":"x"} => 200 "SyncToken":"1" "PrivateNote":"x" "DocNumber":"K1"
		POST /invoice?operation=void {"Id":"1","SyncToken":"1"} => 200 "PrivateNote":"Voided" "TotalAmt":0
		POST /invoice?operation=delete {"Id":"2","SyncToken":"0"} => 200 "status":"Deleted"
		GET /invoice/2 => 400 "code":"610"
		POST /invoice {"DocNumber":"K9","Line":[]} => 400 "code":"2020"
		POST /invoice `+strings.Replace(invoice, "K1", "K123456789012345678901", 1)+` => 400 "code":"2050"
		POST /invoice {"Colour":"red"} => 400 "code":"2010" Colour
		GET /invoice/1 Authorization:x => 401 "fault" !"Fault"
		GET /invoice/1 Accept:*/* => 200`)
	add("numbers once, faults", rest.QuickBooksOptions{UniqueDocNumbers: true}, `
		POST /invoice `+invoice+` => 200 "Fault" "Message"
		POST /invoice `+invoice+` => 200 "Id":"1"
		POST /invoice `+invoice+` => 400 Duplicate~Document~Number~Error "type":"ValidationFault"
		POST /invoice?include=allowduplicatedocnum `+invoice+` => 200 "DocNumber":"K1"`, fault.Fault{Kind: fault.Refused, How: "200", Nth: 1})
	s := rest.NewQuickBooks(rest.QuickBooksOptions{})
	all["quickbooks: XML"] = scene{fake: s.Fake, login: "Bearer qb-readback", lines: `POST /v3/company/9130/invoice ` + invoice + ` => 200 <IntuitResponse application/xml`}
}

func chatScenes(t *testing.T, all map[string]scene) {
	add := func(name string, f *rest.Fake, login, lines string, met ...fault.Fault) {
		lines = strings.ReplaceAll(lines, " CH", " /api/v10/channels/")
		all[name] = scene{fake: f, login: login, lines: lines, setup: faults(t, f, met...)}
	}
	const bot = "Bot discord-token"
	d := rest.NewDiscord(rest.DiscordOptions{})
	add("discord: messages", d.Fake, bot, `
		POST CH100/messages {"content":"k1~one","nonce":"n1","enforce_nonce":true,"colour":"red"} => 200 "id":"1" "nonce":"n1" "channel_id":"100" !red
		POST CH100/messages {"content":"other","nonce":"n1","enforce_nonce":true} => 200 "id":"1" k1~one
		POST CH100/messages {"content":"two","nonce":"n1"} => 200 "id":"2"
		POST CH200/messages {"content":"three","nonce":"n1","enforce_nonce":true} => 200 "id":"1" "channel_id":"100"
		POST CH200/messages {"content":"three","nonce":"n2","enforce_nonce":true} => 200 "id":"3"
		GET CH100/messages?after=0&limit=100 => 200 "id":"1" "id":"2" !nonce !three
		GET CH100/messages?after=1 => 200 two !k1
		GET CH100/messages?limit=1 => 200 two !k1
		GET CH100/messages?after=0&limit=1 => 200 k1 !two
		GET CH100/messages?before=2 => 200 k1 !two
		after 181s
		POST CH100/messages {"content":"again","nonce":"n1","enforce_nonce":true} => 200 again !"id":"1"
		DELETE CH100/messages/2 => 204
		GET CH100/messages/2 => 404 "code":10008
		GET CH100/messages/1 => 200 k1
		POST CH100/messages {"content":""} => 400 "code":50006
		POST CH100/messages {"content":"x","nonce":"12345678901234567890123456"} => 400 "code":50035 _errors
		POST CH100/messages {"content":"`+strings.Repeat("x", 2001)+`"} => 400 2000~or~fewer
		POST CH300/messages {"content":"x"} => 404 "code":10003
		GET CH100/messages?limit=101 => 400
		GET CH100/messages?after=x => 400 snowflake
		GET CH100/messages Authorization:Bearer~x => 401 401:~Unauthorized`)
	add("discord: faults", rest.NewDiscord(rest.DiscordOptions{}).Fake, bot, `
		POST CH100/messages {"content":"x","nonce":"n","enforce_nonce":true} => 429 "retry_after":1.5 Retry-After:~2
		POST CH100/messages {"content":"x","nonce":"n","enforce_nonce":true} => lost
		POST CH100/messages {"content":"x","nonce":"n","enforce_nonce":true} => 200 "id":"1"`,
		fault.Fault{Kind: fault.Throttled, Nth: 1, Delay: 1500 * time.Millisecond}, fault.Fault{Kind: fault.LostAnswer, Nth: 2})
	add("telegram", rest.NewTelegram(rest.TelegramOptions{}).Fake, "", `
		POST /bot1:telegram-token/sendMessage {"chat_id":7,"text":"hi","key":"k"} => 200 "ok":true "message_id":1 !"k"
		POST /bot1:telegram-token/sendMessage chat_id=7&text=hi => 200 "message_id":2
		POST /bot1:telegram-token/sendMessage {"chat_id":9,"text":"hi"} => 400 "ok":false chat~not~found
		POST /bot1:telegram-token/sendMessage {"chat_id":7,"text":"~"} => 429 "retry_after":3 !Retry-After
		POST /bot1:telegram-token/sendMessage {"chat_id":7,"text":"~"} => 400 text~is~empty
		GET /bot1:telegram-token/getMe => 200 is_bot
		GET /bot1:telegram-token/getHistory => 404
		POST /bot1:x/sendMessage {"chat_id":7,"text":"hi"} => 401 Unauthorized`, fault.Fault{Kind: fault.Throttled, Nth: 4, Delay: 3 * time.Second})
	for name, o := range map[string]rest.IntercomOptions{"kept": {KeepsCreatedAt: true}, "overwritten": {Unsent: true}} {
		s := rest.NewIntercom(o)
		at, notified := "946680000", `"notified_at":946684800`
		if !o.KeepsCreatedAt {
			at, notified = "946684800", `"notified_at":null`
		}
		all["intercom: created_at "+name] = scene{fake: s.Fake, login: "Bearer intercom-token", setup: func() { s.Seed(nil) }, lines: `
		POST /conversations/1/reply {"type":"admin","admin_id":5,"message_type":"comment","body":"a~&~b\nc","created_at":946680000,"external_id":"k"} => 200 "created_at":` + at + ` \u003cp\u003ea~\u0026amp;~b\u003cbr\u003ec\u003c/p\u003e "id":"5" ` + notified + ` "external_id":null X-Request-Id
		POST /conversations/1/reply {"type":"admin","admin_id":"5","message_type":"note","body":"<p~onclick=x>hi</p><script>x</script>"} => 200 "part_type":"note" \u003cp\u003ehi\u003c/p\u003e" !script !onclick
		GET /conversations/1 => 200 "total_count":2 "part_type":"comment"
		POST /conversations/1/reply {"type":"admin","admin_id":5,"message_type":"comment"} => 400 "type":"error.list" body~not~specified
		POST /conversations/1/reply {"type":"admin","message_type":"comment","body":"x"} => 400 admin_id
		GET /conversations/9 => 404 not_found
		GET /conversations/1 Authorization:x => 401 unauthorized`}
	}
	s := rest.NewIntercom(rest.IntercomOptions{})
	all["intercom: the newest 500 parts"] = scene{fake: s.Fake, login: "Bearer intercom-token", setup: func() { s.Seed(nil) }, edit: func() {
		for range 500 {
			s.SeedPart("1", "later", nil)
		}
	}, lines: `
		POST /conversations/1/reply {"type":"admin","admin_id":5,"message_type":"comment","body":"mine"} => 200 mine
		edit
		GET /conversations/1 => 200 later "total_count":501 !mine`}
}
