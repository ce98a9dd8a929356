package policies_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

const (
	settle  = 10 * time.Second
	horizon = 30 * time.Second
)

// plain is a destination that can only be read, and declares its times.
func plain() connectors.Profile {
	return connectors.Profile{Settle: connectors.Within(settle), Horizon: connectors.Within(horizon)}
}

// lost is a create whose one send was not answered, and that a strong read just made does not
// show: the base case of these tests.
func lost() policies.Case {
	c := policies.Case{
		Intent:  intent.WriteIntent{Write: intent.Create},
		Profile: plain(),
		Sends:   1, Unknown: true, Budget: 4,
	}
	return read(c, verify.Absent, 0)
}

// read returns the case after a strong read begun at a time since the send.
func read(c policies.Case, v verify.Verdict, since time.Duration) policies.Case {
	c.Judgement = verify.Judgement{Verdict: v, Conclusive: true, Based: true, Since: since, AsOf: since, Reason: "it is " + v.String()}
	c.SinceSend, c.SinceKey, c.Age, c.Agreeing = since, since, since, 1
	return c
}

// readWeakly returns the case after a read that lags, as package verify judges it.
func readWeakly(c policies.Case, v verify.Verdict, since time.Duration) policies.Case {
	c = read(c, v, since)
	lag, declared := c.Profile.Settle.Declared()
	c.Conclusive, c.AsOf = declared && since >= lag, 0
	if c.Conclusive {
		c.AsOf = since - lag
	}
	return c
}

// with returns the changed case.
func with(c policies.Case, changes ...func(*policies.Case)) policies.Case {
	for _, change := range changes {
		change(&c)
	}
	return c
}

// fate sets the fate of the last send, as an error reports it.
func fate(f connectors.Fate) func(*policies.Case) {
	return func(c *policies.Case) {
		c.Last, c.Unknown, c.Answered = f, f == connectors.FateUnknown, f == connectors.FateAnswered
		if f == connectors.FateNotSent || f == connectors.FateThrottled {
			c.Unsent = c.Sends
		}
	}
}

func write(w intent.WriteType) func(*policies.Case) {
	return func(c *policies.Case) { c.Intent.Write = w }
}

func unique(c *policies.Case)       { c.Profile.Unique = []intent.WriteType{c.Intent.Write} }
func conditional(c *policies.Case)  { c.Profile.Conditional = []intent.WriteType{c.Intent.Write} }
func irreversible(c *policies.Case) { c.Profile.Irreversible = []intent.WriteType{c.Intent.Write} }
func unused(c *policies.Case)       { c.Unused = true }
func conflict(c *policies.Case)     { c.Conflict = true }
func late(c *policies.Case)         { c.Late = true }
func forced(c *policies.Case)       { c.Directed = policies.DirectForce }

func window(d time.Duration) func(*policies.Case) {
	return func(c *policies.Case) {
		c.Profile.NativeWindow = map[intent.WriteType]time.Duration{c.Intent.Write: d}
	}
}

func sends(n, unsent, budget int) func(*policies.Case) {
	return func(c *policies.Case) { c.Sends, c.Unsent, c.Budget = n, unsent, budget }
}

func sinceKey(d time.Duration) func(*policies.Case) {
	return func(c *policies.Case) { c.SinceKey = d }
}

var (
	native = window(24 * time.Hour)
	// fits is the latest time since the first send at which a repeat certainly arrives inside a
	// window of a day: the time from decision to send (1 min), a send (30 s) and the horizon
	// are subtracted.
	fits = 24*time.Hour - time.Minute - 30*time.Second - horizon - 1
)

// second is a row of the table of DESIGN section 6.
type second struct {
	reason string
	c      policies.Case
	want   policies.Permit // Reason is not compared
}

func (r second) run(t *testing.T) {
	t.Helper()
	got := policies.SecondSend(r.c)
	if got.Reason == "" {
		t.Error("no reason")
	}
	got.Reason = ""
	if got != r.want {
		t.Errorf("%+v\nwant %+v: %s", got, r.want, r.reason)
	}
}

var refused = policies.Permit{Row: policies.RowNone}

func rechecked(p policies.Permit) policies.Permit { p.NeedsRecheck = true; return p }

func allowed(row string) policies.Permit { return policies.Permit{Allowed: true, Row: row} }

// The first row: proof that nothing left us, or a definite refusal.
func TestSecondSendAfterRefusals(t *testing.T) {
	nothing := allowed(policies.RowNothingSent)
	for name, r := range map[string]second{
		"never sent":                  {"nothing was sent", policies.Case{}, nothing},
		"not sent":                    {"proof that nothing left us", with(lost(), fate(connectors.FateNotSent)), nothing},
		"throttled":                   {"the destination throttled it", with(lost(), fate(connectors.FateThrottled)), nothing},
		"refused":                     {"the destination refused the first send", with(lost(), fate(connectors.FateRefused)), nothing},
		"refused, unread":             {"the refusal is the proof", with(read(lost(), verify.Unavailable, 0), fate(connectors.FateRefused)), nothing},
		"refused, irreversible":       {"even so: it was not applied", with(lost(), fate(connectors.FateRefused), irreversible), nothing},
		"unknown":                     {"it may have been applied", lost(), refused},
		"answered":                    {"it may have been applied", with(lost(), fate(connectors.FateAnswered)), refused},
		"unknown, then refused":       {"a refusal does not take back an earlier send", with(lost(), fate(connectors.FateRefused), sends(2, 0, 4), func(c *policies.Case) { c.Unknown = true }), refused},
		"unknown, then not sent":      {"nor does a dial that failed", with(lost(), fate(connectors.FateNotSent), sends(2, 1, 4), func(c *policies.Case) { c.Unknown = true }), refused},
		"answered, then refused":      {"nor of one that was answered", with(lost(), fate(connectors.FateRefused), sends(2, 0, 4), func(c *policies.Case) { c.Answered = true }), refused},
		"refused, and it is there":    {"a refusal that a read contradicts proves nothing", with(read(lost(), verify.Verified, 0), fate(connectors.FateRefused)), refused},
		"refused, differs":            {"nor with other values", with(read(lost(), verify.Mismatched, 0), fate(connectors.FateRefused)), refused},
		"refused, duplicated":         {"nor twice", with(read(lost(), verify.Duplicated, 0), fate(connectors.FateRefused)), refused},
		"conflict, something else":    {"the refusal shows it: the one that differs is what was there", with(read(lost(), verify.Mismatched, 0), fate(connectors.FateRefused), refusedForConflict), nothing},
		"conflict, ours":              {"our stamp on it says that it is ours", with(read(lost(), verify.Mismatched, 0), fate(connectors.FateRefused), refusedForConflict, stamped), refused},
		"conflict, as declared":       {"one that is as declared may be ours", with(read(lost(), verify.Verified, 0), fate(connectors.FateRefused), refusedForConflict), refused},
		"never sent, a reviewer asks": {"a read shows that nothing is there", with(read(policies.Case{}, verify.Absent, 0), func(c *policies.Case) { c.Directed = policies.DirectRetry }), nothing},
		"never sent, not read":        {"what stopped it may still be there", with(read(policies.Case{}, verify.Unavailable, 0), func(c *policies.Case) { c.Directed = policies.DirectRetry }), refused},
		"another actor's":             {"a first send beside it is not ours to make either", with(policies.Case{}, conflict), refused},
		"refused, another actor's":    {"no repeat helps", with(lost(), fate(connectors.FateRefused), conflict), refused},
	} {
		t.Run(name, r.run)
	}
}

func refusedForConflict(c *policies.Case) { c.Last, c.LastConflict = connectors.FateRefused, true }
func inOurWay(c *policies.Case)           { c.Last, c.LastConflict = connectors.FateUnknown, true }
func stamped(c *policies.Case)            { c.Profile.Stamped, c.Stamped = true, true }
func own(c *policies.Case)                { c.Own = true }
func takesBack(c *policies.Case)          { c.Profile.Rollback = connectors.Within(time.Minute) }

// Budget and deadline bound every row.
func TestSecondSendWithinBounds(t *testing.T) {
	nothing, nativeKey := allowed(policies.RowNothingSent), allowed(policies.RowNativeKey)
	for name, r := range map[string]second{
		"last of the budget":      {"three of four have reached the destination", with(lost(), native, sends(3, 0, 4)), nativeKey},
		"budget used up":          {"four of four", with(lost(), native, sends(4, 0, 4)), refused},
		"unsent do not count":     {"ten of thirteen were not taken up", with(lost(), native, sends(13, 10, 4)), nativeKey},
		"refused count":           {"a refusal reached the destination", with(lost(), fate(connectors.FateRefused), sends(4, 0, 4)), refused},
		"throttled do not":        {"the destination did not take them up", with(lost(), sends(100, 0, 4), fate(connectors.FateThrottled)), nothing},
		"forgotten budget":        {"the zero value allows nothing", with(lost(), native, sends(1, 0, 0)), refused},
		"deadline, never sent":    {"nothing is begun after it", with(policies.Case{}, late), refused},
		"deadline, not sent":      {"nothing is begun after it", with(lost(), fate(connectors.FateNotSent), late), refused},
		"deadline, native":        {"nothing is begun after it", with(lost(), native, late), refused},
		"deadline, conclusive":    {"nothing is begun after it", with(read(lost(), verify.Absent, horizon), late), refused},
		"deadline, a reviewer":    {"not even by a reviewer", with(lost(), forced, late), refused},
		"budget, a reviewer":      {"not even by a reviewer", with(lost(), forced, sends(4, 0, 4)), refused},
		"budget, nothing applied": {"a lifetime budget", with(lost(), unique, fate(connectors.FateRefused), sends(5, 0, 4)), refused},
	} {
		t.Run(name, r.run)
	}
}

// The row for a record that lacks what was not stored.
func TestSecondSendRepair(t *testing.T) {
	asked := func(c *policies.Case) { c.Intent.OnMismatch = intent.MismatchRepair }
	differs := with(read(lost(), verify.Mismatched, horizon), asked, own)
	repaired := func(f connectors.Fate) func(*policies.Case) {
		return func(c *policies.Case) {
			sends(2, 0, 4)(c)
			c.Repaired, c.Last, c.Unknown = true, f, f == connectors.FateUnknown
		}
	}
	repair := policies.Permit{Allowed: true, NewKey: true, Repair: true, NeedsRecheck: true, Row: policies.RowRepair}
	newKey := policies.Permit{Allowed: true, NewKey: true, NeedsRecheck: true, Row: policies.RowAbsence}
	for name, r := range map[string]second{
		"ours":                    {"only what was not stored differs", differs, repair},
		"unique":                  {"a create that meets its key changes nothing", with(differs, unique), repair},
		"not asked for":           {"who says nothing has a reviewer decide", with(read(lost(), verify.Mismatched, horizon), own), refused},
		"not ours":                {"another actor may have set it", with(read(lost(), verify.Mismatched, horizon), asked), refused},
		"weak":                    {"the value may be there by now", with(readWeakly(lost(), verify.Mismatched, 0), asked, own), refused},
		"an earlier one may land": {"it could replace what the repair stores", with(read(lost(), verify.Mismatched, 0), asked, own), refused},
		"late":                    {"no send is begun after the deadline", with(differs, late), refused},
		"no budget":               {"a repair counts as a send", with(differs, sends(4, 0, 4)), refused},
		"lost":                    {"the first repair cannot arrive any more", with(differs, repaired(connectors.FateUnknown)), repair},
		"lost, irreversible": {"no read shows all that an update does", with(differs, repaired(connectors.FateUnknown),
			func(c *policies.Case) { c.Profile.Irreversible = []intent.WriteType{intent.Update} }), refused},
		"answered":    {"the destination does not store it", with(differs, repaired(connectors.FateAnswered)), refused},
		"refused":     {"the destination does not take it", with(differs, repaired(connectors.FateRefused)), refused},
		"taken back":  {"the present key is that of an update", with(read(lost(), verify.Absent, horizon), asked, native, repaired(connectors.FateUnknown)), newKey},
		"verified":    {"there is nothing to repair", with(read(lost(), verify.Verified, horizon), asked, own), refused},
		"a duplicate": {"an update of one of two records mends nothing", with(read(lost(), verify.Duplicated, horizon), asked, own), refused},
	} {
		t.Run(name, r.run)
	}
}

// The second row: the destination deduplicates.
func TestSecondSendRecognised(t *testing.T) {
	nativeKey, uniqueKey := allowed(policies.RowNativeKey), allowed(policies.RowUnique)
	update := with(lost(), write(intent.Update))
	for name, r := range map[string]second{
		"native":                      {"same key, inside the window", with(lost(), native), nativeKey},
		"native, weak":                {"the destination recognises it whatever we see", with(readWeakly(lost(), verify.Absent, 0), native), nativeKey},
		"native, other write type":    {"it deduplicates creates, not updates", with(lost(), native, write(intent.Update)), refused},
		"native, last moment":         {"a repeat that starts now lands inside", with(lost(), native, sinceKey(fits)), nativeKey},
		"native, window's edge":       {"a repeat that starts now may land outside", with(lost(), native, sinceKey(fits+1)), refused},
		"native, window over":         {"the key is forgotten", with(lost(), native, sinceKey(25*time.Hour)), refused},
		"native, centuries":           {"a sum that overflows is not inside", with(lost(), native, sinceKey(math.MaxInt64)), refused},
		"native, short window":        {"a send that lands late meets a key that is forgotten", with(lost(), window(horizon)), refused},
		"native, longer send":         {"the send's own time counts", with(lost(), native, sinceKey(fits), func(c *policies.Case) { c.Profile.SendTimeout = time.Minute }), refused},
		"native, no horizon":          {"the window is taken at its word", with(lost(), native, sinceKey(fits+horizon), func(c *policies.Case) { c.Profile.Horizon = connectors.Bound{} }), nativeKey},
		"native, clock went back":     {"it is unknown how old the key is", with(lost(), native, sinceKey(-1)), refused},
		"native, there":               {"it landed", with(read(lost(), verify.Verified, 0), native), refused},
		"native, differs":             {"it landed", with(read(lost(), verify.Mismatched, 0), native), refused},
		"native, unread":              {"after an unknown comes a read, never a send", with(read(lost(), verify.Unavailable, 0), native), refused},
		"native, not read":            {"after an unknown comes a read, never a send", with(read(lost(), verify.Indeterminate, 0), native), refused},
		"native, irreversible":        {"the destination makes one effect of both sends", with(lost(), native, irreversible), nativeKey},
		"native, irreversible, later": {"the key is forgotten", with(lost(), native, irreversible, sinceKey(fits+1)), refused},
		"native, another actor's":     {"no repeat helps", with(lost(), native, conflict), refused},
		"native, refused later":       {"the refusal leaves the earlier send unknown, and its key serves", with(lost(), native, fate(connectors.FateRefused), sends(2, 0, 4), func(c *policies.Case) { c.Unknown = true }), nativeKey},

		"unique":                   {"a repeat meets the same record, and makes no second one, unless the record was deleted before it arrives", with(lost(), unique), rechecked(uniqueKey)},
		"unique, answered":         {"another actor may have removed it", with(lost(), unique, fate(connectors.FateAnswered)), refused},
		"unique, rolled back":      {"no earlier send can arrive", with(lost(), unique, fate(connectors.FateAnswered), takesBack), uniqueKey},
		"unique, weak":             {"whatever we see", with(readWeakly(lost(), verify.Absent, 0), unique), rechecked(uniqueKey)},
		"unique, other write type": {"creates are unique, updates not", with(lost(), unique, write(intent.Update)), refused},
		"unique, irreversible":     {"the destination refuses the second", with(lost(), unique, irreversible), rechecked(uniqueKey)},
		"unique, unread":           {"after an unknown comes a read", with(read(lost(), verify.Unavailable, 0), unique), refused},
		"unique, duplicated":       {"a repeat mends no duplicate", with(read(lost(), verify.Duplicated, 0), unique), refused},
		"unique, collateral":       {"a repeat brings nothing back", with(read(update, verify.Collateral, 0), unique), refused},
		"unique create, differs":   {"a create replaces no values", with(read(lost(), verify.Mismatched, 0), unique), refused},
		"unique update, differs":   {"a repeat replaces the values of the one record, which are our own", with(read(update, verify.Mismatched, 0), unique, own), uniqueKey},
		"unique upsert, differs":   {"a repeat replaces the values of the one record, which are our own", with(read(update, verify.Mismatched, 0), write(intent.Upsert), unique, own), uniqueKey},
		"unique upsert, not ours":  {"another actor may have set the values since", with(read(update, verify.Mismatched, 0), write(intent.Upsert), unique), refused},
		"unique update, differs, weak": {"a read that lags may show what the send has replaced since",
			with(readWeakly(update, verify.Mismatched, 0), unique, own), refused},
		"unique update, differs, theirs": {"another actor's record is not replaced", with(read(update, verify.Mismatched, 0), unique, own, conflict), refused},
		"unique update, gone":            {"what another actor removed is not made again", with(read(update, verify.Absent, time.Hour), unique, conflict), refused},
		"update, differs":                {"without a unique key it is unknown what it replaces", read(update, verify.Mismatched, time.Hour), refused},
		"seen and gone": {"its effect was seen: the actor who took it back may have meant to", with(lost(), unique, native,
			func(c *policies.Case) { c.EffectSeen = true }), refused},
	} {
		t.Run(name, r.run)
	}
}

// The third row: the destination refuses unless the record is as before.
func TestSecondSendConditional(t *testing.T) {
	stale := with(read(lost(), verify.Stale, 0), write(intent.Update), conditional)
	permit := policies.Permit{Allowed: true, Conditional: true, Row: policies.RowConditional}
	for name, r := range map[string]second{
		"as before":        {"the observation equals the pre-state", stale, permit},
		"as before, weak":  {"the destination checks what we cannot", with(readWeakly(stale, verify.Stale, 0)), permit},
		"nothing there":    {"a create that is refused when something is", with(lost(), conditional), rechecked(permit)},
		"differs":          {"the record is not as before", read(stale, verify.Mismatched, 0), refused},
		"gone":             {"the record is not as before", with(read(stale, verify.Absent, 0), conflict), refused},
		"other write type": {"updates are conditional, deletes not", with(stale, write(intent.Delete)), refused},
		"irreversible":     {"the destination refuses the second", with(stale, irreversible), permit},
		"a unique key too": {"the row that needs less comes first", with(stale, unique), allowed(policies.RowUnique)},
	} {
		t.Run(name, r.run)
	}
}

// The fourth row: conclusive absence.
func TestSecondSendConclusive(t *testing.T) {
	permit := policies.Permit{Allowed: true, NeedsRecheck: true, Row: policies.RowAbsence}
	undeclaredHorizon := func(c *policies.Case) { c.Profile.Horizon = connectors.Bound{} }
	undeclaredSettle := func(c *policies.Case) { c.Profile.Settle = connectors.Bound{} }
	for name, r := range map[string]second{
		"strong, at the horizon":     {"nothing can land any more", read(lost(), verify.Absent, horizon), permit},
		"strong, before the horizon": {"a late send may still land", read(lost(), verify.Absent, horizon-1), refused},
		"strong, no horizon":         {"it is unknown how late a send may land", with(read(lost(), verify.Absent, 1000*time.Hour), undeclaredHorizon), refused},
		"strong, no settle time":     {"a strong read needs none", with(read(lost(), verify.Absent, horizon), undeclaredSettle), permit},
		"begun before, ended after": {"a read that took long does not show what landed meanwhile",
			with(read(lost(), verify.Absent, horizon-1), func(c *policies.Case) { c.SinceSend = time.Hour }), refused},
		"weak, both passed":          {"it shows what landed at the end of the horizon", readWeakly(lost(), verify.Absent, horizon+settle), permit},
		"weak, before both passed":   {"it lags by the settle time: what landed last is not in it", readWeakly(lost(), verify.Absent, horizon+settle-1), refused},
		"weak, settle time not over": {"it may be older than the send", readWeakly(lost(), verify.Absent, settle-1), refused},
		"weak, no settle time":       {"a weak read then never proves absence", readWeakly(with(lost(), undeclaredSettle), verify.Absent, 1000*time.Hour), refused},
		"stale":                      {"the state from before is seen", with(read(lost(), verify.Stale, horizon), write(intent.Update)), permit},
		"there":                      {"it landed", read(lost(), verify.Verified, horizon), refused},
		"unread":                     {"nothing was seen", read(lost(), verify.Unavailable, horizon), refused},
		"not proven":                 {"nothing was seen", read(lost(), verify.Indeterminate, horizon), refused},
		"gone":                       {"what another actor removed was there", with(read(lost(), verify.Absent, horizon), conflict), refused},
		"seen before":                {"it was there, and another actor took it back", with(read(lost(), verify.Absent, horizon), func(c *policies.Case) { c.EffectSeen = true }), refused},
		"hidden":                     {"the destination says that something is there", with(read(lost(), verify.Absent, horizon), refusedForConflict), refused},
		"irreversible, unused":       {"what was prepared for it is still there", with(read(lost(), verify.Absent, horizon), irreversible, unused), rechecked(allowed(policies.RowAbsence))},
		"irreversible, unused early": {"it may be used yet", with(read(lost(), verify.Absent, horizon-1), irreversible, unused), refused},
		"irreversible":               {"irreversible writes go to a reviewer", with(read(lost(), verify.Absent, horizon), irreversible), refused},
		"nothing declared":           {"the cautious zero", with(read(policies.Case{Sends: 1, Unknown: true, Budget: 4}, verify.Absent, 1000*time.Hour)), refused},
	} {
		t.Run(name, r.run)
	}
}

// A phantom success burns the key: the next send has a new one, after an answered send and
// conclusive absence only.
func TestSecondSendKeys(t *testing.T) {
	answered := with(lost(), native, fate(connectors.FateAnswered), takesBack)
	same := policies.Permit{Allowed: true, NeedsRecheck: true, Row: policies.RowAbsence}
	fresh := same
	fresh.NewKey = true
	vouched := policies.Permit{Allowed: true, NeedsRecheck: true, Row: policies.RowReviewer}
	vouchedFresh := vouched
	vouchedFresh.NewKey = true
	atHorizon := func(c policies.Case) policies.Case { return read(c, verify.Absent, horizon) }
	both := func(c *policies.Case) { c.Unknown, c.Answered = true, true; takesBack(c) }
	for name, r := range map[string]second{
		"burnt":                          {"the destination would replay its yes", answered, refused},
		"burnt, unique":                  {"a unique key does not help: the answer is replayed before it", with(answered, unique), refused},
		"burnt, differs":                 {"a repeat would be answered and change nothing", with(read(lost(), verify.Mismatched, horizon), write(intent.Update), native, unique, fate(connectors.FateAnswered)), refused},
		"burnt, conclusive":              {"it accepted it and stored nothing: a new key", atHorizon(answered), fresh},
		"burnt, conclusive, weak":        {"the lagging read shows enough", readWeakly(answered, verify.Absent, horizon+settle), fresh},
		"burnt, and nothing declared":    {"another actor may have removed it", with(atHorizon(answered), func(c *policies.Case) { c.Profile.Rollback = connectors.Bound{} }), refused},
		"burnt, not conclusive":          {"it may yet appear", read(answered, verify.Absent, horizon-1), refused},
		"unanswered, conclusive":         {"its key is what stops it if it comes after all", with(atHorizon(lost()), window(time.Second)), same},
		"unanswered before the answered": {"both had the key that is burnt", with(atHorizon(answered), both), fresh},
		"answered before the unanswered": {"the last one had the new key, and may be under way", with(lost(), native, sends(2, 0, 4), both), allowed(policies.RowNativeKey)},
		"answered, then unanswered, conclusive": {"an unanswered send keeps its key",
			with(atHorizon(lost()), window(time.Second), sends(2, 0, 4), both), same},
		"answered, then refused": {"the new key was not used up", with(lost(), native, fate(connectors.FateRefused), sends(2, 0, 4), both), allowed(policies.RowNativeKey)},
		"no native key":          {"a new generation is a new key all the same", atHorizon(with(lost(), fate(connectors.FateAnswered), takesBack)), fresh},

		"a reviewer, unanswered":          {"after an unanswered send never a new key, not even then", with(lost(), native, forced), vouched},
		"a reviewer, answered":            {"the key is burnt", with(answered, forced), vouchedFresh},
		"a reviewer, answered then not":   {"the last send is unanswered", with(lost(), native, forced, sends(2, 0, 4), both), vouched},
		"a reviewer, irreversible":        {"this is the reviewer's to decide", with(lost(), irreversible, forced), vouched},
		"a reviewer, seen before":         {"the reviewer knows why it is gone", with(lost(), forced, func(c *policies.Case) { c.EffectSeen = true }), vouched},
		"a reviewer, and it is there":     {"the reviewer was wrong", with(read(lost(), verify.Verified, 0), forced), refused},
		"a reviewer, unread":              {"it was not read", with(read(lost(), verify.Unavailable, 0), forced), refused},
		"a reviewer, another actor's":     {"no repeat helps", with(lost(), forced, conflict), refused},
		"a reviewer without force":        {"who does not vouch is bound by the table", with(lost(), func(c *policies.Case) { c.Directed = policies.DirectRetry }), refused},
		"a reviewer without force, later": {"and served by it", with(atHorizon(lost()), func(c *policies.Case) { c.Directed = policies.DirectRetry }), same},
	} {
		t.Run(name, r.run)
	}
}

// A sentence about a write that was not applied does not claim that there is no record where
// the last read showed one.
func TestNotAppliedNamesTheRecord(t *testing.T) {
	for v, want := range map[verify.Verdict]string{
		verify.Absent: "there is no record",
		verify.Stale:  "the record is as it was",
	} {
		for _, sends := range []int{1, 4} { // the second is the whole budget
			c := with(read(lost(), v, horizon), write(intent.Update), func(c *policies.Case) { c.Sends = sends })
			if why, known := policies.KnownNotApplied(c); !known || !strings.HasPrefix(why, want) {
				t.Errorf("%v after %d sends: %q, %t, want %q", v, sends, why, known, want)
			}
		}
	}
}

func TestKnownNotApplied(t *testing.T) {
	for name, r := range map[string]struct {
		reason string
		c      policies.Case
		want   bool
	}{
		"never sent":               {"nothing was sent", policies.Case{}, true},
		"not sent":                 {"proof that nothing left us", with(lost(), fate(connectors.FateNotSent)), true},
		"throttled":                {"not taken up", with(lost(), fate(connectors.FateThrottled)), true},
		"refused":                  {"a definite no", with(lost(), fate(connectors.FateRefused)), true},
		"refused, irreversible":    {"a definite no", with(lost(), fate(connectors.FateRefused), irreversible), true},
		"refused, budget used up":  {"what is known does not depend on what may follow", with(lost(), fate(connectors.FateRefused), sends(4, 0, 4)), true},
		"refused, another actor's": {"that record is not ours", with(read(lost(), verify.Mismatched, 0), fate(connectors.FateRefused), conflict), true},
		"refused, and there":       {"a read contradicts the refusal", with(read(lost(), verify.Verified, 0), fate(connectors.FateRefused)), false},
		"conflict, as declared":    {"it may be ours: a proxy may have sent it twice", with(read(lost(), verify.Verified, 0), fate(connectors.FateRefused), refusedForConflict), false},
		"conflict, differs":        {"something else is there, as the refusal showed", with(read(lost(), verify.Mismatched, 0), fate(connectors.FateRefused), refusedForConflict), true},
		"unknown":                  {"it may have been applied", lost(), false},
		"unknown, then refused":    {"a refusal does not take back an earlier send", with(lost(), fate(connectors.FateRefused), func(c *policies.Case) { c.Unknown = true }), false},
		"answered":                 {"it accepted it", with(lost(), fate(connectors.FateAnswered)), false},
		"unknown, conclusive":      {"nothing there and nothing to come", read(lost(), verify.Absent, horizon), true},
		"answered, conclusive":     {"another actor may have removed it", with(read(lost(), verify.Absent, horizon), fate(connectors.FateAnswered)), false},
		"answered, as before":      {"another actor may have set it back", with(read(lost(), verify.Stale, horizon), write(intent.Update), fate(connectors.FateAnswered)), false},
		"answered delete, there":   {"a record that is made again has another id", with(read(lost(), verify.Stale, horizon), write(intent.Delete), fate(connectors.FateAnswered)), true},
		"answered, rolled back":    {"a phantom", with(read(lost(), verify.Absent, horizon), fate(connectors.FateAnswered), takesBack), true},
		"before the horizon":       {"it may still land", read(lost(), verify.Absent, horizon-1), false},
		"long read":                {"what landed while the read went on is not in it", with(read(lost(), verify.Absent, horizon-1), func(c *policies.Case) { c.SinceSend = time.Hour }), false},
		"weak, horizon only":       {"it lags by the settle time", readWeakly(lost(), verify.Absent, horizon), false},
		"weak, both":               {"nothing there and nothing to come", readWeakly(lost(), verify.Absent, horizon+settle), true},
		"hidden":                   {"the destination says that something is there, and shows nothing", with(read(lost(), verify.Absent, horizon), refusedForConflict), false},
		"key in use":               {"the earlier send was under way, and the horizon is past", with(read(lost(), verify.Absent, horizon), refusedForConflict, native), true},
		"conflict, not shown yet":  {"the read may be older than what is in the way, which a proxy may have made of our request", with(readWeakly(lost(), verify.Absent, settle-1), fate(connectors.FateRefused), refusedForConflict), false},
		"conflict, maybe shown":    {"it is as declared, and may be older", with(readWeakly(lost(), verify.Indeterminate, settle-1), fate(connectors.FateRefused), refusedForConflict), false},
		"conflict, not read":       {"what is in the way is not seen", with(readWeakly(lost(), verify.Unavailable, 0), fate(connectors.FateRefused), refusedForConflict), false},
		"conflict, update":         {"the record is as before, and may not be any more", with(readWeakly(lost(), verify.Stale, settle-1), write(intent.Update), fate(connectors.FateRefused), refusedForConflict), false},
		"conflict, not shown":      {"ours would show by now", with(readWeakly(lost(), verify.Absent, settle), fate(connectors.FateRefused), refusedForConflict), true},
		"conflict, write-only":     {"nothing ever shows there", with(lost(), fate(connectors.FateRefused), refusedForConflict, func(c *policies.Case) { c.Profile.WriteOnly, c.Judgement = true, verify.Judgement{} }), true},
		"what is there is ours":    {"it has the id that only we can have sent, and another actor may have hidden it", with(read(lost(), verify.Absent, horizon), inOurWay, native), false},
		"key in use, unique too":   {"it may have meant the record", with(read(lost(), verify.Absent, horizon), refusedForConflict, native, unique), false},
		"stale, conclusive":        {"as before and nothing to come", with(read(lost(), verify.Stale, horizon), write(intent.Update)), true},
		"irreversible, unused":     {"what was prepared for it is still there", with(read(lost(), verify.Absent, horizon), irreversible, unused), true},
		"irreversible, conclusive": {"the effect cannot be searched for", with(read(lost(), verify.Absent, horizon), irreversible), false},
		"gone":                     {"it may have been applied and then removed", with(read(lost(), verify.Absent, horizon), conflict), false},
		"seen before":              {"it was applied", with(read(lost(), verify.Absent, horizon), func(c *policies.Case) { c.EffectSeen = true }), false},
		"unread":                   {"it was not read", read(lost(), verify.Unavailable, 1000*time.Hour), false},
		"not proven":               {"it was not seen", read(lost(), verify.Indeterminate, 1000*time.Hour), false},
		"differs":                  {"something was applied", read(lost(), verify.Mismatched, 1000*time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			why, known := policies.KnownNotApplied(r.c)
			if known != r.want || (why != "") != known {
				t.Errorf("known %t (%q), want %t: %s", known, why, r.want, r.reason)
			}
		})
	}
}
