package command

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/pgserver"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/shards"
)

const (
	// probeTime bounds the probe of one destination, maxProbes how many run at
	// once.
	probeTime = 10 * time.Second
	maxProbes = 16
	// clockBound is how far this machine's clock may differ from a database's before
	// doctor reports it: an operator could no longer order the entries of logs.
	clockBound = 10 * time.Second
	// scarceSpace is how much free space a ledger on a disk should have: some hundred
	// thousand writes, and a copy of its log.
	scarceSpace = 1 << 30
)

// examineDestinations logs in to all destinations at once.
func examineDestinations(ctx context.Context, e *examination, c config.Config, reg *connectors.Registry) {
	state, lossy := make([]string, len(c.Destinations)), make([]string, len(c.Destinations))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxProbes)
	for i, dest := range c.Destinations {
		kinds := kindsOf(reg, dest.Name)
		if len(kinds) == 0 {
			state[i] = "is not configured well enough to be reached"
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			state[i] = probed(ctx, reg, described{Name: dest.Name, Kinds: kinds})
			lossy[i] = losing(ctx, reg, dest.Name, kinds)
		})
	}
	wg.Wait()
	for i, dest := range c.Destinations {
		switch name := "destination " + dest.Name; state[i] {
		case "ok":
			e.ok(name, "reached, and the login works")
			if lossy[i] != "" {
				e.warn(name, "Give the destination a recheck that is longer than a failover takes, or have the operator of the server change the setting.",
					"a verified write can be lost: %s", flat(lossy[i]))
			}
		case "cannot be probed":
			e.ok(name, "%s", "cannot be asked without writing")
		default:
			e.fail(name, "See that it runs, that this machine may reach it, and that the login in the configuration is right.", "%s", flat(state[i]))
		}
	}
}

// losing are the settings of a destination's server with which it can lose what a strong
// read has seen, "" where none is known. A recheck detects what a failover lost.
func losing(ctx context.Context, reg *connectors.Registry, name string, kinds []string) string {
	rechecked := true
	var conn connectors.Connector
	for _, kind := range kinds {
		var p connectors.Profile
		var err error
		if conn, p, err = reg.Lookup(name, kind); err != nil {
			return ""
		}
		_, declared := p.Recheck.Declared()
		rechecked = rechecked && declared
	}
	server, ok := conn.(weak)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	all, err := server.Weaknesses(ctx)
	if err != nil {
		return "the settings of its server could not be read: " + err.Error()
	}
	if rechecked {
		all = slices.DeleteFunc(all, func(s string) bool { return strings.HasPrefix(s, pgserver.Standby) })
	}
	return strings.Join(all, "; ")
}

// weak is implemented by connectors that can name the settings of a server with which it
// can lose what it acknowledged.
type weak interface {
	Weaknesses(ctx context.Context) ([]string, error)
}

// examine checks an open ledger.
func examine(ctx context.Context, d *server.Instance, e *examination) {
	ctx, cancel := context.WithTimeout(ctx, server.LedgerTime)
	defer cancel()
	if err := writable(ctx, d); err != nil {
		e.broken("ledger", err)
	} else {
		e.ok("ledger", "%s can be read and written", d.Config.Ledger)
	}
	found, err := readStatus(ctx, d)
	if err != nil {
		e.broken("ledger contents", err)
		return
	}
	if found.Retention != "" {
		e.ok("retention", "not configured: %s", found.Retention)
	}
	examineVersion(e, found.Version)
	examineClock(d, e, found.Clock)
	examineDisk(d.Config, e)
	examineDurability(ctx, d, e)
	examineShards(ctx, d, e)
	examineNotes(e, found)
	examineContents(e, found)
	examineAudit(e, found)
	for _, m := range report.RestoreMatters(found) {
		e.warn("restore", m.Do, "%s", m.What)
	}
	good, err := access.NewTokens(d.Ledger, &access.TokenOptions{Logger: d.Log}).Good(ctx)
	if err != nil {
		e.broken("tokens", err)
		return
	}
	examinePersonTokens(e, good, d.Config.Server.PersonTokens)
}

// writable writes a note and deletes it again.
func writable(ctx context.Context, d *server.Instance) error {
	n, err := d.Ledger.SetNote(ctx, ledger.Note{Name: "doctor/" + rand.Text(), Value: []byte("x")})
	if err == nil {
		n.Value = nil
		_, err = d.Ledger.SetNote(ctx, n)
	}
	return err
}

func examineVersion(e *examination, v report.Version) {
	switch {
	case v.Ledger == 0:
	case v.Ledger > v.Program:
		e.warn("ledger version", "Bring this machine's program up to date; until then both work.",
			"the ledger has version %d, made by a newer program than this one, which knows %d and can still work on it", v.Ledger, v.Program)
	case v.Ledger < v.Program:
		e.warn("ledger version", "Start a program of this version with the right to change tables once, such as `readback work`.",
			"the ledger has version %d, and this program knows %d", v.Ledger, v.Program)
	default:
		e.ok("ledger version", "%d, which is what this program knows", v.Ledger)
	}
}

// examineClock compares the clocks. With a database only displayed times depend on this
// machine's clock; a file's clock is this machine's.
func examineClock(d *server.Instance, e *examination, c report.Clock) {
	if ahead := time.Duration(c.Ahead * float64(time.Second)).Abs(); ahead > clockBound {
		e.warn("clock", "Let a time daemon set this machine's clock.", "%s", c.Text())
		return
	}
	e.ok("clock", "%s", c.Text())
}

func examineDisk(c config.Config, e *examination) {
	if c.Ledger.Database() {
		return
	}
	if kind := networkDisk(filepath.Dir(c.Ledger.File)); kind != "" {
		e.fail("durability", "Put the ledger on a disk of this machine, or use PostgreSQL.",
			"the ledger is on %s: locks and syncs of a network file system cannot be relied on", kind)
	}
	free, err := freeSpace(filepath.Dir(c.Ledger.File))
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case err != nil:
		e.warn("disk", "See that the directory of the ledger can be read.", "%s", err)
	case free < scarceSpace:
		e.warn("disk", "Free space, or set `retention` and run `readback prune`: new writes are refused when the disk is full.",
			"%s are free beside the ledger", humanize.IBytes(free))
	default:
		e.ok("disk", "%s are free beside the ledger", humanize.IBytes(free))
	}
}

// examineDurability finds settings of a database with which it can lose what it
// acknowledged.
func examineDurability(ctx context.Context, d *server.Instance, e *examination) {
	l, ok := d.Ledger.(weak)
	if !ok {
		return
	}
	switch found, err := l.Weaknesses(ctx); {
	case err != nil:
		e.warn("durability", "Let the ledger's user read the settings of the server.", "%s", flat(err.Error()))
	case len(found) > 0 && strings.HasPrefix(found[0], pgserver.Standby): // the last one, which may be a read-only copy
		e.warn("durability", "Name a standby in synchronous_standby_names where one may take over.",
			"a failover can lose what the database acknowledged: %s", found[0])
	case len(found) > 0:
		e.fail("durability", "Set fsync and full_page_writes to on, and name a standby in synchronous_standby_names where one may take over.",
			"a crash can lose what the database acknowledged: %s", strings.Join(found, "; "))
	default:
		e.ok("durability", "no setting of the database weakens it")
	}
}

// examineShards finds shards that cannot be reached, and tenants of which it is not known where they
// are.
func examineShards(ctx context.Context, d *server.Instance, e *examination) {
	l, ok := d.Ledger.(*shards.Ledger)
	if !ok {
		return
	}
	problems, err := shardProblems(ctx, l)
	for _, p := range problems {
		e.fail("shards", "See `readback shards list`, and the section about tenants in several databases in docs/operate/deploy.md.", "%s", flat(p))
	}
	switch {
	case err != nil:
		e.broken("shards", err)
	case len(problems) == 0:
		e.ok("shards", "the directory and the shards agree")
	}
}

func examineNotes(e *examination, f report.Found) {
	var bad []string
	for _, d := range f.Status.Destinations {
		if len(d.Damaged) > 0 {
			bad = append(bad, d.Name)
		}
	}
	stops := 0
	for _, s := range f.Status.Stops {
		if s.Damaged {
			bad = append(bad, "a stop")
		} else if s.Active {
			stops++
		}
	}
	switch {
	case len(bad) > 0:
		e.warn("notes", "Workers assume the worst and note it anew; a stop must be stopped or released anew. If it stays so, check which other program writes to ledger_notes.",
			"what workers noted cannot be read: %s", report.Safe(strings.Join(bad, ", ")))
	case stops > 0:
		e.warn("notes", "`readback stops` says what, by whom and why.", "in force: %s", plural(stops, "stop"))
	default:
		e.ok("notes", "what workers share can be read")
	}
}

// examineContents finds what cannot continue by itself.
func examineContents(e *examination, f report.Found) {
	for _, m := range report.Stuck(f) {
		e.fail(m.Name, m.Do, "%s", m.What)
	}
}
