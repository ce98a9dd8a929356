// Package messages makes a write of each message of a broker that delivers a message until it is
// acknowledged, such as a record of Kafka.
//
// It does not know any broker: what a message is, the adapter says.
package messages

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
)

const (
	// attemptTime is how long one attempt waits for an outcome.
	attemptTime = time.Minute
	// pauseFirst and pauseMost bound the pause before the next: what waits for a reviewer continues
	// soon after the decision.
	pauseFirst = time.Second
	pauseMost  = time.Minute
	// maxReason bounds a reason, in characters: a header is read by people.
	maxReason = 1000
)

// Message is one message as its broker delivers it.
type Message struct {
	// Intent returns the write that the message requests. Attempt calls it twice.
	Intent func() (intent.WriteIntent, error)
	// Broker and Source are where it comes from, such as "kafka" and the topic.
	Broker, Source string
	// ID identifies the message in its source for ever, where its intent has no Workflow. It has
	// two parts or more: a Workflow is one part, so that none has the name of another message's ID.
	ID []string
	// Step is the step of an intent that has none.
	Step string
	// Reject makes a dead letter of the message.
	Reject func(ctx context.Context, reason string) error
	// Logger receives what an operator should see.
	Logger *slog.Logger
}

// Attempt records the write of a message, and with settled waits for its outcome. It returns the
// pause before the next attempt, or 0: the message can be acknowledged, or is a dead letter.
// Failed is how many attempts failed before.
func (m Message) Attempt(ctx context.Context, e *engine.Engine, settled bool, failed int) (wait time.Duration) {
	w, err := m.intent()
	next, after := engine.NextFail, time.Duration(0)
	switch {
	case err != nil:
	case settled:
		waiting, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		var step engine.Step
		step, err = e.Step(waiting, w, 0) // the name is the message's, however often it is delivered
		next, after = step.Next, step.After
	default:
		_, next, err = e.Record(ctx, w)
	}
	switch {
	case err != nil && next == engine.NextFail:
		if err := m.Reject(ctx, visible.Clip(err.Error(), maxReason)); err != nil {
			m.Logger.Error("a message that can never be a write did not become a dead letter; it is tried again", "error", err)
			return Pause(failed)
		}
		m.Logger.Error("a message can never be a write; it is a dead letter", "error", err)
	case err != nil:
		if ctx.Err() == nil {
			m.Logger.Warn("a message was not recorded; it is tried again", "error", err)
		}
		return Pause(failed)
	case next == engine.NextLater || next == engine.NextDecision:
		return min(after, pauseMost)
	}
	return 0
}

// Pause is the time before the next attempt after as many that failed.
func Pause(failed int) time.Duration { return min(pauseFirst<<min(failed, 10), pauseMost) }

// intent returns the write of the message, with the names that all its deliveries have.
func (m Message) intent() (intent.WriteIntent, error) {
	w, err := m.Intent()
	if err != nil {
		return w, err
	}
	again, err := m.Intent()
	if err == nil && again.StructuralKey() != w.StructuralKey() {
		err = fmt.Errorf("%w: one message is workflow %q, step %q, tool %q and then workflow %q, step %q, tool %q; use an ID that is in the message",
			engine.ErrIdentityChanged, w.Workflow, w.Step, w.Tool, again.Workflow, again.Step, again.Tool)
	}
	id := m.ID
	if w.Workflow != "" {
		id = []string{w.Workflow}
	}
	w.Workflow = engine.WorkflowName(m.Broker, append([]string{m.Source}, id...)...)
	if w.Step == "" {
		w.Step = m.Step
	}
	return w, err
}
