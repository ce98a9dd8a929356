package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// Plan describes a checked plan, with its steps in order.
func Plan(p saga.Plan, order []string) string {
	rows := []string{"#\tSTEP\tCLASS\tREVERT\tGRACE\tWRITE"}
	for i, name := range order {
		s := p.Steps[slices.IndexFunc(p.Steps, func(s saga.Step) bool { return s.Name == name })]
		class, grace := cmp.Or(string(s.Intent.Reversibility), "pivot"), "-"
		if s.Grace > 0 {
			grace = Short(s.Grace)
		}
		rows = append(rows, strings.Join([]string{fmt.Sprint(i + 1), Safe(name), class, s.Revert.String(), grace,
			fmt.Sprintf("%s %s at %q", s.Intent.Write, Safe(s.Intent.Kind), Safe(s.Intent.Destination))}, "\t"))
	}
	return fmt.Sprintf("The plan of saga %q is good. Its steps are carried out in this order:\n\n%s", Safe(p.ID), table("", rows...))
}

// Saga is a saga for a reader: its state, each step with what is known of it, and what may
// be done.
func Saga(s saga.Saga) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  saga %q\n", strings.ToUpper(string(s.State)), Safe(s.ID))
	b.WriteString(Paragraph(Sentence(s.Reason), "") + sagaBegun(s))
	b.WriteString(turned("It goes back", "cancelled", s.Back) + turned("It goes no further", "cancelled", s.Stopped) + turned("It is over", "closed", s.Closed))
	var ids []ledger.ID
	for _, step := range s.Steps {
		ids = append(ids, step.WriteID, step.Undoing)
	}
	short := shortIDs(ids...)
	rows := []string{"#\tSTEP\tCLASS\tSTATUS\tWRITE\tUNDOING"}
	for i, step := range s.Steps {
		undoing := "-"
		switch {
		case step.UndoStatus != "":
			undoing = fmt.Sprintf("%s (%s)", short[step.Undoing], Word(step.UndoStatus))
		case step.Undoing != "":
			undoing = fmt.Sprintf("by the %s", step.UndoBy)
		}
		rows = append(rows, strings.Join([]string{fmt.Sprint(i + 1), Safe(step.Name), string(step.Class), cmp.Or(Word(step.Status), "not begun"), cmp.Or(short[step.WriteID], "-"), undoing}, "\t"))
	}
	b.WriteString("\n" + table("", rows...) + "\n")
	for _, step := range s.Steps {
		if step.WriteID == "" && step.Blocked == nil {
			continue
		}
		fmt.Fprintf(&b, "%s\n%s", Safe(step.Name), Paragraph(Safe(step.Text), "  "))
		if step.UndoText != "" && step.UndoStatus != ledger.Verified {
			b.WriteString(Paragraph("Its undoing: "+Safe(step.UndoText), "  "))
		}
		b.WriteString(asks(step.WriteID, step.May) + asks(step.Undoing, step.UndoMay))
	}
	return b.String() + sagaNext(s)
}

// sagaBegun describes who began a saga and when, and its trace.
func sagaBegun(s saga.Saga) string {
	text := "Begun at " + s.Created.UTC().Format(time.DateTime)
	if s.By != "" {
		text += " by " + Safe(s.By)
	}
	if s.CorrelationID != "" {
		text += ", correlation " + Safe(s.CorrelationID)
	}
	if s.Trace != "" {
		text += ", trace " + TraceID(s.Trace)
	}
	return Paragraph(text+".", "")
}

func turned(what, how string, t *saga.Decision) string {
	if t == nil || t.By == "" {
		return ""
	}
	in := ""
	if t.Trace != "" {
		in = " (trace " + TraceID(t.Trace) + ")"
	}
	return Paragraph(fmt.Sprintf("%s since %s %s it at %s%s: %s.", what, Safe(t.By), how, t.At.UTC().Format(time.DateTime), in, Safe(t.Reason)), "")
}

// asks is the command by which a reviewer decides about a write of a step.
func asks(id ledger.ID, may []engine.Word) string {
	if len(may) == 0 {
		return ""
	}
	words := make([]string, len(may))
	for i, w := range may {
		words[i] = string(w)
	}
	return fmt.Sprintf("  readback review %s %s --by NAME --reason TEXT\n", id, strings.Join(words, "|"))
}

// sagaNext describes what comes next.
func sagaNext(s saga.Saga) string {
	if s.State == saga.Done || s.State == saga.Undone || s.State == saga.Closed {
		return ""
	}
	waits := slices.ContainsFunc(s.Steps, func(step saga.StepState) bool { return len(step.May)+len(step.UndoMay) > 0 })
	text := "\n"
	switch {
	case waits:
		text += "It continues when a reviewer has decided, with `readback work` or\n"
	case s.State == saga.Review:
		text += fmt.Sprintf("When it has been seen to by hand, say so with\n  readback saga close %s --by NAME --reason TEXT\n", Safe(s.ID))
		text += "What was given up after too many tries, or denied or blocked, is tried again with\n"
	default:
		text += "It continues with `readback work` or\n"
	}
	return text + fmt.Sprintf("  readback saga resume %s\n", Safe(s.ID))
}

// Sagas is a table of sagas.
func Sagas(all []saga.Saga) string {
	if len(all) == 0 {
		return "No sagas.\n"
	}
	rows := []string{"ID\tSTATE\tBEGUN\tSTEPS\tWHY"}
	for _, s := range all {
		begun := 0
		for _, step := range s.Steps {
			if step.WriteID != "" {
				begun++
			}
		}
		rows = append(rows, strings.Join([]string{Safe(s.ID), string(s.State), s.Created.UTC().Format(time.DateTime),
			fmt.Sprintf("%d of %d begun", begun, len(s.Steps)), Clip(s.Reason, cell)}, "\t"))
	}
	return table("", rows...)
}
