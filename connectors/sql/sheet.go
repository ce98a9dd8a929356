package sql

import (
	"github.com/readback-go/readback/connectors"
)

// Sources of claims.
const (
	here       = "this package"
	docInsert  = "https://www.postgresql.org/docs/current/sql-insert.html"
	docClient  = "https://www.postgresql.org/docs/current/runtime-config-client.html"
	docStandby = "https://www.postgresql.org/docs/current/hot-standby.html"
	docAsync   = "https://www.postgresql.org/docs/current/wal-async-commit.html"
	docRepl    = "https://www.postgresql.org/docs/current/runtime-config-replication.html"
	docColumns = "https://www.postgresql.org/docs/current/ddl-system-columns.html"
	docCodes   = "https://www.postgresql.org/docs/current/errcodes-appendix.html"
	docTypes   = "https://www.postgresql.org/docs/current/datatype.html"
	docAdmin   = "https://www.postgresql.org/docs/current/functions-admin.html"
	docWait    = "https://clickhouse.com/blog/postgresql-19-wait-for-read-your-writes"
	docLSN     = "https://www.postgresql.org/message-id/E1x75kC-000000004WB-3biv@gemulon.postgresql.org"
	docConf    = "https://www.postgresql.org/docs/current/runtime-config-connection.html"
	docDriver  = "https://pkg.go.dev/database/sql"
)

// Sheets are what is known about a table of PostgreSQL, with a unique key, an id, a stamp column
// and xmin for conditions, and about one used through database/sql with only an id and a stamp.
func Sheets() []connectors.Sheet {
	rich := Table{Name: "orders", Key: []string{"order_id"}, Unique: true, ID: "id", Stamp: "stamp", Version: XMin, Whole: true,
		Columns: []Column{{Name: "id", Type: Integer}, {Name: "order_id"}}}
	bare := rich
	bare.Unique, bare.Version, bare.Whole = false, "", false
	native := &Connector{dialect: postgreSQL(), o: Options{DSN: "-", ReadDSN: "-"}}
	plain := &Connector{}
	return []connectors.Sheet{
		{Name: "postgresql-table", System: "PostgreSQL", Kind: "table", Type: "postgresql", Profile: native.sheetProfile(rich), Claims: postgresClaims()},
		{Name: "sql-table", System: "SQL database through database/sql", Kind: "table", Profile: plain.sheetProfile(bare), Claims: plainClaims()},
	}
}

// sheetProfile is the profile of one table; the table is ours and has no fault.
func (c *Connector) sheetProfile(given Table) connectors.Profile {
	t, err := newTable("table", given, c.dialect)
	if err != nil {
		return connectors.Profile{}
	}
	c.tables = map[string]*table{"table": t}
	return c.Profiles()["table"]
}

func postgresClaims() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicNative, Says: "There is no key of a request; a unique constraint on the business key does the same.", Source: docInsert},
		{About: connectors.TopicLookup, Says: "By the columns of the key, and by the stamp where the table has a column for it (with an index).", Source: here},
		{About: connectors.TopicStrong, Says: "The primary; and a streaming standby that has replayed the position which the primary's log had when the read began.", Source: docWait},
		{About: connectors.TopicStrong, Says: "The position must be taken after the COMMIT: one taken inside the transaction does not cover its own commit.", Source: docLSN},
		{About: connectors.TopicStrong, Says: "The role that reads a standby needs pg_read_all_stats, to see which history the standby follows.", Source: here},
		{About: connectors.TopicLookup, Says: "A key that the column rounds or cuts, a trigger alters, or an index takes for another could not be found again: the server compares it before COMMIT, and such a write is rolled back.", Source: here},
		{About: connectors.TopicLagging, Says: "A view or a foreign table can hide rows: it is read weakly.", Source: here},
		{About: connectors.TopicLagging, Says: "A standby lags without bound: replay can be delayed, paused or held up by a query. One that is not shown to have caught up is read weakly.", Source: docStandby},
		{About: connectors.TopicLagging, Says: "A standby may cancel a read (40001, conflict with recovery): that is an error, not absence.", Source: docStandby},
		{About: connectors.TopicSettle, Says: "None is declared, because a standby can stop replaying; a weak read then never shows absence.", Source: docStandby},
		{About: connectors.TopicHorizon, Says: "A COMMIT on its way is waited for as long as a send may take (idle_in_transaction_session_timeout); then the server rolls back.", Source: docClient},
		{About: connectors.TopicHorizon, Says: "30 s more are added for the server to carry a COMMIT out, which no setting bounds.", Source: here, Assumed: true},
		{About: connectors.TopicHorizon, Says: "With synchronous_standby_names a commit waits for standbys without a limit, and is visible only then: set the horizon yourself. Until then Probe reports it and writes are refused.", Source: docRepl},
		{About: connectors.TopicConditional, Says: "WHERE xmin or a version column is as it was read, and the rows are counted before COMMIT. A partitioned table needs a version column.", Source: docColumns},
		{About: connectors.TopicUnique, Says: "INSERT … ON CONFLICT (key) fails where no unique index covers exactly the key, so a wrong declaration cannot make a second row.", Source: docInsert},
		{About: connectors.TopicUnique, Says: "Deletes repeat harmlessly only with an id that is never used twice: a key can be given to another row.", Source: here},
		{About: connectors.TopicUndo, Says: "All writes, where all columns of the table are declared: by delete, by the values before, by inserting the row again.", Source: here},
		{About: connectors.TopicIrreversible, Says: "What triggers do elsewhere, NOTIFY, and the numbers that sequences gave out.", Source: docTypes},
		{About: connectors.TopicIrreversible, Says: "A failover to an asynchronous standby loses commits that were acknowledged; declare a recheck where that can happen. Our own commits are made with synchronous_commit on or remote_apply, whatever the role has.", Source: docAsync},
		{About: connectors.TopicValues, Says: "Numbers are exact, times have microseconds, char(n) loses blanks at its end, jsonb keeps one of repeated members; each column is compared by its type.", Source: docTypes},
		{About: connectors.TopicValues, Says: "Rows that row-level security would hide from the reader are an error, not absence.", Source: docClient},
		{About: connectors.TopicLimits, Says: "100 connections in total unless configured; too many is 53300 and counts as throttled. No SQLSTATE has a time to wait.", Source: docConf},
		{About: connectors.TopicLimits, Says: "Any SQLSTATE before COMMIT means that nothing was applied; 08 and 57P around COMMIT, and no answer, that the fate is unknown.", Source: docCodes},
		{About: connectors.TopicLimits, Says: "A bulk read takes 100 keys in one statement.", Source: here},
		{About: connectors.TopicLimits, Says: "Functions that every role may call return positions, histories and identities of servers, on PostgreSQL 12 and later.", Source: docAdmin},
	}
}

func plainClaims() []connectors.Claim {
	return []connectors.Claim{
		{About: connectors.TopicNative, Says: "There is no key of a request.", Source: docDriver},
		{About: connectors.TopicLookup, Says: "By the columns of the key, compared as the database does; a text key that matches a row written otherwise is an error.", Source: here},
		{About: connectors.TopicStrong, Says: "Only where it is declared that every read sees what was committed before it (one SQLite file, one server).", Source: here},
		{About: connectors.TopicLagging, Says: "Everything else counts as a replica that may lag.", Source: here, Assumed: true},
		{About: connectors.TopicSettle, Says: "Undeclared: no database publishes one.", Source: here, Assumed: true},
		{About: connectors.TopicHorizon, Says: "Undeclared: database/sql cannot bound a COMMIT in progress. Without a horizon, absence after a lost response goes to a reviewer.", Source: docDriver},
		{About: connectors.TopicConditional, Says: "With a version column that each of our writes increments, and the rows counted before COMMIT.", Source: here},
		{About: connectors.TopicUnique, Says: "With a unique constraint on exactly the key. Where the dialect has ON CONFLICT (SQLite, PostgreSQL) the database refuses a wrong declaration.", Source: "https://www.sqlite.org/lang_upsert.html"},
		{About: connectors.TopicUndo, Says: "All writes, where all columns of the table are declared.", Source: here},
		{About: connectors.TopicIrreversible, Says: "What triggers do elsewhere.", Source: here},
		{About: connectors.TopicValues, Says: "As the driver gives them: a column of binary floating point rounds, and shows it.", Source: "https://www.sqlite.org/datatype3.html"},
		{About: connectors.TopicLimits, Says: "Those of the pool: sql.DB.SetMaxOpenConns. There is no bulk read.", Source: docDriver},
	}
}
