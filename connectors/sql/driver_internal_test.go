package sql

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDrivers: what goes to a driver and what comes from one, by type; what is
// not of the type is an error, never another value.
func TestDrivers(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600))
	for name, c := range map[string]struct {
		typ        Type
		want       any // of an intent
		sent       any
		read, show any // show nil: an error
	}{
		"text":             {Text, "x", "x", []byte("x"), "x"},
		"text of a number": {Text, "1", "1", int64(1), nil},
		"whole":            {Integer, json.Number("1e2"), int64(100), int64(100), json.Number("100")},
		"huge":             {Integer, "9223372036854775808", "9223372036854775808", "9223372036854775808", json.Number("9223372036854775808")},
		"decimal":          {Numeric, json.Number("10.50"), "10.50", []byte("10.50"), json.Number("10.50")},
		"no decimal":       {Numeric, json.Number("1"), "1", "one", nil},
		"double":           {Float, json.Number("0.1"), 0.1, 0.1, json.Number("0.1")},
		"true":             {Bool, true, true, int64(1), true},
		"neither":          {Bool, false, false, int64(2), nil},
		"time":             {Timestamp, "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z", at, "2026-01-02T03:04:05.0000006+01:00"},
		"local time":       {LocalTime, "2026-01-02T03:04:05", "2026-01-02T03:04:05", at, "2026-01-02T03:04:05.0000006"},
		"day":              {Date, "2026-01-02", "2026-01-02", at, "2026-01-02"},
		"bytes":            {Bytes, "AAE=", []byte{0, 1}, []byte{0, 1}, "AAE="},
		"bytes as text":    {Bytes, "AAE=", []byte{0, 1}, "AAE=", nil},
		"document":         {JSON, map[string]any{"a": json.Number("1.0")}, `{"a":1.0}`, `{"a":1.0}`, map[string]any{"a": json.Number("1.0")}},
		"half a document":  {JSON, "x", `"x"`, `{"a":`, nil},
		"two documents":    {JSON, "x", `"x"`, `1,"w":2`, nil},
		"repeated members": {JSON, "x", `"x"`, `{"a":1,"a":2}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			column := Column{Name: "c", Type: c.typ}
			v, err := encode("/expect/c", column, c.want)
			if diff := cmp.Diff(c.sent, v.toDriver()); err != nil || diff != "" {
				t.Errorf("sent (%v), -want +got\n%s", err, diff)
			}
			got, err := fromDriver(column, c.read)
			if c.show == nil {
				if !errors.Is(err, errUnreadable) {
					t.Errorf("%#v is read as %#v (%v), want ErrUnreadable", c.read, got, err)
				}
				return
			}
			if diff := cmp.Diff(c.show, got); err != nil || diff != "" {
				t.Errorf("read (%v), -want +got\n%s", err, diff)
			}
		})
	}
}
