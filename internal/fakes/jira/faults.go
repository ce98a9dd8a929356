package jira

import (
	"maps"
	"slices"
	"time"

	"github.com/readback-go/readback/readbacktest/fault"
)

// Forms are the faults that the site has. Those of writes concern any write; those of reads any
// read of issues, comments or the search, but not serverInfo and permissions. A number is the
// status of the answer; 503 comes with Retry-After and 301 names another address.
var Forms = fault.Forms{
	fault.LostAnswer:             nil,
	fault.CutBody:                nil, // half a body, with the right status
	fault.DroppedBefore:          nil,
	fault.BadGateway:             {"502", "503", "409"},
	fault.LateCommit:             nil,
	fault.PhantomSuccess:         nil,
	fault.Refused:                {"400", "401", "404", "409", "301"},
	fault.Throttled:              {"retry-after", "reset", "bare"},
	fault.Unreachable:            nil, // over Transport
	fault.DroppedField:           nil,
	fault.NormalisedField:        nil,
	fault.DuplicateBehindOurBack: nil,
	fault.Rollback:               nil,
	fault.LaggingRead:            nil, // of the next search
	fault.UnreadableRead:         append(Unreadable(), "endless"),
	fault.HangingRead:            nil,
}

// Unreadable lists the forms of an unreadable read that come to an end.
func Unreadable() []string {
	return []string{"html", "503", "401", "403", "429", "empty", "other", "cut", "null", "redirect"}
}

// defaultDelay is for what comes later, and for what reads show late.
const defaultDelay = 50 * time.Millisecond

// take returns the first fault of some kinds, all of writes or all of reads, that a
// request meets.
func (s *Site) take(kinds ...fault.Kind) (fault.Fault, bool) {
	return s.First(fault.Request{Write: !kinds[0].OfReads()}, kinds...)
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
	// Itself means that the site did it by a fault, not by the request.
	Itself bool
}

// Effects is the log of all that was changed over the API or by a fault.
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
