package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockPause is how long a process waits before it tries a lock again that another one has.
const lockPause = 50 * time.Millisecond

// errLocked means that another process has a lock.
var errLocked = errors.New("another process has the lock")

// rotate returns a function that exchanges the secret for the next one, which replaces it in its file.
// Processes that share the file do so one after another.
func (s source) rotate(from origin) (func(context.Context, func(string) (string, error)) error, error) {
	if s.File == "" {
		return nil, fmt.Errorf("each use of it gives the next one, which must be kept; want %s (a path in a folder that this program can write to)", s.setting("file"))
	}
	path, err := filepath.EvalSymlinks(beside(from.dir, s.File)) // a link stays one
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.setting("file"), err)
	}
	if err := alone(context.Background(), path, func() error { return nil }); err != nil && !errors.Is(err, errLocked) {
		return nil, fmt.Errorf("%s: each use of the secret gives the next one, which must be kept; want a folder that this program can write to: %w", s.setting("file"), err)
	}
	var old, unkept string // unkept followed old, and could not be written
	return func(ctx context.Context, exchange func(string) (string, error)) error {
		return alone(ctx, path, func() error {
			now, err := s.read(path)
			if err != nil {
				return err
			}
			use := now
			if now == old {
				use = unkept
			}
			next, err := exchange(use)
			if err != nil {
				return err
			}
			known.add(path, next)
			if next == now {
				return nil
			}
			if err := replace(path, next); err != nil {
				old, unkept = now, next
				return fmt.Errorf("%s: the next secret cannot be kept: %w", s.setting("file"), err)
			}
			old, unkept = "", ""
			return nil
		})
	}, nil
}

// alone runs f while this process alone has the lock of a file. The lock ends with the process.
func alone(ctx context.Context, path string, f func() error) error {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // and so it ends
	for err = tryLock(lock); errors.Is(err, errLocked); err = tryLock(lock) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errLocked, ctx.Err())
		case <-time.After(lockPause):
		}
	}
	if err != nil {
		return err
	}
	return f()
}

// replace replaces the content of a file: after a crash it has the old or the new one.
func replace(path, text string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // once it is renamed there is none
	_, err = f.WriteString(text + "\n")
	if err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
