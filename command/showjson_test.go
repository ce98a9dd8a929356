package command

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/ledger"
)

// Times are shown as such, and not only as durations from another one.
func TestTheTimesOfEvents(t *testing.T) {
	at := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	got := knownAt(ledger.Record{}, []ledger.Event{
		{Seq: 1, Kind: ledger.EvRead, At: at, Ago: time.Second},
		{Seq: 2, Kind: ledger.EvSettled, At: at, In: time.Minute, Until: time.Hour},
	})
	if len(got) != 2 || !got[0].Happened.Equal(at.Add(-time.Second)) || !got[0].Due.IsZero() ||
		!got[1].Happened.Equal(at) || !got[1].Due.Equal(at.Add(time.Minute)) || !got[1].Until.Equal(at.Add(time.Hour)) {
		t.Errorf("%+v", got)
	}
}

// The page names the unit of every duration, and all that is base64.
func TestThePageHasTheUnitsOfShow(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "operate", "run.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## What `show --json` has\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, of := range []any{ledger.Record{}, ledger.Event{}, known{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			unit := f.Type == reflect.TypeFor[time.Duration]() || f.Type == reflect.TypeFor[[]byte]()
			if unit && !strings.Contains(section, "`"+name+"`") {
				t.Errorf("%T has %s, of which the page does not say the unit", of, name)
			}
		}
	}
}
