package reviewui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxMany is how many writes one form decides about: more than a page shows, and few enough
	// for the time of a page.
	maxMany = 100
	// manyWait is how long each of several decisions is waited for. One that takes longer is
	// recorded, and continues.
	manyWait = 100 * time.Millisecond
	// pickPrefix begins the name of the field of a selected write.
	pickPrefix = "write-"
)

// pick is a selected write, and what the reviewer saw of it.
type pick struct {
	id     ledger.ID
	seq    int64
	digest string
}

// value is the value of the field of a write.
func (p pick) value() string { return strconv.FormatInt(p.seq, 10) + " " + p.digest }

// picksOf reads the selected writes. It fails with errForm if a field is not of this review UI.
func picksOf(form url.Values) (picks []pick, err error) {
	for name := range form {
		id, selected := strings.CutPrefix(name, pickPrefix)
		if !selected {
			continue
		}
		seq, digest, ok := strings.Cut(form.Get(name), " ")
		n, bad := strconv.ParseInt(seq, 10, 64)
		if bad != nil || !ok || n < 1 || digest == "" || id == "" {
			return nil, errForm
		}
		picks = append(picks, pick{ledger.ID(id), n, digest})
	}
	if len(picks) > maxMany {
		return nil, errForm
	}
	slices.SortFunc(picks, func(a, b pick) int { return cmp.Compare(a.id, b.id) })
	return picks, nil
}

// bulk is the form that decides about several writes.
type bulk struct {
	From    string // this page of the inbox
	Choices []option
	Reason  string
	Problem map[string]string
	// All selects every write of the page, None no write.
	All, None string
}

// manyChoices are the decisions that can apply to several of the shown writes. A decision that
// vouches for something is made on the page of the write.
func manyChoices(shown []service.Waiting, chosen string) (all []option) {
	for _, word := range []engine.Word{engine.WordApprove, engine.WordDeny, engine.WordAccept, engine.WordRetry, engine.WordCompensate, engine.WordAbandon} {
		fits, others := false, false
		for _, w := range shown {
			if belongs(word, w.Record.State) {
				fits = true
			} else {
				others = true
			}
		}
		if !fits {
			continue
		}
		label := decisions[word].label
		if others {
			label += map[bool]string{true: " (only held writes)", false: " (only writes in review)"}[belongs(word, ledger.Held)]
		}
		all = append(all, option{string(word), label, string(word) == chosen})
	}
	return all
}

// decideMany decides about several writes, each on its own evidence, or assigns them.
func (d *app) decideMany(v *visit) error {
	picks, err := picksOf(v.form)
	if err != nil {
		return err
	}
	q, ok := fromInbox(v.form.Get("from"))
	if !ok {
		q = service.InboxQuery{Limit: inboxRows}
	}
	if take := v.form.Get("assign"); take != "" && len(picks) > 0 {
		return d.assignMany(v, picks, take == "take", q)
	}
	s := decisionOf(v.form)
	if len(picks) == 0 {
		s.Problem["write"] = "Select the writes that you decide about."
	}
	if s.force {
		s.Problem["choice"] = "That is not one of the choices."
	}
	if len(s.Problem) > 0 {
		in, err := d.service.Inbox(v.r.Context(), v.who, q)
		if err != nil {
			return err
		}
		return d.showInbox(v, http.StatusUnprocessableEntity, in, q, bulk{Reason: s.Reason, Problem: s.Problem}, s.value, picks)
	}
	var rows []waiting
	var gone []error
	counts := map[bool]int{}
	for _, p := range picks {
		one := s
		one.Seq, one.Digest = p.seq, p.digest
		row, taken, err := d.decideOne(v, p.id, one, inboxPath(q))
		if rows = append(rows, row); err != nil {
			gone = append(gone, err)
		}
		counts[taken]++
	}
	if len(gone) == len(picks) { // none of them is there, or can be read
		return gone[0]
	}
	b := manyPage{Title: fmt.Sprintf("%d decided, %d not", counts[true], counts[false]), Choice: decisions[s.word].label, Rows: rows, Inbox: inboxPath(q)}
	return d.show(v, http.StatusOK, "many", d.page(v, b.Title, "inbox", b))
}

// manyPage is what came of each of several decisions.
type manyPage struct {
	Title, Choice string
	Rows          []waiting
	Inbox         string
}

// decideOne carries out one of several decisions, and describes what came of it. It returns why the
// write cannot be read afterwards, if it cannot.
func (d *app) decideOne(v *visit, id ledger.ID, s decision, inbox string) (row waiting, taken bool, unread error) {
	view, err := d.service.View(v.r.Context(), v.who, id)
	if err == nil {
		done := ""
		if done, err = d.carryOut(v, view, s, manyWait); err == nil && done == doneBusy {
			err = engine.ErrBusy
		}
	}
	why := ""
	if err != nil {
		f, expected := failureOf(err)
		if why = f.Text; !expected {
			d.log.ErrorContext(v.r.Context(), "one of several decisions failed", "write", id, "error", err)
		}
	}
	// What happened is read whatever the error is: a decision that was sent twice is taken.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.r.Context()), manyWait+time.Second)
	defer cancel()
	after, gone := d.service.View(ctx, v.who, id)
	if gone != nil {
		return waiting{Link: writePath(id), Title: report.Clip(string(id), maxName), ID: report.Clip(string(id), maxName), Why: cmp.Or(why, "What came of it cannot be read."),
			Badges: []badge{{"bad", "!", "not decided"}}}, false, gone
	}
	row = rowOf(after.Record, after.Outcome)
	row.Title, row.Link = report.Clip(after.Summary, 2*maxName), writeFrom(id, inbox)
	if taken = err == nil || s.taken(v.who, after.Events); taken {
		row.Why = decisions[s.word].past + ". " + report.Sentence(after.Outcome.Text)
		return row, true, nil
	}
	if errors.Is(err, engine.ErrChanged) {
		why = "It has changed since you read it. Nothing was done: read it as it is now, and decide again."
	}
	row.Why, row.Badges = why, append([]badge{{"bad", "!", "not decided"}}, row.Badges...)
	return row, false, nil
}

// assignMany assigns writes to the reviewer, or to none.
func (d *app) assignMany(v *visit, picks []pick, take bool, q service.InboxQuery) error {
	for _, p := range picks {
		if err := d.service.Assign(v.r.Context(), v.who, p.id, take); err != nil && !errors.Is(err, engine.ErrNotWaiting) {
			return err
		}
	}
	return v.saying(inboxPath(q), map[bool]string{true: "taken", false: "given"}[take])
}

// assign assigns one write to the reviewer, or to none.
func (d *app) assign(v *visit) error {
	id := ledger.ID(v.r.PathValue("id"))
	if err := d.service.Assign(v.r.Context(), v.who, id, v.form.Get("assign") == "take"); err != nil {
		return err
	}
	if q, ok := fromInbox(v.form.Get("from")); ok {
		return v.to(writeFrom(id, inboxPath(q)))
	}
	return v.to(writePath(id))
}
