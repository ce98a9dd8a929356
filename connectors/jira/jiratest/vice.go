package jiratest

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Vice is one way in which the site misbehaves on the next request that it
// concerns.
type Vice string

// The vices. Those of writes concern any write; those of reads any read of
// issues, comments or the search, but not serverInfo and permissions.
const (
	LostAnswer     Vice = "lost-answer"     // applies it, then cuts the connection
	CutBody        Vice = "cut-body"        // applies it, answers with the right status and half a body
	DroppedBefore  Vice = "dropped-before"  // cuts the connection, applies nothing
	BadGateway     Vice = "bad-gateway"     // applies it, answers 502 with a page
	Unavailable    Vice = "unavailable"     // applies it, answers 503 with Retry-After
	ConflictDone   Vice = "conflict-done"   // applies it, answers 409
	ConflictUndone Vice = "conflict-undone" // applies nothing, answers 409
	Redirected     Vice = "redirected"      // applies nothing, answers 301 to another place
	LateCommit     Vice = "late-commit"     // does not answer, applies it Delay after the client has gone
	PhantomSuccess Vice = "phantom-success" // answers with success, applies nothing
	Refused        Vice = "refused"         // answers 400 and names a field
	Throttled      Vice = "throttled"       // answers 429; How: "retry-after", "reset" or "bare"
	Unauthorized   Vice = "unauthorized"    // answers 401
	NotFound       Vice = "not-found"       // answers 404
	Unreachable    Vice = "unreachable"     // no connection (only over Transport)

	DroppedField    Vice = "dropped-field"             // stores all but one field
	NormalisedField Vice = "normalised-field"          // stores one field in another form
	Duplicate       Vice = "duplicate-behind-our-back" // a copy appears Delay after a create
	Rollback        Vice = "rollback"                  // what was created disappears after Delay

	LaggingRead    Vice = "lagging-read"    // the next search shows the state of Delay ago
	UnreadableRead Vice = "unreadable-read" // How: one of Unreadable
	HangingRead    Vice = "hanging-read"    // never answers
	EndlessRead    Vice = "endless-read"    // answers 200 and never ends
)

// Unreadable lists the forms of an unreadable read.
func Unreadable() []string {
	return []string{"html", "503", "401", "403", "429", "empty", "other", "cut", "null", "redirect"}
}

// Fault is a vice that is set.
type Fault struct {
	Vice  Vice
	Delay time.Duration // for what comes later; default 50 ms
	How   string        // for vices with forms
}

const defaultDelay = 50 * time.Millisecond

// Set switches a vice on for the next request that it concerns, and only for
// that one. The error names a form that does not exist.
func (s *Site) Set(f Fault) error {
	if f.Delay == 0 {
		f.Delay = defaultDelay
	}
	if f.Vice == UnreadableRead && !slices.Contains(Unreadable(), f.How) {
		return fmt.Errorf("unreadable read: the form %q: want one of %q", f.How, Unreadable())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
	return nil
}

// Waits reports whether a vice is set and has not yet met a request.
func (s *Site) Waits(v Vice) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.faults, func(f Fault) bool { return f.Vice == v })
}

// take switches the first fault off that is one of those, and returns it.
func (s *Site) take(vices ...Vice) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken(vices...)
}

// taken is take under the lock.
func (s *Site) taken(vices ...Vice) *Fault {
	for n, f := range s.faults {
		if slices.Contains(vices, f.Vice) {
			s.faults = slices.Delete(s.faults, n, n+1)
			return &f
		}
	}
	return nil
}

// Effect is one change that was made.
type Effect struct {
	At time.Time
	// Op is "create", "update", "transition", "delete" or the same with
	// "comment-" before it.
	Op string
	// Issue is the id of the issue, Key its key, Comment the id of the comment.
	Issue, Key, Comment string
	// Labels are the labels of the issue before a delete and after anything
	// else. Properties are the entity properties of the issue or the comment.
	Labels     []string
	Properties map[string]any
	// Itself says that the site did it by a vice, not by the request.
	Itself bool
}

// Effects is the log of all that was changed over the API or by a vice.
func (s *Site) Effects() []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.effects)
}

func (s *Site) log(op string, i *issue, c *comment, itself bool) {
	e := Effect{At: time.Now(), Op: op, Issue: i.id, Key: i.key(), Labels: labelsOf(i.fields), Properties: maps.Clone(i.properties), Itself: itself}
	if c != nil {
		e.Comment, e.Properties = c.id, maps.Clone(c.properties)
	}
	s.effects = append(s.effects, e)
}

func labelsOf(fields map[string]any) []string {
	var all []string
	list, _ := fields["labels"].([]any)
	for _, l := range list {
		if text, ok := l.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
