package config

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/readback-go/readback/internal/yamlfile"
)

// FileUse is the purpose of a file that the configuration names.
type FileUse string

// The uses of files.
const (
	UseSettings FileUse = "settings"    // the configuration, rules, declarations, contracts, certificates
	UseSecret   FileUse = "secret"      // a password or token
	UseKey      FileUse = "private key" // a private or sealing key
	UseProgram  FileUse = "program"     // a program that is started, or one of its arguments
)

// File is the configuration or a file that it names.
type File struct {
	// Path is the file. Field and Line are where it is named; "" and 0 for the
	// configuration itself and for what the environment names.
	Path, Field string
	Line        int
	Use         FileUse

	written string // the path as it is written, which does not depend on the working directory
}

// Files are the configuration and the existing files that it names.
func (c Config) Files() []File { return slices.Clone(c.files) }

// Untrusted lists what is wrong with the modes and owners of [Config.Files], on systems
// that have them.
func (c Config) Untrusted() []Problem {
	var problems []Problem
	for _, f := range c.files {
		if why := f.untrusted(); why != "" {
			problems = append(problems, Problem{Line: f.Line, Field: f.Field, Problem: why})
		}
	}
	return problems
}

// named collects the files that a configuration names.
func (l *loading) named(c *Config, body yamlfile.Node) {
	dir := filepath.Dir(c.Path)
	if c.Path != "" && !l.noFile {
		c.files = append(c.files, File{Path: c.Path, Use: UseSettings, written: filepath.Base(c.Path)})
	}
	places := map[string]yamlfile.Text{} // of settings that the environment can also set
	walk(newReader(), body, nil, func(place []string, line int, value string) {
		if holdsSecret(place) {
			c.secrets = append(c.secrets, value)
		}
		use, ok := useOf(place, value)
		field := strings.Join(place, ".")
		switch {
		case !ok:
		case overridden(field):
			places[field] = yamlfile.Text{Value: value, Place: yamlfile.Place{Line: line}}
		default:
			from := dir
			if use == UseProgram && len(place) == 3 && strings.HasPrefix(place[2], "command[") { // it is started in another directory if one is set
				from = beside(dir, c.textAt(field[:strings.LastIndex(field, ".")]+".dir"))
			}
			c.add(File{Path: beside(from, value), Field: field, Line: line, Use: use, written: value})
		}
	})
	for _, f := range []File{
		{Path: c.Gate.Rules, Field: "gate.rules", Use: UseSettings},
		{Path: c.Server.CertFile, Field: "server.tls.cert_file", Use: UseSettings},
		{Path: c.Server.KeyFile, Field: "server.tls.key_file", Use: UseKey},
	} {
		f.Line, f.written = places[f.Field].Line, cmp.Or(places[f.Field].Value, f.Path)
		c.add(f)
	}
}

// add adds a file that exists: a missing one is reported by its reader.
func (c *Config) add(f File) {
	if info, err := os.Stat(f.Path); f.Path != "" && err == nil && info.Mode().IsRegular() {
		c.files = append(c.files, f)
	}
}

// textAt is the text of a setting, "" if the file has none.
func (c *Config) textAt(field string) string {
	text, _ := strings.CutPrefix(c.values[field], "string ")
	return text
}

func overridden(field string) bool {
	return slices.ContainsFunc(overrides, func(s Setting) bool { return s.Path == field })
}

// walk visits every text of a file, with its path.
func walk(r *reader, n yamlfile.Node, place []string, visit func(place []string, line int, value string)) {
	path := strings.Join(place, ".")
	switch {
	case len(place) > maxFlat:
	case n.IsMapping():
		for _, e := range r.Mapping(n, path) {
			walk(r, e.Value, append(slices.Clip(place), e.Name), visit)
		}
	case n.IsList():
		for i, e := range r.List(n, path) {
			at := slices.Clone(place)
			if len(at) > 0 {
				at[len(at)-1] += fmt.Sprintf("[%d]", i)
			}
			walk(r, e, at, visit)
		}
	default:
		if text, ok := r.text(n); ok && len(place) > 0 {
			visit(place, n.Line(), text)
		}
	}
}

// text is a value that is text.
func (r *reader) text(n yamlfile.Node) (string, bool) {
	v, _ := r.Scalar(n, "")
	text, ok := v.(string)
	return text, ok
}

// SecretVariables are the environment variables that hold secrets: those that the file
// names, and the one that may be the URL of the ledger.
func (c Config) SecretVariables() []string { return append([]string{"READBACK_LEDGER"}, c.secrets...) }

// holdsSecret reports whether a setting names a variable that holds a secret.
func holdsSecret(place []string) bool {
	of, last := member(place), place[len(place)-1]
	switch of {
	case "env", "parameters", "tables":
		return false
	case "secrets", "headers":
		return last == "env"
	}
	return strings.HasSuffix(last, "_env")
}

// member is the setting of a destination that contains a place, "" for others.
func member(place []string) string {
	if len(place) > 2 && place[0] == "destinations" {
		return place[2]
	}
	return ""
}

// useOf returns the use of the file that a setting names, and whether it names one. Names
// below env, parameters and tables are the user's own.
func useOf(place []string, value string) (FileUse, bool) {
	last, of := place[len(place)-1], member(place)
	inPath := strings.ContainsAny(value, `./\`)
	switch {
	case of == "env" || of == "parameters" || of == "tables":
	case last == "key_file":
		return UseKey, true
	case last == "ca_file", last == "cert_file":
		return UseSettings, true
	case strings.HasSuffix(last, "_file"):
		return UseSecret, true
	case (of == "secrets" || of == "headers") && last == "file":
		return UseSecret, true
	case len(place) == 3 && (of == "contract" || of == "declaration"):
		return UseSettings, inPath
	case len(place) == 3 && of == "command[0]": // without a slash it is searched in PATH, which is not ours
		return UseProgram, strings.ContainsAny(value, `/\`)
	case len(place) == 3 && strings.HasPrefix(of, "command["):
		return UseProgram, inPath
	case strings.HasSuffix(last, "command[0]"): // of a secret
		return UseProgram, strings.ContainsAny(value, `/\`)
	case strings.Contains(last, "command["): // its arguments may contain a secret
		return UseSecret, inPath
	case len(place) == 2 && place[0] == "receipts" && strings.HasPrefix(last, "trusted["):
		return UseSettings, true
	case len(place) == 2 && place[0] == "gate" && last == "rules":
		return UseSettings, true
	}
	return "", false
}

// FileDigest is the SHA-256 of a file, in hex, with its path as it is written in the
// configuration.
type FileDigest struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// Digest identifies a configuration: the SHA-256, in hex, over the canonical JSON of the
// digests of its files. Secrets and keys are not among them.
type Digest struct {
	SHA256 string       `json:"sha256"`
	Files  []FileDigest `json:"files"`
}

// Digest reads the files of the configuration and digests them.
func (c Config) Digest() (Digest, error) {
	d := Digest{Files: []FileDigest{}}
	for _, f := range c.files {
		if f.Use != UseSettings && f.Use != UseProgram {
			continue
		}
		sum := c.sum
		if f.Path != c.Path || sum == "" {
			var err error
			if sum, err = fileDigest(f.Path); err != nil {
				return d, fmt.Errorf("the digest of the configuration: %w", err)
			}
		}
		d.Files = append(d.Files, FileDigest{File: f.written, SHA256: sum})
	}
	text, err := json.Marshal(d.Files) // members in a fixed order, no numbers: canonical
	d.SHA256 = hexDigest(text)
	return d, err
}

// fileDigest reads a file in pieces: a program may be large.
func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func hexDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// untrusted returns why a file must not be used, "" if it may be.
func (f File) untrusted() string {
	info, err := os.Stat(f.Path)
	if err != nil {
		return ""
	}
	target, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		target = f.Path
	}
	if text, err := yamlfile.ReadBounded(f.Path, maxFile); err == nil && f.Use != UseProgram {
		switch {
		case bytes.Contains(text, []byte("PRIVATE KEY-----")): // such as one beside a certificate
			f.Use = UseKey
		case f.Use == UseKey && bytes.Contains(text, []byte("BEGIN PUBLIC KEY")):
			f.Use = UseSettings // the wrong file, which its reader reports
		}
	}
	parts := []part{{f.Path, info, ""}}
	if link, err := os.Lstat(f.Path); err == nil && link.Mode()&fs.ModeSymlink != 0 {
		parts = append(parts, part{f.Path, link, "is reached by a symbolic link that "})
	}
	for _, dir := range slices.Compact([]string{filepath.Dir(f.Path), filepath.Dir(target)}) {
		if info, err := os.Stat(dir); err == nil {
			parts = append(parts, part{dir, info, "is in the directory " + dir + ", which "})
		}
	}
	for _, p := range parts {
		facts, ok := factsOf(p.path, p.info)
		if !ok {
			return "" // a system without modes
		}
		why := facts.wrong(f.Use)
		if why == "" {
			continue
		}
		if f.Field != "" && p.is == "" {
			return p.path + " " + why
		}
		return p.is + why
	}
	return ""
}

// part is a file, or a folder on its path: its owner controls the content.
type part struct {
	path string
	info fs.FileInfo
	is   string
}

// facts decide who can change or read a file.
type facts struct {
	path        string
	mode        fs.FileMode
	owner, user int  // user is the user of this process
	readOnly    bool // a read-only file system: the user that mounted it is trusted
}

// wrong returns which users can change the file, or read it, and must not.
func (f facts) wrong(use FileUse) string {
	perm := f.mode.Perm()
	switch {
	case use == UseKey && f.mode.IsRegular() && perm&0o004 != 0:
		return fmt.Sprintf("can be read by every user (mode %04o), and holds a private key; want `chmod o-rwx %s` (in Kubernetes defaultMode: 0400 of the secret, with fsGroup)", perm, f.path)
	case f.readOnly || f.mode&fs.ModeSymlink != 0 && (f.owner == 0 || f.owner == f.user):
		return ""
	case f.owner != 0 && f.owner != f.user:
		return fmt.Sprintf("belongs to user %d, who can change what this program does, and this is user %d; want it to belong to root or to this user: `chown %d %s`", f.owner, f.user, f.user, f.path)
	case perm&0o022 == 0 || f.mode.IsDir() && f.mode&fs.ModeSticky != 0:
		return ""
	case f.mode.IsDir():
		return fmt.Sprintf("others can write to (mode %04o), and so exchange its files; want `chmod go-w %s`", perm, f.path)
	}
	return fmt.Sprintf("can be written by others (mode %04o), who would decide what is started and where secrets are sent; want `chmod go-w %s`", perm, f.path)
}
