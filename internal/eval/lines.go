package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

// line is one JSON object of a file, and where it begins.
type line struct {
	file   string
	n      int
	at     int64 // in bytes
	source uint8 // the number of the file among the sources; 0 for one that is not kept
	raw    json.RawMessage
}

func (l line) where() string { return fmt.Sprintf("%s:%d", filepath.Base(l.file), l.n) }

// readLines reads the JSON objects of a file that is not long.
func readLines(ps *problems, path string) []line {
	var all []line
	if !eachLine(ps, path, 0, func(l line) { all = append(all, l) }) {
		return nil
	}
	return all
}

// page is the content of one value of a file: itself, the elements of a list, or writes as
// `readback list --json` prints them.
type page struct {
	n     int // the line where it begins
	lines []line
	// listed means that it is of such a list, after that it begins after a write, before that the
	// list continues after one; "" for neither.
	listed        bool
	after, before string
}

// opened is the content of a value of a file.
func opened(raw json.RawMessage, at line) (p page, why string) {
	p.n = at.n
	d := json.NewDecoder(bytes.NewReader(raw))
	if bytes.HasPrefix(raw, []byte("[")) {
		if p.lines, why = elements(d, at); why != "" {
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
		at.raw = raw
		return page{n: at.n, lines: []line{at}}, ""
	case len(form.Error) > 0:
		return p, "says that some writes could not be read; what was declared is not all there"
	case len(form.States) > 0:
		return p, "has only the writes in some states; want all: what was declared is not all there"
	}
	p.listed, p.after = true, form.After
	if form.Before != nil {
		p.before = fmt.Sprint(form.Before)
	}
	_, _ = d.Token() // the object was understood above
	for d.More() {
		name, _ := d.Token()
		if name, _ := name.(string); !strings.EqualFold(name, "writes") {
			var other json.RawMessage
			_ = d.Decode(&other)
			continue
		}
		if p.lines, why = elements(d, at); why != "" {
			return p, "has writes that are no list"
		}
	}
	return p, ""
}

// elements are those of the list that comes next, each with the place where it begins.
func elements(d *json.Decoder, at line) (all []line, why string) {
	begin, err := d.Token()
	if begin == nil && err == nil {
		return nil, "" // null
	}
	if begin != json.Delim('[') {
		return nil, "no list"
	}
	for base := at.at; d.More(); {
		at.raw = nil
		if err := d.Decode(&at.raw); err != nil {
			return nil, "no list"
		}
		at.at = base + d.InputOffset() - int64(len(at.raw))
		all = append(all, at)
	}
	_, _ = d.Token()
	return all, ""
}

// reason is an error without the path, which is shown next to it.
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
	// Unchanged are fields that no write may change, with their earlier values. Default none.
	Unchanged intent.Fields `json:"unchanged"`
	// Ignore lists paths that may hold anything. Default none.
	Ignore []string `json:"ignore"`
	// Compare is how fields are compared, as in an intent. Default that of the destination.
	Compare map[string]intent.Comparison `json:"compare"`
	// Stamp is the stamp of the record, if it is known. Default: it is found by its key alone.
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
