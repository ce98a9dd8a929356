package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// ErrMissing says that PostgreSQL's server programs are not installed.
var ErrMissing = errors.New("pgtest: PostgreSQL is not installed (Debian: postgresql)")

// debian is where Debian puts the programs of each version, off everybody's
// path.
const debian = "/usr/lib/postgresql/*/bin"

// binaries is the folder with the newest server programs.
func binaries() (string, error) {
	if runtime.GOOS == "windows" {
		return "", ErrMissing // signals end it, and a shell watches it
	}
	folders, err := filepath.Glob(debian)
	if err != nil {
		return "", fmt.Errorf("pgtest: %w", err)
	}
	newest, best := -1, ""
	for _, folder := range folders {
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(folder)))
		if err == nil && version > newest && complete(folder) {
			newest, best = version, folder
		}
	}
	if best != "" {
		return best, nil
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && complete(filepath.Dir(path)) {
			return filepath.Dir(path), nil
		}
	}
	return "", ErrMissing
}

func complete(folder string) bool {
	for _, program := range []string{"postgres", "initdb", "pg_basebackup"} {
		if _, err := os.Stat(filepath.Join(folder, program)); err != nil {
			return false
		}
	}
	return true
}

// unprivileged is whom to run as: nil for ourselves, and another user where
// we are root.
func unprivileged() (*credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	names := []string{"postgres", "nobody"}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("pgtest: user %s: %w", name, err)
		}
		return &credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("pgtest: we are root, PostgreSQL refuses root, and there is no user %s", strings.Join(names, " or "))
}
