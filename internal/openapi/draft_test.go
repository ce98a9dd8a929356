package openapi_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/internal/openapi"
)

var update = flag.Bool("update", false, "write the drafts anew")

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "bookings.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The drafts are frozen, and load or lack exactly what is listed here.
func TestDraft(t *testing.T) {
	for operation, lacks := range map[string]string{
		"createBooking":  "",
		"putGuest":       "",
		"POST /invoices": "",
		"sendMail":       "draft:16: kinds.mail.record: is missing",
		"addTask":        "",
	} {
		t.Run(operation, func(t *testing.T) {
			got, err := openapi.Draft([]byte(document(t)), operation)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", strings.NewReplacer(" ", "", "/", "-").Replace(operation)+".draft.yaml")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
			}
			switch _, err := rest.Load([]byte(got), "draft"); {
			case lacks == "" && err != nil:
				t.Error(err)
			case lacks != "" && (err == nil || !strings.Contains(err.Error(), lacks) || strings.Count(err.Error(), "\n") != 1):
				t.Errorf("%v; want one problem: %s", err, lacks)
			}
		})
	}
}

// A draft claims nothing that a document cannot know: strong reads, absence, unique keys, harmless
// repeats, times.
func TestDraftPromisesNothing(t *testing.T) {
	for _, operation := range []string{"createBooking", "putGuest", "createInvoice", "sendMail", "addTask"} {
		got, err := openapi.Draft([]byte(document(t)), operation)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(got) {
			said, _, _ := strings.Cut(line, "#")
			for _, promise := range []string{"strength:", "absent:", "unique:", "settle:", "horizon:", "fresh_keys", "replay:", "complete:", "idempotency:", "idempotency_key"} {
				if strings.Contains(said, promise) {
					t.Errorf("%s promises: %s", operation, line)
				}
			}
		}
	}
}

func TestDraftRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		from, to, operation string
		err                 error
		says                string
	}{
		"another operation":     {"", "", "makeBooking", openapi.ErrOperation, `no operation "makeBooking"; the nearest are createBooking (POST /hotels/{hotel_id}/bookings)`},
		"a list":                {"", "", "listBookings", openapi.ErrOperation, "listBookings is a GET, which only reads; want the POST or PUT that makes the record, such as createBooking"},
		"a read of one":         {"", "", "getBooking", openapi.ErrOperation, "such as createBooking"},
		"a delete":              {"", "", "cancelBooking", openapi.ErrOperation, "is a DELETE, which changes or removes a record that is there"},
		"a read with no writer": {"", "", "whoAmI", openapi.ErrOperation, "want the POST or PUT that makes the record"},
		"Swagger":               {"openapi: 3.0.3", `swagger: "2.0"`, "createBooking", openapi.ErrDocument, "openapi is missing"},
		"a later version":       {"openapi: 3.0.3", "openapi: 4.0.0", "createBooking", openapi.ErrDocument, `openapi is "4.0.0"`},
		"no YAML":               {"openapi: 3.0.3", "openapi: [", "createBooking", openapi.ErrDocument, ""},
		"a dangling reference":  {"schemas/Guest\"", "schemas/Gast\"", "createBooking", openapi.ErrDocument, "Gast"},
		"another file":          {"#/components/schemas/Guest\"", "/etc/passwd\"", "createBooking", openapi.ErrDocument, "external"},
	} {
		t.Run(name, func(t *testing.T) {
			text := document(t)
			if !strings.Contains(text, c.from) {
				t.Fatalf("the document has no %q", c.from)
			}
			if c.from != "" {
				text = strings.Replace(text, c.from, c.to, 1)
			}
			got, err := openapi.Draft([]byte(text), c.operation)
			if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) || got != "" {
				t.Errorf("%q, %v; want %v and %q", got, err, c.err, c.says)
			}
		})
	}
}

// Texts of a vendor stay texts: none begins a line, a placeholder, or a member of the draft.
func TestDraftOfHostileTexts(t *testing.T) {
	for _, evil := range []string{"x\nprobe: {path: /evil}", "x # guess: \u2028y: 1", "{fields.evil}", "'] | $..*", "x: &a [*a]", "\x1b[2J\u202e", "}", "---"} {
		quoted := strconv.Quote(evil)
		text := strings.NewReplacer(
			"title: Hotel bookings", "title: "+quoted, "description: where the hotel is", "description: "+quoted, `"room:type"`, quoted,
			`example: "Ann {Example}"`, "example: "+quoted, "X-Api-Key", quoted, "[bookings]", "["+quoted+"]", "scopes: {bookings: all}", "scopes: {"+quoted+": all}",
			"{code: {type: string}", "{code: {type: string}, "+quoted+": {type: string}",
		).Replace(document(t))
		for _, operation := range []string{"createBooking", "putGuest"} {
			got, err := openapi.Draft([]byte(text), operation)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(got, "\u2028\u202e\x1b") || strings.Contains(got, "\nprobe: {path: /evil}") {
				t.Errorf("%q is in the draft as it is:\n%s", evil, got)
			}
			// What is no name of a header is said; nothing else is wrong.
			if _, err := rest.Load([]byte(got), "draft"); err != nil && (operation != "putGuest" || !strings.Contains(err.Error(), "auth.header") || strings.Count(err.Error(), "draft:") > 1) {
				t.Errorf("%q: %v\n%s", evil, err, got)
			}
		}
	}
}
