package webhooks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors/webhook"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

// maxText bounds a sentence in a message, in characters: people read messages in chats.
const maxText = 1000

// gapType is the type of the message that changes were missed. No hook can unsubscribe
// from it.
const gapType = "readback.gap"

// events are the types of messages about writes, by event.
var events = []struct {
	kind ledger.EventKind
	name string
}{
	{ledger.EvHeld, "write.held"},
	{ledger.EvAgreed, "write.agreed"},
	{ledger.EvOverdue, "write.overdue"},
	{ledger.EvApproved, "write.approved"},
	{ledger.EvEscalated, "write.review"},
	{ledger.EvDirected, "write.decided"},
	{ledger.EvDeferred, "write.unverified"},
	{ledger.EvYielded, "write.yielded"},
	{ledger.EvSettled, "write.settled"},
}

// Events lists the types of messages that a hook can ask for.
func Events() []string {
	all := make([]string, 0, len(events))
	for _, e := range events {
		all = append(all, e.name)
	}
	return all
}

// defaultEvents are the events of a hook that lists none: what has ended, and what waits
// for a reviewer.
func defaultEvents() []string {
	return []string{"write.held", "write.overdue", "write.review", "write.settled"}
}

func eventOf(k ledger.EventKind) string {
	for _, e := range events {
		if e.kind == k {
			return e.name
		}
	}
	return ""
}

// wants reports whether the hook subscribes to a change. It never does to a notice.
func (h Hook) wants(c ledger.Change) bool {
	wanted := h.Events
	if len(wanted) == 0 {
		wanted = defaultEvents()
	}
	return !strings.HasPrefix(c.Destination, Prefix) &&
		(len(h.Tenants) == 0 || slices.Contains(h.Tenants, c.Tenant)) &&
		(len(h.Destinations) == 0 || slices.Contains(h.Destinations, c.Destination)) &&
		slices.Contains(wanted, eventOf(c.Kind))
}

// notice is the message about a change. Its structural key is derived from the hook and
// the event alone, so that there is one notice however often it is made. The record is
// the current one, which can be later; the zero record where it is gone.
func (s *Sender) notice(h Hook, c ledger.Change, rec ledger.Record) intent.WriteIntent {
	data := map[string]any{
		"write": string(c.ID), "event": number(c.Seq), "tenant": c.Tenant, "destination": c.Destination,
		"sends": number(int64(c.Sends)), "reads": number(int64(c.Reads)),
	}
	give := func(name, text string) {
		if text != "" {
			data[name] = cut(text)
		}
	}
	give("settlement", string(c.Settlement))
	if rec.ID != "" {
		out := engine.OutcomeOf(rec)
		give("status", string(out.Status))
		give("text", out.Text)
		if slices.Contains(out.Untrusted, "/text") { // the message holds no other member that an outcome marks
			data["untrusted"] = []any{"/text"}
		}
		if !out.RecheckUntil.IsZero() {
			give("recheck_until", out.RecheckUntil.UTC().Format(time.RFC3339))
		}
		if len(out.NotChecked) > 0 {
			all := make([]any, len(out.NotChecked))
			for i, path := range out.NotChecked {
				all[i] = cut(path)
			}
			data["not_checked"] = all
		}
		give("waits_for", string(out.WaitsFor))
		give("behind", string(out.QueuedBehind))
		give("verdict", rec.Verdict)
		give("workflow", rec.Workflow)
		give("step", rec.Step)
		give("tool", rec.Tool)
		give("kind", rec.Kind)
		give("correlation_id", rec.CorrelationID)
	}
	if s.opts.ReviewUI != "" {
		data["url"] = s.opts.ReviewUI + "/writes/" + url.PathEscape(string(c.ID))
	}
	return message(h, c.Tenant, fmt.Sprintf("%s/%d", c.ID, c.Seq), eventOf(c.Kind), c.At, data)
}

// gap is the message that changes were missed. The cursor after which they were missed
// identifies the gap.
func (s *Sender) gap(h Hook, cursor string, now time.Time) intent.WriteIntent {
	sum := sha256.Sum256([]byte(cursor))
	tenant := s.opts.Tenant
	if len(h.Tenants) > 0 {
		tenant = h.Tenants[0]
	}
	return message(h, tenant, "gap/"+hex.EncodeToString(sum[:8]), gapType, now, map[string]any{
		"text": "Some changes were not delivered: they were pruned before this hook read them. Read the writes that you wait for.",
	})
}

func message(h Hook, tenant, step, kind string, at time.Time, data map[string]any) intent.WriteIntent {
	return intent.WriteIntent{
		Tenant: tenant, Workflow: Prefix + h.Name, Step: step, Tool: tool,
		Destination: Prefix + h.Name, Kind: webhook.Kind, Write: intent.Create, Reversibility: intent.Pivot,
		Key:    intent.Fields{"message": step},
		Expect: intent.Fields{"type": kind, "timestamp": at.UTC().Format(time.RFC3339Nano), "data": data},
	}
}

// NoticeID is the write that notified a hook of an event of a write.
func NoticeID(tenant, hook string, id ledger.ID, seq int64) ledger.ID {
	return ledger.IDOf(message(Hook{Name: hook}, tenant, fmt.Sprintf("%s/%d", id, seq), "", time.Time{}, nil).StructuralKey())
}

// Hooks are the names of all hooks that were ever notified from a ledger, also of those
// that are no longer configured.
func Hooks(ctx context.Context, notes ledger.Documents) (names []string, err error) {
	found, _, err := notes.Notes(ctx, notesPrefix)
	for _, n := range found {
		names = append(names, strings.TrimPrefix(n.Name, notesPrefix))
	}
	return names, err
}

// notesPrefix begins the notes that hold each hook's progress.
const notesPrefix = "webhooks/"

func number(n int64) json.Number { return json.Number(strconv.FormatInt(n, 10)) }

func cut(text string) string { return visible.Clip(text, maxText) }
