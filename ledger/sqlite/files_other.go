//go:build !unix

package sqlite

import (
	"io/fs"
	"os"
)

// identity distinguishes a file from every other.
type identity struct{ info fs.FileInfo }

func identityOf(path string) (identity, error) {
	info, err := os.Stat(path)
	return identity{info}, err
}

func (i identity) same(as identity) bool { return os.SameFile(i.info, as.info) }

// names returns how many names (hard links) the file has; 1 where the system does not say.
func names(fs.FileInfo) uint64 { return 1 }
