package reviewui

import (
	"net/url"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

// place is where a reviewer is led after a decision: the next write of the inbox that they came
// from, or the write itself if it has no other.
type place struct {
	inbox string // the page of the inbox that they came from
	next  ledger.ID
}

// fromInbox reads the page of the inbox that a reviewer came from, and false if there is none.
func fromInbox(path string) (service.InboxQuery, bool) {
	u, err := url.Parse(path)
	if err != nil || u.Path != "/inbox" || u.IsAbs() || u.Host != "" {
		return service.InboxQuery{}, false
	}
	return inboxQuery(u.Query()), true
}

// writeFrom is the page of a write that is opened from a page of the inbox.
func writeFrom(id ledger.ID, inbox string) string {
	return writePath(id) + "?" + url.Values{"from": {inbox}}.Encode()
}

// nextAfter finds the write after one in the inbox that the form names.
func (d *app) nextAfter(v *visit, id ledger.ID) place {
	q, ok := fromInbox(v.form.Get("from"))
	if !ok {
		return place{}
	}
	next, found := d.following(v, q, id)
	if !found {
		next.inbox = inboxPath(q)
	}
	return next
}

// following is the write after one in an inbox: the next one on its page, or the first one of the
// next page. If it is on no page any more, it is the first one of this page.
func (d *app) following(v *visit, q service.InboxQuery, id ledger.ID) (place, bool) {
	first, passed := place{}, false
	for range 2 {
		in, err := d.service.Inbox(v.r.Context(), v.who, q)
		if err != nil {
			return place{}, false // the inbox says why
		}
		for _, w := range in.Writes {
			one := place{inboxPath(q), w.Record.ID}
			switch {
			case w.Record.ID == id:
				passed = true
			case passed:
				return one, true
			case first.next == "":
				first = one
			}
		}
		if q.After = in.Next; !passed || in.Next == "" {
			break
		}
	}
	return first, first.next != ""
}

// after is the page that is shown after a decision about a write.
func (p place) after(id ledger.ID, done string) string {
	q := url.Values{"done": {done}}
	if p.inbox != "" {
		q.Set("from", p.inbox)
	}
	if p.next == "" {
		return writePath(id) + "?" + q.Encode()
	}
	q.Set("decided", string(id))
	return writePath(p.next) + "?" + q.Encode()
}

// next leads to the write after one in an inbox, without a decision.
func (d *app) next(v *visit) error {
	view, err := d.view(v)
	if err != nil {
		return err
	}
	q, ok := fromInbox(v.r.URL.Query().Get("from"))
	if !ok {
		return v.to("/inbox")
	}
	if p, found := d.following(v, q, view.Record.ID); found {
		return v.to(writeFrom(p.next, p.inbox))
	}
	return v.to(inboxPath(q))
}

// decidedMessage is the result of the decision after which this page is shown, about another write.
func (d *app) decidedMessage(v *visit) *message {
	id := v.r.URL.Query().Get("decided")
	if id == "" {
		return nil
	}
	view, err := d.service.View(v.r.Context(), v.who, ledger.ID(id))
	if err != nil {
		return nil // the page is about something else
	}
	m := decisionMessage(v, view)
	if m != nil {
		m.About, m.Link = report.Clip(view.Summary, 2*maxName), writePath(view.Record.ID)
	}
	return m
}

// assignment fills in what a page of a write says of its reviewer, and of the inbox.
func (d *app) assignment(v *visit, view service.View, b *writePage) {
	_, b.Waits = ledger.WaitKindOf(view.Record)
	b.Assigned, b.Mine = report.Clip(view.Assigned, maxName), view.Assigned != "" && view.Assigned == v.who.Name
	from := v.r.URL.Query().Get("from")
	if v.form != nil {
		from = v.form.Get("from")
	}
	if q, ok := fromInbox(from); ok {
		b.From = inboxPath(q)
		b.Next = writePath(view.Record.ID) + "/next?" + url.Values{"from": {b.From}}.Encode()
	}
}
