package imap

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// fetchChunk is how many UIDs share one FETCH, for the same reason: ten
// digits and a comma each.
const fetchChunk = 200

// Read returns every message that has the stamp or the Message-ID (or UID) of the key, over a
// connection of its own. It opens the mailbox read-only and peeks, so it does not mark anything
// as seen. A mailbox that does not exist is an error, not absence.
func (c *Connector) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	answers, err := c.ReadMany(ctx, []connectors.Query{q})
	if err != nil {
		return connectors.Observation{}, err
	}
	return answers[0].Observation, answers[0].Err
}

// question is one parsed query and its answer.
type question struct {
	address
	stamp string
	known handle // of the receipt
	parts bool   // a text within a multipart message is its body too
	// deletes means that it is about a delete: our own \Deleted, left by a connection that broke
	// before the EXPUNGE, is no change of another actor.
	deletes bool
	answer  *connectors.BulkAnswer
}

// ReadMany reads several queries over one connection: one SEARCH for every
// twenty of a mailbox. Queries beyond the profile's BulkLimit are taken too.
func (c *Connector) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	began := time.Now()
	answers := make([]connectors.BulkAnswer, len(qs))
	byMailbox := map[string][]question{}
	for i, q := range qs {
		answers[i].Observation = connectors.Observation{At: began, Path: pathSearch, Strength: c.strength()}
		a, err := c.locate(q.Intent, q.Stamp)
		if err != nil {
			answers[i].Err = err
			continue
		}
		byMailbox[a.mailbox] = append(byMailbox[a.mailbox], question{a, q.Stamp, parseHandle(q.Ref), false, q.Intent.Write == intent.Delete, &answers[i]})
	}
	if len(byMailbox) == 0 {
		return answers, nil
	}
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer s.leave()
	for _, mailbox := range slices.Sorted(maps.Keys(byMailbox)) {
		s.ask(mailbox, byMailbox[mailbox])
	}
	return answers, nil
}

func (c *Connector) strength() connectors.Strength {
	if c.o.SingleStore {
		return connectors.Strong
	}
	return connectors.Weak
}

// ask answers all questions about one mailbox. It selects the mailbox again, so the session knows
// all mail without a NOOP.
func (s *session) ask(mailbox string, questions []question) {
	chosen, err := s.choose(mailbox, true)
	if err != nil {
		fail(questions, err)
		return
	}
	for chunk := range slices.Chunk(questions, searchChunk) {
		s.answerEach(chosen, chunk)
	}
}

// answerEach answers questions together, and one by one if that fails: an unreadable message
// affects only its own question.
func (s *session) answerEach(chosen *imap.SelectData, questions []question) {
	err := s.answer(chosen, questions)
	switch {
	case err != nil && len(questions) == 1:
		fail(questions, err)
	case err != nil:
		for i := range questions {
			s.answerEach(chosen, questions[i:i+1])
		}
	}
}

// fail drops partial answers: what was read before a failure is incomplete.
func fail(questions []question, err error) {
	for _, q := range questions {
		*q.answer = connectors.BulkAnswer{Err: err}
	}
}

func (s *session) answer(chosen *imap.SelectData, questions []question) error {
	var keys []imap.SearchCriteria
	var uids imap.UIDSet
	for _, q := range questions {
		keys = append(keys, q.criteria()...)
		for _, h := range []handle{q.handle, q.known} {
			if h.uid != 0 && h.validity == chosen.UIDValidity {
				// UIDs are fetched whether the search returns them or not: an index may lag
				// behind the store.
				uids.AddNum(h.uid)
			}
		}
	}
	envelopes, err := s.candidates(keys, uids, chosen)
	if err != nil {
		return err
	}
	for _, q := range questions {
		if err := s.match(q, chosen, envelopes); err != nil {
			*q.answer = connectors.BulkAnswer{Err: err}
		}
	}
	return nil
}

func (s *session) match(q question, chosen *imap.SelectData, envelopes []*envelope) error {
	if q.handle != (handle{}) && q.handle.validity != chosen.UIDValidity {
		return fmt.Errorf("/key/uidvalidity: %w: it is %d", errUIDValidity, chosen.UIDValidity)
	}
	for _, e := range envelopes {
		if !e.answers(q) {
			continue
		}
		if err := s.readBody(e, q.parts); err != nil {
			return err
		}
		if shown := *e; q.deletes && hasFlag(e.flags, imap.FlagDeleted) {
			shown.flags, shown.modSeq = without(e.flags, []imap.Flag{imap.FlagDeleted}), 0
			e = &shown
		}
		q.answer.Observation.Records = append(q.answer.Observation.Records, e.record(q.mailbox, chosen.UIDValidity, q.messageID))
	}
	return nil
}

// criteria are the search criteria. The server's HEADER search matches substrings in any case, so
// its results are candidates; the angle brackets keep them few.
func (q question) criteria() []imap.SearchCriteria {
	var keys []imap.SearchCriteria
	if q.messageID != "" {
		keys = append(keys, headerKey("Message-ID", q.messageID))
	}
	if q.stamp != "" {
		keys = append(keys, headerKey(stampHeader, q.stamp))
	}
	return keys
}

func headerKey(name, value string) imap.SearchCriteria {
	return imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{{Key: name, Value: value}}}
}

// anyOf joins criteria by OR, as a balanced tree, so that no server's parser
// has to go deep.
func anyOf(keys []imap.SearchCriteria) imap.SearchCriteria {
	if len(keys) == 1 {
		return keys[0]
	}
	half := len(keys) / 2
	return imap.SearchCriteria{Or: [][2]imap.SearchCriteria{{anyOf(keys[:half]), anyOf(keys[half:])}}}
}

func (s *session) search(keys []imap.SearchCriteria) (imap.UIDSet, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	criteria := anyOf(keys)
	return s.searchFor(&criteria, maxCandidates)
}

// searchFor is the UIDs of the messages that meet criteria, at most so many.
func (s *session) searchFor(criteria *imap.SearchCriteria, most int64) (imap.UIDSet, error) {
	data, err := s.client.UIDSearch(criteria, nil).Wait()
	if err != nil {
		return nil, serverError(s.ctx, "search", err)
	}
	found, ok := data.All.(imap.UIDSet)
	switch {
	case data.All != nil && !ok, data.All == nil && data.Count > 0:
		return nil, fmt.Errorf("search: %w: it was asked for UIDs and does not give them", errUnreadable)
	case span(found) > most:
		return nil, fmt.Errorf("search: %w: %d candidates, at most %d are read", errUnreadable, span(found), most)
	}
	var merged imap.UIDSet // an ESEARCH answer may name one twice, or none
	merged.AddSet(found)
	return merged, nil
}

// span is how many UIDs a set names. A range of four thousand million takes
// twenty bytes, so it is counted before it is written out.
func span(set imap.UIDSet) (n int64) {
	for _, r := range set {
		n += int64(max(r.Start, r.Stop)-min(r.Start, r.Stop)) + 1
	}
	return n
}

// candidates searches and fetches the results, and the known UIDs. A message may be removed
// between the two, so one that the search returned and the fetch did not is searched once more.
// If it is found again, the server hides it, and the answer is incomplete.
func (s *session) candidates(keys []imap.SearchCriteria, known imap.UIDSet, chosen *imap.SelectData) ([]*envelope, error) {
	for range 2 {
		found, err := s.search(keys)
		if err != nil {
			return nil, err
		}
		uids := slices.Clone(known)
		uids.AddSet(found)
		envelopes, err := s.envelopes(uids, chosen)
		if err != nil {
			return nil, err
		}
		shown := slices.DeleteFunc(slices.Clone(envelopes), func(e *envelope) bool { return !found.Contains(e.uid) })
		if int64(len(shown)) == span(found) {
			return envelopes, nil
		}
	}
	return nil, fmt.Errorf("fetch headers: %w: the search finds messages that are not shown", errUnreadable)
}

// matching is the UIDs of the messages that the key of a change matches.
func (s *session) matching(chosen *imap.SelectData, a address) ([]imap.UID, error) {
	q := question{address: a}
	envelopes, err := s.candidates(q.criteria(), nil, chosen)
	if err != nil {
		return nil, err
	}
	var uids []imap.UID
	for _, e := range envelopes {
		if e.answers(q) {
			uids = append(uids, e.uid)
		}
	}
	return uids, nil
}

// envelopes fetches the deciding and descriptive parts, without the bodies, in the order of UIDs.
// It leaves out messages that were removed meanwhile.
func (s *session) envelopes(uids imap.UIDSet, chosen *imap.SelectData) ([]*envelope, error) {
	numbers, ok := uids.Nums()
	if !ok {
		return nil, fmt.Errorf("search: %w: an open range of UIDs", errUnreadable)
	}
	var all []*envelope
	for chunk := range slices.Chunk(numbers, fetchChunk) {
		messages, err := s.client.Fetch(imap.UIDSetNum(chunk...), &imap.FetchOptions{
			UID: true, Flags: true, RFC822Size: true, ModSeq: chosen.HighestModSeq > 0,
			BodySection: []*imap.FetchItemBodySection{headerSection},
		}).Collect()
		if err != nil {
			return nil, serverError(s.ctx, "fetch headers", err)
		}
		for _, m := range messages {
			e, err := newEnvelope(m)
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *envelope) int { return cmp.Compare(a.uid, b.uid) })
	return all, nil
}

// readBody fetches the text of a message once, where it is text of bearable
// size. Peek, as everywhere: a read must not set \Seen.
func (s *session) readBody(e *envelope, parts bool) error {
	if e.text != nil || !e.plain && !parts || e.size > maxMessage {
		return nil
	}
	messages, err := s.client.Fetch(imap.UIDSetNum(e.uid), &imap.FetchOptions{
		UID: true, BodySection: []*imap.FetchItemBodySection{textSection},
	}).Collect()
	if err != nil {
		return serverError(s.ctx, "fetch body", err)
	}
	if len(messages) != 1 || len(messages[0].BodySection) == 0 {
		return fmt.Errorf("fetch body: %w: no text for UID %d, which was there a moment ago", errUnreadable, e.uid)
	}
	e.text = append([]byte{}, sectionOf(messages[0], textSection)...) // some return NIL for no text
	return nil
}

func sectionOf(m *imapclient.FetchMessageBuffer, section *imap.FetchItemBodySection) []byte {
	for _, found := range m.BodySection {
		if found.Section.Specifier == section.Specifier {
			return found.Bytes
		}
	}
	return nil
}
