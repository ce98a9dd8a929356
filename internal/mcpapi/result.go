package mcpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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

// Answer is the result of every tool that writes, as structured content and as the same
// JSON in text. It is short, as a model pays for each member of each answer:
// [Result] has the rest.
type Answer struct {
	Status   string `json:"status"`
	Verified bool   `json:"verified"`
	// Text describes what happened, WhatToDo the model's next step.
	Text     string `json:"text"`
	WhatToDo string `json:"what_to_do"`
	ID       string `json:"id,omitempty"`
	// Refusal is why the destination refused, in its own words.
	Refusal *ledger.Refusal `json:"refusal,omitempty"`
	// Untrusted lists the members that hold text of a destination or a person, as JSON
	// Pointers: data, never instructions to the model.
	Untrusted []string `json:"untrusted,omitempty"`
}

// Result is the result of get_outcome. Of a destination's response it has only the reason
// of a refusal and the wanted and seen values where they differ; Untrusted names both.
type Result struct {
	Answer
	// AskAfter is when asking again can show more.
	AskAfter string `json:"ask_after,omitempty"`
	// WaitsFor is what it waits for, Behind the write that it is queued behind.
	WaitsFor     string `json:"waits_for,omitempty"`
	QueuedBehind string `json:"behind,omitempty"`
	Ref          string `json:"ref,omitempty"`
	URL          string `json:"url,omitempty"`
	Undoing      string `json:"undoing,omitempty"`
	// Mismatches are the differences between the observed and the wanted values.
	Mismatches []Mismatch `json:"mismatches,omitempty"`
	// NotChecked is what was sent and not compared.
	NotChecked []string `json:"not_checked,omitempty"`
	// RecheckUntil is until when a recheck may still contradict the status.
	RecheckUntil string `json:"recheck_until,omitempty"`
	// LeftOut lists ref and url where the destination's was not plain, as JSON Pointers.
	LeftOut []string `json:"left_out,omitempty"`
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
		Answer: Answer{ID: string(o.ID), Status: string(o.Status), Verified: o.Status == ledger.Verified, Text: o.Text,
			WhatToDo: next(o, name), Refusal: o.Refusal, Untrusted: o.Untrusted},
		WaitsFor: string(o.WaitsFor), QueuedBehind: string(o.QueuedBehind),
		Ref: o.Ref, URL: o.URL, Undoing: string(o.Undoing), Mismatches: mismatches(o.Mismatches),
		NotChecked: o.NotChecked, LeftOut: o.LeftOut,
	}
	if !o.AskAfter.IsZero() {
		r.AskAfter = o.AskAfter.UTC().Format(time.RFC3339)
	}
	if !o.RecheckUntil.IsZero() {
		r.RecheckUntil = o.RecheckUntil.UTC().Format(time.RFC3339)
	}
	return r
}

// begun is an outcome as a tool that writes answers it. One that an earlier call began
// says so: the model made no second write.
func begun(o engine.Outcome, name string) Answer {
	a := outcomeOf(o, name).Answer
	if o.Replayed {
		a.Text = begunBefore + a.Text
	}
	a.Untrusted = slices.DeleteFunc(slices.Clone(a.Untrusted), func(p string) bool { return p != "/text" && p != "/refusal" })
	return a
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

// harmless reports whether an error without knowledge of the effect comes from before
// anything could be recorded.
func harmless(err error) bool {
	if _, early := service.ProblemOf(err, func(p service.Problem) bool { return p.Early }); early || errors.Is(err, errTooMany) || errors.Is(err, errNames) {
		return true
	}
	return errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, ledger.ErrUnsure)
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

// shown bounds the texts of an answer. Foreign text in an outcome is visible already; a
// refusal can quote a caller's text.
func (a *Answer) shown() {
	a.ID, a.Text, a.WhatToDo = visible.Clip(a.ID, maxID), visible.Clip(a.Text, maxSentence), visible.Clip(a.WhatToDo, maxSentence)
}

// encoded is a result in the protocol's form: structured, and the same as text for older
// clients.
func encoded(r interface{ shown() }, failed bool) (*mcp.CallToolResult, error) {
	r.shown()
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err // strings and bools always marshal
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text), IsError: failed,
	}, nil
}

// AnswerOutcome is the result of a tool of that name with an outcome. An outcome that is
// not verified is no error.
func AnswerOutcome(o engine.Outcome, name string) (*mcp.CallToolResult, error) {
	a := begun(o, name)
	return encoded(&a, false)
}

// withResult is an answer with what the tool itself answered.
type withResult struct {
	Answer
	Result json.RawMessage `json:"result,omitempty"`
}

// WithResult adds to the result of [AnswerOutcome] what a tool answered whose effect cannot
// be read back: its content behind the outcome, its structured content as the member
// result. left says why it is left out, and is "" otherwise.
func WithResult(r, own *mcp.CallToolResult, left string) (*mcp.CallToolResult, error) {
	var a Answer
	if err := json.Unmarshal(r.StructuredContent.(json.RawMessage), &a); err != nil { // as encoded wrote it
		return nil, err
	}
	what := "answer"
	if own.IsError {
		what = "error"
	}
	if left != "" {
		a.Text += ownLeftOut(what, left)
		return encoded(&a, false)
	}
	if own.StructuredContent == nil && len(own.Content) == 0 {
		return r, nil
	}
	a.Text += ownFollows(what)
	all := withResult{Answer: a}
	if own.StructuredContent != nil {
		text, err := json.Marshal(own.StructuredContent)
		if err != nil {
			return nil, err
		}
		all.Result, all.Untrusted = text, append(all.Untrusted, "/result")
	}
	with, err := encoded(&a, false)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(all)
	with.StructuredContent = json.RawMessage(text)
	with.Content, with.Meta = append(with.Content, own.Content...), mcp.Meta{MetaUnverified: true}
	return with, err
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

// answerTo is encoded, redacted for the caller.
func answerTo(ctx context.Context, o *service.Service, r Answer, failed bool) (*mcp.CallToolResult, error) {
	var who access.Identity
	if v, ok := VisitOf(ctx); ok {
		who = v.Who
	}
	o.Clean(who, &r)
	return encoded(&r, failed)
}
