package postgres_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/ledger/postgres"
)

var freeze = flag.Bool("freeze", false, "keep the statements of this version, for the tests of later ones: before a release")

// frozenStatements are those of the programs of a version, by name.
func frozenStatements(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer func() { must(t, f.Close()) }()
	z, err := gzip.NewReader(f)
	must(t, err)
	text, err := io.ReadAll(z)
	must(t, err)
	all := make(map[string]string)
	for _, one := range strings.Split(string(text), "-- name: ")[1:] {
		name, statement, _ := strings.Cut(one, "\n")
		all[name] = statement
	}
	return all
}

// unprepared names the statements that a database refuses to prepare.
func unprepared(t *testing.T, d *database, all map[string]string) (failed []string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), d.dsn())
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "meta_table" { // several statements, which make a ledger
			continue
		}
		if _, err := conn.Prepare(t.Context(), "", all[name]); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", name, err))
		}
	}
	return failed
}

// A program of an earlier version continues while a newer one upgrades the ledger: each of its
// statements is still valid, unless the migration has it end.
func TestStatementsOfEarlierVersions(t *testing.T) {
	path := func(version int) string {
		return filepath.Join("testdata", "statements", fmt.Sprintf("%04d.sql.gz", version))
	}
	if *freeze {
		var text bytes.Buffer
		z := gzip.NewWriter(&text)
		for _, name := range slices.Sorted(maps.Keys(postgres.Statements)) {
			_, err := fmt.Fprintf(z, "-- name: %s\n%s\n", name, postgres.Statements[name])
			must(t, err)
		}
		must(t, z.Close())
		must(t, os.WriteFile(path(len(postgres.Versions)), text.Bytes(), 0o600))
	}
	d := fresh(t)
	d.open(nil)
	conn, err := pgx.Connect(t.Context(), d.dsn())
	must(t, err)
	compatible := 0
	must(t, conn.QueryRow(t.Context(), "SELECT compatible_from FROM ledger_meta").Scan(&compatible))
	must(t, conn.Close(t.Context()))
	for version := compatible; version < len(postgres.Versions); version++ {
		all := frozenStatements(t, path(version))
		if len(all) < 100 {
			t.Errorf("version %d: %d statements, want all", version, len(all))
		}
		for _, failed := range unprepared(t, d, all) {
			t.Errorf("a program of version %d cannot run a statement any more: %s; add to the ledger only, or have the migration set compatible_from", version, failed)
		}
	}
	d.exec("ALTER TABLE ledger_writes RENAME COLUMN due TO due_at")
	if failed := unprepared(t, d, frozenStatements(t, path(1))); len(failed) == 0 {
		t.Error("a column was renamed, and no statement fails")
	}
}
