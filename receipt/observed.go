package receipt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/redact"
)

// sighting is the one read that a receipt is based on.
type sighting struct {
	of    *life
	event ledger.Event
	obs   connectors.Observation
	text  []byte // the evidence as stored in the ledger
}

// proof finds the read that a receipt of the write is based on: its own, or that of the write
// that undid it.
func (l *life) proof(p connectors.Profile, o Options) (sighting, *life, error) {
	switch l.rec.Settlement {
	case ledger.Verified:
		s, err := l.verified()
		return s, nil, err
	case ledger.NotApplied:
		s, err := l.notApplied(p)
		return s, nil, err
	}
	child, err := l.undone(o)
	if err != nil {
		return sighting{}, nil, err
	}
	s, err := child.verified()
	return s, child, err
}

// undone is the write that undid this one.
func (l *life) undone(o Options) (*life, error) {
	r := l.rec
	if o.Undoing.ID == "" {
		return nil, unobserved("write %s was undone by write %s, which is not there to show it", r.ID, r.Child)
	}
	child, err := lifeOf(o.Undoing, o.UndoingEvents, o)
	if err != nil {
		return nil, err
	}
	if child.rec.ID != r.Child || child.rec.Parent != r.ID || child.rec.Tenant != r.Tenant {
		return nil, contradiction("write %s was undone by write %s, not by %s", r.ID, r.Child, child.rec.ID)
	}
	if asked, err := intent.DecodeStored(r.ChildIntent); err == nil && !redact.Sealed(r.ChildIntent) {
		if digest, err := asked.Digest(); err != nil || !o.Vault.SameIntent(r.Tenant, digest, child.rec.Digest) {
			return nil, contradiction("write %s was to be undone by another intent than that of %s", r.ID, child.rec.ID)
		}
	}
	if child.rec.Settlement != ledger.Verified {
		return nil, unobserved("write %s is compensated, and its undoing %s is %s", r.ID, child.rec.ID, child.rec.Phase())
	}
	_, err = child.rechecks(false)
	return child, err
}

// last is the last read before the write was settled, and whether anything was sent after it.
func (l *life) last() (e ledger.Event, sentSince, found bool) {
	for _, e := range reversed(l.events[:l.settling()]) {
		switch e.Kind {
		case ledger.EvRead:
			return e, sentSince, true
		case ledger.EvAnnounced, ledger.EvSent, ledger.EvRecovered, ledger.EvRestored:
			sentSince = true
		}
	}
	return ledger.Event{}, sentSince, false
}

// verified is the read that showed the write as it was declared.
func (l *life) verified() (sighting, error) {
	r := l.rec
	e, sentSince, found := l.last()
	switch {
	case !found:
		return sighting{}, contradiction("write %s is verified, and none of its events is a read", r.ID)
	case sentSince:
		return sighting{}, contradiction("write %s is verified, and was not read after its last send", r.ID)
	case e.Verdict != verdictVerified && e.Verdict != verdictVacuous:
		return sighting{}, contradiction("write %s is verified, and the read before that was judged %q", r.ID, e.Verdict)
	case e.Before && r.Sends > 0:
		return sighting{}, contradiction("write %s was sent and is verified by a read from before", r.ID)
	}
	s, err := l.sighting(e)
	if err != nil {
		return s, err
	}
	if want := wanted(l.intent); len(s.obs.Records) != want {
		return s, contradiction("write %s is verified with %d records, and its read found %d", r.ID, want, len(s.obs.Records))
	}
	return s, nil
}

// wanted is the declared number of records.
func wanted(w intent.WriteIntent) int {
	if w.Write == intent.Delete {
		return 0
	}
	return w.Want()
}

// notApplied is the read that showed no effect of the last send. A refused or unmade send is a
// report, and no observation.
func (l *life) notApplied(p connectors.Profile) (sighting, error) {
	r := l.rec
	if r.Sends == 0 {
		return sighting{}, unobserved("write %s was never sent: that is known here, and was not observed at the destination", r.ID)
	}
	e, sentSince, found := l.last()
	switch {
	case !found, sentSince, e.Before:
		return sighting{}, unobserved("write %s was refused, and the destination was not read after its last send", r.ID)
	case e.Verdict != verdictAbsent && e.Verdict != verdictStale:
		return sighting{}, unobserved("write %s is not applied, and the last read before that was judged %q: it did not show that nothing is there", r.ID, e.Verdict)
	}
	s, err := l.sighting(e)
	if err != nil {
		return s, err
	}
	if e.Verdict == verdictAbsent && len(s.obs.Records) > 0 && l.intent.Write == intent.Create {
		return s, contradiction("write %s was judged absent, and its read found %d records", r.ID, len(s.obs.Records))
	}
	return s, s.conclusive(p)
}

// conclusive refuses a read that may be older than the last send, or, if a send may have been
// accepted, older than the latest moment at which it could arrive.
func (s sighting) conclusive(p connectors.Profile) error {
	r, shows := s.of.rec, s.seen().Sub(s.of.rec.LastSend)
	if s.obs.Strength != connectors.Strong {
		settle, declared := p.Settle.Declared()
		if !declared || shows < settle {
			return unobserved("write %s is not applied, and the read that found nothing may have lagged behind its last send", r.ID)
		}
		shows -= settle
	}
	if (r.Unknown || r.Answered) && !p.Horizon.Passed(shows) {
		return unobserved("write %s is not applied, and a send could still have landed after the read that found nothing", r.ID)
	}
	return nil
}

// sighting decodes the observation of a read.
func (l *life) sighting(e ledger.Event) (sighting, error) {
	s := sighting{of: l, event: e, text: e.Evidence}
	var cut struct {
		TooLarge int `json:"too_large"`
	}
	switch {
	case len(e.Evidence) == 0:
		return s, unobserved("write %s: what its last read found was not kept", l.rec.ID)
	case json.Unmarshal(e.Evidence, &cut) == nil && cut.TooLarge > 0:
		return s, unobserved("write %s: what its last read found has %d bytes, which are too many to be kept", l.rec.ID, cut.TooLarge)
	}
	if err := json.Unmarshal(e.Evidence, &s.obs); err != nil || s.obs.At.IsZero() {
		return s, contradiction("write %s: event %d is a read, and its evidence is no observation", l.rec.ID, e.Seq)
	}
	return s, nil
}

// seen is when the read had its answer, on the ledger's clock: no earlier than the write's
// creation.
func (s sighting) seen() time.Time {
	at := s.event.At.Add(-s.event.Ago)
	if created := s.of.rec.Created; at.Before(created) {
		return created
	}
	return at
}

// describe adds to a receipt what was seen, and how.
func (s sighting) describe(pr *Predicate, p connectors.Profile, values bool) error {
	text, err := textOf(s.text, values)
	if err != nil {
		return contradiction("write %s: what was seen cannot be read: %v", s.of.rec.ID, err)
	}
	pr.Verdict = s.event.Verdict
	pr.Observed = Observed{Text: text, Records: len(s.obs.Records), Ref: redact.ShownText(s.event.Ref), URL: redact.ShownText(s.event.URL)}
	pr.Read = Read{Strength: strengthOf(s.obs.Strength), Path: s.obs.Path, By: askedBy(p, s.obs.Path), Independent: independenceOf(s.obs.Independent),
		BeforeSend: s.of.rec.Sends == 0, At: utc(s.obs.At), Agreeing: max(s.event.Count, 1)}
	pr.Compared = s.compared(p)
	pr.Times.Seen = utc(s.seen())
	return nil
}

// askedBy is what a way of reading queries by, if the profile declares it.
func askedBy(p connectors.Profile, path string) []string {
	var by []string
	for _, way := range p.Reads {
		if way.Path == path && way.By != "" && !slices.Contains(by, way.By) {
			by = append(by, way.By)
		}
	}
	slices.Sort(by)
	return by
}

// agrees are, for each settlement that has receipts, the verdicts of a later read that do not
// contradict it. A write that was undone must have no effect left: a later read that shows one
// contradicts it.
var agrees = map[ledger.Status][]string{
	ledger.Verified:    {verdictVerified, verdictVacuous, verdictUnavailable},
	ledger.Compensated: {verdictAbsent, verdictStale, verdictUnavailable},
	ledger.NotApplied:  {verdictAbsent, verdictStale, verdictUnavailable},
}

// rechecks are the reads since the write was settled. One that contradicts the receipt, and about
// which no decision is made yet, stops the receipt, whatever other reads showed after it.
func (l *life) rechecks(values bool) (*Rechecks, error) {
	var since *Rechecks
	open := ""
	for _, e := range l.events[l.settling()+1:] {
		switch e.Kind {
		case ledger.EvRead:
			if since == nil {
				since = new(Rechecks)
			}
			since.Reads += e.ReadCalls()
			since.Last, since.Verdict = utc(e.At.Add(-e.Ago)), e.Verdict
			if slices.Contains(agrees[l.rec.Settlement], e.Verdict) {
				continue
			}
			open = e.Verdict
			var err error
			if since.Differences, err = differencesOf(e.Mismatches, values); err != nil {
				return nil, contradiction("write %s: event %d: %v", l.rec.ID, e.Seq, err)
			}
			since.ChangedBy = ""
		case ledger.EvRechecked:
			open = ""
			if since != nil && e.Later != "" {
				since.ChangedBy = string(e.Later)
			}
		}
	}
	if open != "" {
		return nil, unobserved("write %s was read again and judged %q, and nothing is decided about that; ask again later", l.rec.ID, open)
	}
	return since, nil
}

// late refuses a write that was sent after it was seen, by a worker that had lost its lease: that
// worker's results are stored as evidence and decide nothing, but the read was then not after the
// last send. A later read that agreed makes the receipt possible.
func (l *life) late(seen time.Time) error {
	var open *ledger.Event
	for i, e := range l.events {
		switch e.Kind {
		case ledger.EvLate:
			if sentLate(e, seen) {
				open = &l.events[i]
			}
		case ledger.EvRechecked:
			open = nil
		}
	}
	if open != nil {
		return unobserved("write %s was sent after it was seen, by a worker that had lost it (event %d), and was not read since; ask again later", l.rec.ID, open.Seq)
	}
	return nil
}

// sentLate reports whether late evidence shows a send after a time that may have been accepted.
func sentLate(late ledger.Event, seen time.Time) bool {
	var learned []ledger.Event
	if json.Unmarshal(late.Evidence, &learned) != nil {
		return false
	}
	return slices.ContainsFunc(learned, func(e ledger.Event) bool {
		taken := e.Fate == ledger.FateUnknown || e.Fate == ledger.FateAnswered
		return e.Kind == ledger.EvSent && taken && late.At.Add(-e.Ago).After(seen)
	})
}

// textOf is a JSON value by its digest, and with its text if values is set.
func textOf(value []byte, values bool) (Text, error) {
	form := jsontext.Value(slices.Clone(redact.Shown(value)))
	if err := form.Canonicalize(exactly...); err != nil {
		return Text{}, err
	}
	t := Text{Digest: Digest{sum(form)}}
	if values {
		t.Value = string(form)
	}
	return t, nil
}

func sum(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
