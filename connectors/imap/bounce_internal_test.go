package imap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A report is read as far as it is readable; anything else is ignored.
func TestReportOf(t *testing.T) {
	const head = "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n"
	const status = "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx\r\n\r\nFinal-Recipient: rfc822; bob@x.test\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n"
	const quoted = "--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: Hello\r\nMessage-ID: <a@x.test>\r\n\r\nHi\r\n"
	bob := []string{"bob@x.test (5.1.1)"}
	for name, tt := range map[string]struct {
		raw  string
		want report
	}{
		"whole":             {head + status + quoted + "--b--\r\n", report{[]string{"<a@x.test>"}, bob}},
		"cut in the mail":   {head + status + quoted, report{[]string{"<a@x.test>"}, bob}},
		"cut in its header": {head + status + "--b\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <a@x.test>\r\nSub", report{[]string{"<a@x.test>"}, bob}},
		"cut in the status": {head + status[:strings.Index(status, "Status")], report{nil, []string{"bob@x.test"}}},
		"base64": {head + "--b\r\nContent-Type: message/delivery-status\r\nContent-Transfer-Encoding: base64\r\n\r\nRmluYWwtUmVjaXBpZW50OiByZmM4MjI7IGJvYkB4LnRlc3QNCkFjdGlvbjogZmFpbGVkDQpTdGF0dXM6IDUuMS4xDQo=\r\n" + quoted + "--b--\r\n",
			report{[]string{"<a@x.test>"}, bob}},
		"international": {head + strings.Replace(status, "message/delivery-status", "message/global-delivery-status", 1) + strings.Replace(quoted, "message/rfc822", "message/global", 1) + "--b--\r\n",
			report{[]string{"<a@x.test>"}, bob}},
		"unknown charset": {head + "--b\r\nContent-Type: text/plain; charset=x-none\r\n\r\n\xff\r\n" + status + quoted + "--b--\r\n", report{[]string{"<a@x.test>"}, bob}},
		"an answer":       {"In-Reply-To: <a@x.test>\r\n" + head + status, report{[]string{"<a@x.test>"}, bob}},
		"of a thread": {"In-Reply-To: <b@x.test>\r\nReferences: <b@x.test> <a@x.test>\r\n" + head + status + strings.Replace(quoted, "<a@", "<c@", 1),
			report{[]string{"<c@x.test>"}, bob}},
		"another report": {strings.Replace(head, "delivery-status", "disposition-notification", 1) + status + quoted, report{}},
		"no report":      {"Content-Type: text/plain\r\n\r\n" + status + quoted, report{}},
		"no boundary":    {"Content-Type: multipart/report; report-type=delivery-status\r\n\r\n" + status, report{}},
		"nothing":        {"", report{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, reportOf([]byte(tt.raw)), cmp.AllowUnexported(report{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
