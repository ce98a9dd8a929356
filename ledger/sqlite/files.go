package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
)

// files are the three files of an open ledger. While it is open SQLite neither removes nor
// replaces any of them.
type files [3]struct {
	path string
	is   identity
}

// filesOf finds the files of an open ledger. The log and its index are in the directory of the
// file itself, also where path is a link to it.
func filesOf(path string) (*files, error) {
	end, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	f := new(files)
	for i, path := range []string{path, end + "-wal", end + "-shm"} {
		f[i].path = path
		if f[i].is, err = identityOf(path); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// oneName refuses a file that has several names (hard links): each would have a log of its own,
// and neither would contain the other's writes.
func oneName(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && names(info) > 1 {
		return fmt.Errorf("it has %d names (hard links), each of which would have a log of its own: remove all but one", names(info))
	}
	return err
}

// present refuses files that are no longer the ones at their paths. Data written into a removed
// file or log is lost with this process; without the shared index, two processes do not see each
// other's locks.
func (f *files) present() error {
	for _, part := range f {
		now, err := identityOf(part.path)
		if err != nil {
			return fmt.Errorf("it was taken away while it was open, restart this process: %w", err)
		}
		if !now.same(part.is) {
			return fmt.Errorf("%s was replaced while it was open: restart this process", part.path)
		}
	}
	return nil
}
