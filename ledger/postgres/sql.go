package postgres

import (
	"embed"
	"fmt"
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

// presently is the time now, on the clock of the database.
const presently = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000"

// inTime ends a statement when it is 0, by a division: a lock kept it waiting when
// it had its time already, with which leases and horizons begin. See [waited].
var inTime = fmt.Sprintf("CASE WHEN w.stored - g.now <= %d THEN 1 ELSE 0 END", int64(maxLag))

// unmoved is always true, and ends a statement with an error where somebody has
// changed what the guard says since the statement saw it. Only where transactions are
// repeatable by default does a statement see what was there before it waited for the
// locks of its tables: it would leave nothing for whoever seals, when sealing was
// switched on meanwhile. Elsewhere nothing is locked.
const unmoved = "(SELECT count(*) FROM (SELECT 1 FROM @ledger_meta AS m " +
	"WHERE m.one = 1 AND current_setting('transaction_isolation') <> 'read committed' FOR SHARE) AS m) < 2"

// newStatements reads the texts. Tables are marked with @, so that they can be
// found in a schema whatever the search path of the connection is.
func newStatements(schema string) statements {
	names, err := fs.Glob(texts, "sql/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	s := make(statements, len(names))
	for _, name := range names {
		s[strings.TrimSuffix(path.Base(name), ".sql")] = mustRead(texts, name)
	}
	s.withPapers()
	s.withDoors()
	for name, of := range stores {
		text := s[name]
		s[name] = of.many(text)
		for events := range maxSingle + 1 {
			s[single(name, events)] = of.one(text, events)
		}
	}
	marks := strings.NewReplacer("{guard}", strings.TrimSpace(mustRead(texts, "sql/guard.sql")),
		"{row}", columnsOfRow, "{state}", columnsOfState, "{paper}", columnsOfPaper)
	clocks := strings.NewReplacer("{clock}", presently, "{timely}", inTime, "{unmoved}", unmoved)
	for name, text := range s {
		s[name] = qualified(schema, clocks.Replace(marks.Replace(text)))
	}
	return s
}

// storing is a statement that stores changes: after how many parameters of its
// own those of a change begin, and their types.
type storing struct {
	own   int
	types []string
}

var stores = map[string]storing{
	"insert":      {ownOfInsert, strings.Fields(identityTypes + changingTypes)},
	"update":      {ownOfUpdate, strings.Fields("text bigint bigint boolean " + changingTypes)},
	"file insert": {ownOfInsert + ownOfPapers, strings.Fields(identityTypes + changingTypes)},
	"file update": {ownOfUpdate + ownOfPapers, strings.Fields("text bigint bigint boolean " + changingTypes)},
}

const (
	ownOfInsert = 5
	ownOfUpdate = 3
)

// identityTypes are those of the columns that never change.
const identityTypes = "text text text text text text text bigint bytea text text text bigint "

// The types of the columns that changes change, and those of events.
const changingTypes = "text bigint bigint text text bigint text bytea bytea bytea bytea text bigint bigint bigint bigint"

// The last six are of the change that an event is told as.
var eventTypes = strings.Fields("text bigint text bytea bytea text text bigint bigint bigint boolean")

// single is the name of the statement for one change with so many events.
// Without lists the database knows as much about it the first time as the
// hundredth, and so keeps its plan.
func single(name string, events int) string { return fmt.Sprint(name, " ", events) }

// many is the statement for any number of changes: a list for each column.
func (o storing) many(text string) string {
	from := o.own
	return strings.NewReplacer(
		"{rows}", "unnest("+parameters(&from, o.types, "[]")+")",
		"{events}", "unnest("+parameters(&from, eventTypes, "[]")+")").Replace(text)
}

// one is the statement for one change.
func (o storing) one(text string, events int) string {
	from := o.own
	rows := "(VALUES (" + parameters(&from, o.types, "") + "))"
	values := make([]string, events)
	for i := range values {
		values[i] = "(" + parameters(&from, eventTypes, "") + ")"
	}
	of := "(VALUES " + strings.Join(values, ", ") + ")"
	if events == 0 {
		of = "(SELECT NULL::text, 0::bigint, ''::text, NULL::bytea, NULL::bytea, ''::text, ''::text, 0::bigint, 0::bigint, 0::bigint, FALSE WHERE FALSE)"
	}
	return strings.NewReplacer("{rows}", rows, "{events}", of).Replace(text)
}

// parameters are the next ones, of these types.
func parameters(from *int, types []string, suffix string) string {
	out := make([]string, len(types))
	for i, of := range types {
		*from++
		out[i] = fmt.Sprintf("$%d::%s%s", *from, of, suffix)
	}
	return strings.Join(out, ", ")
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
