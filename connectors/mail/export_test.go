package mail

import (
	"bytes"
	"encoding/json"
)

// Reseal gives what was prepared, and changed since, the sum that it should have;
// what has no envelope stays as it is.
func Reseal(prepared []byte) []byte {
	line, raw, found := bytes.Cut(prepared, []byte("\n"))
	var e envelope
	if !found || json.Unmarshal(line, &e) != nil {
		return prepared
	}
	sealed, err := seal(e, raw)
	if err != nil {
		return prepared
	}
	return sealed
}

var (
	ErrIntent     = errIntent
	ErrNoAnswer   = errNoAnswer
	ErrNoStartTLS = errNoStartTLS
	ErrOptions    = errOptions
	ErrPrepared   = errPrepared
	ErrPutOff     = errPutOff
	ErrTooMuch    = errTooMuch
)
