package ledger

import (
	"fmt"
	"strings"
)

// MaxUnread is the most unreadable writes that one listing names. Single rows are damaged by
// hand. Where there are more, the first hundred suffice, and a listing must not read through all
// of them.
const MaxUnread = 100

// maxReasons is how many of them one message explains: enough to show the kind of damage.
const maxReasons = 3

// UnreadError names the writes that a listing, or a pruning, left out because their rows cannot
// be read: damaged ones, for which it wraps [ErrCorrupt], and those of a newer program, for which
// it wraps [ErrVersion]. It is returned together with everything that can be read.
type UnreadError struct {
	// Writes are in the order in which they were read, at most [MaxUnread].
	Writes []Unread
	// Next is set when there were so many that the listing ended early. Continue it before this
	// write ([Filter.Before]).
	Next ID
}

// Unread is a write whose row cannot be read.
type Unread struct {
	ID  ID
	Err error // the reason; it names the write
}

// Error returns the reasons for the first of them, and the ids of all.
func (e *UnreadError) Error() string {
	var b strings.Builder
	if len(e.Writes) == 1 {
		b.WriteString("1 write cannot be read and was left out: ")
	} else {
		fmt.Fprintf(&b, "%d writes cannot be read and were left out: ", len(e.Writes))
	}
	for i, w := range e.Writes {
		switch {
		case i == 0:
			b.WriteString(w.Err.Error())
		case i < maxReasons:
			b.WriteString("; " + w.Err.Error())
		case i == maxReasons:
			b.WriteString("; and " + string(w.ID))
		default:
			b.WriteString(", " + string(w.ID))
		}
	}
	if e.Next != "" {
		fmt.Fprintf(&b, "; there may be more before %s", e.Next)
	}
	return b.String()
}

// Unwrap returns the reason for each of them.
func (e *UnreadError) Unwrap() []error {
	errs := make([]error, 0, len(e.Writes))
	for _, w := range e.Writes {
		errs = append(errs, w.Err)
	}
	return errs
}

// Page is a listing while a driver fills it.
type Page struct {
	Records []Record
	limit   int
	unread  []Unread
}

// NewPage begins the listing of a checked filter.
func NewPage(f Filter) *Page { return &Page{Records: []Record{}, limit: f.Limit} }

// Add adds the next row: a record, or, with a reason, only its id.
func (p *Page) Add(rec Record, unread error) {
	if unread == nil {
		p.Records = append(p.Records, rec)
		return
	}
	p.unread = append(p.unread, Unread{ID: rec.ID, Err: unread})
}

// Want is the most rows that are still to be read. Each unreadable row is replaced by another
// one, so that a page which is not full is the last, except one that ends with
// [UnreadError.Next].
func (p *Page) Want() int { return min(p.limit-len(p.Records), MaxUnread-len(p.unread)) }

// Result returns the listing when no more rows are wanted, or there are none.
func (p *Page) Result() ([]Record, error) {
	if len(p.unread) == 0 {
		return p.Records, nil
	}
	e := &UnreadError{Writes: p.unread}
	if len(p.unread) == MaxUnread && len(p.Records) < p.limit {
		e.Next = p.unread[len(p.unread)-1].ID
	}
	return p.Records, e
}
