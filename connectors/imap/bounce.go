package imap

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-message"
	"github.com/emersion/go-message/textproto"

	"github.com/readback-go/readback/internal/mailtext"
)

// failures looks for reports that the messages which were found were not delivered,
// and writes what they say into the answers.
func (s *session) failures(box Box, questions []question) error {
	questions = slices.DeleteFunc(slices.Clone(questions), func(q question) bool {
		return q.answer.Err != nil || len(q.answer.Observation.Records) == 0
	})
	if len(questions) == 0 {
		return nil
	}
	name, err := s.mailbox(box)
	if err != nil {
		return err
	}
	if _, err := s.choose(name, true); err != nil {
		return err
	}
	for chunk := range slices.Chunk(questions, searchChunk) {
		s.failuresOf(chunk)
	}
	return nil
}

// failuresOf looks for several messages together, and one by one if that fails: one
// with too many reports spoils only its own answer.
func (s *session) failuresOf(questions []question) {
	reports, err := s.reports(questions)
	switch {
	case err != nil && len(questions) == 1:
		fail(questions, fmt.Errorf("mailbox of bounces: %w", err))
	case err != nil:
		for i := range questions {
			s.failuresOf(questions[i : i+1])
		}
	default:
		for _, q := range questions {
			q.answer.Observation.Failed = failed(reports, q.messageIDs())
		}
	}
}

// messageIDs are those that the question asks for and that its records have: some
// providers put their own in the place of ours.
func (q question) messageIDs() []string {
	ids := []string{q.messageID}
	for _, r := range q.answer.Observation.Records {
		id, _ := r.Fields["message_id"].(string)
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return !mailtext.IsMessageID(id) })
}

// sent is when the first of the records was written, as they say; zero where one
// says nothing that can be read.
func (q question) sent() (first time.Time) {
	for i, r := range q.answer.Observation.Records {
		text, _ := r.Fields["date"].(string)
		at, err := time.Parse(time.RFC3339, text)
		switch {
		case err != nil:
			return time.Time{}
		case i == 0 || at.Before(first):
			first = at
		}
	}
	return first
}

// reports are the reports of failed deliveries in the chosen mailbox that may be
// about what is asked for. The server only narrows the search: each report is read.
// One that cannot be read as a report is none.
func (s *session) reports(questions []question) ([]report, error) {
	var keys []imap.SearchCriteria
	for _, q := range questions {
		for _, id := range q.messageIDs() {
			// TEXT and not BODY, which in Dovecot leaves out the header of the quoted
			// mail. Gmail's TEXT knows words alone, so a header is asked for too.
			about := anyOf([]imap.SearchCriteria{{Text: []string{id}}, headerKey("In-Reply-To", id)})
			if at := q.sent(); !at.IsZero() {
				about.Since = at.Add(-reportsSince)
			}
			keys = append(keys, about)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	criteria := anyOf(keys)
	criteria.Header = append(criteria.Header, imap.SearchCriteriaHeaderField{Key: "Content-Type", Value: "report"})
	found, err := s.searchFor(&criteria, maxCandidates)
	if err != nil {
		return nil, err
	}
	uids, ok := found.Nums()
	if !ok {
		return nil, fmt.Errorf("search: %w: an open range of UIDs", ErrUnreadable)
	}
	var all []report
	for _, uid := range uids {
		messages, err := s.client.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{reportSection}}).Collect()
		if err != nil {
			return nil, serverError(s.ctx, "fetch a report", err)
		}
		for _, m := range messages { // none where somebody has removed it meanwhile
			all = append(all, reportOf(sectionOf(m, reportSection)))
		}
	}
	return all, nil
}

// reportSection is as much of a whole message as is read.
var reportSection = &imap.FetchItemBodySection{Partial: &imap.SectionPartial{Size: maxReport}, Peek: true}

// report is a report of what became of a message.
type report struct {
	about  []string // Message-IDs of what it is about, never of the rest of a thread
	failed []string // one line for each recipient who was not reached
}

// failed is what the reports say of a message, "" where none says that it failed.
func failed(all []report, ids []string) string {
	var lines []string
	for _, r := range all {
		if slices.ContainsFunc(r.about, func(id string) bool { return slices.Contains(ids, id) }) {
			lines = append(lines, r.failed...)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	text := strings.Join(lines[:min(len(lines), maxReported)], "; ")
	if more := len(lines) - maxReported; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return "not delivered to " + text
}

// reportOf reads a report (RFC 3464, RFC 6533). What it cannot read it leaves out:
// anybody can write such a mail, and what it says decides nothing but that a
// reviewer looks.
func reportOf(raw []byte) report {
	var r report
	e, err := message.ReadWithOptions(bytes.NewReader(raw), &message.ReadOptions{MaxHeaderBytes: maxReportHeader})
	if e == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
		return report{}
	}
	kind, params, err := e.Header.ContentType()
	if err != nil || kind != "multipart/report" || !strings.EqualFold(params["report-type"], "delivery-status") {
		return report{}
	}
	parts := e.MultipartReader()
	for range maxAddresses { // a report has three parts
		part, err := parts.NextPart()
		if err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
			break
		}
		r.take(part)
	}
	if len(r.about) == 0 { // what is quoted says which mail it is about, where something is
		r.about = strings.Fields(e.Header.Get("In-Reply-To"))
	}
	return r
}

// take reads one part of a report.
func (r *report) take(part *message.Entity) {
	kind, _, err := part.Header.ContentType()
	if err != nil {
		return
	}
	body := bufio.NewReader(part.Body)
	switch kind {
	case "message/delivery-status", "message/global-delivery-status":
		for range maxAddresses + 1 { // the first group is about the whole message
			group, err := textproto.ReadHeader(body)
			if strings.EqualFold(strings.TrimSpace(group.Get("Action")), "failed") {
				r.failed = append(r.failed, notReached(group))
			}
			if err != nil {
				return
			}
		}
	case "message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers":
		quoted, _ := textproto.ReadHeader(body) // a header alone may end without its empty line
		if id := strings.TrimSpace(quoted.Get("Message-Id")); id != "" {
			r.about = append(r.about, id)
		}
	}
}

// notReached is who was not reached, and why, in the words of a mail server.
func notReached(group textproto.Header) string {
	typed := func(name string) string { // "rfc822; a@example.org"
		value := group.Get(name)
		if _, after, ok := strings.Cut(value, ";"); ok {
			value = after
		}
		return strings.TrimSpace(value)
	}
	who := typed("Original-Recipient")
	if who == "" {
		who = typed("Final-Recipient")
	}
	if why := strings.TrimSpace(strings.TrimSpace(group.Get("Status")) + " " + typed("Diagnostic-Code")); why != "" {
		return mailtext.Clip(who) + " (" + mailtext.Clip(why) + ")"
	}
	return mailtext.Clip(who)
}
