package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/ledger"
)

// refundFile declares items of which the API decides later.
var refundFile = strings.NewReplacer(
	"      ref: $.id\n      stamp", "      settles: {path: $.status, open: [pending], good: [succeeded], bad: [failed, canceled], within: 10d}\n      ref: $.id\n      stamp",
	"profile: {stamped: true}", "profile: {stamped: true, settle: 0s, horizon: 30s}",
).Replace(itemsFile("", plainRead))

// An accepted record is verified when the API has decided for it, and one that fails later, also after
// it was good, goes to a reviewer.
func TestVerifiedOnlyAtAGoodStatus(t *testing.T) {
	const day = 24 * time.Hour
	type change struct {
		at     time.Duration
		status string
	}
	for name, c := range map[string]struct {
		reason  string
		changes []change
		after   map[time.Duration]ledger.Status // what the write is then
	}{
		"good at once":   {"nothing is open", []change{{0, "succeeded"}}, map[time.Duration]ledger.Status{time.Minute: ledger.Verified, 12 * day: ledger.Verified}},
		"good later":     {"it is read again for days", []change{{0, "pending"}, {3 * day, "succeeded"}}, map[time.Duration]ledger.Status{2 * day: ledger.InProgress, 4 * day: ledger.Verified, 12 * day: ledger.Verified}},
		"bad later":      {"it did not take effect", []change{{0, "pending"}, {3 * day, "failed"}}, map[time.Duration]ledger.Status{2 * day: ledger.InProgress, 4 * day: ledger.StatusReview}},
		"bad after good": {"a recheck finds it", []change{{0, "succeeded"}, {8 * day, "failed"}}, map[time.Duration]ledger.Status{9 * day: ledger.Verified, 11 * day: ledger.StatusReview}},
		"never decided":  {"the time is up", []change{{0, "pending"}}, map[time.Duration]ledger.Status{9 * day: ledger.InProgress, 12 * day: ledger.StatusReview}},
		"unknown status": {"it decides nothing", []change{{0, "on_hold"}, {day, "succeeded"}}, map[time.Duration]ledger.Status{day / 2: ledger.InProgress, 2 * day: ledger.Verified}},
		"no status":      {"likewise", []change{{0, ""}, {day, "succeeded"}}, map[time.Duration]ledger.Status{day / 2: ledger.InProgress, 2 * day: ledger.Verified}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, stored, sends := time.Now(), "", 0
				con := items(t, refundFile, func(rw http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						sends++
						body, _ := io.ReadAll(r.Body)
						stored = strings.TrimSuffix(string(body), "}")
						says(201, `{"id":"1"}`)(rw, r)
						return
					}
					if stored == "" {
						says(200, `{"items":[]}`)(rw, r)
						return
					}
					status := ""
					for _, ch := range c.changes {
						if time.Since(began) >= ch.at {
							status = ch.status
						}
					}
					if status != "" {
						status = fmt.Sprintf(`,"status":%q`, status)
					}
					says(200, `{"items":[`+stored+`,"id":"1"`+status+`}]}`)(rw, r)
				})
				var reg connectors.Registry
				if err := reg.Register("items", connectors.Destination{Connector: con, Profiles: con.Profiles()}); err != nil {
					t.Fatal(err)
				}
				l := ledger.NewMemory()
				e := engine.New(l, &reg, nil)
				defer e.Close()
				ctx, stop := context.WithCancel(t.Context())
				worked := make(chan error, 1)
				go func() { worked <- e.Work(ctx, &engine.WorkOptions{Idle: time.Hour}) }()
				id, err := e.Enqueue(ctx, item(intent.Create))
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range slices.Sorted(maps.Keys(c.after)) {
					time.Sleep(time.Until(began.Add(at)))
					rec, err := l.Get(ctx, "a", id)
					if got := rec.Status(); err != nil || got != c.after[at] {
						t.Errorf("after %s it is %s (%s), %v; want %s: %s", at, got, rec.Reason, err, c.after[at], c.reason)
					}
				}
				stop()
				if err := <-worked; err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if sends != 1 {
					t.Errorf("%d sends, want one", sends)
				}
			})
		})
	}
}
