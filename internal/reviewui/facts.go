package reviewui

import (
	"time"

	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/ledger"
)

// fact is one row of what is known. Its text may be a link, or a time.
type fact struct {
	Name, Text, Link string
	At               time.Time // zero for a text that is no time
}

// facts are rows in their order. What is not known has none.
type facts []fact

func (f *facts) add(name, text string) { f.link(name, text, "") }

func (f *facts) link(name, text, link string) {
	if text != "" {
		*f = append(*f, fact{Name: name, Text: report.Clip(text, maxText), Link: link})
	}
}

func (f *facts) at(name string, t, now time.Time) {
	if !t.IsZero() {
		*f = append(*f, fact{Name: name, Text: report.Ago(t, now), At: t})
	}
}

// write links to a write, if there is one.
func (f *facts) write(name string, id ledger.ID) { f.link(name, string(id), writePath(id)) }

// search links to the writes that share a name.
func (f *facts) search(name, text, by, q string) {
	if q != "" {
		f.link(name, text, searchPath(by, q))
	}
}

// unreadable are the writes that cannot be read, and why.
func unreadable(all []ledger.Unread) (f facts) {
	for _, u := range all {
		why := "It cannot be read."
		if u.Err != nil {
			why = report.Sentence(u.Err.Error())
		}
		f = append(f, fact{Name: report.Clip(string(u.ID), maxName), Text: why})
	}
	return f
}
