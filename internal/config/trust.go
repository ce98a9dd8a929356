package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/readback-go/readback/internal/yamlfile"
)

// readTrusted reads the configuration or a file that it names. Such files start
// programs, hold secrets and say who may do what: one that another user can write, or
// put another in the place of, is refused.
func readTrusted(path string, most int64) ([]byte, error) {
	if err := Trusted(path); err != nil {
		return nil, err
	}
	text, err := yamlfile.ReadBounded(path, most)
	if err == nil && bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		err = Private(path)
	}
	return text, err
}

// Trusted says which other users can change a file, or replace it in its folder, nil for
// none. Root and the user who runs the program are trusted, and so is the group that it
// runs as. On a mount that is read-only here nobody changes anything. Of a link both its own folder and that of the file count.
func Trusted(path string) error {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil //nolint:nilerr // whoever reads it finds out, and says it better
	}
	for _, name := range []string{file, filepath.Dir(file), filepath.Dir(path)} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() && info.Mode()&os.ModeSticky != 0 || readOnly(name) {
			continue // no user replaces what is another's there, or anything
		}
		if why := changedBy(info); why != "" {
			return fmt.Errorf("%s: %s: %s; want it to belong to root or to the user who runs this, and nobody else able to write it", path, name, why)
		}
	}
	return nil
}

// Private says that every user can read the file of a private key.
func Private(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if readableByAll(info) {
		return fmt.Errorf("%s holds a private key, and every user can read it (mode %04o); want `chmod o-r`, in Kubernetes defaultMode: 0440", path, info.Mode().Perm())
	}
	return nil
}
