package postgres

import (
	"embed"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/readback-go/readback/internal/driver"
	"github.com/readback-go/readback/ledger"
)

const (
	// maxSingle is how many events a change with its own statement text may have: the engine
	// appends five at most.
	maxSingle = 6

	// maxFew is how many changes share the statement that expects few: it compares each change with
	// each event.
	maxFew = 16

	// maxLag is how far the time that is written with a change may be before the database's
	// clock: the age of the last reading of that clock and the way to the database. More would
	// make horizons and leases begin too early; less would make busy machines read the clock
	// again and again.
	maxLag = 200 * time.Millisecond
)

//go:embed sql/*.sql
var texts embed.FS

// statements are the SQL texts by name, for one schema.
type statements = driver.Statements

// columnsOfRow are those of a write in the order in which scanRow reads them. NULL becomes the
// zero value, also for a whole missing row.
const columnsOfRow = `coalesce(w.n, 0), coalesce(w.id, ''), coalesce(w.tenant, ''), coalesce(w.destination, ''), coalesce(w.tool, ''), ` +
	`coalesce(w.structural_key, ''), coalesce(w.idempotency_key, ''), coalesce(w.key_digest, ''), coalesce(w.created, 0), coalesce(w.state, ''), ` +
	`coalesce(w.due, 0), coalesce(w.settled_at, 0), coalesce(w.queue, ''), coalesce(w.queued_behind, ''), coalesce(w.seq, 0), ` +
	`coalesce(w.tombstone, FALSE), coalesce(w.owner, ''), coalesce(w.lease_until, 0), coalesce(w.lease_for, 0), coalesce(w.fence, 0), ` +
	`coalesce(w.followed, FALSE), coalesce(w.waits, ''), coalesce(w.body, ''), w.intent, w.before, w.evidence, w.mismatches, w.child_intent`

// columnsOfFound are those of a search, which leaves out what no row of its result shows.
var columnsOfFound = strings.NewReplacer("w.before", "NULL::bytea", "w.evidence", "NULL::bytea", "w.child_intent", "NULL::bytea").Replace(columnsOfRow)

// columnsOfState are those of the guard in the order of type state.
const columnsOfState = `g.version, g.compatible_from, g.newest, g.standby, g.now, g.durable`

// presently is the present time on the clock of the database.
const presently = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000"

// inTime ends a statement when it is 0, by a division: a lock delayed it after it got its time,
// with which leases and horizons begin. See [waited].
var inTime = fmt.Sprintf("CASE WHEN w.stored - g.now <= %d THEN 1 ELSE 0 END", int64(maxLag))

// fromFiles are the statements as they are in the files.
var fromFiles = driver.ReadStatements(texts)

// newStatements completes the texts. Tables are marked with @, so that they can be found in a schema
// whatever the search path of the connection is.
func newStatements(schema string, d dialect) statements {
	s := maps.Clone(fromFiles)
	addDocuments(s)
	addFeed(s)
	addSearches(s)
	publish, terms := take(s, "publish")+"\n", take(s, "terms")
	for name, of := range stores {
		text := strings.Replace(s.Text(name), "{terms}", terms, 1)
		without := strings.Replace(text, "{publish}", "", 1)
		with := strings.Replace(text, "{publish}", publish, 1)
		s[name], s[few(name)] = of.many(with), of.few(with)
		for events := range maxSingle + 1 {
			s[single(name, events, false)], s[single(name, events, true)] = of.one(without, events), of.one(with, events)
		}
	}
	guard, durable := take(s, "guard"), take(s, "durable")
	if d.noStandby {
		guard = strings.NewReplacer("{standby}", "FALSE", "{durable}", "''::text").Replace(guard)
	} else {
		guard = strings.NewReplacer("{standby}", "pg_is_in_recovery()", "{durable}", durable).Replace(guard)
	}
	marks := strings.NewReplacer("{guard}", guard, "{row}", columnsOfRow, "{found}", columnsOfFound, "{state}", columnsOfState, "{document}", columnsOfDocument)
	clocks := strings.NewReplacer("{clock}", presently, "{timely}", inTime, "{lot}", strconv.Itoa(ledger.TermLot))
	for name, text := range s {
		s[name] = qualified(schema, fenced(clocks.Replace(d.render(name, marks.Replace(text)))))
	}
	return s
}

// storing describes a statement that stores changes: how many parameters of its own precede those
// of a change, and their types.
type storing struct {
	own   int
	types []string
}

var stores = map[string]storing{
	"insert":        {ownOfInsert, strings.Fields(identityTypes + changingTypes)},
	"update":        {ownOfUpdate, strings.Fields("text bigint bigint boolean text " + changingTypes)},
	"commit insert": {ownOfInsert + ownOfDocuments, strings.Fields(identityTypes + changingTypes)},
	"commit update": {ownOfUpdate + ownOfDocuments, strings.Fields("text bigint bigint boolean text " + changingTypes)},
}

const (
	ownOfInsert = 5
	ownOfUpdate = 3
)

// identityTypes are those of the immutable columns.
const identityTypes = "text text text text text text text bigint bytea text text text bigint text text "

// The types of the mutable columns, after the number of the first event and the time of the last one,
// and the types of events.
const changingTypes = "bigint bigint text bigint bigint text text bigint text bytea bytea bytea bytea text bigint bigint bigint bigint text"

// The last six are those of the change as which an event is published, with the event's time.
var eventTypes = strings.Fields("text bigint text bytea bytea text text bigint bigint bigint boolean")

// single returns the name of the statement for one change with that many events, of which some are
// published or none is: each table that a statement names costs time. Without lists the database
// knows as much about it the first time as the hundredth, and so keeps its plan.
func single(name string, events int, published bool) string {
	return fmt.Sprint(name, " ", events, " ", published)
}

// few returns the name of the statement for up to [maxFew] changes.
func few(name string) string { return "few " + name }

// many returns the statement for any number of changes: a list for each column.
func (o storing) many(text string) string {
	return o.lists(text, "")
}

// few returns the statement for up to [maxFew] changes. Its last parameter is their number. With a
// limit that it does not know the database expects one row, and keeps a plan that looks each row up
// by index. Without one it would plan the statement again for each few changes, since it expects ten
// rows of lists that it does not know; and in a new ledger it would keep a plan that reads the whole
// table for each.
func (o storing) few(text string) string {
	return o.lists(text, fmt.Sprintf(" LIMIT $%d::bigint", o.own+len(o.types)+len(eventTypes)+1))
}

func (o storing) lists(text, limit string) string {
	from := o.own
	return strings.NewReplacer(
		"{rows}", "(SELECT * FROM unnest("+parameters(&from, o.types, "[]")+")"+limit+")",
		"{events}", "unnest("+parameters(&from, eventTypes, "[]")+")").Replace(text)
}

// one returns the statement for one change.
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

// parameters returns the next ones, of these types.
func parameters(from *int, types []string, suffix string) string {
	out := make([]string, len(types))
	for i, of := range types {
		*from++
		out[i] = fmt.Sprintf("$%d::%s%s", *from, of, suffix)
	}
	return strings.Join(out, ", ")
}

// qualified replaces the mark by the schema.
func qualified(schema, text string) string {
	prefix := ""
	if schema != "" {
		prefix = pgx.Identifier{schema}.Sanitize() + "."
	}
	return strings.ReplaceAll(text, "@ledger_", prefix+"ledger_")
}

// take removes a part of statements, which is none by itself, and returns it.
func take(s statements, part string) string {
	text := s.Text(part)
	delete(s, part)
	return text
}
