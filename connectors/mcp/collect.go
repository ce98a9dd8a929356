package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// maxAsked is how many calls of reading tools one read may make, where each record is read by
// itself.
const maxAsked = 50

// one reads a kind of which one call writes one record.
func (l *reading) one(ctx context.Context) ([]connectors.Record, error) {
	all := []connectors.Record{}
	values := map[string]any{"stamp": l.q.Stamp, "ref": l.q.Ref}
	for name, v := range l.q.Intent.Key {
		values["key."+name] = v
	}
	for _, r := range l.k.reads {
		if r.by == "stamp" && l.q.Stamp == "" || r.by == "ref" && l.q.Ref == "" {
			continue
		}
		answered, err := l.ask(ctx, r, values)
		if err != nil {
			return nil, err
		}
		records, err := l.ours(r, answered)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.label(), err)
		}
		if r.newest > 0 && len(answered) >= r.newest && len(records) == 0 {
			return nil, answer("%s: it shows the newest %d records and none that was asked for, which may be older", r.label(), len(answered))
		}
		all = merge(all, records)
	}
	return all, nil
}

// ours leaves out the records that were not queried.
func (l *reading) ours(r *read, answered []result) ([]connectors.Record, error) {
	var all []connectors.Record
	for _, f := range answered {
		rec := l.k.recordOf(f, l.q.Intent.Key)
		match, err := sameKey(l.q.Intent.Key, rec.Fields, l.k.keys)
		if err != nil {
			return nil, err
		}
		byStamp := l.q.Stamp != "" && rec.Stamp == l.q.Stamp
		aimed := r.by == "ref" && l.q.Ref != "" && rec.Ref == l.q.Ref
		if !match && !byStamp && !aimed {
			if err := l.stray(r, rec); err != nil {
				return nil, err
			}
			continue
		}
		if rec.Ref == "" {
			rec.Ref = refOf(l.k, l.q.Intent.Key, len(all))
		}
		all = append(all, rec)
	}
	return all, nil
}

// stray checks a record that was not queried. One without a place for the key cannot be
// distinguished from ours.
func (l *reading) stray(r *read, rec connectors.Record) error {
	for _, name := range l.k.keys {
		if _, there := rec.Fields[name]; !there && r.by == "key" {
			return answer("a record shows no %s, by which it was asked for", name)
		}
	}
	return nil
}

// merge puts what two reads found together: one ref is one record.
func merge(all, more []connectors.Record) []connectors.Record {
	for _, rec := range more {
		if !slices.ContainsFunc(all, func(old connectors.Record) bool { return old.Ref == rec.Ref }) {
			all = append(all, rec)
		}
	}
	return all
}

// refOf names a record that has no id of its own: by its key, its only identifier.
func refOf(k *kind, key intent.Fields, n int) string {
	plain := intent.Fields{}
	for name, v := range key {
		if name != carried {
			plain[name] = v
		}
	}
	text, err := intent.Canonical(map[string]any(plain))
	if err != nil { // a key of an intent can be written
		text = []byte(fmt.Sprint(plain))
	}
	sum := sha256.Sum256(append([]byte(k.name+"\n"), text...))
	ref := "key-" + hex.EncodeToString(sum[:12])
	if n > 0 {
		ref += fmt.Sprintf("-%d", n+1)
	}
	return ref
}

// inParts reads a record that consists of several objects. It is always there; its fields say of
// each object whether it exists.
func (l *reading) inParts(ctx context.Context) ([]connectors.Record, error) {
	rec := connectors.Record{Ref: refOf(l.k, l.q.Intent.Key, 0), Fields: intent.Fields{}}
	values := map[string]any{}
	for _, name := range l.k.keys {
		v := l.q.Intent.Key[name]
		values["key."+name], rec.Fields[name] = v, v
	}
	for _, r := range l.k.reads {
		answered, err := l.ask(ctx, r, values)
		if err != nil {
			return nil, err
		}
		rec.Fields[r.as+".exists"] = len(answered) > 0
		if len(answered) == 0 {
			continue
		}
		for name, field := range l.k.record.fields {
			if v, there := field.value(answered[0], l.q.Intent.Key); there {
				rec.Fields[r.as+"."+name] = v
			}
		}
	}
	return []connectors.Record{rec}, nil
}

// several reads a kind of which one call writes several records. They are shown
// as one, with those in it that are there; where one of them is there twice,
// there are two.
func (l *reading) several(ctx context.Context) ([]connectors.Record, error) {
	all, err := l.k.keysOf(l.q.Intent)
	if err != nil {
		return nil, err
	}
	seen := map[string][]intent.Fields{}
	for _, r := range l.k.reads {
		answered, err := l.askEach(ctx, r, all)
		if err != nil {
			return nil, err
		}
		if err := l.sort(r, answered, all, seen); err != nil {
			return nil, fmt.Errorf("%s: %w", r.label(), err)
		}
	}
	most := 0
	for _, records := range seen {
		most = max(most, len(records))
	}
	sets := make([]connectors.Record, 0, most)
	for i := range most {
		members := map[string]any{}
		for label, records := range seen {
			if i < len(records) {
				members[label] = map[string]any(records[i])
			}
		}
		sets = append(sets, connectors.Record{Ref: refOf(l.k, l.q.Intent.Key, i), Fields: intent.Fields{
			eachKey: l.q.Intent.Key[eachKey], eachRecords: members,
		}})
		if v, there := l.q.Intent.Key[carried]; there {
			sets[i].Fields[carried] = v
		}
	}
	return sets, nil
}

// askEach makes one call for all, or one for each.
func (l *reading) askEach(ctx context.Context, r *read, all []element) ([]result, error) {
	if !r.asksKeys {
		values := map[string]any{}
		for _, name := range l.k.keys {
			list := []any{}
			for _, e := range all {
				list = append(list, e.key[name])
			}
			values["each."+name] = list
		}
		return l.ask(ctx, r, values)
	}
	if len(all) > maxAsked {
		return nil, arguments("there are %d records to be asked for one by one, at most %d", len(all), maxAsked)
	}
	var answered []result
	for _, e := range all {
		values := map[string]any{}
		for name, v := range e.key {
			values["key."+name] = v
		}
		more, err := l.ask(ctx, r, values)
		if err != nil {
			return nil, err
		}
		answered = append(answered, more...)
	}
	return answered, nil
}

// sort assigns records of an answer to their keys.
func (l *reading) sort(r *read, answered []result, all []element, seen map[string][]intent.Fields) error {
	byLabel := map[string]element{}
	for _, e := range all {
		byLabel[e.label] = e
	}
	for _, f := range answered {
		rec := l.k.recordOf(f, nil)
		if err := l.stray(r, rec); err != nil {
			return err
		}
		label, err := labelOf(l.k.keys, rec.Fields)
		if err != nil {
			return answer("a record has a key that cannot be written")
		}
		if e, asked := byLabel[label]; asked {
			if ok, err := sameKey(e.key, rec.Fields, l.k.keys); err != nil || !ok {
				return answer("a record has nearly the key that was asked for")
			}
			seen[label] = append(seen[label], rec.Fields)
		}
	}
	return nil
}
