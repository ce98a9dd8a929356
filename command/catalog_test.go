package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/internal/fakes/orders"
)

func TestCatalog(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	all := p.want(0, p.run("catalog"))
	says(t, all, "NAME NATIVE KEY LOOKUP SETTLE", "jira-cloud-issue none weak 5m 5m", "zendesk-tickets create for 30m strong")
	one := p.want(0, p.run("catalog", "jira-cloud-issue"))
	says(t, one, "# Jira Cloud: issue", "- **create, update**: after a lost answer", "| look-up |", "developer.atlassian.com")
	says(t, p.want(exitUsage, p.run("catalog", "jira")), `"jira"; there are`, "jira-cloud-issue")

	var answer struct {
		Catalog []struct {
			Name     string
			Promises []struct{ Write, Row, Text string }
			Claims   []struct{ About, Says, Source string }
		}
	}
	if err := json.Unmarshal([]byte(p.want(0, p.run("--json", "catalog")).out), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Catalog) < 20 || answer.Catalog[0].Name == "" || len(answer.Catalog[0].Promises) == 0 || answer.Catalog[0].Claims[0].Source == "" {
		t.Errorf("%+v; want every entry with promises and sources", answer.Catalog)
	}
}

// The printed settings are valid, so that a user can start from them.
func TestShippedDeclarationsCanBePrintedAndChecked(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	for _, name := range rest.Shipped() {
		text := p.want(0, p.run("destination", "print", name)).out
		path := p.write(name+".yaml", text)
		r := p.want(0, p.run("destination", "check", path))
		says(t, r, "needs the secret", "settle time")
		if !strings.Contains(r.out, "create: ") && !strings.Contains(r.out, "update: ") { // an upsert is an update
			t.Errorf("%s explains no write:\n%s", name, r.out)
		}
	}
	says(t, p.want(exitUsage, p.run("destination", "print", "erp")), "github-issues")
}

func TestDestinationCheckSaysWhatIsWrongByLine(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	good := p.want(0, p.run("destination", "print", "github-issues")).out
	for name, c := range map[string]struct{ from, to, says string }{
		"an unknown field":    {"\nsystem:", "\nsistem:", "sistem: is not known; did you mean system?"},
		"no escape by itself": {"{param.owner}", "{+param.owner}", "{+param.owner}"},
		"a secret":            {"secret: token", "secret: ghp_S3cr3tValue0123456789abcdefghijklmnop", "secret"},
		"another host":        {"base_url: https://api.github.com", "base_url: http://api.github.com", "https"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, c.from) {
				t.Fatalf("the declaration has no %q", c.from)
			}
			path := p.write("bad.yaml", strings.Replace(good, c.from, c.to, 1))
			r := p.want(exitInvalid, p.run("destination", "check", path))
			says(t, r, "invalid declaration:", "bad.yaml:", c.says)
			if strings.Contains(r.String(), "S3cr3t") {
				t.Errorf("the secret is repeated:\n%s", r)
			}
		})
	}
	says(t, p.want(exitFailed, p.run("destination", "check", "./missing.yaml")), "missing.yaml")
	says(t, p.want(0, p.run("destination", "check", "google-calendar-events")), "create sends and compares none of: /payload/invite")
}

// bookingsWith is a declaration whose create has that body.
func bookingsWith(body string) string {
	return `declaration: 1
name: bookings
system: Hotel bookings
base_url: http://127.0.0.1:1
probe: {path: "/me"}
kinds:
  booking:
    key: [reference]
    writes:
      create: {method: POST, path: "/bookings", body: ` + body + `, ref: $.id}
    reads:
      - {name: list, by: key, strength: strong, path: "/bookings", query: {reference: "{key.reference}"}, records: "$.bookings[*]"}
    record: {ref: $.id, stamp: {path: $.memo}, fields: {reference: $.reference, guest: $.guest}}
    profile: {stamped: true, settle: 0s, horizon: 30s}
`
}

// A write that has no place for a field beyond the key is named before a send is
// refused for it.
func TestDestinationCheckNamesWritesOfTheKeyAlone(t *testing.T) {
	bookings := bookingsWith(`"booking {key.reference} {stamp}"`)
	const line = "create has no place for a field beyond the key, such as {fields.NAME}: an intent that expects one is refused"
	p := newPlace(t, orders.Plain.Options())
	path := p.write("bookings.yaml", bookings)
	says(t, p.want(0, p.run("destination", "check", path)), line)
	says(t, p.want(0, p.run("destination", "check", path, "--json")), `"key_alone"`, `"booking"`, `"create"`)
	path = p.write("bookings.yaml", strings.Replace(bookings, "{key.reference} {stamp}", "{key.reference} {fields.guest} {stamp}", 1))
	if r := p.want(0, p.run("destination", "check", path)); strings.Contains(r.out, "has no place for") {
		t.Errorf("the text has the guest in it: %s", r)
	}
}

func TestDestinationSuggest(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	suggest := func(file, operation string, more ...string) result {
		return p.run(append([]string{"destination", "suggest", "--openapi", file, "--operation", operation}, more...)...)
	}
	file := filepath.Join("..", "internal", "openapi", "testdata", "bookings.yaml")
	draft := p.want(0, suggest(file, "createBooking")).out
	says(t, p.want(0, p.run("destination", "check", p.write("draft.yaml", draft))), "Hotel bookings", "needs the secret client_secret")

	r := p.want(exitInvalid, suggest(file, "sendMail"))
	says(t, r, "kinds: mail:", "the draft is not complete: invalid declaration:", "draft:16: kinds.mail.record: is missing")
	answer := decode(t, p.want(exitInvalid, suggest(file, "sendMail", "--json")))
	if missing := fmt.Sprint(answer["missing"]); !strings.Contains(missing, "draft:16: kinds.mail.record: is missing") || answer["declaration"] == "" {
		t.Errorf("%v; want the draft, and what it lacks", answer)
	}

	says(t, p.want(exitRefused, suggest(file, "makeBooking")), "bookings.yaml: ", `there is no operation "makeBooking"; the nearest are createBooking`)
	says(t, p.want(exitRefused, suggest(file, "listBookings")), "only reads", "such as createBooking")
	says(t, p.want(exitInvalid, suggest(p.write("old.yaml", "swagger: '2.0'\ninfo: {title: x, version: '1'}\npaths: {/a: {}}\n"), "x")), "old.yaml: ", "openapi is missing")
	says(t, p.want(exitUsage, p.run("destination", "suggest", "--openapi", file)), "--operation ID")
	says(t, p.want(exitFailed, suggest("./missing.yaml", "x")), "missing.yaml")
}
