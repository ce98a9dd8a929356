package jira

import (
	"fmt"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Remove builds the delete of one of two records that w, a create, made: by the
// key of the issue, or the id of the comment, as [Connector.Invert] does where
// there is only one. A record on which somebody has worked since it was made is
// not removed. Nor is one that bears our stamp as a label alone: who clones an
// issue in Jira clones its labels. The error wraps [ErrNoUndo].
func (c *Connector) Remove(w intent.WriteIntent, surplus connectors.Record) (intent.WriteIntent, error) {
	if w.Write != intent.Create {
		return intent.WriteIntent{}, fmt.Errorf("%w: a %s makes no surplus record", ErrNoUndo, w.Write)
	}
	created, updated := momentOf(surplus, "created"), momentOf(surplus, "updated")
	if created.IsZero() || updated.IsZero() || updated.Sub(created) > bornWithin {
		return intent.WriteIntent{}, fmt.Errorf("%w: it is not shown that nobody has worked on the record since it was made", ErrNoUndo)
	}
	return c.Invert(w, nil, connectors.Observation{Records: []connectors.Record{surplus}})
}

// momentOf is a time that a record shows, zero where it does not.
func momentOf(r connectors.Record, name string) time.Time {
	s, _ := r.Fields[name].(string)
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return at
}
