package postgres

import (
	"embed"
	"io/fs"
	"path"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/*.sql
var texts embed.FS

// statements are the texts of package sql by name, for one schema.
type statements map[string]string

// columnsOfRow are those of a write in the order in which scanRow reads them.
// NULL is the zero value, also that of the whole row where there is none.
const columnsOfRow = `coalesce(w.n, 0), coalesce(w.id, ''), coalesce(w.tenant, ''), coalesce(w.destination, ''), coalesce(w.tool, ''), ` +
	`coalesce(w.structural_key, ''), coalesce(w.idempotency_key, ''), coalesce(w.about, ''), coalesce(w.created, 0), coalesce(w.state, ''), ` +
	`coalesce(w.due, 0), coalesce(w.settled_at, 0), coalesce(w.key_digest, ''), coalesce(w.behind, ''), coalesce(w.seq, 0), ` +
	`coalesce(w.tombstone, FALSE), coalesce(w.owner, ''), coalesce(w.lease_until, 0), coalesce(w.lease_for, 0), coalesce(w.fence, 0), ` +
	`coalesce(w.followed, FALSE), coalesce(w.body, ''), w.intent, w.before, w.evidence, w.mismatches, w.child_intent`

// columnsOfState are those of the guard in the order of type state.
const columnsOfState = `g.version, g.compatible_from, g.newest, g.standby, g.now, g.durable`

// newStatements reads the texts. Tables are marked with @, so that they can be
// found in a schema whatever the search path of the connection is.
func newStatements(schema string) statements {
	names, err := fs.Glob(texts, "sql/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	guard := mustRead(texts, "sql/guard.sql")
	s := make(statements, len(names))
	for _, name := range names {
		text := strings.NewReplacer("{guard}", strings.TrimSpace(guard), "{row}", columnsOfRow, "{state}", columnsOfState).
			Replace(mustRead(texts, name))
		s[strings.TrimSuffix(path.Base(name), ".sql")] = qualified(schema, text)
	}
	return s
}

// qualified puts the schema where the mark stands.
func qualified(schema, text string) string {
	prefix := ""
	if schema != "" {
		prefix = pgx.Identifier{schema}.Sanitize() + "."
	}
	return strings.ReplaceAll(text, "@ledger_", prefix+"ledger_")
}

func mustRead(files embed.FS, name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}
