package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

// line is one JSON object of a file, and where it begins.
type line struct {
	file string
	n    int
	raw  json.RawMessage
}

func (l line) where() string { return fmt.Sprintf("%s:%d", filepath.Base(l.file), l.n) }

// readLines reads the JSON objects of a file: one a line or one after another,
// in one list, or the pages that `readback list --json` prints.
func readLines(ps *problems, path string) []line {
	all, _ := readPages(ps, path)
	return all
}

// page is what one value of a file stands for: itself, the elements of a list, or
// writes as `readback list --json` prints them.
type page struct {
	line  line // where it begins; of a list, what it is
	lines []json.RawMessage
	// listed says that it is of such a list, after that it begins after a write,
	// before that the list goes on after one; "" for neither.
	listed        bool
	after, before string
}

// readPages reads the values of a file, and all lines that they stand for.
func readPages(ps *problems, path string) ([]line, []page) {
	text, err := yamlfile.ReadBounded(path, maxLines)
	if err != nil {
		ps.say(path, 0, "", "cannot be read: %s", reason(err))
		return nil, nil
	}
	var all []line
	var pages []page
	d := json.NewDecoder(bytes.NewReader(text))
	counted, at := 1, 0
	for {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, pages
		}
		begins := int(d.InputOffset()) - len(raw)
		if err != nil { // it stands before what cannot be read, and maybe some lines above it
			rest := text[begins:]
			begins += len(rest) - len(bytes.TrimLeft(rest, " \t\r\n"))
		}
		counted, at = counted+bytes.Count(text[at:max(begins, at)], []byte("\n")), max(begins, at)
		if err != nil || len(raw) > maxLine {
			ps.say(path, counted, "", "is no JSON from here on; want one object a line")
			return nil, nil
		}
		p, why := opened(raw)
		if why != "" {
			ps.say(path, counted, "", "%s", why)
			return nil, nil
		}
		p.line = line{path, counted, nil}
		pages = append(pages, p)
		for _, r := range p.lines {
			all = append(all, line{path, counted, r})
		}
	}
}

// opened is what a value of a file stands for.
func opened(raw json.RawMessage) (p page, why string) {
	if bytes.HasPrefix(raw, []byte("[")) {
		if err := json.Unmarshal(raw, &p.lines); err != nil {
			return p, "is no list"
		}
		return p, ""
	}
	var form struct {
		Writes json.RawMessage `json:"writes"`
		After  string          `json:"after"`
		Before any             `json:"before"`
		States []string        `json:"states"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &form); err != nil {
		return p, "is no object; want JSON objects, one a line"
	}
	switch {
	case form.Writes == nil:
		return page{lines: []json.RawMessage{raw}}, ""
	case len(form.Error) > 0:
		return p, "says that some writes could not be read; what was declared is not all there"
	case len(form.States) > 0:
		return p, "has only the writes in some states; want all: what was declared is not all there"
	}
	p.listed, p.after = true, form.After
	if form.Before != nil {
		p.before = fmt.Sprint(form.Before)
	}
	if err := json.Unmarshal(form.Writes, &p.lines); err != nil {
		return p, "has writes that are no list"
	}
	return p, ""
}

// reason is an error without the path, which is told beside it.
func reason(err error) string {
	if i := strings.LastIndex(err.Error(), ": "); i >= 0 {
		return err.Error()[i+2:]
	}
	return err.Error()
}

// Effect is one expected effect of a run, as a file of effects has it.
type Effect struct {
	// Destination and Kind name where it is, Key is the business key. Required.
	Destination string        `json:"destination"`
	Kind        string        `json:"kind"`
	Key         intent.Fields `json:"key"`
	// Count is how many records there are to be. Default 1.
	Count *int `json:"count"`
	// Expect are fields that they must have, Absent paths that they must not.
	// Default none.
	Expect intent.Fields `json:"expect"`
	Absent []string      `json:"absent"`
	// Unchanged are fields that nobody asked to change, with the values that they
	// had. Default none.
	Unchanged intent.Fields `json:"unchanged"`
	// Ignore lists paths that may hold anything. Default none.
	Ignore []string `json:"ignore"`
	// Compare says how fields are compared, as in an intent. Default as the
	// destination says.
	Compare map[string]intent.Comparison `json:"compare"`
	// Stamp is the stamp that the record bears, where it is known. Default: it is
	// found by its key alone.
	Stamp string `json:"stamp"`
	// IdempotencyKey is the caller's name of the operation, for reports.
	IdempotencyKey string `json:"idempotency_key"`
}

var effectMembers = []string{"destination", "kind", "key", "count", "expect", "absent", "unchanged", "ignore", "compare", "stamp", "idempotency_key"}

// strictly decodes an object that has no other members than those known. It
// reports whether there was nothing wrong.
func strictly(ps *problems, l line, known []string, into any) bool {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(l.raw, &members); err != nil {
		ps.say(l.file, l.n, "", "is no object; want one such as {\"destination\": …}")
		return false
	}
	good := true
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(known, name) {
			continue
		}
		good = false
		if near, ok := yamlfile.Nearest(name, known); ok {
			ps.say(l.file, l.n, yamlfile.Clip(name), "is not known; did you mean %s?", near)
		} else {
			ps.say(l.file, l.n, yamlfile.Clip(name), "is not known; want one of %s", strings.Join(known, ", "))
		}
	}
	if !good {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(l.raw))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			ps.say(l.file, l.n, wrong.Field, "is a %s; want %s", wrong.Value, wanted(wrong.Type.String()))
		} else {
			ps.say(l.file, l.n, "", "cannot be understood: %s", err)
		}
		return false
	}
	return true
}

func wanted(goType string) string {
	switch {
	case strings.Contains(goType, "int"):
		return "a whole number"
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.Contains(goType, "string"):
		return "text"
	}
	return "names with values"
}

// effectOf reads one expected effect.
func effectOf(ps *problems, l line) (Effect, bool) {
	var e Effect
	if !strictly(ps, l, effectMembers, &e) {
		return e, false
	}
	good := true
	missing := func(field, want string) {
		good = false
		ps.say(l.file, l.n, field, "is missing; want %s", want)
	}
	if e.Destination == "" {
		missing("destination", "the name of a destination of the configuration")
	}
	if e.Kind == "" {
		missing("kind", "the kind of record there")
	}
	if len(e.Key) == 0 {
		missing("key", "the business key, such as {\"order_id\": \"A-1\"}")
	}
	if e.Count != nil && *e.Count < 0 {
		good = false
		ps.say(l.file, l.n, "count", "is %d; want how many records there are to be, 0 for none", *e.Count)
	}
	for path, rules := range e.Compare {
		if err := rules.Validate(); err != nil {
			good = false
			ps.say(l.file, l.n, "compare."+yamlfile.Clip(path), "%s", err)
		}
	}
	return e, good
}

func (e Effect) count() int {
	if e.Count == nil {
		return 1
	}
	return *e.Count
}
