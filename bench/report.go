//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/jackc/pgx/v5"
)

// describe prints what the figures depend on: the machine, its disk, its load and every version.
func describe(w io.Writer, m *machine, present []contender) error {
	sync, err := m.syncTime()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Load average before: %s\n", loadAverage())
	fmt.Fprintf(w, "Machine: %d cores, %s/%s, %s; a synced append of 256 bytes takes %s (median of %d)\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), sync.Round(time.Microsecond), syncs)
	if sync < 20*time.Microsecond {
		fmt.Fprintln(w, "That is no disk: no contender waits for one. Name a folder on a disk with -dir.")
	}
	versions, err := m.versions(present)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Versions: %s\n\n", strings.Join(versions, ", "))
	return nil
}

const syncs = 101

// syncTime returns how long a durable append takes, in the middle.
func (m *machine) syncTime() (time.Duration, error) {
	f, err := os.Create(filepath.Join(m.dir, "bare"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line, all := make([]byte, 256), make([]time.Duration, syncs)
	for i := range all {
		began := time.Now()
		if _, err := f.Write(line); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		all[i] = time.Since(began)
	}
	slices.Sort(all)
	return all[syncs/2], nil
}

func (m *machine) versions(present []contender) ([]string, error) {
	var all []string
	if m.pg != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		c, err := pgx.Connect(ctx, m.pg.DSN("postgres"))
		if err != nil {
			return nil, err
		}
		defer func() { _ = c.Close(ctx) }()
		var version string
		if err := c.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
			return nil, err
		}
		all = append(all, "PostgreSQL "+strings.Fields(version)[0])
	}
	for _, program := range slices.Sorted(maps.Keys(m.programs)) {
		if path := m.programs[program]; path != "" {
			all = append(all, version(context.Background(), program, path))
		}
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil, fmt.Errorf("the program does not know its modules")
	}
	for _, d := range info.Deps {
		used := d.Path == "modernc.org/sqlite" ||
			slices.ContainsFunc(present, func(c contender) bool { return c.module == d.Path })
		if used && d.Replace == nil { // readback is replaced by the folder beside this one
			all = append(all, d.Path+" "+d.Version)
		}
	}
	return all, nil
}

// loadAverage is that of the last 1, 5 and 15 minutes, as far as the system says.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) >= 3 {
		return strings.Join(fields[:3], ", ")
	}
	return "not known"
}

func printResults(w io.Writer, r results) {
	fmt.Fprintf(w, "\nWrites a second, median (lowest to highest) of the rounds:\n\n")
	header(w, "contender")
	for _, c := range r.contenders {
		fmt.Fprintf(w, "| %s |", c.name)
		for i := range callers {
			median, low, high := spread(r.rates[c.name][i])
			fmt.Fprintf(w, " %s (%s to %s) |", rate(median), rate(low), rate(high))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\nreadback's rate divided by another's, median (lowest to highest) of the rounds:\n\n")
	header(w, "ratio")
	for _, c := range r.contenders {
		base, ok := r.base(c)
		if !ok {
			continue
		}
		fmt.Fprintf(w, "| %s ÷ %s |", base.name, c.name)
		for i := range callers {
			median, low, high := spread(r.ratios(base, c, i))
			fmt.Fprintf(w, " %.2f (%.2f to %.2f) |", median, low, high)
		}
		fmt.Fprintln(w)
	}
}

func header(w io.Writer, first string) {
	fmt.Fprintf(w, "| %s |", first)
	for _, n := range callers {
		fmt.Fprintf(w, " %s |", english.Plural(n, "caller", ""))
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(callers)))
}

func rate(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return humanize.Comma(int64(v + 0.5))
}
