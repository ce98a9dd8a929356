package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

func TestAuditLogStatus(t *testing.T) {
	ago := func(d time.Duration) time.Time { return base.Add(-d) }
	tests := map[string]struct {
		reason string
		audit  report.Audit
		matter string
		text   string
	}{
		"sealed": {"all is well", report.Audit{Configured: true, Tenant: "acme", Chained: true, HeadAt: ago(time.Minute), HeadKey: "k1"}, "",
			"everything is sealed; tenant acme: newest head signed 1 minute ago with key k1"},
		"just now": {"a second's work", report.Audit{Configured: true, Tenant: "acme", Chained: true, Unsealed: 3, Oldest: ago(4 * time.Second)}, "",
			"3 not sealed, the oldest from 4 seconds ago; tenant acme: no head was signed"},
		"behind": {"its bound", report.Audit{Tenant: "acme", Chained: true, Unsealed: 3, Oldest: ago(5 * time.Minute), Sealer: base},
			"The audit log is behind: 3 not sealed, the oldest from 5 minutes ago.", "3 not sealed"},
		"far behind": {"no more are counted", report.Audit{Tenant: "acme", Unsealed: 100, More: true, Unread: 2, Oldest: ago(time.Hour)},
			"more than 100 not sealed, 2 of them cannot be read, the oldest from 1 hour ago", "has no chain"},
		"no sealer":    {"what was there before has no time", report.Audit{Tenant: "acme", Unsealed: 1}, "No process seals the audit log: 1 not sealed.", "1 not sealed; tenant acme has no chain"},
		"a sealer":     {"at it", report.Audit{Tenant: "acme", Unsealed: 1, Sealer: ago(time.Second)}, "", "1 not sealed"},
		"never begun":  {"configured, and no worker has it", report.Audit{Configured: true, Tenant: "acme", Sealer: ago(time.Hour)}, "which is configured: tenant acme has no chain yet", "everything is sealed; tenant acme has no chain"},
		"a new tenant": {"a worker runs", report.Audit{Configured: true, Tenant: "acme", Sealer: base}, "", "no chain"},
		"off":          {"no longer asked for", report.Audit{Tenant: "acme", Chained: true, HeadAt: ago(1000 * time.Hour), HeadKey: "k1"}, "", "with key k1"},
		"not known":    {"an older ledger", report.Audit{Configured: true, Problem: "no such table"}, "could not be read: no such table", "not known: no such table"},
		"a bad head":   {"another program wrote there", report.Audit{Tenant: "acme", Chained: true, BadHead: "it is none"}, "The newest head of the audit log of tenant acme cannot be read: it is none", "no head"},
		"hostile": {"the ledger's words", report.Audit{Tenant: hostile, Chained: true, HeadAt: base, HeadKey: hostile, BadHead: hostile},
			"The newest head", `\u202e`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := report.NewStatus(report.Found{QueueStats: ledger.QueueStats{Now: base}, Clock: report.Clock{Ledger: base}, Audit: &tt.audit})
			var all []string
			for _, m := range s.Attention {
				all = append(all, m.What)
				if m.Do == "" {
					t.Error("nothing to do")
				}
			}
			if got := strings.Join(all, "\n"); (got == "") != (tt.matter == "") || !strings.Contains(got, tt.matter) {
				t.Errorf("%s: %q, want %q", tt.reason, got, tt.matter)
			}
			if got := tt.audit.Text(base); !strings.Contains(got, tt.text) || !strings.Contains(s.Text(), "\n  "+got+"\n") {
				t.Errorf("%s: %q, want %q\n%s", tt.reason, got, tt.text, s.Text())
			}
			if strings.ContainsAny(s.Text(), "\x1b\u202e") {
				t.Errorf("%q", s.Text())
			}
		})
	}
	if s := report.NewStatus(report.Found{}); s.Audit != nil || strings.Contains(s.Text(), "Audit") {
		t.Error("a matter is reported where there is none")
	}
}
