// Package erasure finds everything that a ledger holds about one record at a destination, and
// erases its contents: the writes about it, what compensated them, the webhook notices about
// them, and the documents of the step gate and of the sagas that they belong to.
//
// It decides what belongs together and the order of erasure. The ledger decides what may be
// erased at all ([ledger.Erasing.Keeps]).
package erasure

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/pause"
	"github.com/readback-go/readback/internal/webhooks"
	"github.com/readback-go/readback/ledger"
)

// ErrHeld means that a legal hold covers something that was to be erased. Nothing was erased.
var ErrHeld = errors.New("under a legal hold")

// Subject names what to erase: one record at a destination, by its business key, or one write.
type Subject struct {
	Tenant      string // required
	Destination string
	Key         intent.Fields
	Write       ledger.ID
}

// Check returns what is wrong with a subject, or nil.
func (s Subject) Check() error {
	switch {
	case s.Tenant == "":
		return errors.New("the tenant is missing")
	case s.Write != "" && (s.Destination != "" || len(s.Key) > 0):
		return errors.New("a write and a destination with a key are named; want one of them")
	case s.Write == "" && (s.Destination == "" || len(s.Key) == 0):
		return errors.New("the destination or the key is missing; want both, or one write")
	}
	return nil
}

// Service finds and erases.
type Service struct {
	Ledger ledger.Ledger
	// Kinds are the record kinds of the configured destinations, by destination. Others are found
	// in the existing writes.
	Kinds map[string][]string
	// Open returns the intent of a write in the clear. Required.
	Open func(ledger.Record) (intent.WriteIntent, error)
	// Retries is how often it waits a second for events that are not in the audit chain
	// yet. Default 0.
	Retries int
}

// Matches is what a ledger holds about a subject.
type Matches struct {
	Tenant      string            `json:"tenant"`
	Destination string            `json:"destination,omitempty"`
	Write       ledger.ID         `json:"write,omitempty"`
	KeyDigests  []string          `json:"key_digests,omitempty"`
	Writes      []MatchedWrite    `json:"writes"`
	Documents   []MatchedDocument `json:"documents,omitempty"`
	// Erased counts writes about it whose contents were erased earlier.
	Erased int `json:"erased_before,omitempty"`
	// Left are those that cannot be erased now.
	Left []ledger.LeftOver `json:"left,omitempty"`
	// Holds are the legal holds that keep some of it.
	Holds []string `json:"holds,omitempty"`

	documents map[string][]ledger.Document // by workflow
	keep      map[string]bool              // workflows with a step that cannot be erased now
	of        Subject
	about     []ledger.ID // writes that no key digest names
}

// MatchedWrite is one write about a subject.
type MatchedWrite struct {
	ID          ledger.ID `json:"write"`
	Destination string    `json:"destination"`
	Kind        string    `json:"kind"`
	State       string    `json:"state"`
	Pruned      bool      `json:"pruned,omitempty"`

	workflow string
	stepOf   string // the workflow through which it was found; "" if it is about the subject itself
}

// MatchedDocument is a workflow of the step gate with its steps, or a saga.
type MatchedDocument struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// Find finds what a ledger holds about a subject. It reads all writes of the tenant at the
// destination, and changes nothing.
func (s *Service) Find(ctx context.Context, of Subject) (*Matches, error) {
	if err := of.Check(); err != nil {
		return nil, err
	}
	f := &finder{Service: s, ctx: ctx, of: of, seen: make(map[ledger.ID]bool), matches: &Matches{
		Tenant: of.Tenant, Destination: of.Destination, Write: of.Write, Writes: []MatchedWrite{}, of: of,
		documents: make(map[string][]ledger.Document), keep: make(map[string]bool)}}
	if err := f.run(); err != nil {
		return nil, err
	}
	return f.matches, nil
}

// finder is a running search.
type finder struct {
	*Service
	ctx     context.Context
	of      Subject
	key     string // canonical
	digests map[string]string
	hooks   []string
	holds   ledger.Holds
	now     time.Time
	seen    map[ledger.ID]bool
	stepOf  string // the workflow whose steps are being read
	matches *Matches
}

func (f *finder) run() (err error) {
	if f.hooks, err = webhooks.Hooks(f.ctx, f.Ledger); err != nil {
		return err
	}
	active, now, err := f.Ledger.DueDocuments(f.ctx, ledger.HoldKind, maxHolds)
	if err != nil {
		return err
	}
	f.holds, f.now = ledger.HoldsOf(active), now
	if f.of.Write != "" {
		r, err := f.Ledger.Get(f.ctx, f.of.Tenant, f.of.Write)
		if err != nil {
			return err
		}
		return f.withFamily(r)
	}
	text, err := intent.Canonical(map[string]any(f.of.Key))
	if err != nil {
		return fmt.Errorf("the key: %w", err)
	}
	f.key, f.digests = string(text), make(map[string]string)
	for _, kind := range f.Kinds[f.of.Destination] {
		if _, err := f.digest(kind); err != nil {
			return err
		}
	}
	search := ledger.Search{Tenant: f.of.Tenant, Destination: f.of.Destination, Limit: pageSize}
	for {
		page, err := f.Ledger.Find(f.ctx, search)
		if err != nil {
			return err
		}
		for _, u := range page.Unread {
			f.matches.Left = append(f.matches.Left, ledger.LeftOver{Write: u.ID, Why: "its row cannot be read, so it is not known what it is about: " + u.Err.Error()})
		}
		for _, r := range page.Records {
			if err := f.meet(r); err != nil {
				return err
			}
		}
		if search.After = page.Next; page.Next == "" {
			break
		}
	}
	for _, digest := range f.digests {
		f.matches.KeyDigests = append(f.matches.KeyDigests, digest)
	}
	slices.Sort(f.matches.KeyDigests)
	return nil
}

// digest returns the digest of the key for one kind of record, as the ledger stores it.
func (f *finder) digest(kind string) (string, error) {
	if have, ok := f.digests[kind]; ok {
		return have, nil
	}
	d, err := intent.WriteIntent{Tenant: f.of.Tenant, Destination: f.of.Destination, Kind: kind, Key: f.of.Key}.KeyDigest()
	if err == nil {
		d, err = f.Ledger.KeyDigests().Of(d)
	}
	if err == nil {
		f.digests[kind] = d
	}
	return d, err
}

// meet adds a write that is about the subject. For one without a key digest, the intent decides
// that.
func (f *finder) meet(r ledger.Record) error {
	digest, err := f.digest(r.Kind)
	if err != nil {
		return err
	}
	about := r.KeyDigest == digest
	if r.KeyDigest == "" && len(r.Intent) > 0 && !r.Delegated {
		w, err := f.Open(r)
		if err != nil {
			f.matches.Left = append(f.matches.Left, ledger.LeftOver{Write: r.ID, Why: "it is not known what it is about: " + err.Error()})
			return nil //nolint:nilerr // it is named among what is left
		}
		text, err := intent.Canonical(map[string]any(w.Key))
		about = err == nil && string(text) == f.key
	}
	if !about {
		return nil
	}
	if r.KeyDigest == "" {
		f.matches.about = append(f.matches.about, r.ID)
	}
	return f.withFamily(r)
}

// withFamily adds a write, what compensated it or what it compensated, and the notices about it.
func (f *finder) withFamily(r ledger.Record) error {
	if f.seen[r.ID] {
		return nil
	}
	f.seen[r.ID] = true
	family := []ledger.ID{r.Parent, r.Child}
	if !r.Tombstone { // a write can have had several compensations
		events, err := f.Ledger.Events(f.ctx, r.Tenant, r.ID)
		if err != nil {
			return err
		}
		for _, e := range events {
			family = append(family, e.Child)
		}
	}
	for _, hook := range f.hooks {
		for seq := int64(1); seq <= r.Seq && !strings.HasPrefix(r.Destination, webhooks.Prefix); seq++ {
			family = append(family, webhooks.NoticeID(r.Tenant, hook, r.ID, seq))
		}
	}
	if err := f.take(r); err != nil {
		return err
	}
	for _, id := range family {
		if id == "" || f.seen[id] {
			continue
		}
		other, err := f.Ledger.Get(f.ctx, r.Tenant, id)
		switch {
		case errors.Is(err, ledger.ErrRefused), errors.Is(err, ledger.ErrCorrupt):
			f.matches.Left = append(f.matches.Left, ledger.LeftOver{Write: id, Why: err.Error()})
		case errors.Is(err, ledger.ErrNotFound):
		case err != nil:
			return err
		default:
			if err := f.withFamily(other); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds a write, and the documents that it belongs to.
func (f *finder) take(r ledger.Record) error {
	if r.Erased != "" {
		f.matches.Erased++
		return nil
	}
	if hold, held := f.holds.On(r); held {
		f.matches.Holds = append(f.matches.Holds, fmt.Sprintf("write %s: %s", r.ID, hold))
	}
	if why := (ledger.Erasing{}).Keeps(r, f.now, nil, false); why != "" {
		f.matches.Left = append(f.matches.Left, ledger.LeftOver{Write: r.ID, Why: why})
		f.matches.keep[f.stepOf] = f.stepOf != ""
		return nil
	}
	if why, err := f.workflow(r.Workflow); err != nil || why != "" {
		f.matches.Left = append(f.matches.Left, ledger.LeftOver{Write: r.ID, Why: why})
		return err
	}
	f.matches.Writes = append(f.matches.Writes, MatchedWrite{r.ID, r.Destination, r.Kind, r.Phase(), r.Tombstone, r.Workflow, f.stepOf})
	return nil
}

// workflow finds the documents of a workflow, and the writes of its steps. Why says that it has
// not ended: what belongs to it is kept until then.
func (f *finder) workflow(name string) (why string, err error) {
	if _, known := f.matches.documents[name]; known || name == "" {
		return "", nil
	}
	var documents []ledger.Document
	for _, kind := range []string{workflowKind, ledger.SagaKind} {
		p, err := f.Ledger.Document(f.ctx, f.of.Tenant, kind, name)
		if errors.Is(err, ledger.ErrNoDocument) {
			continue
		}
		if err != nil {
			return "", err
		}
		if hold, held := f.holds.OfTenant(f.of.Tenant); held {
			f.matches.Holds = append(f.matches.Holds, fmt.Sprintf("%s %s: %s", kind, name, hold))
		}
		if why := (ledger.Erasing{}).KeepsDocument(p, nil); why != "" {
			return why, nil
		}
		documents = append(documents, ledger.Document{Kind: kind, ID: name})
	}
	f.matches.documents[name] = documents
	if len(documents) == 0 {
		return "", nil
	}
	for _, p := range documents {
		f.matches.Documents = append(f.matches.Documents, MatchedDocument{p.Kind, p.ID})
	}
	defer func(outer string) { f.stepOf = outer }(f.stepOf)
	f.stepOf = name
	search := ledger.Search{Tenant: f.of.Tenant, Workflow: name, Limit: pageSize}
	for {
		page, err := f.Ledger.Find(f.ctx, search)
		if err != nil {
			return "", err
		}
		for _, r := range page.Records {
			if r.Delegated { // a step of the gate, whose input is its intent
				if err := f.withFamily(r); err != nil {
					return "", err
				}
			}
		}
		if search.After = page.Next; page.Next == "" {
			return "", nil
		}
	}
}

// Erased is the result of an erasure.
type Erased struct {
	ledger.Erasure
	Left []ledger.LeftOver `json:"left,omitempty"`
}

// Erase erases what was found. First it records, also in the audit chain, who does so and why. An
// interrupted erasure continues under its own id. It fails with [ErrHeld] before anything is
// erased.
func (s *Service) Erase(ctx context.Context, found *Matches, by, reason string) (did Erased, err error) {
	if err := checkText(by, reason, found.of); err != nil {
		return did, err
	}
	if found.Write == "" && len(found.KeyDigests) == 0 {
		return did, unknownDestination(found.Destination)
	}
	if len(found.Holds) > 0 {
		return did, fmt.Errorf("%w, nothing was erased: %s", ErrHeld, strings.Join(found.Holds, "; "))
	}
	did.Left = slices.Clone(found.Left)
	over, err := s.begin(ctx, found, by, reason, &did.Erasure)
	if err != nil {
		return did, err
	}
	erased, resumed := 0, over.Version > 0
	if resumed {
		if erased, err = s.count(ctx, did.Tenant, did.ID); err != nil {
			return did, err
		}
		did.Erasure.Writes += erased
	}
	if over, err = s.record(ctx, did.Erasure, over); err != nil {
		return did, err
	}
	if err := s.all(ctx, found, &did, &erased); err != nil {
		return did, fmt.Errorf("erasure %s was interrupted after %d writes, which stay erased; the same command continues it: %w", did.ID, erased, err)
	}
	if did.Writes = erased; resumed { // another process may be running the same one
		if did.Writes, err = s.count(ctx, did.Tenant, did.ID); err != nil {
			return did, err
		}
	}
	if _, did.Finished, err = s.Ledger.DueDocuments(ctx, ledger.ErasureKind, 1); err != nil {
		return did, err
	}
	if _, err := s.record(ctx, did.Erasure, over); err != nil {
		return did, err
	}
	return did, nil
}

// all erases first the writes that were found only through a workflow, then the documents of the
// workflows, and last the writes through which both were found. Where a part of a workflow must
// be kept, the writes that lead to it are kept as well, so that the same command finds again what
// an interruption, or a legal hold added meanwhile, left.
func (s *Service) all(ctx context.Context, found *Matches, did *Erased, erased *int) error {
	var steps, rest []MatchedWrite
	for _, w := range found.Writes {
		if w.stepOf != "" {
			steps = append(steps, w)
		} else {
			rest = append(rest, w)
		}
	}
	left, err := s.writes(ctx, steps, did, erased)
	if err != nil {
		return err
	}
	keep := maps.Clone(found.keep)
	for _, w := range left {
		keep[w.stepOf] = true
	}
	if err := s.documents(ctx, found, keep, did); err != nil {
		return err
	}
	rest = slices.DeleteFunc(rest, func(w MatchedWrite) bool {
		if keep[w.workflow] {
			did.Left = append(did.Left, ledger.LeftOver{Write: w.ID, Why: "its workflow could not be erased as a whole"})
		}
		return keep[w.workflow]
	})
	_, err = s.writes(ctx, rest, did, erased)
	return err
}

// documents deletes the documents of the workflows that need not be kept, and refused outbox
// entries. It adds the workflows whose documents are kept.
func (s *Service) documents(ctx context.Context, found *Matches, keep map[string]bool, did *Erased) error {
	e := ledger.Erasing{Tenant: did.Tenant, Erasure: did.ID, KeyDigests: found.KeyDigests}
	for name, documents := range found.documents {
		if !keep[name] {
			e.Documents = append(e.Documents, documents...)
		}
	}
	for documents := e.Documents; ; e.KeyDigests = nil {
		e.Documents = documents[:min(len(documents), ledger.MaxErasing)]
		step, err := s.Ledger.Erase(ctx, e)
		if err != nil {
			return err
		}
		did.Documents, did.Refused, did.Left = did.Documents+step.Documents, did.Refused+step.Refused, append(did.Left, step.Left...)
		for _, l := range step.Left {
			if _, name, ok := strings.Cut(l.Document, " "); ok {
				keep[name] = true
			}
		}
		if documents = documents[len(e.Documents):]; len(documents) == 0 {
			return nil
		}
	}
}

// writes erases writes in steps, and returns those that it left. It waits for events that are not
// in the audit chain yet.
func (s *Service) writes(ctx context.Context, waiting []MatchedWrite, did *Erased, erased *int) (left []MatchedWrite, err error) {
	for try := 0; ; try++ {
		var unsealed []MatchedWrite
		for part := range slices.Chunk(waiting, ledger.MaxErasing) {
			e := ledger.Erasing{Tenant: did.Tenant, Erasure: did.ID}
			for _, w := range part {
				e.Writes = append(e.Writes, w.ID)
			}
			step, err := s.Ledger.Erase(ctx, e)
			if err != nil {
				return nil, err
			}
			*erased += step.Writes
			for _, l := range step.Left {
				w := part[slices.Index(e.Writes, l.Write)]
				if l.Why == ledger.NotSealed {
					unsealed = append(unsealed, w)
					continue
				}
				left, did.Left = append(left, w), append(did.Left, l)
			}
		}
		waiting = unsealed
		if len(waiting) == 0 || try == s.Retries || !pause.For(ctx, time.Second) {
			break
		}
	}
	for _, w := range waiting {
		left, did.Left = append(left, w), append(did.Left, ledger.LeftOver{Write: w.ID, Why: ledger.NotSealed})
	}
	return left, nil
}

// count returns how many writes an erasure has erased: not all of them can be found by what is
// left of them.
func (s *Service) count(ctx context.Context, tenant, id string) (n int, err error) {
	search := ledger.Search{Tenant: tenant, Limit: pageSize}
	for {
		page, err := s.Ledger.Find(ctx, search)
		if err != nil {
			return n, err
		}
		for _, r := range page.Records {
			if r.Erased == id {
				n++
			}
		}
		if search.After = page.Next; page.Next == "" {
			return n, nil
		}
	}
}

// begin returns a new erasure, or an interrupted one of the same subject, and the document over
// which it is to be written.
func (s *Service) begin(ctx context.Context, found *Matches, by, reason string, e *ledger.Erasure) (over ledger.Document, err error) {
	q := ledger.DocumentQuery{Tenant: found.Tenant, Kind: ledger.ErasureKind, States: []string{"running"}, Limit: maxRunning}
	running, _, err := s.Ledger.FindDocuments(ctx, q)
	if err != nil {
		return over, err
	}
	for _, p := range running {
		have, err := ledger.ErasureOf(p)
		same := have.Destination == found.Destination && have.Write == found.Write && slices.ContainsFunc(have.KeyDigests, func(d string) bool { return slices.Contains(found.KeyDigests, d) })
		if err == nil && (same || found.Write != "" && have.Write == found.Write) {
			if have.By != by || have.Reason != reason {
				have.Reason += fmt.Sprintf("; continued by %s: %s", by, reason)
			}
			have.KeyDigests, have.Writes = found.KeyDigests, len(found.Writes)
			*e = have
			return p, nil
		}
	}
	_, now, err := s.Ledger.DueDocuments(ctx, ledger.ErasureKind, 1)
	*e = ledger.Erasure{ID: "er_" + strings.ToLower(rand.Text()[:16]), Tenant: found.Tenant, Destination: found.Destination, Write: found.Write,
		KeyDigests: found.KeyDigests, By: by, Reason: reason, At: now, Writes: len(found.Writes)}
	return over, err
}

func (s *Service) record(ctx context.Context, e ledger.Erasure, over ledger.Document) (ledger.Document, error) {
	p, err := e.Document(over)
	if err != nil {
		return p, err
	}
	committed, err := s.Ledger.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}})
	if err != nil {
		return p, fmt.Errorf("erasure %s: %w", e.ID, err)
	}
	return committed.Documents[0], nil
}

// Erasures returns those of a tenant, newest first.
func (s *Service) Erasures(ctx context.Context, tenant string) (all []ledger.Erasure, total int, err error) {
	documents, total, err := s.Ledger.FindDocuments(ctx, ledger.DocumentQuery{Tenant: tenant, Kind: ledger.ErasureKind, Limit: maxListed})
	for _, p := range documents {
		e, bad := ledger.ErasureOf(p)
		err = cmp.Or(err, bad)
		all = append(all, e)
	}
	return all, total, err
}

// ParseKey parses a business key as it is declared in an intent.
func ParseKey(text string) (key intent.Fields, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&key); err != nil || len(key) == 0 || d.More() {
		return nil, errors.New(`it is no JSON object with the fields of the key; want one such as {"email": "ada@example.com"}`)
	}
	return key, nil
}
