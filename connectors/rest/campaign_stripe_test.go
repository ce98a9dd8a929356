package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/connectortest"
	"github.com/readback-go/readback/intent"
	fakerest "github.com/readback-go/readback/internal/fakes/rest"
)

func init() {
	// Twenty writes share a payment or a customer.
	const many = campaignWrites / 20
	payment := func(n int) string { return fmt.Sprint("pi_", n/20) }
	account := func(n int) string { return fmt.Sprint("cus_", n/20) }
	stripe := func(kind, collection string, d destination) {
		d.kind, d.collection, d.native, d.lag = kind, collection, true, 40*time.Second
		d.lacks = map[string]string{connectortest.LacksRetryAfter: "no time to wait is promised"}
		d.secrets = map[string]string{"key": "sk_test_readback"}
		d.open = func() *fakerest.Fake {
			s := fakerest.NewStripe(fakerest.StripeOptions{RefundPending: 3 * time.Hour})
			for n := range many {
				s.Seed(fakerest.StripePaymentIntents, fakerest.Object{"id": payment(20 * n), "amount": fakerest.Number(100_000_000), "currency": "usd",
					"status": "succeeded", "amount_received": fakerest.Number(100_000_000), "latest_charge": fmt.Sprint("ch_", n)})
				s.Seed(fakerest.StripeCustomers, fakerest.Object{"id": account(20 * n)})
			}
			return s.Fake
		}
		destinations["stripe/"+kind] = d
	}
	showing := func(names ...string) func(o fakerest.Object) (connectors.Record, bool) {
		return func(o fakerest.Object) (connectors.Record, bool) {
			fields := intent.Fields{"reference": dig(o, "metadata", "reference")} // our own name of it
			for _, name := range names {
				fields[name] = o[name]
			}
			return connectors.Record{Ref: o.Text("id"), Fields: fields}, true
		}
	}
	// foreign puts an object of another actor: of the same payment or customer, and under our key if taken.
	foreign := func(collection string, more func(n int) fakerest.Object) func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
		return func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
			f.Put(collection, func(now fakerest.View) (string, fakerest.Object) {
				o := more(n)
				maps.Copy(o, fakerest.Object(w.Key))
				delete(o, "reference")
				o["id"], o["metadata"] = fmt.Sprint("by_hand_", now.Next()), map[string]any{}
				if taken {
					o["metadata"] = map[string]any{"reference": w.Key["reference"]}
				}
				return o.Text("id"), o
			})
		}
	}
	stripe("refund", fakerest.StripeRefunds, destination{
		member: "reference",
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"payment_intent": payment(n), "reference": fmt.Sprintf("return-%03d", n)},
				Expect: intent.Fields{"amount": json.Number(fmt.Sprint(500 + n)), "reason": "requested_by_customer"}}
		},
		record: showing("payment_intent", "amount", "reason"),
		other: foreign(fakerest.StripeRefunds, func(n int) fakerest.Object {
			return fakerest.Object{"object": "refund", "payment_intent": payment(n), "amount": fakerest.Number(int64(500 + n)), "reason": "duplicate", "status": "succeeded", "currency": "usd"}
		}),
	})
	stripe("payment-intent", fakerest.StripePaymentIntents, destination{
		member: "reference",
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"customer": account(n), "reference": fmt.Sprintf("order-%03d", n)},
				Expect: intent.Fields{"amount": json.Number(fmt.Sprint(500 + n)), "currency": "usd", "description": fmt.Sprint("Order ", n)}}
		},
		record: showing("customer", "amount", "currency", "description"),
		other: foreign(fakerest.StripePaymentIntents, func(n int) fakerest.Object {
			return fakerest.Object{"object": "payment_intent", "customer": account(n), "amount": fakerest.Number(int64(500 + n)), "currency": "usd", "description": fmt.Sprint("Order ", n)}
		}),
	})
	stripe("invoice-item", fakerest.StripeInvoiceItems, destination{
		member: "reference",
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"customer": account(n), "reference": fmt.Sprintf("hours-%03d", n)},
				Expect: intent.Fields{"amount": json.Number(fmt.Sprint(500 + n)), "currency": "usd", "description": fmt.Sprint("Hours ", n)}}
		},
		record: showing("customer", "amount", "currency", "description"),
		other: foreign(fakerest.StripeInvoiceItems, func(n int) fakerest.Object {
			return fakerest.Object{"object": "invoiceitem", "customer": account(n), "amount": fakerest.Number(int64(500 + n)), "currency": "usd", "description": fmt.Sprint("Hours ", n)}
		}),
	})
	stripe("customer", fakerest.StripeCustomers, destination{
		update: intent.Fields{"name": "Changed"}, alter: func(o fakerest.Object) { o["name"] = "By hand" },
		create: func(n int) intent.WriteIntent {
			return intent.WriteIntent{Key: intent.Fields{"email": fmt.Sprintf("ada-%03d@example.com", n)}, Expect: intent.Fields{"name": fmt.Sprint("Ada ", n)}}
		},
		record: showing("email", "name"),
		other: func(f *fakerest.Fake, w intent.WriteIntent, n int, taken bool) {
			f.Put(fakerest.StripeCustomers, func(now fakerest.View) (string, fakerest.Object) {
				o := fakerest.Object{"id": fmt.Sprint("cus_by_hand_", now.Next()), "object": "customer", "email": fmt.Sprintf("ADA-%03d@example.com", n), "name": fmt.Sprint("Ada ", n), "metadata": map[string]any{}}
				if taken {
					o["email"] = w.Key["email"]
				}
				return o.Text("id"), o
			})
		},
	})
}
