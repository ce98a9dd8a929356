package jira

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	lib "github.com/andygrunwald/go-jira"

	"github.com/readback-go/readback/connectors"
)

// transition moves an issue to a status, the only way to change a status: an edit ignores it and
// answers 204. Other fields are sent only if the screen of the transition has them, since one
// intent is one send.
func (w writer) transition(ctx context.Context, id, key, wanted string, fields map[string]any) (connectors.Receipt, error) {
	var edges []lib.Transition
	k := w.c.do(ctx, false, func(ctx context.Context) (err error) {
		edges, _, err = w.c.lib.Issue.GetTransitionsWithContext(ctx, id)
		return err
	})
	var answer struct {
		Transitions *[]any `json:"transitions"`
	}
	found, err := w.c.take(k, &answer)
	if err == nil && (!found || answer.Transitions == nil) {
		err = fmt.Errorf("%w: it lists no transitions", errUnreadable)
	}
	if err != nil {
		return connectors.Receipt{}, unsent(fmt.Errorf("ask for the transitions: %w", err))
	}
	chosen, err := w.choose(edges, wanted)
	if err == nil {
		err = fits(chosen, fields)
	}
	if err != nil {
		// On a repeat the edge may be gone because an earlier send took it.
		return connectors.Receipt{}, &connectors.Error{Fate: connectors.FateRefused, Conflict: w.r.Attempt > 1 && errors.Is(err, errTransition), Err: err}
	}
	payload := map[string]any{"transition": map[string]any{"id": chosen.ID}}
	if len(fields) > 0 {
		payload["fields"] = fields
	}
	k = w.c.do(ctx, true, func(ctx context.Context) error {
		_, err := w.c.lib.Issue.DoTransitionWithPayloadWithContext(ctx, id, payload)
		return err
	})
	return w.receiptOf(k, id, key)
}

// choose selects the one transition to the wanted status. If there are several, the payload names
// one, since each may have other effects.
func (w writer) choose(edges []lib.Transition, wanted string) (lib.Transition, error) {
	pick, given := w.r.Intent.Payload["transition"]
	name, isText := pick.(string)
	if given && (!isText || name == "") {
		return lib.Transition{}, unusable("/payload/transition", "is no name", "the name or id of a transition")
	}
	var fitting []lib.Transition
	var names, statuses []string
	for _, e := range edges {
		statuses = append(statuses, clip(e.To.Name))
		if e.To.Name != wanted || (given && name != e.Name && name != e.ID) {
			continue
		}
		fitting, names = append(fitting, e), append(names, clip(e.Name))
	}
	switch {
	case len(fitting) == 1 && idForm.MatchString(fitting[0].ID):
		return fitting[0], nil
	case len(fitting) == 1:
		return lib.Transition{}, fmt.Errorf("%w: the id of a transition is %s", errUnreadable, clip(fitting[0].ID))
	case len(fitting) > 1:
		return lib.Transition{}, unusable("/payload/transition", "does not say which of several transitions", "one of "+few(names))
	}
	return lib.Transition{}, fmt.Errorf("%w: /expect/status is %s; from where the issue is it can be %s", errTransition, clip(wanted), few(statuses))
}

// fits refuses fields that the screen of the transition does not have.
func fits(e lib.Transition, fields map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if _, there := e.Fields[name]; !there {
			return unusable("/expect/"+name, fmt.Sprintf("cannot change together with /expect/status: the screen of the transition %s does not have it", clip(e.Name)), "two intents, one for each")
		}
	}
	return nil
}

func few(names []string) string {
	if len(names) == 0 {
		return "nothing else"
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxShown {
		names = append(names[:maxShown:maxShown], "…")
	}
	return strings.Join(names, ", ")
}
