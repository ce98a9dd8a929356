package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
)

// places are destinations of each type. Line 34 is that of the tool, 36 that of its
// first argument.
const places = `ledger: a.db
destinations:
  orders: {type: simulated, url: 'http://a'}
  shop:
    type: postgresql
    dsn: postgres://app@db.example.org/shop?sslmode=verify-full
    tables:
      item:
        columns: {id: uuid, name: text, count: integer, seen: timestamptz, labels: array, total: numeric}
        read_only: [total]
        key: [id]
        unique: true
  zendesk:
    type: rest
    declaration: zendesk-tickets
    parameters: {subdomain: acme, email: ann@example.org}
    secrets: {token: {env: T}}
  calendar:
    type: rest
    declaration: google-calendar-events
    parameters: {calendar: c1}
    secrets: {token: {env: T}}
  outbox: {type: mail, addr: 'smtp.example.org:465',
    username: ada@example.org, password_env: T,
    from: Ada <ada@example.org>,
    proof: filed,
    imap: {addr: 'imap.example.org:993'},
  }
  inbox: {type: imap, addr: 'imap.example.org:993', username: ada, password_env: T}
  jira: {type: jira, url: 'https://example.atlassian.net', user: ada@example.org, token_env: T}
  files: {type: mcp, contract: filesystem, command: [files]}
  notes: {type: mcp, contract: memory, command: [memory]}
mcp: {tools: [
  {name: t, description: d,
`

const (
	ticket = `destination: zendesk, kind: ticket, write: create, key: [external_id], arguments: [
    {name: external_id, type: string, required: true, description: d},
`
	item = `destination: shop, kind: item, write: create, key: [id], arguments: [
    {name: id, type: string, required: true, description: d},
`
	letter = `destination: outbox, kind: message, write: create, fixed: {key: {account: ada@example.org}}, arguments: [
    {name: subject, type: string, required: true, description: d},
`
)

// TestTrialsOfTools: a tool without any acceptable call is a problem, one that also
// allows refused calls has a warning, and made-up values that are refused themselves
// prove nothing.
func TestTrialsOfTools(t *testing.T) {
	never, always := "readback would refuse every call: ", "readback would refuse every call that gives "
	for name, tt := range map[string]struct {
		reason, tool     string
		problems, doubts []string
	}{
		"simulated": {reason: "it works", tool: `destination: orders, kind: order, write: create, key: [order_id], arguments: [
    {name: order_id, type: string, required: true, description: d}, {name: amount, type: number, required: true, description: d}]`},
		"simulated, nothing to see": {reason: "without an amount there is nothing that a read must find", tool: `destination: orders, kind: order, write: create, key: [order_id], arguments: [
    {name: order_id, type: string, required: true, description: d}, {name: amount, type: number, description: d}]`,
			doubts: []string{":36: mcp.tools[0].arguments[1]: is optional, and readback would refuse every call without amount: /expect is missing or empty; want at least one field that a later read must find; without one nothing could be verified; want required: true"}},
		"simulated, unknown key": {reason: "orders are found by their id", tool: `destination: orders, kind: order, write: create, key: [number], arguments: [
    {name: number, type: string, required: true, description: d}, {name: amount, type: number, required: true, description: d}]`,
			problems: []string{":36: mcp.tools[0].arguments[0]: " + never + "orders cannot serve this intent: /key/number: orders are found by order_id alone"}},
		"simulated, a number": {reason: "ids are text", tool: `destination: orders, kind: order, write: create, key: [order_id], arguments: [
    {name: order_id, type: integer, required: true, description: d}, {name: amount, type: number, required: true, description: d}]`,
			problems: []string{":36: mcp.tools[0].arguments[0]: " + never + "orders cannot serve this intent: /key/order_id: want a string of 1 to 200 bytes"}},

		"sql": {reason: "it works: the made-up texts are no uuid and no time", tool: item + `    {name: seen, type: string, description: d}, {name: count, type: integer, description: d},
    {name: labels, type: array, description: d}, {name: name, type: string, required: true, description: d}]`},
		"sql, unknown column": {reason: "the table has none", tool: item + `    {name: title, type: string, required: true, description: d}]`,
			problems: []string{":37: mcp.tools[0].arguments[1]: " + never + "not for this table: /expect/title is not a column of the kind item; want one of count, id, labels, name, seen, total"}},
		"sql, unknown column, optional": {reason: "the others work", tool: item + `    {name: title, type: string, description: d}, {name: name, type: string, required: true, description: d}]`,
			doubts: []string{":37: mcp.tools[0].arguments[1]: " + always + "title: not for this table: /expect/title is not a column of the kind item; want one of count, id, labels, name, seen, total"}},
		"sql, wrong type": {reason: "no whole number is a time", tool: item + `    {name: seen, type: integer, required: true, description: d}]`,
			problems: []string{":37: mcp.tools[0].arguments[1]: " + never + "not for this table: /expect/seen does not fit the column; want a string"}},
		"sql, wrong fixed value": {reason: "no model can change it", tool: item + `    {name: name, type: string, required: true, description: d}],
    fixed: {expect: {seen: yesterday}}`,
			problems: []string{":38: mcp.tools[0].fixed.expect.seen: " + never + "not for this table: /expect/seen does not fit the column; want a time with its offset, 2006-01-02T15:04:05Z"}},
		"sql, key missing": {reason: "a column of the key is given by nothing", tool: `destination: shop, kind: item, write: create, key: [name], arguments: [
    {name: name, type: string, required: true, description: d}, {name: count, type: integer, required: true, description: d}]`,
			problems: []string{":36: mcp.tools[0].arguments[0]: " + never + "not for this table: /key/name is not a column of the key; want id alone"}},
		"sql, filled by the database": {reason: "it can be expected, not sent", tool: item + `    {name: name, type: string, required: true, description: d}, {name: total, type: number, to: payload/total, description: d}]`,
			doubts: []string{":37: mcp.tools[0].arguments[2]: " + always + "total: not for this table: /payload/total is filled by the database; want it left out, or expected"}},
		"sql, repair": {reason: "an update is what a repair is", tool: item + `    {name: name, type: string, required: true, description: d}], on_mismatch: repair`},

		"rest": {reason: "it works", tool: ticket + `    {name: subject, type: string, required: true, description: d}, {name: tags, type: array, description: d}]`},
		"rest, unknown field": {reason: "the declaration has none", tool: ticket + `    {name: title, type: string, required: true, description: d}]`,
			problems: []string{":37: mcp.tools[0].arguments[1]: " + never + "the declaration cannot serve this intent: /expect/title: is not among what reads can show"}},
		"rest, not sent": {reason: "what no request has in it is not written", tool: ticket + `    {name: subject, type: string, required: true, description: d}, {name: note, type: string, to: payload/note, description: d}]`,
			doubts: []string{":37: mcp.tools[0].arguments[2]: " + always + "note: the declaration cannot serve this intent: /payload/note: is not among what a create can write"}},
		"rest, no list": {reason: "its elements are spread", tool: ticket + `    {name: tags, type: string, required: true, description: d}]`,
			problems: []string{":37: mcp.tools[0].arguments[1]: " + never + "the declaration cannot serve this intent: {fields.tags} is text; want a list, since its elements are spread"}},
		"rest, key of another form": {reason: "no lookup is made by it", tool: `destination: zendesk, kind: ticket, write: create, key: [number], arguments: [
    {name: number, type: string, required: true, description: d}, {name: subject, type: string, description: d}]`,
			problems: []string{":36: mcp.tools[0].arguments[0]: " + never + "the declaration cannot serve this intent: /key/number: is no field of the business key; want [external_id] or [id]"}},
		"rest, a pattern": {reason: "x is no such id, others are", tool: `destination: calendar, kind: event, write: create, key: [id], arguments: [
    {name: id, type: string, required: true, description: d}, {name: summary, type: string, required: true, description: d}]`},
		"rest, a pattern and an unknown field": {reason: "the id is not what is wrong", tool: `destination: calendar, kind: event, write: create, key: [id], arguments: [
    {name: id, type: string, required: true, description: d}, {name: heading, type: string, required: true, to: payload/heading, description: d}, {name: summary, type: string, required: true, description: d}]`,
			problems: []string{":36: mcp.tools[0].arguments[1]: " + never + "the declaration cannot serve this intent: /payload/heading: is not among what a create can write"}},
		"rest, no value of the enum": {reason: "an id has five characters", tool: `destination: calendar, kind: event, write: create, key: [id], arguments: [
    {name: id, type: string, required: true, enum: [a, b], description: d}, {name: summary, type: string, required: true, description: d}]`,
			problems: []string{":36: mcp.tools[0].arguments[0]: " + never + `the declaration cannot serve this intent: /key/id: cannot be asked for exactly; want a value that matches \A(?:[a-v0-9]{5,512})\z`}},
		"rest, a value of the enum": {reason: "the others work", tool: `destination: calendar, kind: event, write: create, key: [id], arguments: [
    {name: id, type: string, required: true, enum: [a, lunch], description: d}, {name: summary, type: string, required: true, description: d}]`,
			doubts: []string{`:36: mcp.tools[0].arguments[0].enum[0]: is "a", which readback would refuse: the declaration cannot serve this intent: /key/id: cannot be asked for exactly; want a value that matches \A(?:[a-v0-9]{5,512})\z`}},

		"mail": {reason: "it works", tool: letter + `    {name: to, type: array, required: true, description: d}, {name: body, type: string, description: d},
    {name: files, type: array, items: object, to: payload/attachments, description: d}, {name: headers, type: object, to: payload/headers, description: d}]`},
		"mail without a recipient": {reason: "no argument is a recipient", tool: letter + `    {name: body, type: string, description: d}]`,
			problems: []string{":34: mcp.tools[0].arguments: " + never + "not for a mail: /expect/to is missing; want a recipient in to, cc or /payload/bcc"}},
		"mail, to is optional": {reason: "without it there is no recipient", tool: letter + `    {name: to, type: array, description: d}]`,
			doubts: []string{":37: mcp.tools[0].arguments[1]: is optional, and readback would refuse every call without to: not for a mail: /expect/to is missing; want a recipient in to, cc or /payload/bcc; want required: true"}},
		"mail, to or cc": {reason: "one of them is needed", tool: letter + `    {name: to, type: array, description: d}, {name: cc, type: array, description: d}]`,
			doubts: []string{":34: mcp.tools[0].arguments: leave all of to, cc optional, and readback would refuse a call without any: not for a mail: /expect/to is missing; want a recipient in to, cc or /payload/bcc; want required: true for one of them"}},
		"mail, to one": {reason: "it is a list", tool: letter + `    {name: to, type: string, required: true, description: d}]`,
			problems: []string{":37: mcp.tools[0].arguments[1]: " + never + "not for a mail: /expect/to is not a list of addresses; want 1 to 100 of them; leave the field out where there is none"}},
		"mail, to numbers": {reason: "addresses are text", tool: letter + `    {name: to, type: array, items: integer, required: true, description: d}]`,
			problems: []string{":37: mcp.tools[0].arguments[1]: " + never + `not for a mail: /expect/to/0 is not an address; want "a@example.org" or "Alice A <a@example.org>", ASCII in the address`}},
		"mail, to a wrong address": {reason: "no model can change it", tool: `destination: outbox, kind: message, write: create, arguments: [
    {name: subject, type: string, required: true, description: d}],
    fixed: {key: {account: ada@example.org}, expect: {to: [ann]}}`,
			problems: []string{":37: mcp.tools[0].fixed.expect.to: " + never + `not for a mail: /expect/to/0 is "ann"; want "a@example.org" or "Alice A <a@example.org>", ASCII in the address`}},
		"mail, unknown field": {reason: "a mail has no title", tool: letter + `    {name: to, type: array, required: true, description: d}, {name: title, type: string, description: d}]`,
			doubts: []string{":37: mcp.tools[0].arguments[2]: " + always + "title: not for a mail: /expect/title is nothing that a mail can be asked for; want from, to, cc, subject or body"}},

		"imap": {reason: "it works", tool: `destination: inbox, kind: named_message, write: create, key: [mailbox, message_id], arguments: [
    {name: mailbox, type: string, required: true, description: d}, {name: message_id, type: string, required: true, description: d},
    {name: subject, type: string, required: true, description: d}, {name: date, type: string, description: d}, {name: flags, type: array, description: d}, {name: from, type: string, description: d}]`},
		"imap, an update": {reason: "it works", tool: `destination: inbox, kind: message, write: update, key: [uid, uidvalidity], fixed: {key: {mailbox: INBOX}}, arguments: [
    {name: uid, type: integer, required: true, description: d}, {name: uidvalidity, type: integer, required: true, description: d}, {name: keywords, type: array, required: true, description: d}]`},
		"imap, its own id": {reason: "it is made of what no model knows", tool: `destination: inbox, kind: message, write: create, key: [mailbox, message_id], arguments: [
    {name: mailbox, type: string, required: true, description: d}, {name: message_id, type: string, required: true, description: d}, {name: subject, type: string, required: true, description: d}]`,
			problems: []string{":36: mcp.tools[0].arguments[1]: " + never + `not for a mailbox: /key/message_id is "<x@example.org>"; want it left out, or `}},

		"jira": {reason: "it works", tool: `destination: jira, kind: issue, write: create, key: [project, reference], arguments: [
    {name: project, type: string, required: true, description: d}, {name: reference, type: string, required: true, description: d}, {name: summary, type: string, required: true, description: d}]`},
		"jira, a comment": {reason: "it works", tool: `destination: jira, kind: comment, write: create, key: [issue, reference], arguments: [
    {name: issue, type: string, required: true, description: d}, {name: reference, type: string, required: true, description: d}, {name: body, type: string, required: true, description: d}]`},
		"jira, no reference": {reason: "it could not be found", tool: `destination: jira, kind: issue, write: create, key: [project], arguments: [
    {name: project, type: string, required: true, description: d}, {name: summary, type: string, required: true, description: d}]`,
			problems: []string{":34: mcp.tools[0].key: " + never + "not for Jira: /key/reference is missing; want your own name for the issue, which becomes a label; or the key of an issue in /key/issue"}},

		"mcp": {reason: "it works", tool: `destination: files, kind: file, write: upsert, key: [path], arguments: [
    {name: path, type: string, required: true, description: d}, {name: content, type: string, required: true, description: d}]`},
		"mcp, a fixed value": {reason: "it works: true is what it always is", tool: `destination: files, kind: directory, write: upsert, key: [path], arguments: [
    {name: path, type: string, required: true, description: d}, {name: isDirectory, type: string, required: true, description: d}]`},
		"mcp, keys as text": {reason: "it works: x is no list", tool: `destination: notes, kind: entity, write: upsert, key: [each], arguments: [
    {name: each, type: string, required: true, description: d}, {name: records, type: object, required: true, description: d}]`},
		"mcp, arguments": {reason: "it may work: they are an object of any members", tool: `destination: files, kind: file, write: update, key: [path], arguments: [
    {name: path, type: string, required: true, description: d}, {name: content, type: string, required: true, description: d}, {name: edits, type: object, required: true, to: payload/arguments, description: d}]`},
		"mcp, no arguments": {reason: "the text afterwards is made of them", tool: `destination: files, kind: file, write: update, key: [path], arguments: [
    {name: path, type: string, required: true, description: d}, {name: content, type: string, required: true, description: d}]`,
			problems: []string{":34: mcp.tools[0].arguments: " + never + "arguments that the contract does not take: /payload has no arguments: the tool edit_file cannot be called without"}},
		"mcp, unknown field": {reason: "the tool has no such argument", tool: `destination: files, kind: file, write: upsert, key: [path], arguments: [
    {name: path, type: string, required: true, description: d}, {name: text, type: string, required: true, description: d}]`,
			problems: []string{":36: mcp.tools[0].arguments[1]: " + never + "arguments that the contract does not take: /expect/text has no place in the arguments of write_file; it has content"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := places + "  " + tt.tool + "}]}\n"
			env := environment("T", "secret-of-enough-length")
			got := problems(t, text, env)
			for i, p := range got {
				got[i], _, _ = strings.Cut(p, "<rb-") // stamps
			}
			if d := cmp.Diff(tt.problems, got); d != "" {
				t.Fatalf("%s (-want +got):\n%s", tt.reason, d)
			}
			if len(tt.problems) > 0 {
				return
			}
			c, err := config.Load(write(t, text))
			if err != nil {
				t.Fatal(err)
			}
			reg, err := c.Registry(env)
			if err != nil {
				t.Fatal(err)
			}
			var doubts []string
			for _, p := range c.MCP.Doubts(reg) {
				doubts = append(doubts, p.String())
			}
			if d := cmp.Diff(tt.doubts, doubts); d != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, d)
			}
		})
	}
}
