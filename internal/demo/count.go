package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"

	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/readbacktest/fault"
)

// Figures are what came of one strategy on one destination. All of them but
// Review and Outcomes, which are the worker's word, are counted where the writes
// went.
type Figures struct {
	Strategy    string `json:"strategy"`
	Destination string `json:"destination"`
	// Orders is how many were to be written, once each.
	Orders int `json:"orders"`
	// SideEffectCalls counts the writes that took effect, BalanceCents what
	// was charged in all; ExpectedCents is what should have been. Messages
	// cost nothing.
	SideEffectCalls int   `json:"side_effect_calls"`
	BalanceCents    int64 `json:"balance_cents"`
	ExpectedCents   int64 `json:"expected_cents"`
	// Duplicates counts records beyond the first of an order, Lost the orders
	// that have none.
	Duplicates int `json:"duplicates"`
	Lost       int `json:"lost"`
	// Review counts the orders of which the worker does not know whether they were written: they
	// need a review.
	Review int `json:"review"`
	// AnswersLost and Kills are what was done to the worker.
	AnswersLost int `json:"answers_lost"`
	Kills       int `json:"kills"`
	// Outcomes counts the orders by the worker's result: of readback at_once, read_back,
	// recovered, sent_again (all verified) or review, of the others answered or unanswered.
	Outcomes map[string]int `json:"outcomes"`

	trial trial
	grid  []ending // Outcomes order by order
}

// figures are what the worker believes, before anything is counted.
func (r *run) figures() Figures {
	f := Figures{Strategy: r.name, Destination: string(r.target), Orders: r.spec.Orders, Kills: r.made,
		Outcomes: map[string]int{}, trial: r.trial}
	for n := 1; n <= r.spec.Orders; n++ {
		e := r.ended[n]
		if e == "" {
			e = endOther // never spoken of
		}
		f.Outcomes[string(e)]++
		f.grid = append(f.grid, e)
		if e == endUnanswered || e == endReview || e == endOther {
			f.Review++
		}
	}
	return f
}

// countOrders counts from the destination's own log.
func (r *run) countOrders() (Figures, error) {
	effects, err := orders.ReadLog(r.spec.log())
	if err != nil {
		return Figures{}, fmt.Errorf("%s: %w", r.name, err)
	}
	s := orders.Summarize(effects, orderIDs(r.spec.Orders)...)
	f := r.figures()
	f.SideEffectCalls, f.BalanceCents, f.ExpectedCents = s.SideEffectCalls, s.BalanceCents, int64(r.spec.Orders)*priceCents
	f.Duplicates, f.Lost = s.Duplicates, len(s.Lost)
	for _, e := range effects {
		if slices.Contains(e.Faults, orders.LostAnswer) {
			f.AnswersLost++
		}
	}
	return f, nil
}

// toIMAP runs a trial against a mailbox of a server in this process.
func (r *run) toIMAP(ctx context.Context) (f Figures, err error) {
	server, err := fakeimap.NewServer(fakeimap.Options{Username: imapUser, Password: imapPassword})
	if err != nil {
		return Figures{}, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	r.spec.Addr = server.Addr()
	r.lose = func() { server.SetFault(fault.LostAnswer, 1) }
	if err := r.supervise(ctx); err != nil {
		return Figures{}, err
	}
	messages, err := server.Messages(mailbox)
	if err != nil {
		return Figures{}, err
	}
	return r.countMessages(messages)
}

// countMessages counts what the mailbox holds, by subject.
func (r *run) countMessages(messages []fakeimap.Message) (Figures, error) {
	f := r.figures()
	f.SideEffectCalls, f.AnswersLost = len(messages), len(r.lost)
	found := map[string]int{}
	for _, m := range messages {
		parsed, err := mail.ReadMessage(bytes.NewReader(m.Raw))
		if err != nil {
			return Figures{}, fmt.Errorf("%s: message %d: %w", r.name, m.UID, err)
		}
		found[parsed.Header.Get("Subject")]++
	}
	f.Duplicates = len(messages) - len(found)
	for _, id := range orderIDs(r.spec.Orders) {
		if found[id] == 0 {
			f.Lost++
		}
	}
	return f, nil
}
