package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/mcpapi/tool"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

const (
	// maxShown is how many mismatches a result lists, and maxValue the longest value in
	// one, in characters: a model needs the difference, not the whole value.
	maxShown = 20
	maxValue = 400
	// maxSentence is the longest sentence of a result, in characters: those of outcomes
	// are shorter, and a refusal can quote arguments.
	maxSentence = 8000
)

// statusRefused is the status of a call that made no write, and statusUnknown that of one
// where not even that is known. All others are those of [ledger.Status].
const (
	statusRefused = "refused"
	statusUnknown = "unknown"
)

// Result is the result of every tool, as structured content and as the same JSON in text.
// Of a destination's response it has only the reason of a refusal, in members of their
// own, and the wanted and seen values where they differ. These are data, never
// instructions to the model.
type Result struct {
	ID       string `json:"id,omitempty"`
	Status   string `json:"status"`
	Verified bool   `json:"verified"`
	// Text describes what happened, WhatToDo the model's next step.
	Text     string `json:"text"`
	WhatToDo string `json:"what_to_do"`
	AskAgain string `json:"ask_again"`
	AskAfter string `json:"ask_after,omitempty"`
	// WaitsFor is what it waits for, Behind the write that it is queued behind.
	WaitsFor     string `json:"waits_for,omitempty"`
	QueuedBehind string `json:"behind,omitempty"`
	Ref          string `json:"ref,omitempty"`
	URL          string `json:"url,omitempty"`
	Undoing      string `json:"undoing,omitempty"`
	// Mismatches are the differences between the observed and the wanted values.
	Mismatches []Mismatch `json:"mismatches,omitempty"`
	// Problems is what is wrong with the arguments.
	Problems []tool.Problem `json:"problems,omitempty"`
	Replayed bool           `json:"replayed"`
	// Refusal is why the destination refused, in its own words.
	Refusal *ledger.Refusal `json:"refusal,omitempty"`
	// NotChecked is what was sent and not compared.
	NotChecked []string `json:"not_checked,omitempty"`
	// RecheckUntil is until when a recheck may still contradict the status.
	RecheckUntil string `json:"recheck_until,omitempty"`
	// Untrusted lists the members that hold text of a destination or a person, LeftOut
	// ref and url where the destination's was not plain; both as JSON Pointers. See
	// [engine.Outcome].
	Untrusted []string `json:"untrusted,omitempty"`
	LeftOut   []string `json:"left_out,omitempty"`
}

// Mismatch is one difference. Wanted and Seen are JSON, cut where they are long;
// "" for a value that is not there.
type Mismatch struct {
	Path    string `json:"path"`
	Problem string `json:"problem"`
	Wanted  string `json:"wanted,omitempty"`
	Seen    string `json:"seen,omitempty"`
}

// outcomeOf is an outcome as a model sees it. name is the tool that makes the write, ""
// if it is not known.
func outcomeOf(o engine.Outcome, name string) Result {
	r := Result{
		ID: string(o.ID), Status: string(o.Status), Verified: o.Status == ledger.Verified, Text: o.Text,
		WhatToDo: o.ForModel + next(o, name), AskAgain: string(o.AskAgain), WaitsFor: string(o.WaitsFor), QueuedBehind: string(o.QueuedBehind),
		Ref: o.Ref, URL: o.URL, Undoing: string(o.Undoing), Mismatches: mismatches(o.Mismatches), Replayed: o.Replayed,
		Refusal: o.Refusal, NotChecked: o.NotChecked, Untrusted: o.Untrusted, LeftOut: o.LeftOut,
	}
	if !o.AskAfter.IsZero() {
		r.AskAfter = o.AskAfter.UTC().Format(time.RFC3339)
	}
	if !o.RecheckUntil.IsZero() {
		r.RecheckUntil = o.RecheckUntil.UTC().Format(time.RFC3339)
	}
	return r
}

// next names the tool to call, and the one not to call, where the write is not settled.
func next(o engine.Outcome, name string) string {
	again := "this tool"
	if name != "" {
		again = name
	}
	when := "later"
	if !o.AskAfter.IsZero() {
		when = "after " + o.AskAfter.UTC().Format(time.RFC3339)
	}
	switch o.Status {
	case ledger.InProgress, ledger.Unverified, ledger.StatusHeld, ledger.StatusReview:
		return fmt.Sprintf(" Call %s with id %q %s. Do not call %s again for this: it would not go faster, and could be done twice.", tool.GetOutcome, o.ID, when, again)
	case ledger.NotApplied, ledger.Expired:
		return fmt.Sprintf(" To make a new call, call %s again; a client that names its calls gives it a new name.", again)
	}
	return ""
}

func mismatches(raw json.RawMessage) []Mismatch {
	all, err := verify.Decode(raw)
	if err != nil {
		return nil
	}
	var shown []Mismatch
	for _, m := range all[:min(len(all), maxShown)] {
		shown = append(shown, Mismatch{m.Path, m.Problem, visible.Clip(string(m.Want), maxValue), visible.Clip(string(m.Got), maxValue)})
	}
	if len(all) > len(shown) {
		shown = append(shown, Mismatch{Problem: verify.More})
	}
	return shown
}

// refused describes why a call made no write, and the remedy. The second result is false
// if there is an outcome after all: another call made the write before.
func refused(err error, name string) (Result, bool) {
	r := Result{Status: statusRefused, AskAgain: string(engine.AgainNo)}
	var (
		bad     *tool.ArgumentsError
		blocked *ledger.BlockedError
		other   *ledger.DigestMismatchError
		known   *engine.Error
	)
	switch {
	case errors.As(err, &bad):
		r.Text, r.Problems, r.AskAgain = "Nothing was done: "+bad.Error()+".", bad.Problems, string(engine.AgainYes)
		r.WhatToDo = fmt.Sprintf("Mend the arguments that are named and call %s again.", name)
	case errors.As(err, &blocked) && blocked.Received == blocked.Prior.Digest:
		prior := outcomeOf(engine.OutcomeOf(blocked.Prior), name)
		prior.Text = begunBefore + prior.Text
		return prior, false
	case errors.As(err, &blocked):
		r.ID, r.Text = string(blocked.Prior.ID), fmt.Sprintf("Nothing was done: the operation was begun before, by write %s, with other values.", blocked.Prior.ID)
		r.WhatToDo = fmt.Sprintf("Do not call %s again for this operation. Call %s with id %q to read its outcome. To change its effect use another tool, or ask a person.", name, tool.GetOutcome, blocked.Prior.ID)
	case errors.As(err, &other):
		r.ID, r.Text = string(other.ID), fmt.Sprintf("Nothing was done: this call has the key of write %s, which asked for something else.", other.ID)
		r.WhatToDo = fmt.Sprintf("The client gave two different calls one key (_meta or headers). Call %s with id %q to hear what became of the first. Do not call %s with this key again.", tool.GetOutcome, other.ID, name)
	case errors.As(err, &known) && known.Known != engine.KnownNotApplied:
		r.ID, r.Status, r.Text = string(known.ID), statusUnknown, "The ledger failed: it is not known whether the write was recorded. If it was, it continues by itself."
		r.WhatToDo = fmt.Sprintf("Call %s with id %q in a minute. Do not call %s again before it says that there is no such write.", tool.GetOutcome, known.ID, name)
	case known == nil && !harmless(err):
		r.Status, r.Text = statusUnknown, "Something failed: it is not known whether the write was recorded. If it was, it continues by itself."
		r.WhatToDo = fmt.Sprintf("Do not call %s again for this. Report to the user that its fate is unknown.", name)
	default:
		r.Text, r.WhatToDo, r.AskAgain = refusal(err, name)
	}
	return r, true
}

// harmless reports whether an error without knowledge of the effect comes from before
// anything could be recorded.
func harmless(err error) bool {
	if _, early := service.ProblemOf(err, func(p service.Problem) bool { return p.Early }); early || errors.Is(err, errTooMany) || errors.Is(err, errNames) {
		return true
	}
	return errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, ledger.ErrUnsure)
}

// refusal describes an error that is not about the arguments.
func refusal(err error, name string) (text, todo, again string) {
	switch {
	case errors.Is(err, intent.ErrInvalid), errors.Is(err, connectors.ErrUnknownDestination):
		return "Nothing was done: the destination cannot serve this call: " + err.Error() + ".",
			"Do not call " + name + " again with these arguments. If they are right, report to the user that this tool is set up wrongly.", string(engine.AgainNo)
	case errors.Is(err, engine.ErrForbidden), errors.Is(err, ledger.ErrBlocked):
		return "Nothing was done: " + err.Error() + ".",
			"Do not call " + name + " again with these arguments, and do not try another way. Report to the user if it is needed.", string(engine.AgainNo)
	case errors.Is(err, ledger.ErrFull):
		return "Nothing was done: too many writes wait already.", "Call " + name + " again in some minutes.", string(engine.AgainLater)
	case errors.Is(err, errTooMany):
		return "Nothing was done: " + err.Error() + ".", "Wait for the answers of the calls under way, then call " + name + " again.", string(engine.AgainLater)
	case errors.Is(err, errNames):
		return "Nothing was done: " + err.Error() + ".", "The client gives the call an invalid name. Report it to the user.", string(engine.AgainNo)
	}
	return "Nothing was done: readback cannot take writes now.", "Call " + name + " again in some minutes. If that does not help, report it to the user.", string(engine.AgainLater)
}

// Reason is an error for the log, without a model's arguments: these may be secret.
func Reason(err error) string {
	var (
		bad     *tool.ArgumentsError
		blocked *ledger.BlockedError
	)
	switch {
	case errors.As(err, &bad):
		return fmt.Sprintf("%v: %d problems", tool.ErrArguments, len(bad.Problems)) // a model makes up names, too
	case errors.As(err, &blocked):
		return fmt.Sprintf("the operation was begun by write %s", blocked.Prior.ID)
	case errors.Is(err, intent.ErrInvalid):
		return intent.ErrInvalid.Error()
	}
	return err.Error()
}

// answer is a result in the protocol's form: structured, and the same as text for older
// clients. Foreign text in an outcome is visible already; a refusal can quote a caller's
// text.
func answer(r Result, failed bool) (*mcp.CallToolResult, error) {
	r.ID, r.Text, r.WhatToDo = visible.Clip(r.ID, maxID), visible.Clip(r.Text, maxSentence), visible.Clip(r.WhatToDo, maxSentence)
	r.Problems = slices.Clone(r.Problems)
	for i, p := range r.Problems {
		r.Problems[i] = tool.Problem{Argument: visible.Clip(p.Argument, maxValue), Problem: visible.Clip(p.Problem, maxValue), Want: visible.Clip(p.Want, maxSentence)}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err // strings and bools always marshal
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text), IsError: failed,
	}, nil
}

// Answer is the result of a tool of that name with an outcome. An outcome that is not
// verified is no error.
func Answer(o engine.Outcome, name string) (*mcp.CallToolResult, error) {
	return answer(outcomeOf(o, name), false)
}

// AnswerError is the result of a tool of that name without an outcome. It is a result
// that says so, not an error of the protocol, so that the model sees it. Sensitive values
// are redacted, also for the caller that gave them.
func AnswerError(ctx context.Context, o *service.Service, err error, name string) (*mcp.CallToolResult, error) {
	if v, ok := VisitOf(ctx); ok {
		o.Refused(v.Who, name, err)
	}
	r, failed := refused(err, name)
	return answerTo(ctx, o, r, failed)
}

// answerTo is answer, redacted for the caller.
func answerTo(ctx context.Context, o *service.Service, r Result, failed bool) (*mcp.CallToolResult, error) {
	var who access.Identity
	if v, ok := VisitOf(ctx); ok {
		who = v.Who
	}
	o.Clean(who, &r)
	return answer(r, failed)
}
