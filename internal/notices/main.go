// Command notices prints the licences of everything that is linked into the released
// programs, as their licences ask of those who pass copies on. It reads the modules from
// the module cache and the standard library from GOROOT, for every system that is
// released, so that the text follows go.mod and the same sources give the same text.
//
// It does not know whether a licence may be used: a person decides that when a module is
// added.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	out := flag.String("out", "", "the file that is written (default: standard output)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	all, err := linked(ctx, ".")
	var text []byte
	if err == nil {
		text, err = notices(all)
	}
	switch {
	case err != nil:
	case *out == "":
		_, err = os.Stdout.Write(text)
	default:
		if err = os.MkdirAll(filepath.Dir(*out), 0o755); err == nil { //nolint:gosec // it is for everybody
			err = os.WriteFile(*out, text, 0o644) //nolint:gosec // likewise
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// systems are those that are released; a test holds them against .goreleaser.yaml.
var systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// module is one that is linked, and the directories of its packages that are.
type module struct {
	name     string // with its version
	dir      string
	packages []string
}

// notices is the text about modules, in whatever order they and their packages are.
func notices(all []module) ([]byte, error) {
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	b.WriteString("readback contains the following software under the licences given with each.\n")
	for _, m := range all {
		files, err := m.licences()
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", strings.Repeat("=", 80), m.name)
		for _, name := range files {
			text, err := os.ReadFile(filepath.Join(m.dir, name))
			if err != nil {
				return nil, err
			}
			text = bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", filepath.ToSlash(name), text)
		}
	}
	return b.Bytes(), nil
}

// linked are the modules of all systems of the command of the module in a directory, and
// the standard library.
func linked(ctx context.Context, dir string) ([]module, error) {
	found := map[string]*module{}
	for _, system := range systems {
		goos, goarch, _ := strings.Cut(system, "/")
		text, err := list(ctx, dir, "GOOS="+goos, "GOARCH="+goarch)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(parts) != 4 {
				return nil, fmt.Errorf("go list prints %q", line)
			}
			name, version, root, at := parts[0], parts[1], parts[2], parts[3]
			m := found[name]
			if m == nil {
				m = &module{name: strings.TrimSpace(name + " " + version), dir: root}
				found[name] = m
			}
			if !slices.Contains(m.packages, at) {
				m.packages = append(m.packages, at)
			}
		}
	}
	var all []module
	for _, m := range found {
		all = append(all, *m)
	}
	return all, nil
}

// list prints name, version, root and directory of each package that is linked, but for
// our own.
func list(ctx context.Context, dir string, env ...string) ([]byte, error) {
	const format = "{{if .Standard}}Go\t{{context.ReleaseTags | len | printf \"1.%d\"}}\t{{.Root}}\t{{.Dir}}\n" +
		"{{else if not .Module.Main}}{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}\t{{.Dir}}\n{{end}}"
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", strings.TrimSuffix(format, "\n"), "./cmd/readback")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "CGO_ENABLED=0")...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, errs.String())
	}
	return regexp.MustCompile(`\n+`).ReplaceAll(text, []byte("\n")), nil
}

// shape is how the files with licences are called.
var shape = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)([.-].*)?$`)

var errNone = errors.New("no file with a licence was found")

// licences are the files of a module that are to be passed on: those at its root, and
// those on the way to each package that is linked.
func (m module) licences() ([]string, error) {
	places := []string{"."}
	for _, at := range m.packages {
		rel, err := filepath.Rel(m.dir, at)
		if err != nil {
			return nil, err
		}
		for ; rel != "."; rel = filepath.Dir(rel) {
			if !slices.Contains(places, rel) {
				places = append(places, rel)
			}
		}
	}
	var files []string
	for _, place := range places {
		entries, err := os.ReadDir(filepath.Join(m.dir, place))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Type()&(fs.ModeType&^fs.ModeSymlink) == 0 && shape.MatchString(e.Name()) && !strings.HasSuffix(e.Name(), ".go") {
				files = append(files, filepath.Join(place, e.Name()))
			}
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: %w in %s; add its licence by hand, or leave the module out", m.name, errNone, m.dir)
	}
	slices.Sort(files)
	return files, nil
}
