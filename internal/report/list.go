package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/readback-go/readback/ledger"
)

// List is a table of writes, in the order given. partly says that there are others, which
// cannot be read.
func List(recs []ledger.Record, partly bool, now time.Time) string {
	switch {
	case len(recs) == 0 && partly:
		return "No writes that can be read.\n"
	case len(recs) == 0:
		return "No writes.\n"
	}
	short := shortIDsOf(recs)
	rows := []string{"ID\tSTATE\tBEGUN\tWRITE\tWHY"}
	for _, r := range recs {
		rows = append(rows, strings.Join([]string{
			short[r.ID], phase(r), Ago(r.Created, now), Clip(Subject(r), 2*cell), Clip(r.Reason, cell),
		}, "\t"))
	}
	return table("", rows...)
}

// Waiting lists what waits for a reviewer, in the order given, with the reason, the
// differences and the command that decides. more says that there are others, and partly
// that there are some which cannot be read. others follow the list.
func Waiting(recs []ledger.Record, more, partly bool, now time.Time, others ...Matter) string {
	text := waitingWrites(recs, more, partly, now)
	for _, m := range others {
		text += fmt.Sprintf("\n%s\n  %s\n", m.What, m.Do)
	}
	return text
}

func waitingWrites(recs []ledger.Record, more, partly bool, now time.Time) string {
	switch {
	case len(recs) == 0 && partly:
		return "No readable write waits for a reviewer.\n"
	case len(recs) == 0:
		return "Nothing waits for a reviewer.\n"
	}
	count := Count(len(recs), "write waits", "writes wait")
	if more {
		count = fmt.Sprintf("More than %d writes wait", len(recs))
	}
	short := shortIDsOf(recs)
	var b strings.Builder
	fmt.Fprintf(&b, "%s for a reviewer. The oldest comes first.\n", count)
	for _, r := range recs {
		fmt.Fprintf(&b, "\n%s  %s, begun %s\n", short[r.ID], r.Phase(), Ago(r.Created, now))
		fmt.Fprintf(&b, "  %s\n", Subject(r))
		for _, line := range wrap(Clip(r.Reason, maxText), wrapAt) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		b.WriteString(table("  ", approvals(r, now)...))
		b.WriteString(table("    ", differences(r.Mismatches)...))
		fmt.Fprintf(&b, "  %s\n", Next(r))
	}
	return b.String()
}
