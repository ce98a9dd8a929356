//go:build unix

package soak

import (
	"fmt"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/postgres"
	"github.com/readback-go/readback/saga"
)

// accountSagas holds the destination's log against the sagas and their writes, which are those of the
// ledger that no caller has committed. effects are those of each stamp.
func (f *fire) accountSagas(writes map[ledger.ID]ledger.Record, effects map[string][]orders.Effect) {
	f.t.Helper()
	book, err := postgres.Open(f.t.Context(), f.dsn, nil)
	f.must(err)
	defer func() { f.must(book.Close()) }()
	sagas := saga.New(book, nil, nil)
	all, states := 0, map[saga.State]int{}
	for n := range enqueuers {
		for r := range min(f.size.records(), mostSagas) {
			all++
			record, fails := recordOf(n, r), failing(r)
			s, err := sagas.Get(f.t.Context(), tenant, record)
			if err != nil {
				f.t.Errorf("saga %s: lost: %v", record, err)
				continue
			}
			states[s.State]++
			f.judgeSaga(s, fails, writes, effects)
		}
	}
	f.t.Logf("of %d sagas: %d done, %d undone, %d in review; %d writes", all, states[saga.Done], states[saga.Undone], states[saga.Review], len(writes))
}

// judgeSaga checks the end of a saga.
func (f *fire) judgeSaga(s saga.Saga, fails bool, writes map[ledger.ID]ledger.Record, effects map[string][]orders.Effect) {
	f.t.Helper()
	wrong := func(format string, args ...any) {
		f.t.Helper()
		f.t.Errorf("saga %s, %s (%s): %s", s.ID, s.State, s.Reason, fmt.Sprintf(format, args...))
	}
	why := ""
	made := func(id ledger.ID) int {
		rec, ok := writes[id]
		if !ok {
			return 0
		}
		own := effects[f.stampOf(rec)]
		lasted := rec.Settlement == ledger.Verified || rec.Settlement == ledger.Compensated
		if len(own) > 1 || rec.State == ledger.Settled && lasted != (len(own) == 1) {
			wrong("%s after %d effects%s", rec.Phase(), len(own), f.life(rec))
		}
		if rec.State == ledger.Review {
			why += explanation(verdictOn{rec: rec, effects: own})
		}
		return len(own)
	}
	var forward, back int
	for _, step := range s.Steps {
		forward += made(step.WriteID)
		back += made(step.Undoing)
	}
	switch {
	case s.State == saga.Done && !fails && forward == len(s.Steps) && back == 0:
	case s.State == saga.Undone && fails && forward == 1 && back == 1:
	case s.State == saga.Review && why != "":
		f.t.Logf("saga %s: %s: %s", s.ID, why, s.Reason)
	default:
		wrong("%d effects, %d of them undone, %s", forward, back, why)
		for _, step := range s.Steps {
			for _, id := range []ledger.ID{step.WriteID, step.Undoing} {
				f.t.Logf("%s %s%s", step.Name, id, f.life(writes[id]))
			}
		}
	}
}
