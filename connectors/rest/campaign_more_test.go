package rest_test

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
	"github.com/readback-go/readback/readbacktest/fault"
)

func init() {
	bracketed, lastLine := regexp.MustCompile(`(?s)^(.*) \[(\S+)\]$`), regexp.MustCompile(`(?s)^(.*)\n-# (\S+) rb-\S+$`)
	destinations["twilio-messages/sms"] = destination{
		kind: "sms", parameters: map[string]string{"account": "AC1"}, secrets: map[string]string{"token": "twilio-token"},
		collection: fakerest.TwilioMessages, member: "reference", traits: traits{spoils: "from", lacks: map[string]string{string(fault.NormalisedField): "the numbers of a message have one form, and its text has our reference"}}, lag: 40 * time.Second,
		open: func() *fakerest.Fake { return fakerest.NewTwilio(fakerest.TwilioOptions{}).Fake },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"to": fmt.Sprint("+1555010000", n%4), "reference": fmt.Sprintf("A-%03d", n)},
				Expect: intent.Fields{"from": "+15550199999", "body": fmt.Sprint("Your parcel ", n, " is on its way")}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			text, reference, ok := ending(bracketed, o["body"])
			return connectors.Record{Ref: o.Text("sid"), Fields: intent.Fields{"to": o["to"], "from": o["from"], "reference": reference, "body": text}}, ok
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same text, by another program
			f.Put(fakerest.TwilioMessages, func(now fakerest.View) (string, fakerest.Object) {
				at, sid := now.At().UTC().Format(time.RFC1123Z), fmt.Sprintf("SM%032x", 1_000_000+now.Next())
				o := fakerest.Object{"sid": sid, "to": w.Key["to"], "from": w.Expect["from"], "body": w.Expect["body"], "direction": "outbound-api", "status": "delivered", "date_created": at, "date_sent": at}
				if taken {
					o["body"] = fmt.Sprint(w.Expect["body"], " [", w.Key["reference"], "]")
				}
				return sid, o
			})
		},
	}
	destinations["discord-messages/message"] = destination{
		kind: "message", secrets: map[string]string{"token": "discord-token"}, collection: fakerest.DiscordMessages, member: "reference", traits: traits{lacks: ownText("message")}, lag: 40 * time.Second,
		open: func() *fakerest.Fake { return fakerest.NewDiscord(fakerest.DiscordOptions{}).Fake },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"channel": []string{"100", "200"}[n%2], "reference": fmt.Sprintf("note-%03d", n)},
				Expect: intent.Fields{"content": fmt.Sprint("Order ", n, " is *paid*\nand sent")}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			text, reference, ok := ending(lastLine, o["content"])
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields{"channel": o["channel_id"], "reference": reference, "content": text}}, ok
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same text, by another bot; with our line if taken
			f.Put(fakerest.DiscordMessages, func(now fakerest.View) (string, fakerest.Object) {
				id := fmt.Sprint(max(0, now.At().UnixMilli()-1_420_070_400_000)<<22 | now.Next())
				o := fakerest.Object{"id": id, "channel_id": w.Key["channel"], "content": w.Expect["content"], "author": map[string]any{"id": "13", "bot": true}}
				if taken {
					o["content"] = fmt.Sprintf("%v\n-# %v rb-%s", o["content"], w.Key["reference"], strings.Repeat("a", 32))
				}
				return id, o
			})
		},
	}
	quickbooks := func(kind, collection, name string, d destination) {
		d.kind, d.collection, d.lag, d.spoils = kind, collection, 40*time.Second, "TotalAmt"
		d.lacks = map[string]string{string(fault.NormalisedField): "what is declared are ids and amounts, which have one form"}
		d.parameters, d.secrets = map[string]string{"realm": "9130"}, map[string]string{"token": "qb-readback"}
		d.open = func() *fakerest.Fake { return fakerest.NewQuickBooks(fakerest.QuickBooksOptions{}).Fake }
		d.record = func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: o.Text("Id"), Fields: intent.Fields{"number": o["DocNumber"], "reference": o["PaymentRefNum"], "customer": dig(o, "CustomerRef", "value"), "total": o["TotalAmt"],
				"invoice": dig(o, "Line", 0, "LinkedTxn", 0, "TxnId"), "applied": dig(o, "Line", 0, "Amount")}}, true
		}
		// Another person's record: of the same customer and amount, and with our number if taken.
		d.other = func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
			f.Put(collection, func(now fakerest.View) (string, fakerest.Object) {
				o := fakerest.Object{"Id": fmt.Sprint(1_000_000 + now.Next()), "SyncToken": "0", name: fmt.Sprintf("H-%03d", n), "Line": []any{},
					"CustomerRef": map[string]any{"value": w.Expect["customer"]}, "TotalAmt": w.Expect["total"]}
				if taken {
					for _, key := range w.Key {
						o[name] = key
					}
				}
				return o.Text("Id"), o
			})
		}
		destinations["quickbooks/"+kind] = d
	}
	quickbooks("invoice", fakerest.QuickBooksInvoices, "DocNumber", destination{create: func(n int) intent.WriteIntent {
		amount := json.Number(fmt.Sprintf("%d.5", 100+n))
		return intent.WriteIntent{Key: intent.Fields{"number": fmt.Sprintf("INV-%03d", n)}, Expect: intent.Fields{"customer": "1", "total": amount},
			Payload: intent.Fields{"lines": []any{map[string]any{"Amount": amount, "DetailType": "SalesItemLineDetail", "SalesItemLineDetail": map[string]any{"ItemRef": map[string]any{"value": "1"}}}}}}
	}})
	quickbooks("payment", fakerest.QuickBooksPayments, "PaymentRefNum", destination{create: func(n int) intent.WriteIntent {
		amount := json.Number(fmt.Sprintf("%d.5", 100+n))
		return intent.WriteIntent{Key: intent.Fields{"reference": fmt.Sprintf("PAY-%03d", n)},
			Expect: intent.Fields{"customer": "1", "total": amount, "invoice": fmt.Sprint(n), "applied": amount}}
	}})
	destinations["intercom-replies/reply"] = destination{
		kind: "reply", parameters: map[string]string{"admin": "1"}, secrets: map[string]string{"token": "intercom-token"}, collection: fakerest.IntercomParts, member: "reference", traits: traits{lacks: ownText("part")}, lag: 40 * time.Second,
		open: func() *fakerest.Fake {
			s := fakerest.NewIntercom(fakerest.IntercomOptions{})
			for n := range 4 {
				s.Seed(fakerest.Object{"id": fmt.Sprint(700 + n)})
			}
			return s.Fake
		},
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"conversation": fmt.Sprint(700 + n%4), "reference": fmt.Sprintf("A-%03d", n)},
				Expect: intent.Fields{"type": []string{"comment", "note"}[n%2], "text": fmt.Sprint("Parcel ", n, " is packed & sent")}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			text, reference, ok := ending(bracketed, strings.TrimSuffix(o.Text("body"), "</p>"))
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields{"conversation": o[".conversation"], "reference": reference, "text": strings.TrimPrefix(text, "<p>"), "type": o["part_type"]}}, ok
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same text, by another admin
			f.Put(fakerest.IntercomParts, func(now fakerest.View) (string, fakerest.Object) {
				text := "<p>" + html.EscapeString(fmt.Sprint(w.Expect["text"]))
				if taken {
					text += fmt.Sprint(" [", w.Key["reference"], "]")
				}
				id := fmt.Sprint(1_000_000 + now.Next())
				return id, fakerest.Object{"id": id, ".conversation": w.Key["conversation"], "part_type": w.Expect["type"], "body": text + "</p>", "author": map[string]any{"type": "admin", "id": "2"}}
			})
		},
	}
	const wholeRefund = "an amount is refunded or refused, and the note has our reference"
	const order = "gid://shopify/Order/"
	shopify := func(kind string, d destination) {
		d.kind, d.native = kind, true
		d.parameters, d.secrets = map[string]string{"shop": "example"}, map[string]string{"token": "shpat_readback"}
		d.open = func() *fakerest.Fake {
			s := fakerest.NewShopify(fakerest.ShopifyOptions{})
			for n := range campaignWrites {
				s.Seed(fakerest.Object{"id": fmt.Sprint(order, 700+n), "legacyResourceId": fmt.Sprint(700 + n), "total": "100000.00"})
			}
			return s.Fake
		}
		destinations["shopify/"+kind] = d
	}
	shopify("refund", destination{
		collection: fakerest.ShopifyRefunds, member: "reference", traits: traits{refusal: "userErrors", lacks: map[string]string{
			string(fault.LaggingRead):  "an order by its id is shown as it is",
			string(fault.DroppedField): wholeRefund, string(fault.NormalisedField): wholeRefund,
		}},
		create: func(n int) intent.WriteIntent { // twenty of an order
			return intent.WriteIntent{Key: intent.Fields{"order": fmt.Sprint(order, 700+n/20), "reference": fmt.Sprintf("return-%03d", n)}, Expect: intent.Fields{"amount": fmt.Sprintf("%d.50", 5+n)}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			reference, _, ok := strings.Cut(o.Text("note"), " ")
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields{"order": o[".order"], "reference": reference, "amount": o[".amount"]}}, ok
		},
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) { // the same amount, by a person
			f.Put(fakerest.ShopifyRefunds, func(now fakerest.View) (string, fakerest.Object) {
				id := fmt.Sprint("gid://shopify/Refund/", 1_000_000+now.Next())
				o := fakerest.Object{"id": id, "legacyResourceId": id, "note": nil, "createdAt": now.At().UTC().Format(time.RFC3339), ".order": w.Key["order"], ".amount": w.Expect["amount"], ".key": ""}
				if taken {
					o["note"] = fmt.Sprint(w.Key["reference"], " by hand")
				}
				return id, o
			})
		},
	})
	shopify("order-note", destination{
		collection: fakerest.ShopifyOrders, update: intent.Fields{"note": "Changed"},
		alter: func(o fakerest.Object) { o["note"], o["updatedAt"] = "By hand", "2036-01-01T00:00:00Z" },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Write: intent.Update, Key: intent.Fields{"order": fmt.Sprint(order, 700+n)}, Expect: intent.Fields{"note": fmt.Sprint("Gift ", n)}}
		},
		record: func(o fakerest.Object) (connectors.Record, bool) {
			return connectors.Record{Ref: o.Text("id"), Fields: intent.Fields{"order": o["id"], "note": o["note"]}}, true
		},
	})
}
