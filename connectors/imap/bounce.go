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

const (
	// maxAddresses is how many recipients one field may have; larger lists
	// are for mailing list software.
	maxAddresses = 100
	// maxCandidates is how many messages one search may find before the read fails. A search for
	// a Message-ID in angle brackets has one result; a server that returns thousands does not
	// search as requested.
	maxCandidates = 1000
	// maxReport is how many bytes of the report of a bounce are read. It names the failure first
	// and quotes the mail last, of which the header is enough.
	maxReport = 512 << 10
	// maxReported is how many recipients that were not reached are named.
	maxReported = 3
	// maxReportHeader is how many bytes a header within a report may have.
	maxReportHeader = 64 << 10
	// reportsSince is by how much a report may seem older than the mail: servers
	// compare days, each in a time zone of its own, and clocks differ.
	reportsSince = 48 * time.Hour
	// searchChunk is how many queries share one SEARCH. Each takes some 150
	// bytes, and RFC 2683 asks clients to keep command lines below 1000 bytes
	// and servers to take 8000.
	searchChunk = 20
)

// failures searches for reports that the messages of the answers were not delivered, and adds
// them to the answers.
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

// failuresOf searches for several messages together, and one by one if that fails: one with too
// many reports affects only its own answer.
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

// messageIDs are that of the question and those of its records: some providers put their own in
// the place of ours.
func (q question) messageIDs() []string {
	ids := []string{q.messageID}
	for _, r := range q.answer.Observation.Records {
		id, _ := r.Fields["message_id"].(string)
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return !mailtext.IsMessageID(id) })
}

// sent is when the first of the records was written, by their dates; zero if one has no readable
// date.
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

// reports are the reports of failed deliveries in the chosen mailbox that may concern the
// questions. The server only narrows the search: each report is read. An unreadable one is
// ignored.
func (s *session) reports(questions []question) ([]report, error) {
	var keys []imap.SearchCriteria
	for _, q := range questions {
		for _, id := range q.messageIDs() {
			// TEXT and not BODY, which in Dovecot leaves out the header of the quoted mail.
			// Gmail's TEXT only matches words, so a header is searched too.
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
		return nil, fmt.Errorf("search: %w: an open range of UIDs", errUnreadable)
	}
	var all []report
	for _, uid := range uids {
		messages, err := s.client.Fetch(imap.UIDSetNum(uid), &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{reportSection}}).Collect()
		if err != nil {
			return nil, serverError(s.ctx, "fetch a report", err)
		}
		for _, m := range messages { // none if another actor has removed it meanwhile
			all = append(all, reportOf(sectionOf(m, reportSection)))
		}
	}
	return all, nil
}

// reportSection is as much of a whole message as is read.
var reportSection = &imap.FetchItemBodySection{Partial: &imap.SectionPartial{Size: maxReport}, Peek: true}

// report is a report of what became of a message.
type report struct {
	about  []string // Message-IDs of its subject, never of the rest of a thread
	failed []string // one line for each recipient who was not reached
}

// failed is what the reports say of a message, "" if none reports a failure.
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

// reportOf reads a report (RFC 3464, RFC 6533). It skips what it cannot read: anyone can write
// such a mail, and its only effect is a review.
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
	if len(r.about) == 0 { // the quoted mail names the subject, if there is one
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

// notReached is a recipient who was not reached, and why, in the words of a mail server.
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
