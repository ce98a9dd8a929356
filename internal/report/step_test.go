package report

import (
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/gate"
)

// TestWhatAPersonCanDoAboutAStep: no hint leads where nothing can be done.
func TestWhatAPersonCanDoAboutAStep(t *testing.T) {
	block, hold := gate.StepDecision{Decision: gate.Block}, gate.StepDecision{Decision: gate.RequireApproval}
	done := time.Unix(1, 0)
	for name, tt := range map[string]struct {
		reason string
		step   gate.StepTrace
		want   string
	}{
		"rules":     {"they can be asked again", gate.StepTrace{Decision: gate.Block, Decisions: []gate.StepDecision{block}}, "reevaluate"},
		"another":   {"what became of it is elsewhere", gate.StepTrace{Decision: gate.Block, Decisions: []gate.StepDecision{block}, Prior: &gate.Prior{PriorWriteID: "wr_1"}}, "readback show wr_1"},
		"rejected":  {"asking again is refused", gate.StepTrace{Decision: gate.Block, Decisions: []gate.StepDecision{hold, block}, Reports: []gate.Report{{Decision: gate.Rejected}}}, ""},
		"too late":  {"asking again is refused", gate.StepTrace{Decision: gate.Block, Decisions: []gate.StepDecision{hold}}, ""},
		"held":      {"a reviewer must decide", gate.StepTrace{Decision: gate.RequireApproval, Waits: true}, "approve or reject"},
		"completed": {"it is done", gate.StepTrace{Decision: gate.Allow, CompletedAt: &done}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stepNext(tt.step); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
				t.Errorf("%s: %q, want %q in it", tt.reason, got, tt.want)
			}
		})
	}
}
