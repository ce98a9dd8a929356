package sqlite

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// files are the three that an open ledger consists of. While it is open SQLite
// neither removes nor replaces any of them.
type files [3]struct {
	path string
	info fs.FileInfo
}

// filesOf finds the files of a ledger that is open. The log and its index
// stand beside the file itself, where a link leads to it.
func filesOf(path string) (*files, error) {
	end, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	f := new(files)
	for i, path := range []string{path, end + "-wal", end + "-shm"} {
		f[i].path = path
		if f[i].info, err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// oneName refuses a file that stands in directories under several names: each
// would have a log of its own, and neither would hold the other's writes.
func oneName(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && names(info) > 1 {
		return fmt.Errorf("it has %d names (hard links), each of which would have a log of its own: remove all but one", names(info))
	}
	return err
}

// present refuses files that are no longer the ones at their paths. What is
// written into a file or a log that was taken away is gone with this process;
// without the index that they share, two processes do not see each other's
// locks.
func (f *files) present() error {
	for _, part := range f {
		now, err := os.Stat(part.path)
		if err != nil {
			return fmt.Errorf("it was taken away while it was open, restart this process: %w", err)
		}
		if !os.SameFile(now, part.info) {
			return fmt.Errorf("%s was replaced while it was open: restart this process", part.path)
		}
	}
	return nil
}
