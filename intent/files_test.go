package intent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// beyondSchema are the bad intents that the schema accepts, and why it cannot refuse them.
// Everything else that is bad must fail both.
var beyondSchema = map[string]string{
	"repeated_member":         "JSON libraries drop all but one of repeated members before a schema is asked",
	"repeated_member_escaped": "the same",
	"repeated_member_deep":    "the same",
	"repeated_compare_path":   "the same",
	"invalid_utf8":            "many JSON libraries replace invalid bytes before a schema is asked",
	"lone_surrogate":          "the same",
	"surrogate_as_utf8":       "the same",
	"two_values":              "a schema sees the first value",

	"number_beyond_double": "a schema library that reads doubles has lost the difference",
	"number_too_fine":      "the same",
	"number_too_small":     "the same",

	"member_name_too_many_bytes": "maxLength counts characters, the bound is in bytes",
	"absent_too_many_bytes":      "the same",

	"context_value_too_many_bytes": "the same",

	"deadline_no_such_day":      "a pattern does not know the length of months",
	"deadline_go_zero":          "a pattern has no exception for one instant",
	"deadline_year_zero":        "the same",
	"deadline_beyond_year_9999": "a pattern cannot convert to UTC",
	"precision_zero":            "a pattern cannot add durations up",
	"precision_too_large":       "the same",
	"zone_unknown":              "the list of zones is not in the schema",
	"zone_local":                "the same",
	"numeric_not_last":          "draft 2020-12 has no word for all elements but the last",

	"expect_differs_from_key":     "a schema cannot compare two members",
	"payload_differs_from_key":    "the same",
	"require_differs_from_key":    "the same",
	"payload_repeats_expect":      "the same",
	"ignore_everything":           "the same",
	"ignore_everything_piecewise": "the same",
	"ignore_key":                  "the same",
	"ignore_below_key":            "the same",
	"absent_expected":             "the same",
	"absent_above_expected":       "the same",
	"absent_expected_null":        "the same",
	"absent_key":                  "the same",
	"absent_ignored":              "the same",
}

// files lists the intents of one folder. An empty folder is a fault of the test, not a success.
func files(t testing.TB, folder string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no intents in testdata/%s (%v)", folder, err)
	}
	return found
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoodIntents(t *testing.T) {
	schema := resolvedSchema(t)
	for _, file := range files(t, "good") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data := read(t, file)
			w, err := Decode(data)
			if err != nil {
				t.Fatalf("Decode: %v", err)
			}
			if err := schemaAccepts(schema, data); err != nil {
				t.Errorf("the schema refuses what Decode takes: %v", err)
			}
			checkStable(t, w)
		})
	}
}

// checkStable: the ledger returns what was stored, with the same names.
func checkStable(t *testing.T, w WriteIntent) {
	t.Helper()
	encoded, err := w.Encode()
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	again, err := DecodeStored(encoded)
	if err != nil {
		t.Fatalf("DecodeStored of %s: %v", encoded, err)
	}
	if diff := cmp.Diff(w, again); diff != "" {
		t.Errorf("decoded, stored and read again (-first +again):\n%s", diff)
	}
	second, err := again.Encode()
	if err != nil || string(second) != string(encoded) {
		t.Errorf("encoded twice:\n%s\n%s (%v)", encoded, second, err)
	}
	one, err1 := w.Digest()
	two, err2 := again.Digest()
	if one != two || err1 != nil || err2 != nil {
		t.Errorf("digests %s (%v) and %s (%v)", one, err1, two, err2)
	}
}

func TestBadIntents(t *testing.T) {
	schema := resolvedSchema(t)
	for _, file := range files(t, "bad") {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			data := read(t, file)
			_, err := Decode(data)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !errors.Is(err, ErrInvalid) {
				t.Fatalf("Decode gives %v; want an InvalidError", err)
			}
			compareText(t, strings.TrimSuffix(file, ".json")+".txt", invalid)
			refused := schemaAccepts(schema, data)
			reason, beyond := beyondSchema[name]
			if refused == nil && !beyond {
				t.Error("the schema accepts it; tighten the schema, or say in beyondSchema why it cannot refuse it")
			}
			if refused != nil && beyond {
				t.Errorf("the schema refuses it (%v), though beyondSchema says %q", refused, reason)
			}
		})
	}
}

// compareText compares the problems with the file beside the intent, one on each line.
func compareText(t *testing.T, file string, invalid *InvalidError) {
	t.Helper()
	var lines strings.Builder
	for _, p := range invalid.Problems {
		lines.WriteString(p.String() + "\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(read(t, file)), lines.String()); diff != "" {
		t.Errorf("problems (-%s +got):\n%s", file, diff)
	}
}

// A stale entry would excuse the next intent of its name.
func TestBeyondSchemaNamesFiles(t *testing.T) {
	bad := files(t, "bad")
	for name, reason := range beyondSchema {
		if !slices.Contains(bad, filepath.Join("testdata", "bad", name+".json")) {
			t.Errorf("%s (%s) is no file", name, reason)
		}
		if reason == "" {
			t.Errorf("%s has no reason", name)
		}
	}
	texts, err := filepath.Glob(filepath.Join("testdata", "bad", "*.txt"))
	if err != nil || len(texts) != len(bad) {
		t.Errorf("%d texts for %d bad intents (%v)", len(texts), len(bad), err)
	}
}
