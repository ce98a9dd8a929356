package reviewui

import (
	"fmt"
	"net/http"
	"time"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

// maxName is how many characters of a name are shown.
const maxName = 80

// inboxPage lists what waits for a reviewer.
type inboxPage struct {
	Counts []tally
	Writes []waiting
	Steps  []waiting
	Sagas  []waiting
	More   bool
	Unread facts
	Empty  bool
}

// tally is a count with a name.
type tally struct {
	Class, Word string
	N           int
	Link        string
}

// waiting is one entry of the inbox.
type waiting struct {
	Link    string
	Title   string
	ID      string
	Badges  []badge
	Why     string
	Since   time.Time
	Ago     string
	Until   time.Time // zero for no end
	UntilIn string
	Who     string // who asked, who approved
}

// inbox shows what waits for a reviewer.
func (d *app) inbox(v *visit) error {
	in, err := d.tray.Inbox(v.r.Context(), v.who)
	if err != nil {
		return err
	}
	b := inboxPage{More: in.More, Unread: unreadable(in.Unread)}
	now, review, held := time.Now(), 0, 0
	for _, w := range in.Writes {
		if w.Record.State == ledger.Review {
			review++
		} else {
			held++
		}
		b.Writes = append(b.Writes, waitingWrite(w))
	}
	for _, s := range in.Steps {
		b.Steps = append(b.Steps, waitingStep(s, now))
	}
	for _, s := range in.Sagas {
		b.Sagas = append(b.Sagas, waitingSaga(s))
	}
	b.Counts = []tally{{"bad", "in review", review, "#writes"}, {"warn", "held", held, "#writes"},
		{"warn", "to approve at the gate", len(in.Steps), "#steps"}, {"bad", "sagas", len(in.Sagas), "#sagas"}}
	total := len(in.Writes) + len(in.Steps) + len(in.Sagas)
	b.Empty = total == 0 && len(in.Unread) == 0
	title := "Inbox"
	if total > 0 {
		title = fmt.Sprintf("(%d) Inbox", total)
		if in.More { // the counts are of the entries shown
			title = fmt.Sprintf("(%d+) Inbox", total)
		}
	}
	p := d.page(v, title, "inbox", b)
	p.Live, p.Said = true, fixedSaid(v)
	return d.show(v, http.StatusOK, "inbox", p)
}

// fixed are the messages that are shown once, to the user who acted.
var fixed = map[string]said{
	"step":     {"good", "The gate has taken your decision about the step. It is kept with your name and reason."},
	"stopped":  {"good", "Stopped. No worker sends what it holds, from within a second on."},
	"released": {"good", "Released. What was held goes on by itself."},
	"saga":     {"good", "The saga has taken your decision. It stands here as it is now."},
}

// saidCookie carries the name of a message to the next page. A link cannot fake one.
const saidCookie = "readback_said"

// saying redirects to another page, which shows a message once.
func (v *visit) saying(path, word string) error {
	v.remember(saidCookie, word, time.Minute)
	return v.to(path)
}

// fixedSaid is the message to show, nil for none.
func fixedSaid(v *visit) *said {
	c, err := v.r.Cookie(saidCookie)
	if err != nil {
		return nil
	}
	v.remember(saidCookie, "", -time.Second)
	if s, ok := fixed[c.Value]; ok {
		return &s
	}
	return nil
}

func waitingWrite(w service.Waiting) waiting {
	r := w.Record
	one := waiting{Link: writePath(r.ID), Title: report.Clip(report.Subject(r), 2*maxName), ID: report.Safe(string(r.ID)), Why: report.Sentence(r.Reason),
		Since: r.Created, Ago: report.Ago(r.Created, r.Now), Badges: []badge{status(w.Outcome.Status)}}
	if r.Overdue {
		one.Badges = append(one.Badges, badge{"bad", "!", "overdue"})
	}
	if w.Final {
		one.Badges = append(one.Badges, badge{"bad", "⚠", "irreversible"})
	}
	if w.Risk != "" {
		one.Badges = append(one.Badges, badge{"calm", "", "risk " + report.Clip(string(w.Risk), maxName)})
	}
	if r.State == ledger.Review && r.Verdict != "" {
		one.Badges = append(one.Badges, badge{"calm", "", report.Clip(r.Verdict, maxName)})
	}
	if r.State == ledger.Held {
		one.Who = "approved by " + report.Approvals(r)
		if !r.Due.IsZero() && !r.Overdue {
			one.Until, one.UntilIn = r.Due, report.Ago(r.Due, r.Now)
		}
	}
	if r.RequestedBy != "" {
		if one.Who != "" {
			one.Who += "; "
		}
		one.Who += "asked for by " + report.Clip(r.RequestedBy, maxName)
	}
	return one
}

func waitingStep(s gate.PendingApproval, now time.Time) waiting {
	name := s.StepName
	if name == "" {
		name = s.StepID
	}
	one := waiting{Link: stepPath(s.WorkflowID, s.StepID), Title: report.Clip("step "+name+" of "+s.WorkflowName, 2*maxName), ID: report.Clip(s.WorkflowID+" / "+s.StepID, 2*maxName),
		Why: report.Sentence(s.DecisionReason), Since: s.CreatedAt, Ago: report.Ago(s.CreatedAt, now), Badges: []badge{{"warn", "‖", "held step"}},
		Who: fmt.Sprintf("approved by %d of %d", len(s.ApprovedBy), max(s.Need, 1))}
	if s.Overdue {
		one.Badges = append(one.Badges, badge{"bad", "!", "overdue"})
	} else if s.ExpiresAt != nil {
		one.Until, one.UntilIn = *s.ExpiresAt, report.Ago(*s.ExpiresAt, now)
	}
	return one
}

func waitingSaga(s saga.Saga) waiting {
	return waiting{Link: sagaPath(s.ID), Title: report.Clip("saga "+s.ID, 2*maxName), ID: report.Clip(s.ID, maxName), Why: report.Sentence(s.Reason),
		Since: s.Since, Ago: report.Ago(s.Since, s.Now), Badges: []badge{sagaStatus(s.State)}}
}
