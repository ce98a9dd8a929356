package eval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxExport bounds a file of effects, an export or a file of outcomes, 64 GiB: it
	// is read as a stream, and more than once.
	maxExport = 64 << 30
	// maxLine bounds one line or one document of such a file, which is held whole.
	maxLine = 64 << 20
	// maxPlaces is how many destinations and kinds a file of declarations may name.
	maxPlaces = 10_000
)

// source is a file of declarations: it is read as a stream once, and then line by
// line by the places that items keep, so that no line is held in memory.
type source struct {
	path     string
	name     string // of what it was made of, "" for itself
	size     int64
	modified time.Time
	file     *os.File // nil between two evaluations
}

// item is one declared effect or write: where it is written, and little else. Of a
// million there are many, so it has no pointers.
type item struct {
	at      int64 // where it begins in its source; of one in the file of checks, its number there
	created int64 // when it was recorded, in ns since 1970; the least of all where it is not known
	size    uint32
	line    uint32
	place   uint16
	source  uint8 // 0 is the file of checks itself
	claim   uint8 // what an outcome claims of it, an index of claimWords; 0 for nothing
	flags   uint8
}

// The flags of an item.
const (
	isEffect  = 1 << iota // an expected effect of a run; else a write of an export
	isOther               // of the export, and not meant
	isDropped             // another line about the same write counts
	isRecent              // reads may not show it yet
)

func (it item) is(flag uint8) bool { return it.flags&flag != 0 }

// placeName is a destination and a kind.
type placeName struct{ destination, kind string }

// String is how names of records begin.
func (p placeName) String() string { return p.destination + "/" + p.kind }

// add stores the place of a line.
func (f *File) add(ps *problems, l line, p placeName, created time.Time, flags uint8) {
	i, known := f.placeNumbers[p]
	if !known {
		if i = uint16(len(f.places)); len(f.places) >= maxPlaces { //nolint:gosec // it is bounded by the next condition
			ps.say(l.file, l.n, "destination", "is one of more than %d places; want fewer in one evaluation", maxPlaces)
			return
		}
		if f.placeNumbers == nil {
			f.placeNumbers = map[placeName]uint16{}
		}
		f.placeNumbers[p] = i
		f.places = append(f.places, p)
	}
	when := int64(math.MinInt64)
	if !created.IsZero() {
		when = created.UnixNano()
	}
	//nolint:gosec // lines and their sizes are bounded
	f.items = append(f.items, item{at: l.at, created: when, size: uint32(len(l.raw)), line: uint32(l.n), place: i, source: l.source, flags: flags})
	if flags&isOther == 0 {
		f.meant++
	}
}

// open opens the sources for reading by place.
func (f *File) open() (func(), error) {
	done := func() {
		for _, s := range f.sources {
			if s.file != nil {
				_ = s.file.Close() // it was only read
				s.file = nil
			}
		}
	}
	for _, s := range f.sources {
		var err error
		if s.file, err = os.Open(s.path); err != nil {
			done()
			return nil, err
		}
	}
	if err := f.unchanged(); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// unchanged fails if an open source is not as it was when it was loaded.
func (f *File) unchanged() error {
	for _, s := range f.sources {
		info, err := s.file.Stat()
		if err != nil {
			return err
		}
		if info.Size() != s.size || !info.ModTime().Equal(s.modified) {
			return fmt.Errorf("%s: has changed since it was loaded; want the same file for the whole evaluation", s.path)
		}
	}
	return nil
}

// lineOf reads the line of an item again.
func (f *File) lineOf(it item) (line, error) {
	if it.source == 0 {
		return f.inline[it.at], nil
	}
	s := f.sources[it.source-1]
	l := line{file: cmp.Or(s.name, s.path), n: int(it.line), at: it.at, source: it.source, raw: make(json.RawMessage, it.size)}
	if _, err := s.file.ReadAt(l.raw, it.at); err != nil {
		return line{}, fmt.Errorf("%s: cannot be read again: %w", l.where(), err)
	}
	return l, nil
}

// effectAt reads an effect again. It was understood when the file was loaded.
func (f *File) effectAt(it item) (placed, error) {
	l, err := f.lineOf(it)
	if err != nil {
		return placed{}, err
	}
	e := placed{line: l}
	d := json.NewDecoder(bytes.NewReader(l.raw))
	d.UseNumber()
	if err := d.Decode(&e.Effect); err != nil {
		return placed{}, fmt.Errorf("%s: cannot be read again: %w", l.where(), err)
	}
	e.line.raw = nil
	return e, nil
}

// writeAt reads a write again, and what was claimed of it.
func (f *File) writeAt(it item) (write, error) {
	l, err := f.lineOf(it)
	if err != nil {
		return write{}, err
	}
	var ps problems
	w, ok := writeOf(&ps, l)
	if !ok {
		return write{}, ps.err()
	}
	w.line.raw = nil
	w.claimed = w.exported.status()
	if it.claim > 0 {
		w.claimed = claimWords[it.claim]
	}
	return w, nil
}

// batch is how many lines or records are worked on at once.
const batch = 1000

// parallel does something for each of several things, several at once.
func parallel(n int, do func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// stream reads a file as it comes. It counts the lines, and reads no value that is
// longer than maxLine.
type stream struct {
	r    io.Reader
	off  int64 // how much was read
	most int64 // how much may be
	ends []int64
	line int
}

var errLong = errors.New("a value is too long")

// Read implements [io.Reader].
func (s *stream) Read(p []byte) (int, error) {
	if s.off >= s.most {
		return 0, errLong
	}
	n, err := s.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			s.ends = append(s.ends, s.off+int64(i))
		}
	}
	s.off += int64(n)
	return n, err
}

// lineAt is the number of the line at a position. Positions only grow.
func (s *stream) lineAt(at int64) int {
	i := 0
	for i < len(s.ends) && s.ends[i] < at {
		i++
	}
	s.ends = s.ends[i:]
	s.line += i
	return s.line
}

// keep registers a file whose lines are read again, which is impossible for a pipe. It returns
// the number of the source, 0 for none.
func (f *File) keep(ps *problems, path string) uint8 {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		ps.say(path, 0, "", "cannot be read: %s", reason(err))
		return 0
	case !info.Mode().IsRegular():
		ps.say(path, 0, "", "is no regular file; want one, since it is read more than once")
		return 0
	case info.Size() > maxExport:
		ps.say(path, 0, "", "has %d bytes; want at most %d", info.Size(), int64(maxExport))
		return 0
	}
	f.sources = append(f.sources, &source{path: path, size: info.Size(), modified: info.ModTime()})
	return uint8(len(f.sources)) //nolint:gosec // one for each member of the file of checks that names one
}

// eachPage reads the values of a file, one after another, and gives what each is. It
// reports whether all could be read.
func eachPage(ps *problems, path string, number uint8, give func(page)) bool {
	f, err := os.Open(path)
	if err != nil {
		ps.say(path, 0, "", "cannot be read: %s", reason(err))
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	s := &stream{r: f, line: 1, most: maxLine}
	d := json.NewDecoder(s)
	for {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return true
		}
		begins := d.InputOffset() - int64(len(raw))
		if err != nil { // it is before what cannot be read, and maybe some lines above it
			begins = skipBlanks(d.Buffered(), begins)
		}
		n := s.lineAt(begins)
		if err != nil || len(raw) > maxLine {
			var failed *os.PathError
			if errors.As(err, &failed) {
				ps.say(path, 0, "", "cannot be read: %s", reason(err))
				return false
			}
			ps.say(path, n, "", "is no JSON from here on; want one object a line")
			return false
		}
		s.most = max(s.most, d.InputOffset()+maxLine)
		p, why := opened(raw, line{file: path, n: n, at: begins, source: number})
		if why != "" {
			ps.say(path, n, "", "%s", why)
			return false
		}
		give(p)
	}
}

// skipBlanks is the position after the blanks.
func skipBlanks(r io.Reader, at int64) int64 {
	one := make([]byte, 1)
	for {
		if n, _ := r.Read(one); n == 0 || one[0] != ' ' && one[0] != '\t' && one[0] != '\r' && one[0] != '\n' {
			return at
		}
		at++
	}
}

// eachLine reads the JSON objects of a file: one a line or one after another, in one
// list, or the pages that `readback list --json` prints.
func eachLine(ps *problems, path string, number uint8, give func(line)) bool {
	return eachPage(ps, path, number, func(p page) {
		for _, l := range p.lines {
			give(l)
		}
	})
}

// claimWords are the words for what became of a write; items keep a number of them.
var claimWords = append([]string{""}, slices.Sorted(maps.Keys(statuses))...)
