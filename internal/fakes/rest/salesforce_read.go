package rest

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What Salesforce shows: rows, describe, SOQL and composite reads.

func (s *Salesforce) get(r *Request, seen View) Answer {
	if wrong := s.elsewhere(r); wrong != nil {
		return *wrong
	}
	o := seen.Get(s.object, r.PathValue("id"))
	if o == nil {
		return *rowMissing()
	}
	return Answer{Status: http.StatusOK, Body: s.row(o, nil)}
}

func (s *Salesforce) getByExternalID(r *Request, seen View) Answer {
	found, wrong := s.byExternalID(r, seen)
	switch {
	case wrong != nil:
		return *wrong
	case len(found) == 0:
		return *rowMissing()
	}
	return Answer{Status: http.StatusOK, Body: s.row(found[0], nil)}
}

// row is a record as it is shown: with all fields, or the requested ones; null for a missing
// value.
func (s *Salesforce) row(o Object, asked []string) Object {
	row := Object{"attributes": map[string]any{"type": s.object, "url": s.uri(o)}}
	if asked == nil {
		asked = slices.Collect(maps.Keys(s.fields))
	}
	for _, name := range asked {
		row[name] = o[name]
	}
	return row
}

func (s *Salesforce) describe(r *Request, _ View) Answer {
	if wrong := s.elsewhere(r); wrong != nil {
		return *wrong
	}
	var fields []any
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		f := s.fields[name]
		kind := f.Type
		if kind == "" {
			kind = "string"
		}
		fields = append(fields, map[string]any{
			"name": name, "label": name, "type": kind, "externalId": f.ExternalID, "unique": f.Unique,
			"caseSensitive": f.CaseSensitive, "updateable": !f.ReadOnly, "createable": !f.ReadOnly,
		})
	}
	return Answer{Status: http.StatusOK, Body: map[string]any{"name": s.object, "queryable": true, "fields": fields}}
}

// collection reads up to 2000 records by their ids; null where there is none.
func (s *Salesforce) collection(r *Request, seen View) Answer {
	if wrong := s.elsewhere(r); wrong != nil {
		return *wrong
	}
	ids, _ := r.Body["ids"].([]any)
	listed, _ := r.Body["fields"].([]any)
	if len(ids) > salesforcePage || len(listed) == 0 {
		return salesforceError(http.StatusBadRequest, "INVALID_INPUT", "ids and fields are needed, at most 2000 ids")
	}
	var fields []string
	for _, f := range listed {
		fields = append(fields, fmt.Sprint(f))
	}
	rows := []any{}
	for _, id := range ids {
		o := seen.Get(s.object, fmt.Sprint(id))
		if o == nil {
			rows = append(rows, nil)
			continue
		}
		rows = append(rows, s.row(o, fields))
	}
	return Answer{Status: http.StatusOK, Body: rows}
}

// query answers SELECT … FROM … WHERE with equality, IN and OR only.
func (s *Salesforce) query(r *Request, seen View) Answer {
	q, err := parseSOQL(r.URL.Query().Get("q"))
	if err != nil {
		return salesforceError(http.StatusBadRequest, "MALFORMED_QUERY", err.Error())
	}
	if q.object != s.object || s.hidden {
		return salesforceError(http.StatusBadRequest, "INVALID_TYPE", "sObject type '"+q.object+"' is not supported.")
	}
	for _, name := range q.names() {
		if _, known := s.fields[name]; !known {
			return salesforceError(http.StatusBadRequest, "INVALID_FIELD", "No such column '"+name+"' on entity '"+s.object+"'.")
		}
	}
	if q.fields == nil && (q.limit < 1 || q.limit > salesforceAll) {
		return salesforceError(http.StatusBadRequest, "MALFORMED_QUERY", "The SOQL FIELDS function must have a LIMIT of at most 200")
	}
	var ids []string
	for _, o := range seen.List(s.object) {
		if q.matches(s.fields, o) && (q.limit == 0 || len(ids) < q.limit) {
			ids = append(ids, o.Text("Id"))
		}
	}
	return s.pageOf(seen, ids, len(ids), q.fields)
}

func (s *Salesforce) pageOf(seen View, ids []string, total int, fields []string) Answer {
	records := []any{}
	for _, id := range ids[:min(len(ids), s.page)] {
		if o := seen.Get(s.object, id); o != nil {
			records = append(records, s.row(o, fields))
		}
	}
	body := map[string]any{"totalSize": total, "done": len(ids) <= s.page, "records": records}
	if len(ids) > s.page {
		cursor := fmt.Sprintf("01gWs%010d-%d", seen.Next(), s.page)
		s.cursors[cursor] = append([]string{strconv.Itoa(total)}, ids[s.page:]...)
		body["nextRecordsUrl"] = "/services/data/v62.0/query/" + cursor
	}
	return Answer{Status: http.StatusOK, Body: body}
}

// queryMore returns the next page, with all fields.
func (s *Salesforce) queryMore(r *Request, seen View) Answer {
	rest, ok := s.cursors[r.PathValue("cursor")]
	if !ok {
		return salesforceError(http.StatusBadRequest, "INVALID_QUERY_LOCATOR", "invalid query locator")
	}
	total, _ := strconv.Atoi(rest[0]) // pageOf wrote it
	return s.pageOf(seen, rest[1:], total, nil)
}

// soql is a query that was understood; fields nil means all.
type soql struct {
	object string
	fields []string
	where  []condition // any of them
	limit  int
}

type condition struct {
	field  string
	values []string
}

func (q soql) names() []string {
	all := slices.Clone(q.fields)
	for _, c := range q.where {
		all = append(all, c.field)
	}
	return all
}

func (q soql) matches(fields map[string]SalesforceField, o Object) bool {
	for _, c := range q.where {
		for _, v := range c.values {
			if fields[c.field].same(o[c.field], v) {
				return true
			}
		}
	}
	return len(q.where) == 0
}

var (
	soqlHead    = regexp.MustCompile(`(?is)^\s*SELECT\s+(FIELDS\(ALL\)|[\w\s,]+?)\s+FROM\s+(\w+)\s*`)
	soqlWhere   = regexp.MustCompile(`(?is)^(WHERE|OR)\s+(\w+)\s*(=|IN)\s*`)
	soqlLimit   = regexp.MustCompile(`(?is)^LIMIT\s+(\d+)\s*$`)
	soqlLiteral = regexp.MustCompile(`(?s)^'((?:[^'\\]|\\['"\\nrtbf_%])*)'\s*`)
	soqlEscapes = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `\"`, `"`, `\n`, "\n", `\r`, "\r", `\t`, "\t")
)

// parseSOQL parses the queries of a client that looks records up.
func parseSOQL(text string) (soql, error) {
	head := soqlHead.FindStringSubmatch(text)
	if head == nil {
		return soql{}, fmt.Errorf("unexpected token: '%s'", text)
	}
	q := soql{object: head[2]}
	if !strings.EqualFold(head[1], "FIELDS(ALL)") {
		for _, f := range strings.Split(head[1], ",") {
			q.fields = append(q.fields, strings.TrimSpace(f))
		}
	}
	rest := text[len(head[0]):]
	for rest != "" {
		if limit := soqlLimit.FindStringSubmatch(rest); limit != nil {
			q.limit, _ = strconv.Atoi(limit[1]) // digits alone
			return q, nil
		}
		where := soqlWhere.FindStringSubmatch(rest)
		if where == nil || strings.EqualFold(where[1], "WHERE") != (len(q.where) == 0) {
			return soql{}, fmt.Errorf("unexpected token: '%s'", rest)
		}
		values, after, err := soqlValues(rest[len(where[0]):], strings.EqualFold(where[3], "IN"))
		if err != nil {
			return soql{}, err
		}
		q.where = append(q.where, condition{where[2], values})
		rest = after
	}
	return q, nil
}

// soqlValues reads one literal, or several in brackets.
func soqlValues(rest string, list bool) ([]string, string, error) {
	var values []string
	if list {
		rest = strings.TrimPrefix(rest, "(")
	}
	for {
		literal := soqlLiteral.FindStringSubmatch(rest)
		if literal == nil {
			return nil, "", fmt.Errorf("unexpected token: '%s'", rest)
		}
		values = append(values, soqlEscapes.Replace(literal[1]))
		rest = rest[len(literal[0]):]
		switch {
		case !list:
			return values, rest, nil
		case strings.HasPrefix(rest, ")"):
			return values, strings.TrimSpace(rest[1:]), nil
		case !strings.HasPrefix(rest, ","):
			return nil, "", fmt.Errorf("unexpected token: '%s'", rest)
		}
		rest = strings.TrimSpace(rest[1:])
	}
}
