package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

const (
	// Delays of effects after the answer, unless a fault sets another: long enough to be later,
	// short enough for tests in real time.
	lateDelay    = 50 * time.Millisecond
	lagDelay     = 100 * time.Millisecond
	throttleWait = time.Second
)

// Plan is what a write does to one record.
type Plan struct {
	Collection string
	ID         string
	// After is the record afterwards; nil: gone.
	After Object
	// Create means that the record is new: only new ones can be duplicated or rolled back.
	Create bool
	// Answer is the API's answer. Required.
	Answer func(stored Object) Answer
	// Drop removes one requested field from what is stored. nil: the fault dropped-field cannot
	// apply to this write.
	Drop func(stored Object)
	// Normalise stores one requested field in another form. nil: the fault normalised-field
	// cannot apply to this write.
	Normalise func(stored Object)
	// Duplicate makes the second record of a duplicate of what was stored. nil: the API keeps
	// keys unique, so there can be none.
	Duplicate func(stored Object, now View) (string, Object)
	// Later is what the API does by itself afterwards.
	Later []Later
	// Key is the idempotency key that the API honours, "" for none; the answer is stored under it
	// ([Fake.Used]), with a digest of the request.
	Key string
}

// Later is a change that the API makes by itself, After the write.
type Later struct {
	After  time.Duration
	Change func(o Object)
}

// usedKey is what is remembered of an idempotency key.
type usedKey struct {
	at     time.Time
	digest string
	answer Answer
}

// Used returns the answer that was given under an idempotency key within the window, and whether
// the request was the same then. For plans only: the lock must be held.
func (f *Fake) Used(key string, window time.Duration, r *Request) (a Answer, same, known bool) {
	used, ok := f.keys[key]
	if !ok || time.Since(used.at) >= window {
		return Answer{}, false, false
	}
	return used.answer, used.digest == digest(r), true
}

func digest(r *Request) string {
	body := string(r.Raw)
	if r.form != nil {
		body = r.form.Encode() // parameters are compared, not their order
	}
	sum := sha256.Sum256([]byte(r.Method + " " + r.URL.RequestURI() + "\n" + body))
	return hex.EncodeToString(sum[:])
}

// lot is which faults meet one write.
type lot struct {
	loss, storing, aftermath fault.Fault
}

// draw selects the fault of a write.
func (f *Fake) draw(r *http.Request) lot {
	return lot{
		loss:      f.take(r, true, fault.LostAnswer, fault.DroppedBefore, fault.BadGateway, fault.LateCommit, fault.Refused, fault.Throttled),
		storing:   f.take(r, true, fault.PhantomSuccess, fault.DroppedField, fault.NormalisedField),
		aftermath: f.take(r, true, fault.DuplicateBehindOurBack, fault.Rollback),
	}
}

func (f *Fake) write(w http.ResponseWriter, r *Request, plan func(*Request, View) (Plan, *Answer)) {
	l := f.draw(r.Request)
	other := f.moments()
	other(Arrived)
	defer other(Left)
	switch l.loss.Kind {
	case fault.DroppedBefore:
		panic(http.ErrAbortHandler)
	case fault.Refused:
		a, _ := f.manners.Refused(l.loss.How)
		a.writeTo(w)
		return
	case fault.Throttled:
		a, _ := f.manners.Throttled(l.loss.How, l.loss.DelayOr(throttleWait))
		a.writeTo(w)
		return
	case fault.LateCommit:
		f.begin(r)
		<-r.Context().Done()
		in := *r
		in.Request = r.WithContext(context.WithoutCancel(r.Context()))
		time.AfterFunc(l.loss.DelayOr(lateDelay), func() { f.perform(&in, l, plan) })
		panic(http.ErrAbortHandler)
	}
	a := f.perform(r, l, plan)
	switch l.loss.Kind {
	case fault.LostAnswer:
		panic(http.ErrAbortHandler)
	case fault.BadGateway:
		a = f.failed(l, spoil(cmp.Or(l.loss.How, "502"), a))
	}
	a.writeTo(w)
}

// perform plans the write on the current state, and executes it.
func (f *Fake) perform(r *Request, l lot, plan func(*Request, View) (Plan, *Answer)) Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key := f.keyOf(r); key != "" {
		if l.loss.Kind == fault.LateCommit {
			f.atWork[key]--
		}
		if f.atWork[key] > 0 {
			return f.manners.Busy(r)
		}
	}
	p, instead := plan(r, f.now())
	if instead != nil {
		return *instead
	}
	stored := p.After.Clone()
	if l.storing.Field != "" {
		p.spoils(f.now().Get(p.Collection, p.ID), l.storing.Field)
	}
	alter(&p, l.storing.Kind, stored)
	if l.storing.Kind != fault.PhantomSuccess {
		f.apply(fault.ByRequest, p.Collection, p.ID, stored)
		f.after(p, l.aftermath, stored)
	}
	shown := stored
	if l.storing.Kind == fault.DroppedField || l.storing.Kind == fault.NormalisedField {
		shown = p.After.Clone() // returns the request: an echo
	}
	a := p.Answer(shown)
	if p.Key != "" {
		a = f.failed(l, a)
		f.keys[p.Key] = usedKey{at: time.Now(), digest: digest(r), answer: a}
	}
	return a
}

// failed is the API's own failure where the fault is one, otherwise another answer.
func (f *Fake) failed(l lot, otherwise Answer) Answer {
	if l.loss.Kind == fault.BadGateway && l.loss.How == "500" && f.manners.Failed != nil {
		return f.manners.Failed()
	}
	return otherwise
}

func (f *Fake) keyOf(r *Request) string {
	if f.manners.Key == nil {
		return ""
	}
	return f.manners.Key(r)
}

// begin notes that a write is at work.
func (f *Fake) begin(r *Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key := f.keyOf(r); key != "" {
		f.atWork[key]++
	}
}

func alter(p *Plan, k fault.Kind, stored Object) {
	switch {
	case k == fault.DroppedField && p.Drop != nil && stored != nil:
		p.Drop(stored)
	case k == fault.NormalisedField && p.Normalise != nil && stored != nil:
		p.Normalise(stored)
	}
}

// after sets the clock for what comes later.
func (f *Fake) after(p Plan, aftermath fault.Fault, stored Object) {
	for _, later := range p.Later {
		time.AfterFunc(later.After, func() { f.change(fault.ByItself, p.Collection, p.ID, later.Change) })
	}
	if !p.Create {
		return
	}
	switch aftermath.Kind {
	case fault.DuplicateBehindOurBack:
		if p.Duplicate == nil {
			return
		}
		time.AfterFunc(aftermath.DelayOr(lateDelay), func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			id, duplicate := p.Duplicate(stored.Clone(), f.now())
			f.apply(fault.ByItself, p.Collection, id, duplicate)
		})
	case fault.Rollback:
		time.AfterFunc(aftermath.DelayOr(lateDelay), func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.apply(fault.ByItself, p.Collection, p.ID, nil)
		})
	}
}

func (f *Fake) read(w http.ResponseWriter, r *Request, strong bool, show func(*Request, View) Answer) {
	a, hang := f.readFaulted(r, strong, show)
	if hang {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	a.writeTo(w)
}

func (f *Fake) readFaulted(r *Request, strong bool, show func(*Request, View) Answer) (Answer, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.now()
	if !strong {
		seen.at = seen.at.Add(-f.lag)
		if met := f.take(r.Request, false, fault.LaggingRead); met.Kind != fault.None {
			seen.at = seen.at.Add(-met.DelayOr(lagDelay))
		}
	}
	a := show(r, seen)
	met := f.take(r.Request, false, fault.UnreadableRead, fault.HangingRead)
	if met.Kind == fault.UnreadableRead {
		a = spoil(met.How, a)
	}
	return a, met.Kind == fault.HangingRead
}

// isWrite reports whether the request would meet a write.
func (f *Fake) isWrite(r *http.Request) bool {
	_, pattern := f.mux.Handler(r)
	if writes := f.both[pattern]; writes != nil && r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return false
		}
		raw, err := io.ReadAll(body)
		return err == nil && writes(raw)
	}
	return slices.Contains(f.writePatterns, pattern)
}
