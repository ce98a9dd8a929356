package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/sqlite"
)

func init() {
	roles["opener"], roles["filler"], roles["limiter"] = opener, filler, limiter
}

// opener opens and reserves, and prints the result.
func opener(path, _ string) error {
	l, err := sqlite.Open(context.Background(), path, nil)
	if err == nil {
		defer l.Close()
		var rec ledger.Record
		if rec, err = ledger.NewRecord(asked("w2")); err == nil {
			_, _, err = l.Reserve(context.Background(), ledger.Reservation{Record: rec, Owner: "x", LeaseFor: time.Minute})
		}
	}
	fmt.Printf("unavailable=%v %v\n", errors.Is(err, ledger.ErrUnavailable), err)
	return nil
}

// A file that the process's user may not write is named, with the remedy.
func TestReadOnly(t *testing.T) {
	for name, modes := range map[string]struct{ file, dir os.FileMode }{
		"file":      {0o444, 0o777},
		"directory": {0o666, 0o555},
		"secret":    {0o000, 0o777},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := closed(t)
			dir := filepath.Dir(path)
			must(t, os.Chmod(filepath.Dir(dir), 0o755))
			must(t, os.Chmod(path, modes.file))
			must(t, os.Chmod(dir, modes.dir))
			t.Cleanup(func() { must(t, os.Chmod(dir, 0o755)) })
			cmd := process(t, "opener", path, "")
			cmd.Path = "/proc/self/exe" // another user may not read the directory of the test binary
			if os.Getuid() == 0 {       // modes do not bind root
				const nobodyUID = 65534
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
			}
			out, err := cmd.Output()
			must(t, err)
			for _, part := range []string{"unavailable=true", path, "user of this process"} {
				if !strings.Contains(string(out), part) {
					t.Errorf("%q is not in %s", part, out)
				}
			}
		})
	}
}

// filler fills a small disk, checks that nothing is lost, frees space and continues.
func filler(dir, _ string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=800k"); err != nil {
		fmt.Println("no small disk:", err)
		return nil
	}
	ballast, path := filepath.Join(dir, "ballast"), filepath.Join(dir, "ledger.db")
	if err := os.WriteFile(ballast, make([]byte, 200<<10), 0o600); err != nil {
		return err
	}
	l, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	made := 0
	fill := func() error {
		rec, err := ledger.NewRecord(asked(fmt.Sprint("w", made)))
		if err == nil {
			_, _, err = l.Reserve(context.Background(), ledger.Reservation{Record: rec, Owner: "x", LeaseFor: time.Minute})
		}
		return err
	}
	for err = fill(); err == nil; err = fill() {
		if made++; made > 10_000 {
			return errors.New("the disk is never full")
		}
	}
	fmt.Printf("after %d: unavailable=%v unsure=%v %v\n", made, errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrUnsure), err)
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return fmt.Errorf("with space again: %w", err)
	}
	made++
	if err := l.Close(); err != nil {
		return err
	}
	if l, err = sqlite.Open(context.Background(), path, nil); err != nil {
		return err
	}
	recs, err := l.List(context.Background(), ledger.Filter{Tenant: "acme", Limit: 1000})
	fmt.Printf("lost=%d\n", made-len(recs))
	return errors.Join(err, l.Close())
}

func TestFullDisk(t *testing.T) {
	cmd := process(t, "filler", t.TempDir(), "")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.Output()
	if len(out) == 0 || strings.HasPrefix(string(out), "no small disk") {
		need.Have(t, fmt.Errorf("%w: a user and mount namespace for a disk of its own (%w); TestFullFile has the same with a bound of SQLite", need.ErrMissing, errors.Join(err, errors.New(string(out)))))
	}
	must(t, err)
	for _, part := range []string{"unavailable=true", "unsure=false", "full", "lost=0"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%q is not in %s", part, out)
		}
	}
	t.Logf("%s", out)
}

// limiter makes writes fail in the middle of a commit, as a broken disk does, and checks that the
// ledger reports an unknown result, and continues.
func limiter(path, _ string) error {
	signal.Ignore(syscall.SIGXFSZ) // the write fails instead
	l, err := sqlite.Open(context.Background(), path, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	log, err := os.Stat(path + "-wal")
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: uint64(log.Size()) + 40_000, Max: before.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	var res ledger.Reservation
	made := 0
	for err == nil {
		if made++; made > 1000 {
			return errors.New("no write fails")
		}
		rec, bad := ledger.NewRecord(asked(fmt.Sprint("w", made)))
		if bad != nil {
			return bad
		}
		res = ledger.Reservation{Record: rec, Owner: "x", LeaseFor: time.Minute}
		_, _, err = l.Reserve(context.Background(), res)
	}
	fmt.Printf("after %d: unavailable=%v unsure=%v %v\n", made, errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrUnsure), err)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	if _, _, err = l.Reserve(context.Background(), res); err != nil {
		return fmt.Errorf("with the disk well again: %w", err)
	}
	recs, err := l.List(context.Background(), ledger.Filter{Tenant: "acme", Limit: 1000})
	fmt.Printf("lost=%d\n", made-len(recs))
	return err
}

// A commit that breaks off has an unknown fate, and is not called "not applied".
func TestBrokenCommit(t *testing.T) {
	out, err := process(t, "limiter", file(t), "").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, part := range []string{"unavailable=true", "unsure=true", "lost=0"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%q is not in %s", part, out)
		}
	}
}

// BenchmarkSync is what the disk allows one caller: two appends of 256 bytes, each with a sync of
// its own.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 256)
	for b.Loop() {
		for range 2 {
			if _, err := f.Write(line); err != nil {
				b.Fatal(err)
			}
			if err := syscall.Fdatasync(int(f.Fd())); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}
