package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

// An assignment says which reviewer has taken a write. It is information for other reviewers and
// prevents no decision. It is a document beside the write, since an event of the write would
// change what a decision was based on. It is done from the start, so that it is deleted when it
// was not changed for as long as writes are remembered.
const assignmentKind = "assignment"

// maxAssigned bounds the writes that are assigned to one reviewer: one page.
const maxAssigned = 100

// errAssigned: the reviewer has as many writes as one can have.
var errAssigned = fmt.Errorf("%w: %d writes are assigned to you; decide about some, or release them, before you take more", access.ErrLimit, maxAssigned)

type assignment struct {
	To string    `json:"to"`
	At time.Time `json:"at"`
}

// assigneeState is the state of the documents of one reviewer's assignments, by which they are
// found. A state is shorter than a name may be.
func assigneeState(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// Assign assigns a write that waits for a reviewer to the caller, or to none.
func (o *Service) Assign(ctx context.Context, who Who, id ledger.ID, take bool) error {
	if err := who.May(access.Decide); err != nil {
		return err
	}
	r, err := o.parts.Ledger.Get(ctx, who.Tenant, id)
	if err != nil {
		return err
	}
	if _, waits := ledger.WaitKindOf(r); take && !waits {
		return fmt.Errorf("%w: %s is %s, and waits for no reviewer", engine.ErrNotWaiting, id, r.Phase())
	}
	if take {
		if err := o.roomFor(ctx, who); err != nil {
			return err
		}
	}
	return o.assign(ctx, who, id, take)
}

// assign writes the assignment. Of two reviewers who take a write at once, the later one has it.
func (o *Service) assign(ctx context.Context, who Who, id ledger.ID, take bool) error {
	for try := 0; ; try++ {
		p, err := o.parts.Ledger.Document(ctx, who.Tenant, assignmentKind, string(id))
		if err != nil && !errors.Is(err, ledger.ErrNoDocument) {
			return err
		}
		var to assignment
		p.Tenant, p.Kind, p.ID, p.State, p.Done = who.Tenant, assignmentKind, string(id), "", true
		if take {
			to, p.State = assignment{To: who.Name, At: time.Now().UTC()}, assigneeState(who.Name)
		} else if p.Version == 0 {
			return nil
		}
		if p.Body, err = json.Marshal(to); err != nil {
			return err
		}
		_, err = o.parts.Ledger.Commit(ctx, ledger.Batch{Documents: []ledger.Document{p}})
		if !errors.Is(err, ledger.ErrStale) || try == 2 {
			return err
		}
	}
}

// assignee is the reviewer to whom a write is assigned, "" for none.
func (o *Service) assignee(ctx context.Context, tenant string, id ledger.ID) (string, error) {
	p, err := o.parts.Ledger.Document(ctx, tenant, assignmentKind, string(id))
	if errors.Is(err, ledger.ErrNoDocument) {
		return "", nil
	}
	var a assignment
	if err == nil && json.Unmarshal(p.Body, &a) != nil {
		err = fmt.Errorf("%w: the assignment of write %s", ledger.ErrCorrupt, id)
	}
	return a.To, err
}

// assignments are the documents of the caller's assignments, the newest first.
func (o *Service) assignments(ctx context.Context, who Who) ([]ledger.Document, error) {
	if who.Name == "" {
		return nil, nil
	}
	all, _, err := o.parts.Ledger.FindDocuments(ctx, ledger.DocumentQuery{Tenant: who.Tenant, Kind: assignmentKind,
		States: []string{assigneeState(who.Name)}, Limit: maxAssigned})
	return all, err
}

// assigned are the writes that are assigned to the caller and wait.
func (o *Service) assigned(ctx context.Context, who Who) (all []Waiting, err error) {
	documents, err := o.assignments(ctx, who)
	if err != nil {
		return nil, err
	}
	for _, p := range documents {
		r, err := o.parts.Ledger.Get(ctx, who.Tenant, ledger.ID(p.ID))
		if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrCorrupt) { // the list of all names those that cannot be read
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, waits := ledger.WaitKindOf(r); waits {
			one := o.waits(Shown(r))
			one.Assigned = who.Name
			all = append(all, one)
		}
	}
	return all, nil
}

// roomFor releases what is assigned to the caller and waits no more, and fails with
// errAssigned if nothing else may be taken.
func (o *Service) roomFor(ctx context.Context, who Who) error {
	documents, err := o.assignments(ctx, who)
	if err != nil || len(documents) < maxAssigned {
		return err
	}
	left := 0
	for _, p := range documents {
		r, err := o.parts.Ledger.Get(ctx, who.Tenant, ledger.ID(p.ID))
		if _, waits := ledger.WaitKindOf(r); err == nil && waits {
			left++
			continue
		}
		if err := o.assign(ctx, who, ledger.ID(p.ID), false); err != nil {
			return err
		}
	}
	if left == maxAssigned {
		return errAssigned
	}
	return nil
}
