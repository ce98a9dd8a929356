package eval

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/yamlfile"
)

// Rows reads the rows of a file, as a stream: CSV with a header if its name ends in .csv, else JSON
// objects, one a line or in one list.
func Rows(path string) func(context.Context, func(Row) error) error {
	return func(_ context.Context, give func(Row) error) error {
		var ps problems
		var failed error
		if strings.HasSuffix(strings.ToLower(path), ".csv") {
			failed = csvRows(&ps, path, give)
		} else {
			eachLine(&ps, path, 0, func(l line) {
				var r Row
				d := json.NewDecoder(strings.NewReader(string(l.raw)))
				d.UseNumber()
				if err := d.Decode(&r.Values); err != nil || r.Values == nil {
					ps.say(path, l.n, "", "is no object; want one such as {\"order_id\": \"A-1\"}")
					return
				}
				if r.Line = l.n; failed == nil {
					failed = give(r)
				}
			})
		}
		if failed != nil {
			return failed
		}
		return ps.err()
	}
}

func csvRows(ps *problems, path string, give func(Row) error) error {
	f, err := os.Open(path)
	if err != nil {
		ps.say(path, 0, "", "cannot be read: %s", reason(err))
		return nil
	}
	defer func() { _ = f.Close() }() // it was only read
	s := &stream{r: f, most: maxLine}
	r := csv.NewReader(s)
	var header []string
	for {
		cells, err := r.Read()
		var wrong *csv.ParseError
		switch {
		case errors.Is(err, io.EOF) && header != nil:
			return nil
		case errors.As(err, &wrong):
			ps.say(path, wrong.Line, "", "is no CSV: %s; want commas, quotes doubled within quotes, and as many cells as the header has", wrong.Err)
			return nil
		case err != nil:
			ps.say(path, 0, "", "cannot be read: %s; want a header and rows", reason(err))
			return nil
		}
		s.most, s.ends = r.InputOffset()+maxLine, nil
		if header == nil {
			header = cells
			header[0] = strings.TrimPrefix(header[0], "\ufeff")
			seen := map[string]bool{}
			for _, name := range header {
				if seen[name] {
					ps.say(path, 1, yamlfile.Clip(name), "is the name of two columns; want each name once")
					return nil
				}
				seen[name] = true
			}
			continue
		}
		row := Row{Values: intent.Fields{}}
		row.Line, _ = r.FieldPos(0)
		for i, name := range header {
			row.Values[name] = cells[i]
		}
		if err := give(row); err != nil {
			return err
		}
	}
}
