package command

import (
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
)

// twoApprove configures that two people must approve every order within an hour.
func twoApprove(p *place, onTimeout string) {
	p.configure(p.url, "risk:\n  - {name: two, destination: orders, approvers: 2, within: 1h, on_timeout: "+onTimeout+"}\n")
}

func TestTwoApprovals(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	twoApprove(p, "deny")
	held := id(t, p.submit(exitReview, order("A-1", ""), "--by", "bot"))
	digest := p.writes()[0].Digest
	list := p.want(exitVerified, p.run("review"))
	says(t, list, held[:11]+" held", "approvals 0 of 2; 2 different reviewers must still approve", "until", "asked by bot, who may not approve it", "digest "+digest,
		"readback review "+held+" approve|deny --digest "+digest)
	approve := func(want int, by string, more ...string) result {
		t.Helper()
		return p.want(want, p.run(append([]string{"review", held, "approve", "--by", by, "--reason", "agreed"}, more...)...))
	}
	says(t, approve(exitRefused, "Bot "), "another reviewer must approve it")
	says(t, approve(exitRefused, "ann", "--digest", "abc"), "the decision is about digest abc")
	says(t, approve(exitUsage, " "), "--by is missing")
	says(t, p.want(exitUsage, p.run("review", held, "approve", "--by", "ann", "--reason", " ")), "--reason is missing")
	approve(exitReview, "ann", "--digest", digest)
	p.calls(0)
	says(t, p.want(exitVerified, p.run("show", held)), "approvals 1 of 2: ann", "approved, and others must approve too")
	says(t, approve(exitRefused, " ANN"), "has approved write "+held+" already")
	approve(exitVerified, "bob")
	p.calls(1)
}

func TestApprovalExpires(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	twoApprove(p, "deny")
	held := id(t, p.submit(exitReview, order("A-1", "")))
	says(t, p.want(exitAttention, p.run("status")), "1 write waits for a reviewer, the oldest begun", "; the time of 1 of them is over within 1h.")
	p.now = later(2 * time.Hour)
	says(t, p.want(exitVerified, p.run("review")), "was until", "it can be approved no more")
	r := p.run("review", held, "approve", "--by", "ann", "--reason", "late")
	p.want(exitNotApplied, r)
	says(t, r, "approval expired")
	says(t, p.submit(exitNotApplied, order("A-1", "")), "expired "+held)
	p.calls(0)
}

func TestOverdueGoesOnWaiting(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	twoApprove(p, "escalate")
	held := id(t, p.submit(exitReview, order("A-1", "")))
	p.now = later(2 * time.Hour)
	p.want(exitVerified, p.run("resume"))
	says(t, p.want(exitVerified, p.run("review")), held[:11]+" held", "overdue no reviewer approved it in time; it continues to wait")
	says(t, p.want(exitAttention, p.run("status")), "; 1 are overdue.")
	p.want(exitReview, p.run("review", held, "approve", "--by", "ann", "--reason", "late"))
	p.want(exitVerified, p.run("review", held, "approve", "--by", "bob", "--reason", "late"))
	p.calls(1)
}

func TestRiskIsNeverLowered(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	p.configure(p.url, "risk:\n  - {name: marked, destination: orders, class: log}\n")
	p.submit(exitReview, order("A-1", `,"risk":"approve"`))
	twoApprove(p, "deny")
	p.submit(exitReview, order("A-2", `,"risk":"auto"`))
	p.calls(0)
}
