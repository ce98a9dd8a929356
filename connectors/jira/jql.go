package jira

import (
	"fmt"
	"strings"
)

// sought is the JQL that finds the issues of one question: by the label that
// holds the reference, and by the one that holds the stamp.
func (q *question) sought() string {
	var parts []string
	if q.reference != "" {
		parts = append(parts, "(project = "+quoted(q.project)+" AND labels = "+quoted(q.reference)+")")
	}
	if q.stamp != "" {
		parts = append(parts, "labels = "+quoted(q.stamp))
	}
	return strings.Join(parts, " OR ")
}

// quoted is a value as a JQL string. Whatever it contains, it cannot end the string, and so
// cannot change the query.
func quoted(value string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(value, "\ufffd") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || (r >= 0x7f && r < 0xa0) || r == 0x2028 || r == 0x2029:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
