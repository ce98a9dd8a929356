package rest

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// SheetRows is the collection of [Sheets]: {"values": [cell, …], "metadata": [{metadataId, metadataKey,
// metadataValue, visibility}, …], ".rank": its place among the rows}.
const SheetRows = "rows"

// SheetsOptions are the choices of a [Sheets]. The zero value works.
type SheetsOptions struct {
	// Token is the access token, ID the spreadsheet's. Default "ya29.readback", "sheet1".
	Token, ID string
	// TakenAccepted means that a metadataId that is taken is accepted; otherwise the batch fails.
	TakenAccepted bool
}

// Sheets is the fake of Google's Sheets API v4 for the rows of one sheet, whose sheetId is 0.
//
// A batch is applied whole or not at all; this fake takes batches that change one row. Rows move when
// others are inserted or deleted, and what is attached to a row as developer metadata moves with it. A
// lookup that finds nothing has no valueRanges, an empty row no values, and empty cells at the end of a row
// are cut. Unknown members are refused.
type Sheets struct {
	*Fake
	o SheetsOptions
}

// NewSheets makes one.
func NewSheets(o SheetsOptions) *Sheets {
	o.Token, o.ID = cmp.Or(o.Token, "ya29.readback"), cmp.Or(o.ID, "sheet1")
	s := &Sheets{o: o}
	m := usual(bearer(o.Token), 400, googleStatus)
	m.Throttled = func(how string, _ time.Duration) (Answer, bool) { return googleStatus(429), how == "" } // no time to wait
	s.Fake = New(m)
	path := "/v4/spreadsheets/" + o.ID
	s.HandleRead("GET "+path, true, func(*Request, View) Answer {
		return Answer{Status: 200, Body: map[string]any{"spreadsheetId": o.ID, "sheets": []any{map[string]any{"properties": map[string]any{"sheetId": 0, "title": "Sheet1", "index": 0}}}}}
	})
	s.HandleWrite("POST "+path+":batchUpdate", s.batch)
	s.HandleWrite("POST "+path+"/values:batchUpdateByDataFilter", s.update)
	s.HandleRead("POST "+path+"/values:batchGetByDataFilter", false, s.lookup)
	return s
}

// googleStatus is a problem in the form that newer APIs of Google have.
func googleStatus(code int) Answer {
	name := map[int]string{400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL"}[code]
	return *googleProblem(code, cmp.Or(name, "INVALID_ARGUMENT"), http.StatusText(code))
}

func googleProblem(code int, status, message string) *Answer {
	return &Answer{Status: code, Body: map[string]any{"error": map[string]any{"code": code, "message": message, "status": status}}}
}

func sheetsWrong(format string, args ...any) *Answer {
	return googleProblem(400, "INVALID_ARGUMENT", fmt.Sprintf(format, args...))
}

// Seed inserts a row at an index as another actor would, or below all for -1. metadata is attached to it,
// nil for none.
func (s *Sheets) Seed(index int, values []any, metadata Object) string {
	id, _ := s.Put(SheetRows, func(now View) (string, Object) {
		rows := sheetRows(now)
		if index < 0 {
			index = len(rows)
		}
		o := Object{"values": values, "metadata": []any{}, ".rank": sheetRank(rows, index)}
		if metadata != nil {
			o["metadata"] = []any{map[string]any(metadata)}
		}
		return numbered(now), o
	})
	return id
}

func sheetRows(v View) []Object {
	rank := func(o Object) float64 {
		n, _ := strconv.ParseFloat(fmt.Sprint(o[".rank"]), 64)
		return n
	}
	rows := []Object{}
	for _, p := range v.store.order {
		if o := v.Get(SheetRows, p.id); o != nil && p.collection == SheetRows {
			o[".id"] = p.id
			rows = append(rows, o)
		}
	}
	slices.SortStableFunc(rows, func(a, b Object) int { return cmp.Compare(rank(a), rank(b)) })
	return rows
}

// sheetRank is a place before the row that is at an index now.
func sheetRank(rows []Object, index int) float64 {
	rank := func(i int) float64 {
		n, _ := strconv.ParseFloat(fmt.Sprint(rows[i][".rank"]), 64)
		return n
	}
	switch {
	case len(rows) == 0:
		return 0
	case index == 0:
		return rank(0) - 1
	case index >= len(rows):
		return math.Floor(rank(len(rows)-1)) + 1
	}
	return (rank(index-1) + rank(index)) / 2
}

// sheetIndex reads a number of a range of one row, -1 where it is none.
func sheetIndex(v any, path ...any) int {
	n, err := strconv.Atoi(fmt.Sprint(at(v, path...)))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

func (s *Sheets) batch(r *Request, now View) (Plan, *Answer) {
	rows, row, before, id := sheetRows(now), Object(nil), Object(nil), ""
	replies, index, removed := []any{}, -1, false
	if name := unknown(r.Body, "requests includeSpreadsheetInResponse responseRanges responseIncludeGridData"); name != "" {
		return Plan{}, sheetsWrong("Invalid JSON payload received. Unknown name %q: Cannot find field.", name)
	}
	for i, one := range listAt(r.Body, "requests") {
		request, reply := one.(map[string]any), map[string]any{}
		if name := unknown(request, "insertDimension deleteDimension updateCells createDeveloperMetadata"); name != "" || len(request) != 1 {
			return Plan{}, sheetsWrong("Invalid JSON payload received. Unknown name %q at 'requests[%d]': Cannot find field.", name, i)
		}
		which, where := "", any(nil)
		for which = range request {
			where = map[string]any{
				"insertDimension": at(one, which, "range", "startIndex"), "deleteDimension": at(one, which, "range", "startIndex"), "updateCells": at(one, which, "start", "rowIndex"),
				"createDeveloperMetadata": at(one, which, "developerMetadata", "location", "dimensionRange", "startIndex"),
			}[which]
		}
		n := sheetIndex(where)
		if n < 0 || index >= 0 && n != index || removed {
			return Plan{}, sheetsWrong("Invalid requests[%d].%s: this fake changes one row in a batch", i, which)
		}
		switch index = n; {
		case which == "insertDimension":
			row, id = Object{"values": []any{}, "metadata": []any{}, ".rank": sheetRank(rows, index)}, numbered(now)
		case row == nil && index < len(rows):
			id = rows[index].Text(".id")
			before, row = now.Get(SheetRows, id), now.Get(SheetRows, id)
		case row == nil:
			return Plan{}, sheetsWrong("Invalid requests[%d].%s: there is no row %d", i, which, index)
		}
		switch which {
		case "deleteDimension":
			removed = true
		case "updateCells":
			cells := []any{}
			for _, cell := range listAt(one, which, "rows", 0, "values") {
				v := objectAt(cell, "userEnteredValue")
				cells = append(cells, cmp.Or(v["stringValue"], v["numberValue"], v["boolValue"], v["formulaValue"]))
			}
			if fields := textAt(one, which, "fields"); fields != "userEnteredValue" && fields != "*" {
				return Plan{}, sheetsWrong("Invalid requests[%d].updateCells: At least one field must be listed in 'fields'.", i)
			}
			row["values"] = cells
		case "createDeveloperMetadata":
			given := Object(objectAt(one, which, "developerMetadata")).Clone()
			if given["metadataId"] == nil {
				given["metadataId"] = Number(1_000_000 + now.Next())
			}
			if n, err := strconv.ParseInt(fmt.Sprint(given["metadataId"]), 10, 32); err != nil || n < 1 || given.Text("metadataKey") == "" || given.Text("visibility") == "" {
				return Plan{}, sheetsWrong("Invalid requests[%d].createDeveloperMetadata: metadataKey, visibility and a positive metadataId are required", i)
			}
			if taken := sheetMatches(rows, map[string]any{"metadataId": given["metadataId"]}); len(taken) > 0 && !s.o.TakenAccepted {
				return Plan{}, sheetsWrong("Invalid requests[%d].createDeveloperMetadata: Developer metadata with ID %v already exists.", i, given["metadataId"])
			}
			reply[which] = map[string]any{"developerMetadata": given.Clone()}
			row["metadata"] = append(row["metadata"].([]any), map[string]any(only(given, []string{"metadataId", "metadataKey", "metadataValue", "visibility"})))
		}
		replies = append(replies, reply)
	}
	if row == nil {
		return Plan{}, sheetsWrong("Must specify at least one request.")
	}
	a := Answer{Status: 200, Body: map[string]any{"spreadsheetId": s.o.ID, "replies": replies}}
	if removed {
		return removing(SheetRows, id, a), nil
	}
	return s.plan(id, before, row, a), nil
}

// plan stores a row; its last cell that is not empty is the one that suffers.
func (s *Sheets) plan(id string, before, row Object, a Answer) Plan {
	p := storing(SheetRows, id, before, row, "", func(Object) Answer { return a })
	change := func(to func(v any) any) func(stored Object) {
		return func(stored Object) {
			for i, v := range slices.Backward(listAt(stored, "values")) {
				if v != nil && v != "" {
					listAt(stored, "values")[i] = to(v)
					return
				}
			}
		}
	}
	p.Drop = change(func(any) any { return nil })
	p.Normalise = change(func(v any) any { return strings.ToUpper(fmt.Sprint(v)) })
	p.Duplicate = func(stored Object, now View) (string, Object) { // a copy takes its metadata along
		for _, m := range listAt(stored, "metadata") {
			m.(map[string]any)["metadataId"] = Number(1_000_000 + now.Next())
		}
		stored[".rank"] = sheetRank(sheetRows(now), 1<<30)
		return numbered(now), stored
	}
	return p
}

// sheetMatches are the rows with metadata that has all of these members.
func sheetMatches(rows []Object, lookup map[string]any) []int {
	var found []int
	for i, row := range rows {
		if slices.ContainsFunc(listAt(row, "metadata"), func(m any) bool {
			for name, v := range lookup {
				if strings.HasPrefix(name, "metadata") && !same(at(m, name), v) {
					return false
				}
			}
			return len(lookup) > 0
		}) {
			found = append(found, i)
		}
	}
	return found
}

func (s *Sheets) update(r *Request, now View) (Plan, *Answer) {
	rows := sheetRows(now)
	found := sheetMatches(rows, objectAt(r.Body, "data", 0, "dataFilter", "developerMetadataLookup"))
	if len(listAt(r.Body, "data")) != 1 || textAt(r.Body, "valueInputOption") == "" || len(found) > 1 {
		return Plan{}, sheetsWrong("'valueInputOption' is required, and this fake changes one row")
	}
	a := Answer{Status: 200, Body: map[string]any{"spreadsheetId": s.o.ID, "totalUpdatedRows": len(found)}}
	if len(found) == 0 {
		return Plan{}, &Answer{Status: 200, Body: map[string]any{"spreadsheetId": s.o.ID}}
	}
	id := rows[found[0]].Text(".id")
	row := now.Get(SheetRows, id)
	cells := listAt(row, "values")
	for i, v := range listAt(r.Body, "data", 0, "values", 0) { // null leaves a cell as it is
		for len(cells) <= i {
			cells = append(cells, nil)
		}
		if v != nil {
			cells[i] = v
		}
	}
	row["values"] = cells
	return s.plan(id, now.Get(SheetRows, id), row, a), nil
}

func (s *Sheets) lookup(r *Request, seen View) Answer {
	if name := unknown(r.Body, "dataFilters majorDimension valueRenderOption dateTimeRenderOption"); name != "" || len(listAt(r.Body, "dataFilters")) == 0 {
		return *sheetsWrong("Invalid JSON payload received. Unknown name %q: Cannot find field.", name)
	}
	rows, ranges := sheetRows(seen), []any{}
	for _, filter := range listAt(r.Body, "dataFilters") {
		for _, i := range sheetMatches(rows, objectAt(filter, "developerMetadataLookup")) {
			of := map[string]any{"range": fmt.Sprintf("Sheet1!A%d:Z%d", i+1, i+1), "majorDimension": "ROWS"}
			cells := sheetCells(listAt(rows[i], "values"), textAt(r.Body, "valueRenderOption") == "UNFORMATTED_VALUE")
			if len(cells) > 0 {
				of["values"] = []any{cells}
			}
			ranges = append(ranges, map[string]any{"valueRange": of, "dataFilters": []any{filter}})
		}
	}
	body := map[string]any{"spreadsheetId": s.o.ID}
	if len(ranges) > 0 {
		body["valueRanges"] = ranges
	}
	return Answer{Status: 200, Body: body}
}

func sheetCells(cells []any, plain bool) []any {
	all, last := []any{}, 0
	for i, v := range cells {
		_, isBool := v.(bool)
		switch {
		case v == nil:
			v = ""
		case !plain && isBool:
			v = strings.ToUpper(fmt.Sprint(v))
		case !plain:
			v = fmt.Sprint(v)
		}
		if all = append(all, v); v != "" {
			last = i + 1
		}
	}
	return all[:last]
}
