package sqlite

import (
	"embed"
	"maps"
	"strings"

	"github.com/readback-go/readback/internal/driver"
)

//go:embed sql/*.sql
var texts embed.FS

// statements are the SQL texts by name.
var statements = newStatements()

// columnsOfRow are those of a write in the order in which scan reads them.
const columnsOfRow = "w.n, w.id, w.tenant, w.tool, w.structural_key, w.idempotency_key, w.created, w.state, w.due, " +
	"w.lease_until, w.fence, w.seq, w.intent, w.body, w.before, w.evidence, w.mismatches, w.child_intent, " +
	"w.destination, w.key_digest, w.place, w.queued_behind, w.settled_at, w.tombstone, w.blocks, w.step_of, w.waits"

// columnsOfFound are those of a search, which leaves out what no row of its result shows.
var columnsOfFound = strings.NewReplacer("w.before", "NULL", "w.evidence", "NULL", "w.child_intent", "NULL").Replace(columnsOfRow)

// columnsOfDocument are those of a document in the order in which scanDocument reads them.
const columnsOfDocument = "p.n, p.tenant, p.kind, p.id, p.collection, p.subject, p.trace, p.created, p.state, p.due, p.done, p.version, p.updated, p.body"

// newStatements completes the texts, and adds a search from the oldest on for each one from the
// newest on, and a count for each listing of documents.
func newStatements() driver.Statements {
	s := driver.ReadStatements(texts)
	columns := strings.NewReplacer("{row}", columnsOfRow, "{found}", columnsOfFound, "{document}", columnsOfDocument)
	upwards := strings.NewReplacer("s.n < ?3", "s.n > ?3", "s.n DESC", "s.n")
	for name, text := range maps.Clone(s) {
		s[name] = columns.Replace(text)
		switch {
		case strings.HasPrefix(name, "search_"):
			s[name+oldestFirst] = upwards.Replace(text)
		case strings.HasPrefix(name, "documents_"):
			s["count_"+name] = "SELECT count(*) FROM (" + text + ")"
		}
	}
	return s
}

// oldestFirst ends the name of a search from the oldest on.
const oldestFirst = "_oldest_first"
