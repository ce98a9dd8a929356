package report

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFit(t *testing.T) {
	defer func(before int) { Width = before }(Width)
	id := "wr_" + strings.Repeat("a", 32)
	rows := []string{"ID\tSTATE\tWRITE\tWHY", id + "\tsettled (verified)\t" + strings.Repeat("ö", 60) + "\t" + strings.Repeat("why ", 20)}
	Width = 80
	text := Table(rows...)
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if !strings.Contains(text, id+"  ") || !strings.Contains(text, "settled (verified)") || strings.Count(text, "…") != 2 {
		t.Errorf("want the whole id, the whole state, and two cut cells:\n%s", text)
	}
	if Width = 200; strings.Contains(Table(rows...), "…") {
		t.Error("a table that fits is cut")
	}
	if Width = 0; strings.Contains(Table(rows...), "…") {
		t.Error("a table without a width is cut")
	}
}
