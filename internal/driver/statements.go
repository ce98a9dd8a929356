package driver

import (
	"fmt"
	"io/fs"
	"strings"
)

// Statements are the SQL texts of a driver by name.
type Statements map[string]string

// ReadStatements reads SQL files. Each statement begins after a line "-- name: x", and its comment
// is part of it. The files are embedded, so that a fault in them is a panic.
func ReadStatements(files fs.FS) Statements {
	s := make(Statements)
	paths, err := fs.Glob(files, "sql/*.sql")
	for _, path := range paths {
		var text []byte
		if text, err = fs.ReadFile(files, path); err != nil {
			break
		}
		for _, part := range strings.Split("\n"+string(text), "\n-- name: ")[1:] {
			name, statement, _ := strings.Cut(part, "\n")
			if _, twice := s[name]; twice {
				err = fmt.Errorf("%s: there are two statements %q", path, name)
			}
			s[name] = strings.TrimSpace(statement)
		}
	}
	if err != nil {
		panic(err)
	}
	return s
}

// Text returns a statement. A name without one is a fault of the program, and a panic.
func (s Statements) Text(name string) string {
	text, known := s[name]
	if !known {
		panic(fmt.Sprintf("there is no statement %q", name))
	}
	return text
}
