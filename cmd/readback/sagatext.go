package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/saga"
)

// sagaOrder describes a checked plan.
func sagaOrder(p saga.Plan, order []string) string {
	rows := []string{"#\tSTEP\tCLASS\tREVERT\tGRACE\tWRITE"}
	for i, name := range order {
		s := p.Steps[slices.IndexFunc(p.Steps, func(s saga.Step) bool { return s.Name == name })]
		class, grace := string(s.Intent.Reversibility), "-"
		if class == "" {
			class = "pivot"
		}
		if s.Grace > 0 {
			grace = report.Short(s.Grace)
		}
		rows = append(rows, strings.Join([]string{fmt.Sprint(i + 1), report.Safe(name), class, s.Revert.String(), grace,
			fmt.Sprintf("%s %s at %q", s.Intent.Write, report.Safe(s.Intent.Kind), report.Safe(s.Intent.Destination))}, "\t"))
	}
	return fmt.Sprintf("The plan of saga %q is good. Its steps are carried out in this order:\n\n%s", report.Safe(p.ID), report.Table(rows...))
}

// sagaText is a saga for a reader: its state, each step with what is known of it, and
// what may be done.
func sagaText(s saga.Saga) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  saga %q\n", strings.ToUpper(string(s.State)), report.Safe(s.ID))
	b.WriteString(report.Paragraph(report.Safe(sentence(s.Reason)), ""))
	b.WriteString(report.Paragraph(sagaBegun(s), ""))
	b.WriteString(turned("It goes back", "cancelled", s.Back) + turned("It goes no further", "cancelled", s.Stopped) + turned("It is over", "closed", s.Closed))
	rows := []string{"#\tSTEP\tCLASS\tSTATUS\tWRITE\tUNDOING"}
	for i, step := range s.Steps {
		rows = append(rows, strings.Join([]string{fmt.Sprint(i + 1), report.Safe(step.Name), string(step.Class), spokenStatus(step.Status), orDash(string(step.WriteID)), undoingText(step)}, "\t"))
	}
	b.WriteString("\n" + report.Table(rows...) + "\n")
	for _, step := range s.Steps {
		if step.WriteID == "" && step.Blocked == nil {
			continue
		}
		fmt.Fprintf(&b, "%s\n%s", report.Safe(step.Name), report.Paragraph(report.Safe(step.Text), "  "))
		if step.UndoText != "" && step.UndoStatus != engine.StatusVerified {
			b.WriteString(report.Paragraph("Its undoing: "+report.Safe(step.UndoText), "  "))
		}
		for _, line := range asks(step) {
			b.WriteString("  " + line + "\n")
		}
	}
	return b.String() + sagaNext(s)
}

// sagaBegun describes who began a saga and when, and its trace.
func sagaBegun(s saga.Saga) string {
	text := "Begun at " + s.Created.UTC().Format(time.DateTime)
	if s.By != "" {
		text += " by " + report.Safe(s.By)
	}
	if s.CorrelationID != "" {
		text += ", correlation " + report.Safe(s.CorrelationID)
	}
	if s.Trace != "" {
		text += ", trace " + report.TraceID(s.Trace)
	}
	return text + "."
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

func turned(what, how string, t *saga.Turn) string {
	if t == nil || t.By == "" {
		return ""
	}
	in := ""
	if t.Trace != "" {
		in = " (trace " + report.TraceID(t.Trace) + ")"
	}
	return report.Paragraph(fmt.Sprintf("%s since %s %s it at %s%s: %s.", what, report.Safe(t.By), how, t.At.UTC().Format(time.DateTime), in, report.Safe(t.Reason)), "")
}

func spokenStatus(s engine.Status) string {
	if s == "" {
		return "not begun"
	}
	return strings.ReplaceAll(string(s), "_", " ")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// undoingText describes how a step is undone, and the result.
func undoingText(s saga.StepState) string {
	switch {
	case s.UndoStatus != "":
		return fmt.Sprintf("%s (%s)", s.Undoing, spokenStatus(s.UndoStatus))
	case s.Undoing != "":
		return fmt.Sprintf("by the %s", s.UndoBy)
	}
	return "-"
}

// asks are the commands by which a reviewer decides about a step.
func asks(s saga.StepState) []string {
	var all []string
	for _, one := range []struct {
		id  string
		may []engine.Word
	}{{string(s.WriteID), s.May}, {string(s.Undoing), s.UndoMay}} {
		if len(one.may) == 0 {
			continue
		}
		var words []string
		for _, w := range one.may {
			words = append(words, string(w))
		}
		all = append(all, fmt.Sprintf("readback review %s %s --by NAME --reason TEXT", one.id, strings.Join(words, "|")))
	}
	return all
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
		text += "It goes on when a person has decided, with `readback work` or\n"
	case s.State == saga.Review:
		text += fmt.Sprintf("When it has been seen to by hand, say so with\n  readback saga close %s --by NAME --reason TEXT\n", report.Safe(s.ID))
		text += "What was given up after too many tries, or denied or blocked, is tried again with\n"
	default:
		text += "It goes on with `readback work` or\n"
	}
	return text + fmt.Sprintf("  readback saga resume %s\n", report.Safe(s.ID))
}

// matters lists things to see to, below another list.
func matters(all []report.Matter) string {
	text := ""
	for _, m := range all {
		text += fmt.Sprintf("\n%s\n  %s\n", m.What, m.Do)
	}
	return text
}

// sagaList is a table of sagas.
func sagaList(all []saga.Saga) string {
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
		rows = append(rows, strings.Join([]string{report.Safe(s.ID), string(s.State), s.Created.UTC().Format(time.DateTime),
			fmt.Sprintf("%d of %d begun", begun, len(s.Steps)), shortened(report.Safe(s.Reason))}, "\t"))
	}
	return report.Table(rows...)
}

// shortened is a sentence that fits into a table.
func shortened(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
