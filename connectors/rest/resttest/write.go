package resttest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"
)

// Plan is what a write does to one record.
type Plan struct {
	Collection string
	ID         string
	// After is the record afterwards; nil: gone.
	After Object
	// Create says that the record is a new one: only such can have a twin or
	// be rolled back.
	Create bool
	// Answer says what the API says of it. Required.
	Answer func(stored Object) Answer
	// Drop takes one field that was asked for out of what is stored again. nil:
	// the vice dropped-field cannot meet this write.
	Drop func(stored Object)
	// Normalise stores one field that was asked for in another form. nil: the
	// vice normalised-field cannot meet this write.
	Normalise func(stored Object)
	// Twin makes the second record of a duplicate of what was stored. nil: the
	// API keeps keys unique, there can be none.
	Twin func(stored Object, now View) (string, Object)
	// Later is what the API does by itself afterwards.
	Later []Later
	// Key is the idempotency key that the API honours, "" for none; the answer
	// is kept under it ([Fake.Used]), together with a digest of the request.
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

// Used returns the answer that was given under an idempotency key within the
// window, and whether the request was the same then. For plans only: it wants
// the lock held.
func (f *Fake) Used(key string, window time.Duration, r *Request) (a Answer, same, known bool) {
	used, ok := f.keys[key]
	if !ok || time.Since(used.at) >= window {
		return Answer{}, false, false
	}
	return used.answer, used.digest == digest(r), true
}

func digest(r *Request) string {
	sum := sha256.Sum256([]byte(r.Method + " " + r.URL.RequestURI() + "\n" + string(r.Raw)))
	return hex.EncodeToString(sum[:])
}

// lot is which vices meet one write.
type lot struct {
	loss, storing, aftermath Fault
}

// draw says what meets a write.
func (f *Fake) draw(r *http.Request) lot {
	var l lot
	l.loss, _ = f.take(r, LostAnswer, DroppedBefore, BadGateway, LateCommit, Refused, Throttled)
	l.storing, _ = f.take(r, PhantomSuccess, DroppedField, NormalisedField)
	l.aftermath, _ = f.take(r, DuplicateBehindOurBack, Rollback)
	return l
}

func (f *Fake) write(w http.ResponseWriter, r *Request, plan func(*Request, View) (Plan, *Answer)) {
	f.mu.Lock()
	l := f.draw(r.Request)
	f.mu.Unlock()
	switch l.loss.Vice {
	case DroppedBefore:
		panic(http.ErrAbortHandler)
	case Refused:
		a, _ := f.manners.Refused(l.loss.How)
		a.writeTo(w)
		return
	case Throttled:
		a, _ := f.manners.Throttled(l.loss.How, l.loss.delay(throttleWait))
		a.writeTo(w)
		return
	case LateCommit:
		<-r.Context().Done()
		in := *r
		in.Request = r.WithContext(context.WithoutCancel(r.Context()))
		time.AfterFunc(l.loss.delay(lateDelay), func() { f.perform(&in, l, plan) })
		panic(http.ErrAbortHandler)
	}
	a := f.perform(r, l, plan)
	switch l.loss.Vice {
	case LostAnswer:
		panic(http.ErrAbortHandler)
	case BadGateway:
		how := l.loss.How
		if how == "" {
			how = "502"
		}
		a = Fault{How: how}.spoil(a)
	}
	a.writeTo(w)
}

// perform plans the write on what is there now, and does it.
func (f *Fake) perform(r *Request, l lot, plan func(*Request, View) (Plan, *Answer)) Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, instead := plan(r, f.now())
	if instead != nil {
		return *instead
	}
	stored := p.After.Clone()
	alter(&p, l.storing.Vice, stored)
	if l.storing.Vice != PhantomSuccess {
		f.apply(ByRequest, p.Collection, p.ID, stored)
		f.after(p, l.aftermath, stored)
	}
	said := stored
	if l.storing.Vice == DroppedField || l.storing.Vice == NormalisedField {
		said = p.After.Clone() // it says what was asked for: an echo
	}
	a := p.Answer(said)
	if p.Key != "" {
		f.keys[p.Key] = usedKey{at: time.Now(), digest: digest(r), answer: a}
	}
	return a
}

func alter(p *Plan, v Vice, stored Object) {
	switch {
	case v == DroppedField && p.Drop != nil && stored != nil:
		p.Drop(stored)
	case v == NormalisedField && p.Normalise != nil && stored != nil:
		p.Normalise(stored)
	}
}

// after sets the clock for what comes later.
func (f *Fake) after(p Plan, aftermath Fault, stored Object) {
	for _, later := range p.Later {
		time.AfterFunc(later.After, func() { f.change(ByItself, p.Collection, p.ID, later.Change) })
	}
	if !p.Create {
		return
	}
	switch aftermath.Vice {
	case DuplicateBehindOurBack:
		if p.Twin == nil {
			return
		}
		time.AfterFunc(aftermath.delay(lateDelay), func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			id, twin := p.Twin(stored.Clone(), f.now())
			f.apply(ByItself, p.Collection, id, twin)
		})
	case Rollback:
		time.AfterFunc(aftermath.delay(lateDelay), func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.apply(ByItself, p.Collection, p.ID, nil)
		})
	}
}

func (f *Fake) read(w http.ResponseWriter, r *Request, strong bool, show func(*Request, View) Answer) {
	a, hang := f.look(r, strong, show)
	if hang {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	a.writeTo(w)
}

func (f *Fake) look(r *Request, strong bool, show func(*Request, View) Answer) (Answer, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.now()
	if !strong {
		seen.at = seen.at.Add(-f.lag)
		if fault, ok := f.take(r.Request, LaggingRead); ok {
			seen.at = seen.at.Add(-fault.delay(lagDelay))
		}
	}
	a := show(r, seen)
	fault, ok := f.take(r.Request, UnreadableRead, HangingRead)
	if ok && fault.Vice == UnreadableRead {
		a = fault.spoil(a)
	}
	return a, ok && fault.Vice == HangingRead
}

// isWrite reports whether the request would meet a write.
func (f *Fake) isWrite(r *http.Request) bool {
	_, pattern := f.mux.Handler(r)
	return slices.Contains(f.writePatterns, pattern)
}
