package office

import (
	"encoding/json"
	"errors"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/verify"
)

// told is an outcome as somebody may see it. What was seen where the intent says
// what it wants is part of it. What stands in a field that the intent does not
// name is evidence: who may not trace is told that it changed, and no more.
func told(who Who, out engine.Outcome) engine.Outcome {
	if who.May(access.Trace) != nil && out.Verdict == verify.Collateral {
		out.Mismatches = places(out.Mismatches)
	}
	return out
}

// places are mismatches without values; none where they cannot be read.
func places(mismatches json.RawMessage) json.RawMessage {
	var all []verify.Mismatch
	if err := json.Unmarshal(mismatches, &all); err != nil {
		return nil
	}
	for i := range all {
		all[i].Want, all[i].Got = nil, nil
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return text
}

// refused is why somebody's write was refused, as they may see it: it can bring
// the record of the write that stands in the way.
func refused(who Who, err error) error {
	var blocked *ledger.BlockedError
	if who.May(access.Trace) == nil || !errors.As(err, &blocked) || verify.ParseVerdict(blocked.Prior.Verdict) != verify.Collateral {
		return err
	}
	mine := *blocked // others may wait for the same answer
	mine.Prior.Mismatches, mine.Prior.Evidence, mine.Prior.Before = places(mine.Prior.Mismatches), nil, nil
	return &blockedError{err, &mine}
}

// blockedError is an error with another record in it.
type blockedError struct {
	error
	mine *ledger.BlockedError
}

func (b *blockedError) Unwrap() error { return b.error }

// As gives whoever asks for the record the one that they may see.
func (b *blockedError) As(target any) bool {
	into, ok := target.(**ledger.BlockedError)
	if ok {
		*into = b.mine
	}
	return ok
}
