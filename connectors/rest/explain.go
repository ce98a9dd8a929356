package rest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/yamlfile"
)

// Explained describes how the requests of a kind work, in plain words, a sentence or two for each
// element of its declaration whose effect is not obvious.
func (d *Declaration) Explained(kind string) []string {
	k, known := d.kinds[kind]
	if !known {
		return nil
	}
	return slices.Clone(k.words)
}

// Warnings lists what a declaration lacks that is not wrong and can be dangerous, with the lines.
func (d *Declaration) Warnings() []string {
	var all []string
	for _, p := range d.warnings {
		all = append(all, p.String())
	}
	return all
}

// sortWarnings puts them in the order of lines.
func (l *loader) sortWarnings() { yamlfile.Sort(l.d.warnings) }

// explain adds a sentence to what is said of a kind.
func (k *kind) explain(format string, args ...any) {
	k.words = append(k.words, fmt.Sprintf(format, args...))
}

// explainFields says what is not obvious of the fields of records.
func (k *kind) explainFields() {
	if s := k.record.settles; s != nil {
		k.explain("A record is verified only when %s is %s. Until then it is read again, for at most %s; a later failure is found by a recheck, and a reviewer decides.", s.place.Text(), strings.Join(s.good, " or "), s.within)
	}
	for _, name := range slices.Sorted(maps.Keys(k.record.fields)) {
		if h := k.record.fields[name].header; h != "" {
			k.explain("field %s: the header %s of the answer.", name, h)
		}
		if f := k.record.fields[name]; f.one != nil && f.list != nil {
			k.explain("field %s: the %s of the one element of %s whose %s is %v; two such elements are an error.", name, f.one.take, f.list.Container.Text(), f.one.member, f.one.equals)
		}
	}
}

// explainSummary says how a record is named to people.
func (k *kind) explainSummary() {
	s := k.profile.Summary
	if s.Text != "" {
		k.explain("A record is shown to people as: %s", s.Text)
	}
	if s.Minor {
		k.explain("The amount %s is in the smallest unit of its currency: 2999 USD are shown as $29.99.", s.Amount)
	}
}

// explainRead says what is not obvious of a read.
func (k *kind) explainRead(r *read) {
	for _, h := range r.request.holes() {
		if h.spans {
			k.explain("read %s: {%s/} in the path is as many segments as its value has; each is escaped by itself, and one that is empty, \".\" or \"..\" is refused.", r.name, h.name)
		}
	}
	if len(r.absent) > 0 {
		how := ""
		switch {
		case r.absentEmpty:
			how = " with an empty body, or JSON,"
		case r.absentWhere != nil:
			how = ", where " + r.absentWhere.subject() + " says so,"
		}
		if r.visible != nil {
			how += " is believed only if what it would be in can be read, and"
		}
		k.explain("read %s: an answer %s%s means that the record is not there.", r.name, strings.Trim(strings.ReplaceAll(fmt.Sprint(r.absent), " ", " or "), "[]"), how)
	}
	if r.newest > 0 {
		k.explain("read %s: the API shows the newest %d records at the most. A full list without ours is an error, since ours may be older, and no full list is strong.", r.name, r.newest)
	}
	if r.search {
		k.explain("read %s: a search of text. What it finds is compared, what is not ours is left out, and it is never strong. Hits none of which quotes what was searched for are an error.", r.name)
	}
	if r.list != nil && r.list.Within != nil {
		k.explain("read %s: an answer without %s is an empty list, if the object that it would be in is there.", r.name, r.list.Container.Text())
	}
}

// warn adds a warning at a place.
func (l *loader) warn(at yamlfile.Place, format string, args ...any) {
	of := yamlfile.Reader{}
	of.At(at, format, args...)
	l.d.warnings = append(l.d.warnings, of.Problems...)
}
