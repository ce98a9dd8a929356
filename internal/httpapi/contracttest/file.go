package contracttest

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// File is one conversation.
type File struct {
	Name      string   // without folder and extension
	Needs     []string // what its server must support beyond HTTP
	Exchanges []Exchange
}

// Exchange is one request and its response.
type Exchange struct {
	Title string
	Line  int
	// Wait is how much time passes before it. Unchanged is the workflow that is the same
	// after it as before it, "" for none.
	Wait      time.Duration
	Unchanged string

	Method, Path string
	Header       http.Header
	Body         string

	Status     int
	WantHeader http.Header
	WantBody   string
}

// Load reads the files of a folder, in the order of their names.
func Load(dir string) ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.http"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s holds no *.http", dir)
	}
	var files []File
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := parse(strings.TrimSuffix(filepath.Base(path), ".http"), string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, f)
	}
	return files, nil
}

// parse reads one file.
func parse(name, text string) (File, error) {
	f := File{Name: name}
	var part []string // the lines of an exchange
	begin := 0
	flush := func() error {
		if begin == 0 {
			return f.head(part)
		}
		x, err := exchange(part, begin)
		if err != nil {
			return fmt.Errorf("line %d: %w", begin, err)
		}
		f.Exchanges = append(f.Exchanges, x)
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "### ") {
			if err := flush(); err != nil {
				return f, err
			}
			part, begin = nil, i+1
		}
		part = append(part, line)
	}
	return f, flush()
}

func (f *File) head(lines []string) error {
	for _, line := range lines {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "@needs" {
			f.Needs = append(f.Needs, words[1:]...)
		} else if strings.HasPrefix(line, "@") {
			return fmt.Errorf("%q is not known before the first exchange", line)
		}
	}
	return nil
}

// exchange reads the lines of one exchange.
func exchange(lines []string, begin int) (Exchange, error) {
	x := Exchange{Title: strings.TrimPrefix(lines[0], "### "), Line: begin}
	rest, err := x.directives(lines[1:])
	if err != nil {
		return x, err
	}
	for i, line := range rest {
		status, found := strings.CutPrefix(line, "HTTP/1.1 ")
		if !found {
			continue
		}
		if x.Status, err = strconv.Atoi(status); err != nil {
			return x, fmt.Errorf("the status is %q; want a number", status)
		}
		var line string
		if line, x.Header, x.Body, err = message(rest[:i]); err != nil {
			return x, err
		}
		var ok bool
		if x.Method, x.Path, ok = strings.Cut(line, " "); !ok {
			return x, fmt.Errorf("the request is %q; want a method and a path", line)
		}
		_, x.WantHeader, x.WantBody, err = message(rest[i:])
		return x, err
	}
	return x, errors.New("it has no answer; want a line HTTP/1.1 and a status")
}

func (x *Exchange) directives(lines []string) (rest []string, err error) {
	for i, line := range lines {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(line, "#"):
		case words[0] == "@wait" && len(words) == 2:
			if x.Wait, err = time.ParseDuration(words[1]); err != nil {
				return nil, err
			}
		case words[0] == "@unchanged" && len(words) == 2:
			x.Unchanged = words[1]
		case strings.HasPrefix(line, "@"):
			return nil, fmt.Errorf("%q is not known", line)
		default:
			return lines[i:], nil
		}
	}
	return nil, errors.New("it has no request")
}

// message splits a request or a response.
func message(lines []string) (first string, header http.Header, body string, err error) {
	header = http.Header{}
	for i, line := range lines[1:] {
		if line == "" {
			return lines[0], header, strings.TrimSpace(strings.Join(lines[i+1:], "\n")), nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return "", nil, "", fmt.Errorf("%q is no header; want a blank line before a body", line)
		}
		header.Set(name, strings.TrimSpace(value))
	}
	return lines[0], header, "", nil
}
