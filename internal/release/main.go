// Command release makes the packages for npm and PyPI of the programs that goreleaser, or
// anything else, built:
//
//	go run ./internal/release -programs dist -notice bin/NOTICE -out dist/packages
//
// For each system there is a package @readback/linux-x64, @readback/win32-arm64 and so on for
// npm, and a wheel readback-bin. The npm package readback gets them as optional dependencies.
// The wheel readback is built by clients/python itself. Equal inputs give equal packages.
//
// It does not publish them.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	var p packages
	flag.StringVar(&p.programs, "programs", "dist", "the folder with a folder of each program, such as readback_linux_amd64_v1")
	flag.StringVar(&p.notice, "notice", filepath.Join("bin", "NOTICE"), "the licences of what is linked, from internal/notices")
	flag.StringVar(&p.out, "out", filepath.Join("dist", "packages"), "the folder for the packages, in npm and pypi")
	flag.Parse()
	p.root = "."
	if err := p.make(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// system is one that is released, as each registry names it.
type system struct {
	goos, goarch string
	os, cpu      string   // npm
	tags         []string // PyPI; the programs for Linux need no C library, so they suit each
}

var systems = []system{
	{"linux", "amd64", "linux", "x64", []string{"manylinux2014_x86_64", "musllinux_1_1_x86_64"}},
	{"linux", "arm64", "linux", "arm64", []string{"manylinux2014_aarch64", "musllinux_1_1_aarch64"}},
	{"darwin", "amd64", "darwin", "x64", []string{"macosx_12_0_x86_64"}}, // Go 1.26 needs macOS 12
	{"darwin", "arm64", "darwin", "arm64", []string{"macosx_12_0_arm64"}},
	{"windows", "amd64", "win32", "x64", []string{"win_amd64"}},
	{"windows", "arm64", "win32", "arm64", []string{"win_arm64"}},
}

// program is the name of the file.
func (s system) program() string {
	if s.goos == "windows" {
		return "readback.exe"
	}
	return "readback"
}

// packages makes all packages of one version.
type packages struct{ root, programs, notice, out string }

// file is one in a package.
type file struct {
	name string
	data []byte
	mode fs.FileMode
}

var (
	errProgram = errors.New("there must be one program for each system")
	errVersion = errors.New("the packages must have one version")
)

func (p packages) make() error {
	manifest, version, err := p.manifest()
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(p.root, "LICENSE"))
	if err != nil {
		return err
	}
	notice, err := os.ReadFile(p.notice)
	if err != nil {
		return err
	}
	optional := map[string]string{}
	for _, s := range systems {
		program, err := s.read(p.programs)
		if err != nil {
			return err
		}
		name := "@readback/" + s.os + "-" + s.cpu
		optional[name] = version
		if err := p.npm(s, name, version, program, licence, notice); err != nil {
			return err
		}
		if err := p.wheel(s, version, program, licence, notice); err != nil {
			return err
		}
	}
	return p.client(manifest, version, optional, licence)
}

// read reads the program of a system. goreleaser adds the level of the instruction set to the
// name of its folder.
func (s system) read(programs string) ([]byte, error) {
	pattern := filepath.Join(programs, "readback_"+s.goos+"_"+s.goarch+"*", s.program())
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%w: %s is %d files", errProgram, pattern, len(found))
	}
	return os.ReadFile(found[0])
}

var pyVersion = regexp.MustCompile(`(?m)^version = "([0-9]+\.[0-9]+\.[0-9]+)"$`)

// manifest reads package.json, and the version, which both clients must have.
func (p packages) manifest() (map[string]json.RawMessage, string, error) {
	text, err := os.ReadFile(filepath.Join(p.root, "clients", "typescript", "package.json"))
	if err != nil {
		return nil, "", err
	}
	var manifest map[string]json.RawMessage
	var version string
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, "", fmt.Errorf("package.json: %w", err)
	}
	if err := json.Unmarshal(manifest["version"], &version); err != nil {
		return nil, "", fmt.Errorf("package.json: version: %w", err)
	}
	project, err := os.ReadFile(filepath.Join(p.root, "clients", "python", "pyproject.toml"))
	if err != nil {
		return nil, "", err
	}
	if m := pyVersion.FindSubmatch(project); m == nil || string(m[1]) != version {
		return nil, "", fmt.Errorf("%w: package.json has %s, pyproject.toml %q", errVersion, version, m)
	}
	return manifest, version, nil
}

// about is what package.json of a platform begins with.
type about struct {
	Name            string            `json:"name"`
	Version         string            `json:"version"`
	Description     string            `json:"description"`
	License         string            `json:"license"`
	Repository      map[string]string `json:"repository"`
	PreferUnplugged bool              `json:"preferUnplugged"` // a program cannot be run from an archive
	OS              []string          `json:"os"`
	CPU             []string          `json:"cpu"`
}

func (p packages) npm(s system, name, version string, program, licence, notice []byte) error {
	manifest, err := json.MarshalIndent(about{
		Name: name, Version: version, Description: "The program readback for " + s.goos + "/" + s.goarch, License: "Apache-2.0",
		Repository:      map[string]string{"type": "git", "url": "git+https://github.com/readback-go/readback.git"},
		PreferUnplugged: true, OS: []string{s.os}, CPU: []string{s.cpu},
	}, "", "  ")
	if err != nil {
		return err
	}
	return p.tarball("readback-"+s.os+"-"+s.cpu+"-"+version+".tgz", []file{
		{"package.json", append(manifest, '\n'), 0o644},
		{"LICENSE", licence, 0o644},
		{"NOTICE", notice, 0o644},
		{"bin/" + s.program(), program, 0o755},
	})
}

// client is the npm package readback: what its package.json lists, and the programs as optional
// dependencies. They are not in the package.json of the repository, where npm ci would look for
// them before they are published.
func (p packages) client(manifest map[string]json.RawMessage, version string, optional map[string]string, licence []byte) error {
	var listed []string
	if err := json.Unmarshal(manifest["files"], &listed); err != nil {
		return fmt.Errorf("package.json: files: %w", err)
	}
	var err error
	if manifest["optionalDependencies"], err = json.Marshal(optional); err != nil {
		return err
	}
	delete(manifest, "devDependencies")
	delete(manifest, "scripts")
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	files := []file{{"package.json", append(text, '\n'), 0o644}, {"LICENSE", licence, 0o644}}
	at := filepath.Join(p.root, "clients", "typescript")
	for _, name := range append(listed, "README.md") {
		err := filepath.WalkDir(filepath.Join(at, name), func(full string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(at, full)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(full) //nolint:gosec // our own files
			mode := fs.FileMode(0o644)
			if rel = filepath.ToSlash(rel); path.Dir(rel) == "bin" {
				mode = 0o755
			}
			files = append(files, file{rel, data, mode})
			return err
		})
		if err != nil {
			return fmt.Errorf("%w; `make clients-typescript` builds the client", err)
		}
	}
	return p.tarball("readback-"+version+".tgz", files)
}

// tarball writes a package as npm packs it.
func (p packages) tarball(name string, files []file) error {
	var b bytes.Buffer
	packed := gzip.NewWriter(&b)
	archive := tar.NewWriter(packed)
	for _, f := range files {
		err := archive.WriteHeader(&tar.Header{Name: "package/" + f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: made, Format: tar.FormatUSTAR})
		if err != nil {
			return err
		}
		if _, err := archive.Write(f.data); err != nil {
			return err
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return err
	}
	return p.write("npm", name, b.Bytes())
}

// made is the time of each file: packages of equal contents are equal. Zip knows no earlier
// year than 1980.
var made = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// wheel writes the wheel readback-bin of a system: the module readback_bin with the program and
// its path.
func (p packages) wheel(s system, version string, program, licence, notice []byte) error {
	info := "readback_bin-" + version + ".dist-info/"
	tagged := "Wheel-Version: 1.0\nGenerator: readback\nRoot-Is-Purelib: false\n"
	for _, tag := range s.tags {
		tagged += "Tag: py3-none-" + tag + "\n"
	}
	files := []file{
		{"readback_bin/__init__.py", []byte(`"""The program readback, for the package readback."""` + "\n\nimport os\n\npath = os.path.join(os.path.dirname(__file__), \"" + s.program() + "\")\nversion = \"" + version + "\"\n"), 0o644},
		{"readback_bin/" + s.program(), program, 0o755}, // pip keeps the mode
		{info + "METADATA", []byte("Metadata-Version: 2.1\nName: readback-bin\nVersion: " + version +
			"\nSummary: The program readback for one platform; install readback[bin]\nHome-page: https://github.com/readback-go/readback\nLicense: Apache-2.0\nRequires-Python: >=3.9\n"), 0o644},
		{info + "WHEEL", []byte(tagged), 0o644},
		{info + "LICENSE", licence, 0o644},
		{info + "NOTICE", notice, 0o644},
	}
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	files = append(files, file{info + "RECORD", []byte(record.String() + info + "RECORD,,\n"), 0o644})
	var b bytes.Buffer
	archive := zip.NewWriter(&b)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: made}
		header.SetMode(f.mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return p.write("pypi", "readback_bin-"+version+"-py3-none-"+strings.Join(slices.Sorted(slices.Values(s.tags)), ".")+".whl", b.Bytes())
}

func (p packages) write(registry, name string, data []byte) error {
	dir := filepath.Join(p.out, registry)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), data, 0o644) //nolint:gosec // likewise
}
