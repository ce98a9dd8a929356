package rest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
)

// The record of a create's answer is shown as it is now: another actor may have removed our key
// and our marker.
func TestTheRecordThatTheAnswerNamedIsShown(t *testing.T) {
	file := strings.Replace(itemsFile("", plainRead), "    record:\n", "      - {name: get, by: ref, strength: strong, record: $, absent: [404], path: '/items/{ref}'}\n    record:\n", 1)
	c := items(t, file, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/items/308" {
			says(200, `{"id":308,"sku":"Z-9"}`)(rw, r)
			return
		}
		says(200, `{"items":[]}`)(rw, r)
	})
	got, err := c.Read(t.Context(), connectors.Query{Intent: item(intent.Create), Stamp: "S", Ref: "308"})
	if err != nil || len(got.Records) != 1 || got.Records[0].Ref != "308" || got.Records[0].Fields["sku"] != "Z-9" {
		t.Errorf("%+v, %v; want the record 308 as it is", got, err)
	}
}

// A rollback fact is within how long effects can be taken back.
func TestRollbackNeedsATime(t *testing.T) {
	for says, valid := range map[string]bool{"2m": true, "true": false, "soon": false, "''": false} {
		file := strings.Replace(itemsFile("", plainRead), "profile: {stamped: true}", "profile: {stamped: true, rollback: "+says+"}", 1)
		d, err := rest.Load([]byte(file), "items.yaml")
		switch {
		case !valid && (err == nil || !strings.Contains(err.Error(), "no duration; want one such as 60s")):
			t.Errorf("rollback: %s: %v; want an error that asks for a duration", says, err)
		case valid && err != nil:
			t.Errorf("rollback: %s: %v", says, err)
		case valid:
			if within, ok := d.Profiles()["item"].Rollback.Declared(); !ok || within != 2*time.Minute {
				t.Errorf("rollback: %s: declared %t, %s", says, ok, within)
			}
		}
	}
}
