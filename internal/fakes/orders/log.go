package orders

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrLog is wrapped by errors about a log that cannot be read.
var ErrLog = errors.New("log of effects")

// Log is the file of effects, one JSON object a line. An effect is on disk
// before it counts.
type Log struct {
	f       *os.File
	effects []Effect // what the file held when it was opened
}

// OpenLog opens or creates a log and reads what it holds. A last line that a
// crash tore did not count when it was written, so it is cut off; any other
// line that makes no sense is an error. One process at a time.
func OpenLog(path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	effects, good, err := readEffects(f)
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err == nil {
		err = f.Truncate(good)
	}
	if err == nil {
		_, err = f.Seek(good, io.SeekStart)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrLog, err), f.Close())
	}
	return &Log{f: f, effects: effects}, nil
}

// syncDir makes the name of a new file last.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close closes the file.
func (l *Log) Close() error { return l.f.Close() }

func (l *Log) append(e Effect) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	if _, err := l.f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	if err := l.f.Sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	return nil
}

// ReadLog reads the effects from a log, which may be in use or torn at the
// end.
func ReadLog(path string) ([]Effect, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	effects, _, err := readEffects(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLog, err)
	}
	return effects, nil
}

// readEffects reads whole lines and returns how many bytes of them are good.
func readEffects(r io.Reader) (effects []Effect, good int64, err error) {
	lines := bufio.NewReader(r)
	for {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return effects, good, nil // the last, incomplete line is torn
		}
		if err != nil {
			return nil, 0, err
		}
		e, err := parseEffect(line, int64(len(effects))+1)
		if err != nil {
			if _, last := lines.Peek(1); last == io.EOF {
				return effects, good, nil
			}
			return nil, 0, fmt.Errorf("line %d: %w", len(effects)+1, err)
		}
		effects = append(effects, e)
		good += int64(len(line))
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLogLine {
			return nil, fmt.Errorf("a line is longer than %d bytes", maxLogLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

func parseEffect(line []byte, seq int64) (Effect, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var e Effect
	if err := d.Decode(&e); err != nil {
		return e, err
	}
	if e.Seq != seq {
		return e, fmt.Errorf("seq is %d, want %d", e.Seq, seq)
	}
	return e, nil
}
