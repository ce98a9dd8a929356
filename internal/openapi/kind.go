package openapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// filled is the path of an endpoint, with placeholders. item is what the last one is, such as {ref}.
func (d *drafter) filled(e endpoint, item string) string {
	own, all, n := hole.FindAllStringSubmatch(d.path, -1), strings.Count(e.path, "{"), 0
	return quoted(hole.ReplaceAllStringFunc(e.path, func(h string) string {
		name := h[1 : len(h)-1]
		if n++; n == all && item != "" {
			return item
		}
		if n <= len(own) { // one place may have different names in different operations
			name = own[n-1][1]
		}
		if slices.Contains(d.Key, called(name)) {
			return "{key." + called(name) + "}"
		}
		return d.param(name, simple, "", "", nil)
	}))
}

// write writes the request.
func (d *drafter) write() {
	d.Path = d.filled(d.endpoint, "")
	for _, where := range []string{"query", "header"} {
		for _, m := range d.takes(where) {
			if isKey(m) {
				// A key that the API ignores makes a repeat a duplicate, so a person must say that it does not.
				d.Idempotency = plain(where + ": " + quoted(m.name))
				if m.schema.Format == "uuid" {
					d.Idempotency += ", form: uuid4"
				}
			}
		}
	}
	if d.body == nil {
		return
	}
	if len(d.body.OneOf) > 1 || len(d.body.AnyOf) > 1 {
		d.Body = append(d.Body, "# not known: which of several forms of the body is wanted; the first is here")
	}
	for _, m := range d.sends {
		d.sent(m)
	}
	if d.wrapper != "" {
		for i := range d.Body {
			d.Body[i] = "  " + d.Body[i]
		}
		d.Body = slices.Insert(d.Body, 0, literal(d.wrapper)+":")
	}
}

// sent writes one member of the body.
func (d *drafter) sent(m member) {
	name, field, mine, marked := literal(m.name)+": ", called(m.name), m.name == d.own.name, d.Stamp.sent == m.name
	add := func(text string) { d.Body = append(d.Body, text) }
	ours := func(name, value string) {
		if d.Form {
			add(strconv.Quote(m.name+"["+name+"]") + ": " + value)
		} else {
			add("  " + name + ": " + value)
		}
	}
	needed := map[bool]string{true: "  # required"}[m.required]
	form := stampForms[d.Stamp.How]
	switch {
	case field == "":
		add("# not known: a field for " + plain(strconv.Quote(m.name)) + ", a name without letters")
	case mine && d.inside, marked && d.Stamp.How == "object":
		if !d.Form {
			add(literal(m.name) + ":" + guess("a place for what is ours"))
		}
		if mine {
			ours("reference", `"{key.reference}"`)
		}
		if marked {
			ours("readback", `"{stamp}"`)
		}
	case mine:
		add(name + `"{key.` + field + `}"` + needed)
	case slices.Contains(d.Key, field):
		add(name + `"{key.` + field + `}"` + guess("the same as in the path"))
	case marked:
		add(name + fmt.Sprintf(form.sent, field) + guess(form.guess))
	case d.Form && !scalar(m):
		add("# not known: how " + plain(m.name) + ", which is no single value, is written in a form")
	default:
		add(name + `"{fields.` + field + `}"` + needed)
	}
}

// reads writes the read of one record, and of all.
func (d *drafter) reads() {
	if d.Get != nil {
		d.GetPath = d.filled(*d.Get, map[string]string{"POST": "{ref}"}[d.Method])
	}
	if d.List == nil {
		return
	}
	d.ListPath, d.Size = d.filled(*d.List, ""), 100
	all, own := d.List.takes("query"), d.own.name
	if d.inside {
		own = "reference"
	}
	limit, limited := first(all, "limit", "per_page", "page_size", "size", "max_results", "count", "first", "page_limit")
	if limited && limit.schema.Max != nil {
		d.Size = int(*limit.schema.Max)
	}
	for _, p := range all {
		add := func(value, why string) {
			d.Query = append(d.Query, literal(p.name)+": "+strconv.Quote(value)+guess(why))
		}
		switch {
		case own != "" && snake(p.name) == snake(own):
			d.Filtered = true
			add("{key."+called(own)+"}", "that it compares for equality")
		case slices.Contains(d.Key, called(p.name)):
			add("{key."+called(p.name)+"}", "that it compares for equality")
		case limited && p.name == limit.name:
			add(strconv.Itoa(d.Size), "the largest page")
		case p.required:
			add(d.param(p.name, simple, "", "default", p.schema.Default), "required; the same for all")
		}
	}
	s, headers := d.List.answers()
	more, _ := search(s, func(m member) bool {
		return kind(m.schema) == "boolean" && slices.Contains([]string{"has_more", "has_next", "has_next_page", "more"}, snake(m.name))
	})
	if more != "" {
		more = ", more: " + quoted(more)
	}
	cursor, asked := first(all, "starting_after", "cursor", "page_token", "next_token", "start_cursor", "page_cursor", "next_cursor", "after")
	next, _ := search(s, func(m member) bool {
		return kind(m.schema) == "string" && (slices.Contains(pieces(m.name), "next") || asked && snake(m.name) == snake(cursor.name) || snake(m.name) == "end_cursor")
	})
	switch page, counted := first(all, "page", "page_number"); {
	case next != "" && asked:
		d.Paging = "{next: " + quoted(next) + ", query: " + quoted(cursor.name) + more + "}"
	case next != "":
		d.Paging = "{next_url: " + quoted(next) + "}"
	case asked && d.id != "" && d.Records != "":
		d.Paging = "{next: " + quoted(d.Records+"[-1]"+step(d.id)) + ", query: " + quoted(cursor.name) + more + "}"
	case headers["Link"] != nil:
		d.Paging = "{link: next}"
	case counted && limited:
		d.Paging = fmt.Sprintf("{page: %s, size: %d}", quoted(page.name), d.Size)
	}
}

// record writes how a record is read.
func (d *drafter) record() {
	if d.Get == nil && d.List == nil && len(d.shown) == 0 {
		return
	}
	last, ok := same(d.shown, d.Key[len(d.Key)-1])
	if d.id != "" {
		d.ID = quoted("$"+step(d.id)) + guess("by its name")
	} else if d.Method == "PUT" && ok {
		d.ID = quoted("$"+step(last.name)) + guess("the key, since a record shows no id")
	}
	form := stampForms[d.Stamp.How]
	if d.Stamp.How != "" {
		d.StampShown = "{path: " + strconv.Quote("$"+step(d.Stamp.shown)+form.shown) + form.match + "}"
	}
	done := map[string]bool{"": true}
	for _, name := range d.Scope {
		done[name] = true
	}
	for _, m := range d.shown {
		name, path := m.name, "$"+step(m.name)
		if sent, ok := same(d.sends, m.name); ok {
			name = sent.name
		}
		field, marked := called(name), m.name == d.Stamp.shown
		how := quoted(path)
		switch {
		case d.inside && name == d.own.name:
			field, how = "reference", quoted(path+".reference")
		case marked:
			how = "{path: " + strconv.Quote(path+form.shown) + form.field + "}"
		case kind(items(m.schema)) == "string":
			how = "{path: " + strconv.Quote(path+"[*]") + ", list: true}"
		}
		if !done[field] && !m.schema.WriteOnly && (form.field != "" || field == "reference" || !marked) {
			d.Fields, done[field] = append(d.Fields, quoted(field)+": "+how), true
		}
	}
	if len(d.shown) == 0 {
		d.Fields = []string{`"...": $` + guess("the document does not say what a record has")}
		return
	}
	for _, m := range d.sends {
		if _, shows := same(d.shown, m.name); !shows && called(m.name) != "" {
			d.Fields = append(d.Fields, "# not known: "+plain(m.name)+": it is sent, and no record shows it")
		}
	}
}

// sample writes a record to measure an account with, of the examples that the document has.
func (d *drafter) sample() {
	var create []string
	last := d.Key[len(d.Key)-1]
	d.SampleKey = listOf(d.Key, func(k string) string {
		return quoted(k) + ": " + map[bool]string{true: `"readback-sample-{sample}"`, false: `"example"`}[k == last]
	})
	for _, m := range d.sends {
		field := called(m.name)
		if v, ok := m.schema.Example.(string); ok && m.required && field != "" && !slices.Contains(d.Key, field) {
			create = append(create, quoted(field)+": "+strconv.Quote(unbraced.Replace(v)))
		}
	}
	d.Sample = strings.Join(create, ", ")
}
