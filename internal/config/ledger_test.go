package config_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
)

func TestWhereTheLedgerIs(t *testing.T) {
	const word = "hunter2"
	tests := map[string]struct{ reason, text, want string }{
		"file":              {"as ever", "ledger: a.db", ""},
		"file, at length":   {"the same", "ledger: {type: sqlite, file: a.db}", ""},
		"URL":               {"the password may come from elsewhere", "ledger: postgres://app@db/x", ""},
		"URL of a socket":   {"no host", "ledger: postgres:///x?host=/run/postgresql", ""},
		"a variable":        {"the whole URL elsewhere", "ledger: {type: postgres, url_env: DB}", ""},
		"password in it":    {"never in the file", "ledger: postgres://app:" + word + "@db/x", ":1: ledger: holds a password, which does not belong into this file"},
		"password, longer":  {"never in the file", "ledger: {type: postgres, url: 'postgres://app:" + word + "@db/x'}", ":1: ledger.url: holds a password"},
		"as a parameter":    {"never in the file", "ledger: postgres://app@db/x?password=" + word, ":1: ledger: holds a password"},
		"password apart":    {"never in the file", "ledger: {type: postgres, url: 'postgres://app@db/x', password: " + word + "}", ":1: ledger.password: a secret does not belong into this file"},
		"as a variable":     {"people write the secret itself", "ledger: {type: postgres, url_env: '!" + word + "'}", ""},
		"no URL":            {"a typing error", "ledger: {type: postgres, url: 'db.example.org'}", ":1: ledger.url: is no URL of a database; want one such as postgres://"},
		"no host":           {"where?", "ledger: 'postgres:///x'", ":1: ledger: is no URL of a database"},
		"nothing":           {"where?", "ledger: {type: postgres}", ":1: ledger: want exactly one of url"},
		"two":               {"which?", "ledger: {type: postgres, url_env: A, url_file: b}", ":1: ledger: want exactly one of url"},
		"another type":      {"there are two", "ledger: {type: mysql, url_env: A}", `:1: ledger.type: is "mysql"; want sqlite or postgres`},
		"no type":           {"which?", "ledger: {url_env: A}", `:1: ledger.type: is ""; want sqlite or postgres`},
		"file and database": {"which?", "ledger: {type: postgres, url_env: A, file: b}", ":1: ledger.file: belongs to type: sqlite"},
		"database and file": {"which?", "ledger: {type: sqlite, url_env: A, file: b}", ":1: ledger: is a file, and has settings of a database"},
		"no file":           {"where?", "ledger: {type: sqlite}", ":1: ledger.file: is missing"},
		"a dialect":         {"the database does not name itself", "ledger: {type: postgres, url_env: A, dialect: cockroachdb}", ""},
		"no such dialect":   {"a typing error", "ledger: {type: postgres, url_env: A, dialect: oracle}", `:1: ledger.dialect: the dialect "oracle" is not known; want one of postgres, cockroachdb, yugabytedb`},
		"too little":        {"correctness rests on what it lacks", "ledger: {type: postgres, url_env: A, dialect: spanner}", ":1: ledger.dialect: spanner cannot hold a ledger: it lacks partial unique indexes"},
		"shards":            {"several databases", "ledger: {type: postgres, shards: [{name: a, url_env: A, tenants: [acme]}, {name: b, url_env: B}], directory: a, default: [b]}", ""},
		"no shard":          {"where?", "ledger: {type: postgres, default: [a]}", ":1: ledger.shards: there are 0; want 1 to 64"},
		"shard and URL":     {"which?", "ledger: {type: postgres, url_env: A, shards: [{name: a, url_env: A}]}", ":1: ledger: has shards, and settings of one database"},
		"shards of files":   {"a file has one place", "ledger: {type: sqlite, file: a, shards: [{name: a, url_env: A}]}", ":1: ledger: is a file, and has settings of a database"},
		"no shard's name":   {"the directory needs it", "ledger: {type: postgres, shards: [{url_env: A}]}", ":1: ledger.shards[0].name: is missing"},
		"shard's password":  {"never in the file", "ledger: {type: postgres, shards: [{name: a, url: 'postgres://app:" + word + "@db/x'}]}", ":1: ledger.shards[0].url: holds a password"},
		"shard nowhere":     {"where?", "ledger: {type: postgres, shards: [{name: a}]}", ":1: ledger.shards[0]: want exactly one of url"},
		"shards alike":      {"which?", "ledger: {type: postgres, shards: [{name: a, url_env: A}, {name: a, url_env: B}]}", `:1: ledger.shards: "a" is named twice`},
		"one database":      {"two would own one's tenants", "ledger: {type: postgres, shards: [{name: a, url: 'postgres://x@db/y'}, {name: b, url: 'postgres://z@db/y?sslmode=require'}]}", ":1: ledger.shards[1]: is in the same database as a"},
		"one variable":      {"two would own one's tenants", "ledger: {type: postgres, shards: [{name: a, url_env: A}, {name: b, url_env: A}]}", ":1: ledger.shards[1]: is in the same database as a"},
		"unknown default":   {"a typing error", "ledger: {type: postgres, shards: [{name: a, url_env: A}], default: [z]}", `:1: ledger.shards: tenants that are not named go to "z", which is not configured`},
		"unknown directory": {"a typing error", "ledger: {type: postgres, shards: [{name: a, url_env: A}], directory: z}", `:1: ledger.shards: the directory is to be in "z"`},
		"tenant in two":     {"a tenant is in one", "ledger: {type: postgres, shards: [{name: a, url_env: A, tenants: [acme]}, {name: b, url_env: B, tenants: [acme]}]}", ":1: ledger.shards[1].tenants[0]: is in shard a already"},
		"many connections":  {"more than a server takes", "ledger: {type: postgres, url_env: A, max_connections: 1000}", ":1: ledger.max_connections: is 1000; want at most 100"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(problems(t, tt.text+"\n", environment()), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) || strings.Contains(got, word) {
				t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
}

// What is missing is reported when the ledger is opened, without the secret.
func TestOpeningADatabaseThatIsNotConfigured(t *testing.T) {
	const word = "hunter2"
	tests := map[string]struct {
		reason, text, want string
		env                []string
	}{
		"variable":       {"not set", "{type: postgres, url_env: DB}", "ledger: url_env: the environment variable DB is not set, or empty", nil},
		"no variable":    {"the secret itself", "{type: postgres, url_env: '!" + word + "'}", "url_env: is not the name of an environment variable", nil},
		"file":           {"missing", "{type: postgres, url_file: nothing}", "url_file: open ", nil},
		"no URL":         {"a password cannot be added to it", "{type: postgres, url_env: DB, password_env: P}", "is no URL with a user name", []string{"DB", "host=" + word, "P", word}},
		"password":       {"not set", "{type: postgres, url: 'postgres://app@db/x', password_env: P}", "password_env: the environment variable P is not set", nil},
		"password twice": {"which?", "{type: postgres, url: 'postgres://app@db/x', password_env: P, password_file: p}", "want exactly one of password_env", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := config.Load(write(t, "ledger: "+tt.text+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = c.Ledger.Open(t.Context(), environment(tt.env...), nil)
			if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v; want %q", tt.reason, err, tt.want)
			}
		})
	}
}

func TestOpeningAFile(t *testing.T) {
	c, err := config.Load(write(t, "ledger: a.db\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Ledger.Open(t.Context(), environment(), nil); !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "the first `readback submit` or `readback serve` makes it") {
		t.Errorf("a file that is not there: %v", err)
	}
	_, closer, err := c.Ledger.Open(t.Context(), environment(), &config.OpenOptions{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(c.Path), "a.db")); err != nil {
		t.Error(err)
	}
}

func TestWorkerSettings(t *testing.T) {
	simulated := "ledger: a\ndestinations:\n  x:\n    type: simulated\n    url: http://a\n"
	tests := map[string]struct{ reason, text, want string }{
		"keep what":          {"of what?", "ledger: a\nretention: {keep: 30}\n", `:2: retention.keep: "30" is no duration; want one such as 30d or 12h`},
		"keep nothing":       {"a mistake", "ledger: a\nretention: {keep: 0d}\n", `:2: retention.keep: "0d" is no duration`},
		"keep for ages":      {"would overflow", "ledger: a\nretention: {keep: 99999999999999999999d}\n", "is no duration"},
		"a moment":           {"it would be pruned before a reviewer reads it", "ledger: a\nretention: {keep: 1m}\n", ":2: retention.keep: is 1m0s; want at least 1h0m0s"},
		"remember alone":     {"keep is not guessed", "ledger: a\nretention: {remember: 30d}\n", ":2: retention.keep: is missing"},
		"remember less":      {"nonsense", "ledger: a\nretention: {keep: 30d, remember: 20d}\n", ":2: retention.remember: is 480h0m0s; want at least keep, 720h0m0s"},
		"retention of what":  {"misspelt", "ledger: a\nretention: {kep: 30d}\n", ":2: retention.kep: is not known; did you mean keep?"},
		"a tenant's moment":  {"as for all", "ledger: a\nretention:\n  keep: 30d\n  tenants:\n    acme: {keep: 1m}\n", ":5: retention.tenants.acme.keep: is 1m0s; want at least 1h0m0s"},
		"a tenant's nothing": {"it would count as forgotten", "ledger: a\nretention:\n  keep: 30d\n  tenants:\n    acme: {}\n", ":5: retention.tenants.acme: has no keep; want how long its settled writes keep"},
		"a tenant's number":  {"a keep of what?", "ledger: a\nretention:\n  keep: 30d\n  tenants:\n    acme: 90d\n", ":5: retention.tenants.acme: is "},
		"one too long":       {"its keys would be gone before the rest", "ledger: a\nretention:\n  keep: 30d\n  remember: 40d\n  destinations:\n    crm: {keep: 50d}\n", ":6: retention.destinations.crm.keep: is 1200h0m0s; want at most retention.remember, 960h0m0s, or forever"},
		"one remembered":     {"keys are remembered for all alike", "ledger: a\nretention:\n  keep: 30d\n  destinations:\n    crm: {keep: 5d, remember: 50d}\n", ":5: retention.destinations.crm.remember: is not known"},
		"parties alone":      {"keep is not guessed", "ledger: a\nretention: {tenants: {acme: {keep: 5d}}}\n", ":2: retention.keep: is missing"},
		"forever forgotten":  {"nonsense", "ledger: a\nretention: {keep: forever, remember: 30d}\n", ":2: retention.remember: is 720h0m0s; want at least keep, forever"},
		"for ever":           {"misspelt", "ledger: a\nretention: {keep: always}\n", `:2: retention.keep: "always" is no duration`},
		"good ones, forever": {"the alternative to the default", "ledger: a\nretention: {keep: forever}\n", ""},
		"good ones, parties": {"all forms", "ledger: a\nretention: {keep: 400d, tenants: {acme: {keep: 90d}}, destinations: {crm: {keep: 500d}, payments: {keep: forever}}}\n", ""},
		"queue of none":      {"nothing could be written", "ledger: a\nqueue: {waiting: 0}\n", ":2: queue.waiting: is 0; want at least 1"},
		"queue of what":      {"type", "ledger: a\nqueue: {in_hand: many}\n", ":2: queue.in_hand: has the wrong type; want a whole number"},
		"queued bytes":       {"a bare number says not of what", "ledger: a\nqueue: {bytes: 1000}\n", ":2: queue.bytes: is \"1000\"; want a size such as 64MiB"},
		"no queued bytes":    {"nothing could be written", "ledger: a\nqueue: {bytes: 0MiB}\n", ":2: queue.bytes: is \"0MiB\"; want a size such as 64MiB"},
		"endless bytes":      {"would overflow", "ledger: a\nqueue: {bytes: 9000000000GiB}\n", ":2: queue.bytes: is \"9000000000GiB\"; want a size such as 64MiB, in KiB, MiB or GiB, at most 1024GiB"},
		"no requests":        {"no request could be served", "ledger: a\nserver:\n  limits:\n    requests: 0\n", ":4: server.limits.requests: is 0; want 1 to 1000000, or the line taken out"},
		"too many requests":  {"a slip", "ledger: a\nserver:\n  limits: {requests: 1000001}\n", ":3: server.limits.requests: is 1000001; want 1 to 1000000"},
		"requests in words":  {"type", "ledger: a\nserver:\n  limits: {requests: many}\n", ":3: server.limits.requests: has the wrong type; want a whole number"},
		"no streams":         {"no page could follow", "ledger: a\nserver:\n  limits: {streams: 0}\n", ":3: server.limits.streams: is 0; want 1 to 1000000"},
		"small bodies":       {"no intent of full size would fit", "ledger: a\nserver:\n  limits: {bodies: 4MiB}\n", ":3: server.limits.bodies: is 4194304 bytes; want at least 8MiB, so that the largest body fits into the share of one token"},
		"bodies, a unit":     {"of another size", "ledger: a\nserver:\n  limits: {bodies: 64MB}\n", ":3: server.limits.bodies: is \"64MB\"; want a size such as 64MiB"},
		"no rate of a token": {"no request could be served", "ledger: a\nserver:\n  limits: {token_rate: 0}\n", ":3: server.limits.token_rate: is 0; want 1 to 1000000"},
		"rate of a tenant":   {"a slip", "ledger: a\nserver:\n  limits: {tenant_rate: -5}\n", ":3: server.limits.tenant_rate: "},
		"limits of what":     {"misspelt", "ledger: a\nserver:\n  limits: {request: 5}\n", ":3: server.limits.request: is not known; did you mean requests?"},
		"limits, a number":   {"of what?", "ledger: a\nserver:\n  limits: 5\n", ":3: server.limits: is a single value; want names with values below them"},
		"metrics for all":    {"metrics need no login", "ledger: a\nmetrics: 0.0.0.0:9464\n", ":2: metrics: can be reached from other machines, and needs no login; want 127.0.0.1:9464, or {listen: 0.0.0.0:9464, remote: true}"},
		"metrics, any":       {"the same", "ledger: a\nmetrics: :9464\n", ":2: metrics: can be reached from other machines"},
		"metrics, a name":    {"whose address is not known", "ledger: a\nmetrics: {listen: 'box:9464'}\n", ":2: metrics.listen: can be reached from other machines"},
		"metrics, no port":   {"where?", "ledger: a\nmetrics: 127.0.0.1\n", ":2: metrics: is no address; want host:port"},
		"metrics, a port":    {"a number", "ledger: a\nmetrics: 9464\n", ":2: metrics: is no address; want host:port"},
		"log":                {"word", "ledger: a\nlog: xml\n", `:2: log: is "xml"; want text or json`},
		"half a rate":        {"in what time?", simulated + "    rate: {calls: 5}\n", ":6: destinations.x.rate: is not whole; want both calls and per, such as {calls: 100, per: 1m}"},
		"rate of nothing":    {"nothing could be sent", simulated + "    rate: {calls: 0, per: 1s}\n", ":6: destinations.x.rate.calls: is 0; want at least 1"},
		"rate in words":      {"type", simulated + "    rate: 5/s\n", ":6: destinations.x.rate: is a single value; want names with values below them"},
		"concurrency":        {"nothing could be sent", simulated + "    concurrency: 0\n", ":6: destinations.x.concurrency: is 0; want at least 1"},
		"breaker, a word":    {"word", simulated + "    breaker: never\n", ":6: destinations.x.breaker: is not known; want off, or {failures: 5, window: 1m, open: 30s}"},
		"breaker, misspelt":  {"word", simulated + "    breaker: {fails: 1}\n", ":6: destinations.x.breaker.fails: is not known"},
		"breaker of nothing": {"it could never close", simulated + "    breaker: {failures: 0}\n", ":6: destinations.x.breaker.failures: is 0; want at least 1"},
		"good ones, breaker": {"off", simulated + "    breaker: off\n", ""},
		"verify":             {"word", simulated + "    verify: never\n", `:6: destinations.x.verify: is "never"; want always, batch, or sample(P) with P from 0 to 1`},
		"sample of more":     {"a part", simulated + "    verify: sample(10)\n", ":6: destinations.x.verify: is \"sample(10)\""},
		"sample of nothing":  {"a number", simulated + "    verify: sample()\n", ":6: destinations.x.verify: is \"sample()\""},
		"sample of NaN":      {"a number", simulated + "    verify: sample(NaN)\n", ":6: destinations.x.verify: is \"sample(NaN)\""},
		"verify risk":        {"word", simulated + "    verify: {low: batch}\n", ":6: destinations.x.verify.low: is not known; want one of auto, log, approve"},
		"verify approved":    {"it would be overlooked silently", simulated + "    verify: {approve: batch}\n", ":6: destinations.x.verify.approve: is not always; a write that a reviewer approved is always read back at once"},
		"verify within":      {"of what?", simulated + "    verify: batch\n    verify_within: 5\n", `:7: destinations.x.verify_within: "5" is no duration`},
		"good ones, remote":  {"allowed by name", "ledger: a\nmetrics: {listen: '0.0.0.0:9464', remote: true}\n", ""},
		"good ones, v6":      {"loopback", "ledger: a\nmetrics: '[::1]:9464'\nlog: json\n", ""},
		"good ones, keep":    {"remember has a default", "ledger: a\nretention: {keep: 500d}\n", ""},
		"good ones, verify":  {"all forms", simulated + "    verify: {auto: sample( 0.5 ), log: batch, approve: always}\n    verify_within: 10m\n", ""},
		"good ones, to sure": {"the ends", simulated + "    verify: sample(1)\n    concurrency: 1\n", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(problems(t, tt.text, environment()), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
			}
		})
	}
}

func TestVerification(t *testing.T) {
	c, err := config.Load(write(t, `
ledger: a
destinations:
  one: {type: simulated, url: 'http://a', verify: {approve: always, auto: sample(0.25)}, verify_within: 10m}
  two: {type: simulated, url: 'http://a', verify: batch}
  three: {type: simulated, url: 'http://a'}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []policies.Verification{
		{Destination: "one", Risk: intent.RiskAuto, Mode: policies.Sample, Part: 0.25, Within: 10 * time.Minute},
		{Destination: "one", Risk: intent.RiskApprove, Mode: policies.Always, Within: 10 * time.Minute},
		{Destination: "two", Mode: policies.Batch},
	}
	if diff := cmp.Diff(want, c.Verification()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLimits(t *testing.T) {
	c, err := config.Load(write(t, `
ledger: a
destinations:
  one: {type: simulated, url: 'http://a', concurrency: 3, breaker: {failures: 2, window: 10s, open: 5s}}
  two: {type: simulated, url: 'http://a', breaker: off}
  three: {type: simulated, url: 'http://a'}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]guards.Settings{
		"one": {Concurrency: 3, Breaker: guards.Breaker{Failures: 2, Window: 10 * time.Second, Open: 5 * time.Second}},
		"two": {Breaker: guards.Breaker{Failures: -1}}, "three": {},
	}
	if diff := cmp.Diff(want, c.Limits()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRetentionMustFit(t *testing.T) {
	c, err := config.Load(write(t, "ledger: a\n\nretention: {keep: 2h, remember: 12h}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckRetention(12*time.Hour, "x"); err != nil {
		t.Error(err)
	}
	err = c.CheckRetention(24*time.Hour, "the window of idempotency keys")
	if !errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), ":3: retention.remember: is 12h0m0s; want at least 24h0m0s, the window of idempotency keys") {
		t.Errorf("%v", err)
	}
	if err := (config.Config{}).CheckRetention(time.Hour, "x"); err != nil {
		t.Errorf("nothing is forgotten, and that is wrong: %v", err)
	}
}

// By default nothing is kept for ever, and keys are kept for as long as the gate needs
// them; `forever` can be configured.
func TestRetentionDefault(t *testing.T) {
	day := 24 * time.Hour
	tests := map[string]struct {
		text   string
		want   config.Retention
		prunes bool
	}{
		"nothing":    {"", config.Retention{Keep: 400 * day, Remember: 800 * day, Every: time.Hour, Default: true}, true},
		"long gate":  {"gate: {window: 900d}\n", config.Retention{Keep: 400 * day, Remember: 900 * day, Every: time.Hour, Default: true}, true},
		"configured": {"retention: {keep: 30d}\n", config.Retention{Keep: 30 * day, Remember: 400 * day, Every: time.Hour}, true},
		"forever":    {"retention: {keep: forever}\n", config.Retention{Keep: ledger.Forever, Remember: ledger.Forever, Every: time.Hour}, false},
		"all but one": {"retention: {keep: forever, tenants: {acme: {keep: 90d}}}\n",
			config.Retention{Keep: ledger.Forever, Remember: ledger.Forever, Every: time.Hour, Tenants: map[string]time.Duration{"acme": 90 * day}}, true},
		"one for ever": {"retention: {keep: 30d, destinations: {payments: {keep: forever}, crm: {keep: 500d}}}\n",
			config.Retention{Keep: 30 * day, Remember: 500 * day, Every: time.Hour, Destinations: map[string]time.Duration{"payments": ledger.Forever, "crm": 500 * day}}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := config.Load(write(t, "ledger: a\n"+tt.text))
			if err != nil {
				t.Fatal(err)
			}
			c.Retention.Line = 0
			if diff := cmp.Diff(tt.want, c.Retention); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := c.Retention.Prunes(); got != tt.prunes {
				t.Errorf("prunes %t, want %t", got, tt.prunes)
			}
			if _, err := c.Retention.Rule().Checked(); tt.prunes && err != nil {
				t.Errorf("a ledger refuses it: %v", err)
			}
			if err := c.CheckRetention(1000*day, "x"); c.Retention.Default && err != nil {
				t.Errorf("the default does not fit an old configuration: %v", err)
			}
		})
	}
}

// A password would cross a network in the clear, and so would every request with it.
func TestTLSToOtherMachines(t *testing.T) {
	tests := map[string]struct {
		reason, url, more string
		invalid           bool
	}{
		"none":            {"PostgreSQL's own default falls back to none", "postgres://app@db.invalid/x", "", true},
		"prefer":          {"falls back to none", "postgres://app@db.invalid/x?sslmode=prefer", "", true},
		"one of two":      {"each host counts", "postgres://app@127.0.0.1:1,db.invalid:1/x?sslmode=disable", "", true},
		"as pairs":        {"the other form", "host=db.invalid user=app", "", true},
		"no string":       {"what is it?", "hunter2", "", true},
		"asked for":       {"a network of one's own", "postgres://app@db.invalid/x", ", plaintext: true", false},
		"verified":        {"the right way", "postgres://app@db.invalid/x?sslmode=verify-full", "", false},
		"this machine":    {"no network", "postgres://app@127.0.0.1:1/x", "", false},
		"socket":          {"no network", "host=/nonexistent user=app", "", false},
		"bounds of yours": {"ours do not replace them", "postgres://app@127.0.0.1:1/x?connect_timeout=1&pool_max_conns=2", "", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := config.Load(write(t, "ledger: {type: postgres, url_env: DB"+tt.more+"}\n"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // the lookup must stop
			_, _, err = c.Ledger.Open(ctx, environment("DB", tt.url), nil)
			if err == nil || errors.Is(err, config.ErrInvalid) != tt.invalid || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", tt.reason, err)
			}
		})
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	for _, tt := range []struct{ text, dsn, want string }{
		{"", "postgres://a@b/c", "postgres://a@b/c?pool_max_conns=10&connect_timeout=10"},
		{", max_connections: 3", "postgres://a@b/c?x=y", "postgres://a@b/c?x=y&pool_max_conns=3&connect_timeout=10"},
		{"", "host=b pool_max_conns=2", "host=b pool_max_conns=2 connect_timeout=10"},
	} {
		c, err := config.Load(write(t, "ledger: {type: postgres, url_env: DB"+tt.text+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Bounded(c.Ledger, tt.dsn); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
}

func TestErrorsThatRepeatASecret(t *testing.T) {
	for name, tt := range map[string]struct{ dsn, says string }{
		"URL":        {"postgres://a:hunter2@b/c", "cannot connect to a:hunter2"},
		"escaped":    {"postgres://a:hunter%212@b/c", "cannot connect with hunter!2"},
		"pairs":      {"host=b password=hunter2", "cannot connect with hunter2"},
		"one by one": {"host=b password='hunter2'", "cannot connect with hunter2"},
		"query":      {"postgres://a@b/c?password=hunter2&x=y", "cannot connect with hunter2"},
		"the word":   {"hunter2", "no option in hunter2"},
	} {
		err := config.WithoutSecrets(fmt.Errorf("%w: %s", ledger.ErrUnavailable, tt.says), tt.dsn)
		if !errors.Is(err, ledger.ErrUnavailable) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", name, err)
		}
	}
	harmless := fmt.Errorf("%w: no route to b", ledger.ErrVersion)
	if got := config.WithoutSecrets(harmless, "postgres://a:hunter2@b/c"); got != harmless { //nolint:errorlint // the same one
		t.Errorf("an error without a secret was changed: %v", got)
	}
}
