package report

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/readback-go/readback/internal/visible"
)

// Safe makes text fit for a terminal; see [visible.Text].
func Safe(s string) string { return visible.Text(s) }

// Clip is Safe text of at most n characters.
func Clip(s string, n int) string { return visible.Clip(s, n) }

// JSON writes a value as indented JSON, in which every character that is not fit for a
// terminal is an escape. A decoder gets the same value.
func JSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(visible.JSON(b.Bytes()))
	return err
}
