package imap

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/mailtext"
)

// target is the messages that a change is about, as they are just before it.
type target struct {
	chosen *imap.SelectData
	uids   imap.UIDSet
	now    []*imapclient.FetchMessageBuffer // flags and mod-sequences
}

func (t target) ref() string {
	if len(t.now) != 1 {
		return ""
	}
	return handle{t.chosen.UIDValidity, t.now[0].UID}.String()
}

func (c *Connector) update(ctx context.Context, r connectors.Request, a address) (connectors.Receipt, error) {
	wanted, err := changeOf(r.Intent)
	if err != nil {
		return connectors.Receipt{}, rejected(err)
	}
	s, err := c.open(ctx)
	if err != nil {
		return connectors.Receipt{}, beforeSend(err)
	}
	defer s.leave()
	t, err := c.aim(s, r, a)
	if err != nil {
		return connectors.Receipt{}, beforeSend(err)
	}
	if err := keeps(t.chosen, without(append(slices.Clone(wanted.flags), wanted.keywords...), t.now[0].Flags)); err != nil {
		return connectors.Receipt{}, beforeSend(err)
	}
	if r.Conditional {
		return s.updateIf(t, wanted, r.Before)
	}
	return s.updateBy(t, wanted)
}

// changeOf reads what an update expects: flags, keywords or both.
func changeOf(w intent.WriteIntent) (flagSet, error) {
	var f flagSet
	for _, name := range slices.Sorted(maps.Keys(w.Expect)) {
		if name != "flags" && name != "keywords" {
			return flagSet{}, wrong.Field("/expect/"+name, "cannot be changed", "flags or keywords: the text of a message in a mailbox is fixed")
		}
		if err := f.take(name, w.Expect[name]); err != nil {
			return flagSet{}, err
		}
	}
	switch {
	case len(w.Expect) == 0:
		return flagSet{}, wrong.Field("/expect", "is empty", "flags or keywords")
	case len(w.Payload) > 0:
		return flagSet{}, wrong.Field("/payload", "has no place in an update", "nothing")
	case w.Want() != 1:
		return flagSet{}, wrong.Field("/count", fmt.Sprintf("is %d", w.Want()), "1: an update changes one message")
	}
	return f, nil
}

// updateBy adds the missing flags and removes the excess ones, and changes nothing else: another
// actor's other flag, set meanwhile, stays.
func (s *session) updateBy(t target, wanted flagSet) (connectors.Receipt, error) {
	more, less := wanted.difference(t.now[0].Flags)
	sent := false
	for _, step := range []struct {
		op    imap.StoreFlagsOp
		flags []imap.Flag
	}{{imap.StoreFlagsAdd, more}, {imap.StoreFlagsDel, less}} {
		if len(step.flags) == 0 {
			continue
		}
		if _, err := s.store(t.uids, step.op, step.flags, 0); err != nil {
			if sent {
				return connectors.Receipt{}, fmt.Errorf("half of the change is made: %w", err)
			}
			return connectors.Receipt{}, afterSend(err)
		}
		sent = true
	}
	return connectors.Receipt{Ref: t.ref(), Code: "OK"}, nil
}

// difference is what has to be added to and taken from the flags there are,
// each within the field that the intent names.
func (f flagSet) difference(now []imap.Flag) (more, less []imap.Flag) {
	for _, part := range []struct {
		wanted []imap.Flag
		system bool
	}{{f.flags, true}, {f.keywords, false}} {
		if part.wanted == nil {
			continue
		}
		there := ofKind(now, part.system)
		more = append(more, without(part.wanted, there)...)
		less = append(less, without(there, part.wanted)...)
	}
	return more, less
}

// ofKind is the system flags, or the keywords. \Recent is the server's own: no client can set it,
// and reading changes it.
func ofKind(flags []imap.Flag, system bool) []imap.Flag {
	return slices.DeleteFunc(slices.Clone(flags), func(f imap.Flag) bool {
		return isSystem(f) != system || sameFlag(f, `\Recent`)
	})
}

// updateIf replaces all flags in one step, unless the message has changed
// since it was read.
func (s *session) updateIf(t target, wanted flagSet, before *connectors.Observation) (connectors.Receipt, error) {
	version, err := t.unchanged(before)
	if err != nil {
		return connectors.Receipt{}, err
	}
	more, less := wanted.difference(t.now[0].Flags)
	all := append(without(lasting(t.now[0].Flags), less), more...)
	return s.storeIf(t, imap.StoreFlagsSet, all, version, change{all, more, less})
}

// change is the effect of a conditional STORE on a message: all its flags, and which of them it
// adds and removes.
type change struct{ all, more, less []imap.Flag }

func (c change) whole(now []imap.Flag) bool { return sameFlags(lasting(now), c.all) }

// leftTrace reports whether any part of the change shows.
func (c change) leftTrace(now []imap.Flag) bool {
	return len(without(c.more, now)) < len(c.more) || len(without(c.less, now)) > 0
}

// lasting is all flags and keywords but the server's own.
func lasting(flags []imap.Flag) []imap.Flag {
	return append(ofKind(flags, true), ofKind(flags, false)...)
}

// unchanged is the mod-sequence of the pre-state, if the message still has it.
func (t target) unchanged(before *connectors.Observation) (uint64, error) {
	if t.chosen.HighestModSeq == 0 {
		return 0, rejected(fmt.Errorf("conditional write: %w", errNoCondStore))
	}
	if before == nil || len(before.Records) != 1 || len(t.now) != 1 {
		return 0, rejected(fmt.Errorf("conditional write: %w: it needs the one message of the pre-state", errMatches))
	}
	version, err := strconv.ParseUint(before.Records[0].Version, 10, 63)
	if err != nil || version == 0 {
		return 0, rejected(fmt.Errorf("conditional write: %w: the pre-state has no mod-sequence", errNoCondStore))
	}
	if t.now[0].ModSeq != version {
		return 0, connectors.Conflict("MODSEQ", fmt.Errorf("%w: mod-sequence %d then, %d now", errChanged, version, t.now[0].ModSeq))
	}
	return version, nil
}

// storeIf sends a conditional STORE and determines whether it was refused. The server answers OK
// either way, and go-imap drops the MODIFIED: so the flags are read in the same session. Only a
// message that exists without a trace of the change proves the refusal. One that is gone, or
// shows half of it (a keyword that was not stored, another actor's flag), proves nothing. This
// only detects the refusal; a separate read determines the result.
func (s *session) storeIf(t target, op imap.StoreFlagsOp, flags []imap.Flag, version uint64, c change) (connectors.Receipt, error) {
	changed, err := s.store(t.uids, op, flags, version)
	if err != nil {
		return connectors.Receipt{}, afterSend(err)
	}
	seen, err := s.flagsOf(t.uids, true)
	if err != nil {
		return connectors.Receipt{}, fmt.Errorf("the answer to a conditional write is not known: %w", err)
	}
	receipt := connectors.Receipt{Ref: t.ref(), Code: "OK"}
	if len(seen) == 1 {
		receipt.Version = strconv.FormatUint(seen[0].ModSeq, 10)
	}
	traces := false
	for _, m := range append(changed, seen...) {
		switch {
		case m.Flags == nil:
		case c.whole(m.Flags):
			return receipt, nil
		case c.leftTrace(m.Flags):
			traces = true
		}
	}
	if traces || len(seen) != 1 || seen[0].Flags == nil {
		return connectors.Receipt{}, fmt.Errorf("the answer to a conditional write is not known: %w", errChanged)
	}
	return connectors.Receipt{}, connectors.Conflict("MODIFIED", errChanged)
}

func (c *Connector) delete(ctx context.Context, r connectors.Request, a address) (connectors.Receipt, error) {
	s, err := c.open(ctx)
	if err != nil {
		return connectors.Receipt{}, beforeSend(err)
	}
	defer s.leave()
	if !s.caps.Has(imap.CapUIDPlus) {
		return connectors.Receipt{}, rejected(fmt.Errorf("delete: %w", errNoUIDPlus))
	}
	t, err := c.aim(s, r, a)
	if err != nil {
		return connectors.Receipt{}, beforeSend(err)
	}
	if receipt, err := s.markDeleted(t, r); err != nil {
		return receipt, err
	}
	// From here on even after a NO a mark remains: unknown.
	if err := s.expunge(t.uids); err != nil {
		return connectors.Receipt{}, fmt.Errorf("marked as deleted: %w", err)
	}
	return connectors.Receipt{Ref: t.ref(), Code: "OK"}, nil
}

func (s *session) markDeleted(t target, r connectors.Request) (connectors.Receipt, error) {
	mark := []imap.Flag{imap.FlagDeleted}
	unmarked := func(m *imapclient.FetchMessageBuffer) bool { return !hasFlag(m.Flags, imap.FlagDeleted) }
	if r.Conditional && !slices.ContainsFunc(t.now, unmarked) {
		return connectors.Receipt{}, t.likewise(r.Before)
	}
	if r.Conditional {
		version, err := t.unchanged(r.Before)
		if err != nil {
			return connectors.Receipt{}, err
		}
		return s.storeIf(t, imap.StoreFlagsAdd, mark, version,
			change{all: append(without(lasting(t.now[0].Flags), mark), mark...), more: mark})
	}
	_, err := s.store(t.uids, imap.StoreFlagsAdd, mark, 0)
	switch {
	case err != nil && len(t.now) > 1: // some of them may be marked
		return connectors.Receipt{}, fmt.Errorf("mark %d messages as deleted: %w", len(t.now), err)
	case err != nil:
		return connectors.Receipt{}, afterSend(err)
	}
	return connectors.Receipt{}, nil
}

// likewise reports a conflict unless the message, which is marked as deleted, has the
// flags and keywords of the pre-state otherwise. The mark changed its mod-sequence.
func (t target) likewise(before *connectors.Observation) error {
	if before == nil || len(before.Records) != 1 || len(t.now) != 1 {
		return rejected(fmt.Errorf("conditional write: %w: it needs the one message of the pre-state", errMatches))
	}
	fields, flags := before.Records[0].Fields, without(t.now[0].Flags, []imap.Flag{imap.FlagDeleted})
	for name, now := range map[string]any{"flags": shownFlags(flags, true), "keywords": shownFlags(flags, false)} {
		if !reflect.DeepEqual(now, fields[name]) {
			return connectors.Conflict("FLAGS", fmt.Errorf("%w: %s are %v, and were %v", errChanged, name, now, fields[name]))
		}
	}
	return nil
}

// aim selects the mailbox and finds the messages to change: those of the
// pre-state by their UIDs, else those that the key matches. It refuses any
// number of them but the declared one.
func (c *Connector) aim(s *session, r connectors.Request, a address) (target, error) {
	chosen, err := s.choose(a.mailbox, false)
	if err != nil {
		return target{}, err
	}
	t := target{chosen: chosen}
	var uids []imap.UID
	switch {
	case r.Before != nil:
		uids, err = fromBefore(chosen, r.Before)
	case a.handle != (handle{}):
		uids, err = sameMailbox(chosen, a.handle)
	default:
		uids, err = s.matching(chosen, a)
	}
	if err != nil {
		return target{}, err
	}
	if len(uids) != r.Intent.Want() {
		return target{}, connectors.Conflict("", fmt.Errorf("%w: %d found, %d declared", errMatches, len(uids), r.Intent.Want()))
	}
	t.uids = imap.UIDSetNum(uids...)
	t.now, err = s.flagsOf(t.uids, chosen.HighestModSeq > 0)
	if err != nil {
		return target{}, err
	}
	if len(t.now) != len(uids) {
		return target{}, connectors.Conflict("", fmt.Errorf("%w: %d of %d are gone", errMatches, len(uids)-len(t.now), len(uids)))
	}
	return t, nil
}

func fromBefore(chosen *imap.SelectData, before *connectors.Observation) ([]imap.UID, error) {
	var uids []imap.UID
	for _, record := range before.Records {
		h := parseHandle(record.Ref)
		if h == (handle{}) {
			return nil, rejected(fmt.Errorf("%w: the pre-state has the ref %q", errMatches, mailtext.Clip(record.Ref)))
		}
		found, err := sameMailbox(chosen, h)
		if err != nil {
			return nil, err
		}
		uids = append(uids, found...)
	}
	return uids, nil
}

func sameMailbox(chosen *imap.SelectData, h handle) ([]imap.UID, error) {
	if chosen.UIDValidity != h.validity {
		return nil, connectors.Conflict("UIDVALIDITY", fmt.Errorf("%w: %d then, %d now; read the message again", errUIDValidity, h.validity, chosen.UIDValidity))
	}
	return []imap.UID{h.uid}, nil
}
