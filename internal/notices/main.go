// Command notices prints the licences of everything that is linked into the released
// programs, as their licences ask of those who pass copies on. It reads the modules from
// the module cache and the standard library from GOROOT, for every system that is
// released, so that the text follows go.mod and the same sources give the same text. A
// licence that is not allowed is an error.
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

	"github.com/google/licensecheck"
)

func main() {
	out := flag.String("out", "", "the file that is written (default: standard output)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	all, err := linked(ctx, ".", "./cmd/readback", systems...)
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
			if err == nil {
				_, err = identify(name, text)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			text = bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", filepath.ToSlash(name), text)
		}
	}
	return b.Bytes(), nil
}

// linked are the modules that packages of the module in a directory need on some systems, and
// the standard library.
func linked(ctx context.Context, dir, packages string, systems ...string) ([]module, error) {
	found := map[string]*module{}
	for _, system := range systems {
		goos, goarch, _ := strings.Cut(system, "/")
		text, err := list(ctx, dir, packages, "GOOS="+goos, "GOARCH="+goarch)
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
func list(ctx context.Context, dir, packages string, env ...string) ([]byte, error) {
	const format = "{{if .Standard}}Go\t{{context.ReleaseTags | len | printf \"1.%d\"}}\t{{.Root}}\t{{.Dir}}\n" +
		"{{else if not (or .Module.Main (and .Module.Replace (not .Module.Replace.Version)))}}{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}\t{{.Dir}}\n{{end}}"
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", strings.TrimSuffix(format, "\n"), packages)
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

// allowed are the licences, by SPDX identifier or the name that licensecheck has, that a
// program under Apache-2.0 may be linked with, and what they ask for.
var allowed = map[string]string{
	"0BSD":              "nothing",
	"Apache-2.0":        "its text and its NOTICE are passed on",
	"BSD-2-Clause":      "its text is passed on",
	"BSD-3-Clause":      "its text is passed on",
	"CC-BY-4.0":         "of documentation, which is not passed on",
	"GooglePatentsFile": "a grant beside BSD-3-Clause",
	"ISC":               "its text is passed on",
	"MIT":               "its text is passed on",
	"MPL-2.0":           "its files are unchanged, and their source is at the module's address",
	"OpenSSL":           "of BoringCrypto, which is linked only with GOEXPERIMENT=boringcrypto",
	"PostgreSQL":        "its text is passed on",
}

var (
	errNotAllowed = errors.New("is not an allowed licence; a maintainer decides, and adds it to internal/notices")
	errUnknown    = errors.New("is not a known licence; read it")
)

// recognised is the share of a file, in percent, that has to be the text of licences. The rest
// is names, years, and which files each licence is of.
const recognised = 75

// whole are the names of files that contain the licence of a module, and no list of others.
var whole = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)(\.(md|txt))?$`)

// identify is which licences the text of a file contains. Errors wrap errNotAllowed and
// errUnknown.
func identify(name string, text []byte) ([]string, error) {
	cover := licensecheck.Scan(text)
	var ids []string
	for _, m := range cover.Match {
		if _, ok := allowed[m.ID]; !ok {
			return nil, fmt.Errorf("%s: %s %w", name, m.ID, errNotAllowed)
		}
		if !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	if whole.MatchString(filepath.Base(name)) && cover.Percent < recognised {
		return nil, fmt.Errorf("%s %w: %.0f %% of it is %v", name, errUnknown, cover.Percent, ids)
	}
	return ids, nil
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
