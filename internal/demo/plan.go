package demo

import (
	"fmt"
	"math/rand/v2"
)

const (
	// loseEvery: the answer to the first send of each order whose number this
	// divides is lost.
	loseEvery = 5
	// killEvery: the worker is killed between charge and record at each order whose number this
	// divides. Some multiples are also multiples of loseEvery.
	killEvery = 9
	// killsBefore is how many times the worker is killed with a send announced
	// and nothing sent, at orders drawn with killSeed.
	killsBefore = 3
	killSeed    = 1
)

// strategy is a way to write an order in spite of lost answers.
type strategy string

const (
	naiveRetry  strategy = "naive-retry"
	plainLedger strategy = "idempotency-ledger"
	readback    strategy = "readback"
)

// target is a kind of destination.
type target string

const (
	toOrders target = "orders"
	toIMAP   target = "imap"
)

// point is a place in the work on one order at which the worker stops and waits for its release.
type point string

const (
	// beforeSend: whatever is recorded beforehand is on disk, nothing is sent.
	beforeSend point = "before"
	// afterSend: the destination has done it; nothing is recorded of that.
	afterSend point = "after"
)

// trial is one strategy on one destination.
type trial struct {
	name     string // for machines
	title    string // for display
	short    string // for the progress line
	strategy strategy
	target   target
	killed   bool
}

func trials() []trial {
	return []trial{
		{"naive-retry", "naive retry", "naive", naiveRetry, toOrders, false},
		{"idempotency-ledger", "idempotency ledger", "ledger", plainLedger, toOrders, false},
		{"idempotency-ledger-killed", "idempotency ledger, killed", "ledger+kills", plainLedger, toOrders, true},
		{"readback-killed", "readback, killed", "readback", readback, toOrders, true},
		{"readback-imap-killed", "readback over IMAP, killed", "IMAP", readback, toIMAP, true},
	}
}

// stop is one kill: the order at which it comes, and the point.
type stop struct {
	order int
	point point
}

// kills is where a worker that writes n orders is killed, once each.
func kills(n int) map[stop]bool {
	plan := map[stop]bool{}
	var others []int
	for i := 1; i <= n; i++ {
		switch {
		case i%killEvery == 0:
			plan[stop{i, afterSend}] = true
		case i%loseEvery != 0:
			others = append(others, i)
		}
	}
	random := rand.New(rand.NewPCG(killSeed, 0))
	random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, i := range others[:min(killsBefore, len(others))] {
		plan[stop{i, beforeSend}] = true
	}
	return plan
}

// loses reports whether the first answer about an order is lost.
func loses(order int) bool { return order%loseEvery == 0 }

// orderID is the business key of the order with a number, from 1.
func orderID(n int) string { return fmt.Sprintf("order-%03d", n) }

// orderIDs are those of the first n orders.
func orderIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = orderID(i + 1)
	}
	return ids
}
