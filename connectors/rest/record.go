package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
)

// of reads one record of an answer, of which only that of one record has headers; false if the record
// does not count. asked are the queried stamps: one of them is used if a record has several.
func (r *record) of(v any, h http.Header, asked ...string) (found, bool, error) {
	object, isObject := v.(map[string]any)
	if !isObject {
		return found{}, false, fmt.Errorf("%w: a record is %s, want an object", errAnswer, declared.KindOf(v))
	}
	if kept, err := r.keeps(object); err != nil || !kept {
		return found{}, false, err
	}
	one := found{Record: connectors.Record{Ref: r.ref.of(object, h), URL: scalar(r.url, object), Version: scalar(r.version, object)}}
	one.open, one.failed = r.settles.of(object)
	if one.Ref == "" {
		return one, false, fmt.Errorf("%w: a record has no %s", errAnswer, r.ref.text())
	}
	fields := intent.Fields{}
	for _, p := range r.spread {
		below, there := p.Value(object)
		members, isObject := below.(map[string]any)
		if !there || !isObject {
			return one, false, fmt.Errorf("%w: in a record, %s is %s, want an object", errAnswer, p.Text(), declared.KindOf(below))
		}
		for name, v := range members {
			fields[name] = v
		}
	}
	for name, f := range r.fields {
		delete(fields, name) // also where the path shows nothing
		value, there, err := f.of(object, h)
		if err != nil {
			return one, false, fmt.Errorf("field %s: %w", name, err)
		}
		if there {
			fields[name] = value
		}
	}
	one.Fields = fields
	stamps, err := r.stamps(object, h)
	switch {
	case err != nil:
		return one, false, fmt.Errorf("the stamp: %w", err)
	case len(stamps) > 0:
		one.Stamp = stamps[0]
	}
	for _, s := range stamps {
		if slices.Contains(asked, s) {
			one.Stamp = s
		}
	}
	return one, true, nil
}

// hasPlace reports whether a record has the place of a field, whatever its value.
func (r *record) hasPlace(name string, v any) bool {
	f := r.fields[name]
	switch {
	case f == nil:
		for _, p := range r.spread {
			below, _ := p.Value(v)
			if members, ok := below.(map[string]any); ok {
				if _, there := members[name]; there {
					return true
				}
			}
		}
		return false
	case f.list != nil:
		_, there := f.list.Container.Value(v)
		return there
	}
	_, there := f.place.Value(v)
	return there
}

// keeps reports whether a record counts. The value that decides must exist, unless the condition
// is about its absence.
func (r *record) keeps(object map[string]any) (bool, error) {
	c := r.keep
	if c == nil {
		return true, nil
	}
	found, err := c.place.All(object)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w: %w", errAnswer, err)
	case c.exists == nil && len(found) == 0:
		return false, fmt.Errorf("%w: a record has no %s, which says whether it counts", errAnswer, c.place.Text())
	}
	return c.among(found), nil
}

// stamps lists the stamps of a record.
func (r *record) stamps(object map[string]any, h http.Header) ([]string, error) {
	if r.stamp == nil {
		return nil, nil
	}
	values, _, err := r.stamp.chosen(object, h)
	var all []string
	for _, v := range values {
		s, isText := v.(string)
		if !isText || s == "" {
			continue
		}
		if r.stamp.match == nil {
			all = append(all, bounded(s))
			continue
		}
		for _, m := range r.stamp.match.FindAllStringSubmatch(s, -1) {
			all = append(all, bounded(m[1]))
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" }), err
}

// chosen is what the path of a field selects, joined if that is declared; false if there is
// nothing.
func (f *field) chosen(object map[string]any, h http.Header) ([]any, bool, error) {
	if f.header != "" {
		return []any{h.Get(f.header)}, len(h.Values(f.header)) > 0, nil
	}
	if f.list == nil {
		v, there := f.place.Value(object)
		return []any{v}, there, nil
	}
	if container, there := f.list.Container.Value(object); !there || container == nil {
		return nil, false, nil
	}
	if f.one != nil {
		v, there, err := f.one.of(f.list, object)
		return []any{v}, there, err
	}
	values, err := f.list.All(object, errAnswer)
	if err != nil || f.join == nil {
		return values, true, err
	}
	var parts []string
	for _, v := range values {
		s, ok := scalarText(v)
		if !ok {
			return nil, false, fmt.Errorf("%w: an element of %s is %s, want text", errAnswer, f.list.Text, declared.KindOf(v))
		}
		parts = append(parts, s)
	}
	return []any{strings.Join(parts, *f.join)}, true, nil
}

// of is the value that is taken; false where no element fits, or it lacks the member. Two that fit are
// an error: which of them is meant is not known.
func (p *picked) of(list *declared.List, object map[string]any) (any, bool, error) {
	all, err := list.All(object, errAnswer)
	if err != nil {
		return nil, false, err
	}
	var hit map[string]any
	for _, e := range all {
		members, isObject := e.(map[string]any)
		switch {
		case !isObject:
			return nil, false, fmt.Errorf("%w: an element of %s is %s, want an object", errAnswer, list.Text, declared.KindOf(e))
		case !declared.Same(members[p.member], p.equals):
		case hit != nil:
			return nil, false, fmt.Errorf("%w: two elements of %s have the same %s, and which of them is meant is not known", errAnswer, list.Text, p.member)
		default:
			hit = members
		}
	}
	name, only := strings.CutSuffix(p.take, "[0]")
	v, there := hit[name]
	if !only || !there {
		return v, there, nil
	}
	values, isList := v.([]any)
	switch {
	case !isList:
		return nil, false, fmt.Errorf("%w: %s of an element of %s is %s, want a list of one value", errAnswer, name, list.Text, declared.KindOf(v))
	case len(values) == 0:
		return nil, false, nil
	case len(values) > 1:
		return nil, false, fmt.Errorf("%w: %s of an element of %s has %d values, and which of them is meant is not known", errAnswer, name, list.Text, len(values))
	}
	return values[0], true, nil
}

// of is the value of a field; false when it is not there.
func (f *field) of(object map[string]any, h http.Header) (any, bool, error) {
	values, there, err := f.chosen(object, h)
	if err != nil || !there {
		return nil, err == nil && f.isNull(object), err
	}
	if f.list != nil && f.join == nil && f.match == nil && f.one == nil {
		all := []any{}
		for _, v := range values {
			if s, isText := v.(string); isText && f.without != nil && f.without.MatchString(s) {
				continue
			}
			all = append(all, f.stripped(v))
		}
		return all, true, nil
	}
	for _, v := range values {
		if f.match == nil {
			return f.stripped(v), true, nil
		}
		s, _ := v.(string)
		if m := f.match.FindStringSubmatch(s); m != nil {
			return f.stripped(m[1]), true, nil
		}
	}
	return nil, false, nil
}

// isNull reports whether the place of a list has null, which is not the same as nothing.
func (f *field) isNull(object map[string]any) bool {
	if f.list == nil || f.match != nil || f.one != nil {
		return false
	}
	v, there := f.list.Container.Value(object)
	return there && v == nil
}

func (f *field) stripped(v any) any {
	s, isText := v.(string)
	if !isText || f.strip == nil {
		return v
	}
	return f.strip.ReplaceAllString(s, "")
}
