package policies_test

import (
	"strings"
	"testing"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/verify"
)

// decided is the standard policies' decision about a case.
type decided struct {
	reason string
	c      policies.Case
	want   policies.Kind
	after  time.Duration // of Wait, 0 where the engine sets the pace
	row    string        // of Retry
}

func (d decided) run(t *testing.T) {
	t.Helper()
	got := policies.Decide(d.c, policies.Standard())
	if got.Kind != d.want || got.After != d.after || got.Permit.Row != d.row {
		t.Errorf("%s after %s, row %q (%s: %s)\nwant %s after %s, row %q: %s",
			got.Kind, got.After, got.Permit.Row, got.Rule, got.Reason, d.want, d.after, d.row, d.reason)
	}
	if got.Rule == "" || got.Reason == "" {
		t.Errorf("decided without saying why: %+v", got)
	}
}

func ago(d time.Duration) func(*policies.Case) {
	return func(c *policies.Case) { c.SinceSend, c.Since = d, d }
}

func TestStandardAccepts(t *testing.T) {
	seen := with(read(lost(), verify.Verified, 0), own)
	anothers := func(c *policies.Case) { c.Own = false }
	twice := func(agreeing int) func(*policies.Case) {
		return func(c *policies.Case) { c.Profile.ConfirmReads, c.Agreeing = 2, agreeing }
	}
	refusedOnce := fate(connectors.FateRefused)
	repeated := func(c *policies.Case) {
		c.Sends, c.Unknown, c.Profile.Horizon, c.Profile.Conditional, c.Profile.NativeWindow = 2, true, connectors.Within(time.Minute), nil, nil
	}
	for name, d := range map[string]decided{
		"verified":                 {reason: "seen", c: seen, want: policies.Accept},
		"vacuous":                  {reason: "true before we wrote", c: read(policies.Case{}, verify.Vacuous, 0), want: policies.Accept},
		"seen once of twice":       {reason: "two reads in a row must agree", c: with(seen, twice(1)), want: policies.Wait},
		"seen twice":               {reason: "two reads in a row agree", c: with(seen, twice(2)), want: policies.Accept},
		"too late, and seen":       {reason: "a deadline is for sends", c: with(seen, late), want: policies.Accept},
		"refused, yet there":       {reason: "the record cannot be ours", c: with(seen, refusedOnce), want: policies.Escalate},
		"conflict, yet the same":   {reason: "its owner cannot be known", c: with(seen, refusedOnce, refusedForConflict), want: policies.Escalate},
		"refused, our stamp":       {reason: "the stamp says that it is ours", c: with(seen, refusedOnce, stamped), want: policies.Accept},
		"refused, our key":         {reason: "no other actor can have made that key", c: with(seen, refusedOnce, func(c *policies.Case) { c.Profile.FreshKeys = true }), want: policies.Accept},
		"unknown, then refused":    {reason: "a conflict on a second send says that the first landed", c: with(seen, refusedOnce, refusedForConflict, func(c *policies.Case) { c.Unknown = true }), want: policies.Accept},
		"update, repeated":         {reason: "the first may land over the next write", c: with(seen, repeated, write(intent.Update)), want: policies.Wait, after: time.Minute},
		"delete, repeated":         {reason: "the first may remove what the next write makes", c: with(seen, repeated, write(intent.Delete)), want: policies.Wait, after: time.Minute},
		"repeated, horizon over":   {reason: "nothing lands any more", c: with(seen, repeated, write(intent.Update), ago(time.Minute)), want: policies.Accept},
		"create, perhaps not ours": {reason: "another actor may have made the same; ours lands yet", c: with(seen, anothers), want: policies.Wait, after: horizon},
		"the same, answered":       {reason: "it has landed", c: with(seen, anothers, fate(connectors.FateAnswered)), want: policies.Accept},
		"the same, our key":        {reason: "no send used it up yet", c: with(seen, anothers, native), want: policies.Wait, after: horizon},
		"delete, perhaps not ours": {reason: "ours may remove what the next write makes", c: with(seen, anothers, write(intent.Delete)), want: policies.Wait, after: horizon},
		"the same, on condition":   {reason: "it is refused if the record changed", c: with(seen, anothers, write(intent.Update), conditional), want: policies.Accept},
		"the same, horizon over":   {reason: "nothing lands any more", c: with(seen, anothers, ago(horizon)), want: policies.Accept},
		"create, repeated":         {reason: "it meets what is there", c: with(seen, repeated), want: policies.Accept},
		"repeated, our key": {reason: "the destination recognises it", c: with(seen, repeated, write(intent.Update), func(c *policies.Case) {
			c.Profile.NativeWindow = map[intent.WriteType]time.Duration{intent.Update: time.Hour}
		}), want: policies.Accept},
		"repeated, condition":  {reason: "the destination refuses it", c: with(seen, repeated, write(intent.Update), func(c *policies.Case) { c.Profile.Conditional = []intent.WriteType{intent.Update} }), want: policies.Accept},
		"repeated, no horizon": {reason: "it is unknown when it is over", c: with(seen, repeated, write(intent.Update), func(c *policies.Case) { c.Profile.Horizon = connectors.Bound{} }), want: policies.Accept},
		"refused, repeated":    {reason: "the fate of the first is known", c: with(seen, repeated, write(intent.Update), func(c *policies.Case) { c.Unknown, c.Answered = false, true }), want: policies.Accept},
		"refused delete, gone": {reason: "gone is gone", c: with(seen, write(intent.Delete), refusedOnce, refusedForConflict), want: policies.Accept},
	} {
		t.Run(name, d.run)
	}
}

func TestStandardAfterRefusals(t *testing.T) {
	unsent := with(lost(), fate(connectors.FateNotSent), func(c *policies.Case) { c.Judgement = verify.Judgement{} })
	times := func(n int) func(*policies.Case) { return func(c *policies.Case) { c.Sends, c.Unsent = n, n } }
	asked := func(d time.Duration) func(*policies.Case) { return func(c *policies.Case) { c.RetryAfter = d } }
	again := policies.RowNothingSent
	for name, d := range map[string]decided{
		"not sent":             {"backoff", unsent, policies.Wait, time.Second, ""},
		"not sent, then":       {"the pause is over", with(unsent, ago(time.Second)), policies.Retry, 0, again},
		"fourth time":          {"the pause doubles", with(unsent, times(4)), policies.Wait, 8 * time.Second, ""},
		"what is left":         {"of the pause", with(unsent, times(4), ago(3*time.Second)), policies.Wait, 5 * time.Second, ""},
		"hundredth time":       {"and ends at five minutes", with(unsent, times(100)), policies.Wait, 5 * time.Minute, ""},
		"throttled":            {"Retry-After", with(unsent, fate(connectors.FateThrottled), asked(10*time.Minute)), policies.Wait, 10 * time.Minute, ""},
		"throttled, then":      {"Retry-After is over", with(unsent, fate(connectors.FateThrottled), asked(10*time.Minute), ago(10*time.Minute)), policies.Retry, 0, again},
		"throttled for ever":   {"no write is parked for a week", with(unsent, fate(connectors.FateThrottled), asked(168*time.Hour)), policies.Wait, time.Hour, ""},
		"throttled, briefly":   {"the backoff is longer", with(unsent, fate(connectors.FateThrottled), asked(time.Millisecond)), policies.Wait, time.Second, ""},
		"refused":              {"it will be refused again", with(lost(), fate(connectors.FateRefused)), policies.Fail, 0, ""},
		"refused, differs":     {"another actor's record contradicts no refusal", with(read(lost(), verify.Mismatched, 0), fate(connectors.FateRefused)), policies.Fail, 0, ""},
		"refused, our stamp":   {"a read contradicts it", with(read(lost(), verify.Mismatched, 0), fate(connectors.FateRefused), stamped), policies.Escalate, 0, ""},
		"conflict":             {"another actor's record", with(read(lost(), verify.Mismatched, 0), fate(connectors.FateRefused), refusedForConflict, conflict), policies.Fail, 0, ""},
		"deadline":             {"no send is begun any more, and none was made", with(unsent, late), policies.Fail, 0, ""},
		"a day":                {"who still wants it must say so again", with(unsent, func(c *policies.Case) { c.Age = 24*time.Hour + 1 }), policies.Fail, 0, ""},
		"not quite a day":      {"it is still wanted", with(unsent, ago(time.Hour), func(c *policies.Case) { c.Age = 24 * time.Hour }), policies.Retry, 0, again},
		"four hundred times":   {"enough", with(unsent, times(400)), policies.Fail, 0, ""},
		"refused, then unsent": {"the last failure passes", with(unsent, ago(time.Hour), sends(2, 1, 4)), policies.Retry, 0, again},
		"unknown, then unsent": {"an earlier send may have landed", with(read(lost(), verify.Absent, 0), fate(connectors.FateNotSent), func(c *policies.Case) { c.Unknown = true }), policies.Wait, 0, ""},
	} {
		t.Run(name, d.run)
	}
}

func TestStandardIsPatient(t *testing.T) {
	noHorizon := func(c *policies.Case) { c.Profile.Horizon = connectors.Bound{} }
	noSettle := func(c *policies.Case) { c.Profile.Settle = connectors.Bound{} }
	both := horizon + settle
	wait := policies.Wait
	for name, d := range map[string]decided{
		"unreadable":               {reason: "a read that fails is no absence", c: read(lost(), verify.Unavailable, 0), want: wait},
		"unreadable for long":      {reason: "at least a minute", c: read(lost(), verify.Unavailable, time.Minute-1), want: wait},
		"unreadable too long":      {reason: "a reviewer must decide", c: with(read(lost(), verify.Unavailable, time.Minute), readLong), want: policies.Escalate},
		"unreadable for a while":   {reason: "the window has not passed", c: with(read(lost(), verify.Unavailable, 0), readLong), want: wait},
		"unreadable, few reads":    {reason: "reads count, and not minutes", c: with(read(lost(), verify.Unavailable, time.Hour), func(c *policies.Case) { c.Unproven = 9 }), want: wait},
		"unreadable, just asked":   {reason: "after a downtime the destination has its chance to answer", c: read(lost(), verify.Unavailable, time.Hour), want: wait},
		"not proven":               {reason: "a later read may prove it", c: read(lost(), verify.Indeterminate, both-1), want: wait},
		"never proven":             {reason: "the time is up", c: with(read(lost(), verify.Indeterminate, both), readLong), want: policies.Escalate},
		"weak mismatch":            {reason: "the read may be older than the send", c: readWeakly(lost(), verify.Mismatched, settle-1), want: wait},
		"conclusive mismatch":      {reason: "a reviewer decides", c: read(lost(), verify.Mismatched, 0), want: policies.Escalate},
		"weak, never conclusive":   {reason: "the time is up", c: readWeakly(with(lost(), noSettle), verify.Mismatched, time.Minute), want: policies.Escalate},
		"weak conflict":            {reason: "another actor's record stays", c: with(readWeakly(lost(), verify.Mismatched, 0), conflict), want: policies.Escalate},
		"weak absence":             {reason: "the record may not be shown yet", c: readWeakly(with(lost(), unique), verify.Absent, settle-1), want: wait},
		"weak absence, settled":    {reason: "the unique key makes a repeat harmless", c: readWeakly(with(lost(), unique), verify.Absent, settle), want: policies.Retry, row: policies.RowUnique},
		"weak, undeclared":         {reason: "a minute's patience where nothing is declared", c: readWeakly(with(lost(), unique, noSettle), verify.Absent, time.Minute-1), want: wait},
		"weak, undeclared, later":  {reason: "harmless whatever we see", c: readWeakly(with(lost(), unique, noSettle), verify.Absent, time.Minute), want: policies.Retry, row: policies.RowUnique},
		"weak, native":             {reason: "the answer to a repeat shows more than further reads", c: readWeakly(with(lost(), native), verify.Absent, 0), want: policies.Retry, row: policies.RowNativeKey},
		"weak, native, undeclared": {reason: "the answer to a repeat shows more than further reads", c: readWeakly(with(lost(), native, noSettle), verify.Absent, 0), want: policies.Retry, row: policies.RowNativeKey},
		"weak, native, spent":      {reason: "no repeat is left to show more", c: readWeakly(with(lost(), native, sends(4, 0, 4)), verify.Absent, settle-1), want: wait},
		"weak, native, answered":   {reason: "the record may not be shown yet", c: readWeakly(with(lost(), native, fate(connectors.FateAnswered)), verify.Absent, 0), want: wait},
		"absent, horizon open":     {reason: "it may still land", c: read(lost(), verify.Absent, horizon-1), want: wait},
		"absent, horizon passed":   {reason: "conclusive", c: read(lost(), verify.Absent, horizon), want: policies.Retry, row: policies.RowAbsence},
		"absent, read too early":   {reason: "a read that was begun later is needed, and will be made", c: with(read(lost(), verify.Absent, horizon-1), func(c *policies.Case) { c.SinceSend = time.Hour }), want: wait},
		"weak, horizon passed":     {reason: "what landed last is not in it", c: readWeakly(lost(), verify.Absent, both-1), want: wait},
		"weak, both passed":        {reason: "conclusive", c: readWeakly(lost(), verify.Absent, both), want: policies.Retry, row: policies.RowAbsence},
		"absent, no horizon":       {reason: "it may land within a minute", c: read(with(lost(), noHorizon), verify.Absent, time.Minute-1), want: wait},
		"absent, never known":      {reason: "undecidable", c: read(with(lost(), noHorizon), verify.Absent, time.Minute), want: policies.Escalate},
		"irreversible":             {reason: "it may appear", c: read(with(lost(), irreversible), verify.Absent, both-1), want: wait},
		"irreversible, later":      {reason: "and if not, a reviewer decides", c: read(with(lost(), irreversible), verify.Absent, both), want: policies.Escalate},
		"seen and gone":            {reason: "a reviewer decides", c: with(read(lost(), verify.Absent, both), func(c *policies.Case) { c.EffectSeen = true }), want: policies.Escalate},
		"gone":                     {reason: "it was there before: no need to wait", c: with(read(lost(), verify.Absent, 0), write(intent.Update), conflict), want: policies.Escalate},
		"gone, weak":               {reason: "a replica may not know the record yet", c: with(readWeakly(lost(), verify.Absent, 0), write(intent.Update), conflict), want: wait},
		"stale":                    {reason: "a lagging replica", c: readWeakly(with(lost(), write(intent.Update)), verify.Stale, 0), want: wait},
		"stale, conditional":       {reason: "the destination checks", c: readWeakly(with(lost(), write(intent.Update), conditional), verify.Stale, settle), want: policies.Retry, row: policies.RowConditional},
		"burnt key, waiting":       {reason: "it may still appear", c: with(read(lost(), verify.Absent, 0), native, fate(connectors.FateAnswered)), want: wait},
		"burnt key":                {reason: "a phantom", c: with(read(lost(), verify.Absent, horizon), native, fate(connectors.FateAnswered), takesBack), want: policies.Retry, row: policies.RowAbsence},
		"spent":                    {reason: "nothing is left to send; it may still land", c: read(with(lost(), native, sends(4, 0, 4)), verify.Absent, horizon-1), want: wait},
		"spent, conclusive":        {reason: "known not to be there", c: read(with(lost(), native, sends(4, 0, 4)), verify.Absent, horizon), want: policies.Fail},
		"late, conclusive":         {reason: "known not to be there", c: read(with(lost(), late), verify.Absent, horizon), want: policies.Fail},
		"spent, never known":       {reason: "undecidable", c: read(with(lost(), noHorizon, late), verify.Absent, time.Minute), want: policies.Escalate},
	} {
		t.Run(name, d.run)
	}
}

func TestStandardRepeats(t *testing.T) {
	repeated := func(n int) policies.Case { return with(lost(), native, sends(n, 0, 4)) }
	asked := func(c *policies.Case) { c.RetryAfter = time.Minute }
	key := policies.RowNativeKey
	for name, d := range map[string]decided{
		"first repeat":       {"at once: a read has just been made", repeated(1), policies.Retry, 0, key},
		"second repeat":      {"after a second", repeated(2), policies.Wait, time.Second, ""},
		"second repeat then": {"the pause is over", with(repeated(2), ago(time.Second)), policies.Retry, 0, key},
		"third repeat":       {"after two", repeated(3), policies.Wait, 2 * time.Second, ""},
		"asked to wait":      {"a 503 with Retry-After", with(repeated(1), asked), policies.Wait, time.Minute, ""},
		"asked, then":        {"the pause is over", with(repeated(1), asked, ago(time.Minute)), policies.Retry, 0, key},
	} {
		t.Run(name, d.run)
	}
}

func TestStandardOnWhatDiffers(t *testing.T) {
	differs := with(read(lost(), verify.Mismatched, 0), write(intent.Update), own)
	anothers := func(c *policies.Case) { c.Own = false }
	onMismatch := func(p intent.MismatchPolicy) func(*policies.Case) {
		return func(c *policies.Case) { c.Intent.OnMismatch = p }
	}
	retry := onMismatch(intent.MismatchRetry)
	undo := func(c *policies.Case) {
		c.Intent.OnMismatch, c.Intent.Reversibility, c.Invertible = intent.MismatchCompensate, intent.Compensable, true
	}
	answered := fate(connectors.FateAnswered)
	weaklyBased := func(c *policies.Case) { c.Based = false }
	for name, d := range map[string]decided{
		"by default":              {reason: "a reviewer decides", c: differs, want: policies.Escalate},
		"retry":                   {reason: "the table does not allow it", c: with(differs, retry), want: policies.Escalate},
		"retry, unique":           {reason: "a repeat replaces the values", c: with(differs, retry, unique), want: policies.Retry, row: policies.RowUnique},
		"undo":                    {reason: "the destination answered: nothing else is coming", c: with(differs, undo, answered), want: policies.Compensate},
		"undo, weak pre-state":    {reason: "it would take back what others did just before", c: with(differs, undo, answered, weaklyBased), want: policies.Escalate},
		"undo, sent on condition": {reason: "the destination held the pre-state against it", c: with(differs, undo, answered, weaklyBased, conditional), want: policies.Compensate},
		"undo, maybe another's":   {reason: "a reviewer decides", c: with(differs, undo, answered, anothers), want: policies.Escalate},
		"undo, unknown":           {reason: "a send may still land after the undoing", c: with(differs, undo), want: policies.Wait},
		"undo, unknown, later":    {reason: "nothing can land any more", c: with(read(differs, verify.Mismatched, horizon), own, undo), want: policies.Compensate},
		"undo, another actor's":   {reason: "not ours to undo", c: with(differs, undo, answered, conflict), want: policies.Escalate},
		"undo, no way back":       {reason: "the connector cannot", c: with(differs, undo, answered, func(c *policies.Case) { c.Invertible = false }), want: policies.Escalate},
		"undo, not compensable":   {reason: "the intent does not say so", c: with(differs, undo, answered, func(c *policies.Case) { c.Intent.Reversibility = "" }), want: policies.Escalate},
		"undo, never known":       {reason: "no horizon: a reviewer decides", c: with(read(differs, verify.Mismatched, time.Minute), own, undo, func(c *policies.Case) { c.Profile.Horizon = connectors.Bound{} }), want: policies.Escalate},
		"doubled":                 {reason: "a reviewer decides", c: with(read(lost(), verify.Duplicated, 0), undo), want: policies.Escalate},
		"collateral":              {reason: "a reviewer decides", c: read(differs, verify.Collateral, 0), want: policies.Escalate},
	} {
		t.Run(name, d.run)
	}
}

func TestStandardFollowsReviewers(t *testing.T) {
	directed := func(word string) func(*policies.Case) {
		return func(c *policies.Case) { c.Directed = word }
	}
	differs := read(lost(), verify.Mismatched, horizon)
	undo := func(c *policies.Case) { c.Intent.Reversibility, c.Invertible = intent.Compensable, true }
	for name, d := range map[string]decided{
		"retry":            {reason: "the rules apply to reviewers", c: with(lost(), directed(policies.DirectRetry)), want: policies.Escalate},
		"retry, harmless":  {reason: "at once, without the pause", c: with(lost(), native, sends(3, 0, 4), directed(policies.DirectRetry)), want: policies.Retry, row: policies.RowNativeKey},
		"force":            {reason: "the reviewer vouches", c: with(lost(), forced), want: policies.Retry, row: policies.RowReviewer},
		"force, and there": {reason: "it was seen: nothing is sent", c: with(read(lost(), verify.Verified, 0), own, forced), want: policies.Accept},
		"undo":             {reason: "a reviewer asked", c: with(differs, undo, directed(policies.DirectCompensate)), want: policies.Compensate},
		"undo nothing":     {reason: "nothing is there", c: with(read(lost(), verify.Absent, horizon), undo, directed(policies.DirectCompensate)), want: policies.Escalate},
		"undo, theirs":     {reason: "not ours to undo", c: with(differs, undo, conflict, directed(policies.DirectCompensate)), want: policies.Escalate},
		"an unknown word":  {reason: "as if there were none", c: with(lost(), directed("shrug")), want: policies.Wait},
	} {
		t.Run(name, d.run)
	}
}

func TestReasonsCarryTheEvidence(t *testing.T) {
	c := read(lost(), verify.Unavailable, time.Hour)
	c.Reason = "the destination answered 503"
	if d := policies.Decide(c, policies.Standard()); !strings.Contains(d.Reason, "503") {
		t.Errorf("%q does not say what was seen", d.Reason)
	}
	c = with(lost(), fate(connectors.FateRefused))
	c.LastRefusal = "card declined"
	if d := policies.Decide(c, policies.Standard()); !strings.Contains(d.Reason, "card declined") {
		t.Errorf("%q does not contain the destination's answer", d.Reason)
	}
}

// readLong: the destination has been read often.
func readLong(c *policies.Case) { c.Unproven = 10 }

// A recheck whose read failed is repeated as quickly as a first read. One that fails for days
// is repeated ever more rarely.
func TestRecheckPause(t *testing.T) {
	for failed, most := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 5: time.Second, 10: 10 * time.Second} {
		if pause := policies.RecheckPause(failed); pause <= 0 || pause > most {
			t.Errorf("%s after %d reads that failed, want at most %s", pause, failed, most)
		}
	}
	if pause := policies.RecheckPause(100); pause < time.Hour {
		t.Errorf("%s after 100 reads that failed, want an hour or more", pause)
	}
}
