package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// tableName is the file, beside the code of a package, that has its mutants.
const tableName = "mutants.txt"

// tables reads every table of the module.
func tables(root string) ([]Mutant, error) {
	var all []Mutant
	var wrong []error
	rules := map[string]string{}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && at != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir() || d.Name() != tableName:
			return nil
		}
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		found, err := parseTable(filepath.ToSlash(name), string(text))
		wrong = append(wrong, err)
		for _, m := range found {
			if before, ok := rules[m.Rule]; ok {
				wrong = append(wrong, fmt.Errorf("%s: rule: %q has a mutant at %s already; want a rule of its own", m.Where, m.Rule, before))
			}
			rules[m.Rule] = m.Where
		}
		all = append(all, found...)
		return nil
	})
	return all, errors.Join(append(wrong, err)...)
}

// parseTable reads one table; name is its path in the module. Blocks are apart by
// an empty line, which no line within a block is: code has "-" or "+" before it.
func parseTable(name, text string) ([]Mutant, error) {
	var all []Mutant
	var wrong []error
	line := 1
	for block := range strings.SplitSeq(text, "\n\n") {
		switch m, err := parseBlock(name, line, block); {
		case err != nil:
			wrong = append(wrong, err)
		case m.Where != "": // not only comments
			all = append(all, m)
		}
		line += strings.Count(block, "\n") + 2
	}
	return all, errors.Join(wrong...)
}

// parseBlock reads the block that begins at a line. It takes code as it is: the
// lines after "-", and those after "+", joined by ends of lines.
func parseBlock(name string, line int, block string) (Mutant, error) {
	var m Mutant
	var section string
	var removed, added []string
	fields := map[string]*string{"rule": &m.Rule, "section": &section, "file": &m.File, "package": &m.Package, "test": &m.Test}
	for i, text := range strings.Split(block, "\n") {
		if text == "" || text[0] == '#' {
			continue
		}
		where := fmt.Sprintf("%s:%d", name, line+i)
		m.Where = cmp.Or(m.Where, where)
		switch {
		case text[0] == '-' && added == nil:
			removed = append(removed, text[1:])
		case text[0] == '-':
			return m, fmt.Errorf(`%s: want one change in a block: no "-" after "+"`, where)
		case text[0] == '+':
			added = append(added, text[1:])
		default:
			field, value, _ := strings.Cut(text, ": ")
			if fields[field] == nil {
				return m, fmt.Errorf(`%s: want rule, section, file, package or test, once in a block, or code after "-" or "+": %q`, where, text)
			}
			*fields[field] = value
			delete(fields, field)
		}
	}
	if m.Where == "" {
		return m, nil
	}
	m.Old, m.New = strings.Join(removed, "\n"), strings.Join(added, "\n")
	var err error
	switch m.Section, err = strconv.Atoi(section); {
	case m.Rule == "" || m.Test == "" || m.Old == "":
		return m, fmt.Errorf(`%s: want a rule, a test, and code after "-"`, m.Where)
	case err != nil || m.Section < 1 || m.Section > 10:
		return m, fmt.Errorf("%s: section: want a section of DESIGN, 1 to 10, not %q", m.Where, section)
	case !filepath.IsLocal(m.File):
		return m, fmt.Errorf("%s: file: want a file in the folder of the table, not %q", m.Where, m.File)
	}
	m.File = path.Join(path.Dir(name), m.File)
	m.Package = cmp.Or(m.Package, path.Dir(name))
	return m, nil
}
