package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"
)

// Version is that of the file, and the newest that this program knows. A file
// of a newer version is one that this program can still work on.
func (l *Ledger) Version(ctx context.Context) (have, known int, err error) {
	err = l.read(ctx, func(conn *sqlite.Conn) (err error) {
		have, _, err = version(conn, l.path)
		return err
	})
	return have, len(versions()), err
}
