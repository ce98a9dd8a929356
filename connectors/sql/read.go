package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
)

// Write sends one change of rows.
func (c *Connector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	p, err := c.understand(r.Intent, r.Stamp)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	if p.t.Stamp != "" && r.Stamp == "" {
		return connectors.Receipt{}, connectors.NotSent(unusable("the stamp", "is missing", "one: the table has a column for it"))
	}
	change, err := c.statementOf(p, r)
	if err != nil {
		return connectors.Receipt{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectors.Profile{SendTimeout: c.o.SendTimeout}.SendFor())
	defer cancel()
	receipt, err := c.engine.write(ctx, p.t, change)
	receipt.Reply = wordsOf(err)
	return receipt, err
}

// wordsOf is the server's own text: PostgreSQL's SQLSTATE and message, or the text of another
// driver.
func wordsOf(err error) connectors.Reply {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return connectors.Reply{Code: refused.Code, Message: refused.Message}
	} else if words, ok := errors.AsType[*serverWords](err); ok {
		return connectors.Reply{Message: words.Error()}
	}
	return connectors.Reply{}
}

// Check refuses an intent that the table can never hold.
func (c *Connector) Check(w intent.WriteIntent) error {
	_, err := c.understand(w, w.Stamp())
	return err
}

// Read returns every row under the key and every row that has the stamp, over a connection of its
// own.
func (c *Connector) Read(ctx context.Context, q connectors.Query) (connectors.Observation, error) {
	answers, err := c.ReadMany(ctx, []connectors.Query{q})
	if err != nil {
		return connectors.Observation{}, err
	}
	return answers[0].Observation, answers[0].Err
}

// question is one parsed query and its answer.
type question struct {
	plan
	answer *connectors.BulkAnswer
}

// ReadMany reads several queries, those about one table together where the
// database is PostgreSQL.
func (c *Connector) ReadMany(ctx context.Context, qs []connectors.Query) ([]connectors.BulkAnswer, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, connectors.Profile{ReadTimeout: c.o.ReadTimeout}.ReadFor())
	defer cancel()
	answers := make([]connectors.BulkAnswer, len(qs))
	byTable := map[*table][]question{}
	for i, q := range qs {
		p, err := c.lookup(q.Intent, q.Stamp)
		if err != nil {
			answers[i].Err = err
			continue
		}
		byTable[p.t] = append(byTable[p.t], question{p, &answers[i]})
	}
	for t, questions := range byTable {
		if err := c.engine.read(ctx, t, questions); err != nil {
			fail(questions, err)
		}
		for _, q := range questions {
			q.answer.Observation.At = began
		}
	}
	return answers, nil
}

// fail drops partial answers: what was read before a failure is incomplete.
func fail(questions []question, err error) {
	for _, q := range questions {
		*q.answer = connectors.BulkAnswer{Err: err}
	}
}

// found adds a row to an answer after a last check: a text key that the database treats as equal
// although it is spelled differently is neither ours nor absent.
func (q question) found(r connectors.Record) error {
	if q.stamp == "" || r.Stamp != q.stamp {
		for _, v := range q.key {
			if got := r.Fields[v.column.Name]; v.column.Type == Text && got != v.text {
				return fmt.Errorf("/key/%s: %w", v.column.Name, errInexact)
			}
		}
	}
	q.answer.Observation.Records = append(q.answer.Observation.Records, r)
	return nil
}

// nativeRecord is a row that PostgreSQL made one JSON object of.
func nativeRecord(t *table, names []string, r row) (connectors.Record, error) {
	fields := intent.Fields{}
	if err := json.Unmarshal([]byte(r.text(0)), &fields); err != nil {
		return connectors.Record{}, fmt.Errorf("%w: %w", errUnreadable, &serverWords{err})
	}
	for _, name := range names {
		v, there := fields[name]
		if !there {
			return connectors.Record{}, fmt.Errorf("%w: column %q is not in it", errUnreadable, name)
		}
		v, err := decode(t.columns[name], v)
		if err != nil {
			return connectors.Record{}, err
		}
		fields[name] = v
	}
	record := connectors.Record{Fields: fields, Ref: t.ref(fields)}
	record.Version, record.Stamp = t.extras(r[1:])
	return record, nil
}

// extras are the version and the stamp, in the order in which record lists them.
func (t *table) extras(r row) (version, stamp string) {
	at := 0
	if t.Version != "" {
		version = r.text(0)
		at++
	}
	if t.Stamp != "" {
		stamp = r.text(at)
	}
	return version, stamp
}

// ref names a row: by its id, else by its key.
func (t *table) ref(fields intent.Fields) string {
	var parts []string
	for _, name := range t.names() {
		if fields[name] == nil {
			return ""
		}
		parts = append(parts, fmt.Sprint(fields[name]))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	text, _ := json.Marshal(parts) // of strings
	return string(text)
}

// positions reads {1,3} as PostgreSQL writes arrays of numbers.
func positions(text string) map[string]bool {
	all := map[string]bool{}
	for _, n := range strings.Split(strings.Trim(text, "{}"), ",") {
		if n != "" {
			all[n] = true
		}
	}
	return all
}
