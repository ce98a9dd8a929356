package main

const (
	guardGo   = "engine/guard.go"
	fenceGo   = "engine/fence.go"
	clockGo   = "engine/clock.go"
	workGo    = "engine/work.go"
	queueGo   = "engine/queue.go"
	waitGo    = "engine/wait.go"
	laterGo   = "engine/later.go"
	laggingGo = "engine/lagging.go"
	recheckGo = "engine/recheck.go"
	undoGo    = "engine/compensate.go"
	whenGo    = "policies/verification.go"
)

// guarding are the rules of what stands between an announcement and its send.
func guarding() []Mutant {
	return []Mutant{
		{6, "A send is announced only when the guards let it.", runGo,
			"if hold := t.enter(); hold != nil {\n\t\treturn", "if hold := t.enter(); hold != nil && false {\n\t\treturn", "", "TestHeldSendsArePutBack/first"},
		{6, "So is every repeat.", checkGo,
			"if hold := t.enter(); hold != nil {", "if hold := t.enter(); hold != nil && false {", "", "TestHeldRepeatIsPutBackWhereItIsChecked"},
		{6, "A stop that comes while the state before is read stops the send.", runGo,
			"if hold := t.enter(); hold != nil {\n\t\tevents", "if hold := (*Hold)(nil); hold != nil {\n\t\tevents", "", "TestGuardsAreAskedAgainAfterALongRead/long"},
		{6, "What a guard gave is given back once.", guardGo,
			"\t\tt.leave = nil\n", "", "", "TestHappyPathWithGuardsCostsNothingMore"},
		{6, "And on every path.", runGo,
			"\tdefer t.unsent()\n", "", "", "TestLeaveIsGivenBackOnEveryPath/replayed"},
		{6, "Who stood still before the send asks the ledger again.", fenceGo,
			"> fenceFresh {", "> 1000*fenceFresh {", "", "TestFrozenBeforeTheSendIsPrevented/short_of_its_lease,_and_overtook"},
		{6, "The deadline is checked right before the send.", fenceGo,
			"if policies.Late(t.intent, now) {", "if policies.Late(t.intent, now) && false {", "", "TestNothingIsSentAfterTheDeadline/a_slow_ledger"},
		{6, "The lease of a process that runs is waited out.", "engine/owner.go",
			"errors.Is(err, os.ErrProcessDone)", "err == nil || errors.Is(err, os.ErrProcessDone)", "engine", "TestEndedProcess/runs"},
		{6, "The number of a process counts where it was given alone.", "engine/owner.go",
			" || !strings.HasSuffix(parts[2], processes()) {", " {", "engine", "TestEndedProcess/elsewhere"},
		{6, "The lease of an ended process is not waited out.", "engine/owner.go",
			"return owner\n", "return \"\"\n", "engine", "TestEndedProcess/ended"},
		{6, "A lease lasts as long as its own destination needs.", workGo,
			"c.Leases[p.Destination] = max(c.Leases[p.Destination], e.lease(p))", "c.LeaseFor = max(c.LeaseFor, e.lease(p))", "", "TestLeaseIsThatOfTheDestination"},
		{6, "The window of a native key is checked right before the send.", fenceGo,
			"!policies.InWindow(c, 0)", "!policies.InWindow(c, 0) && false", "", "TestKeyIsNotRepeatedAfterItsWindow"},
		{6, "A ledger's clock that steps forward lets no time pass.", clockGo,
			"\t\t\td -= max(s.ahead, 0)\n", "", "", "TestAClockStepProvesNoAbsence/one_process"},
		{6, "A delete that is the first that a process does waits for a create that may still arrive.", runGo,
			"\t\tt.e.clock.hear(r.Now, asked) // this", "\t\t// this", "", "TestADeletedRecordDoesNotComeBack/by_a_process_that_has_just_begun,_after_a_clock_step"},
		{6, "A process believes in no time before it heard the ledger's clock.", clockGo,
			"d = min(d, time.Since(c.began))", "d = min(d, time.Duration(1<<63-1))", "", "TestAClockStepProvesNoAbsence/a_process_that_has_just_begun"},
		{6, "A ledger's clock that stood still prolongs no window.", clockGo,
			"\t\t\td -= min(s.ahead, 0)\n", "", "", "TestAClockThatStandsStillProlongsNoWindow"},
		{6, "Where no process counts the horizon a reviewer decides.", standardGo,
			"c.SinceByClock < maxUncounted", "c.SinceByClock < 1000*maxUncounted", "engine", "TestProcessesThatEndTooSoon"},
		{6, "A record that a verified write of this ledger made is no other actor's.", runGo,
			"r.ID != t.rec.ID && w.Stamp() ==", "r.ID != t.rec.ID && w.Stamp() !=", "", "TestARecordOfAnEarlierWrite/as_declared"},
		{6, "A record of a write that is settled otherwise than as verified is for a reviewer.", runGo,
			"r.State == ledger.Settled && r.Settlement != ledger.Verified || ", "", "", "TestARecordOfAnEarlierWrite/settled_as_not_applied"},
		{6, "A write that was never sent made no record.", runGo,
			" || r.Sends == r.Unsent {", " {", "", "TestAWriteThatWasNeverSentMadeNothing"},
		{6, "A create over another write's record is not applied only when its send can no longer land.", secondGo,
			"(!c.Unknown && c.Firm || settledFate(c))", "c.Firm", "engine", "TestNotAppliedIsSaidAfterTheHorizon"},
		{5, "A create is not vacuous by a read that lags.", runGo,
			"case !j.Firm: // the record", "case false: // the record", "", "TestAReadThatLagsShowsNoRecordOfOurs"},
		{6, "A second lost send does not shorten the first.", "ledger/apply.go",
			"max(e.SendFor, r.LostFor)", "e.SendFor", "engine", "TestASecondLostSendDoesNotShortenTheFirst"},
		{6, "A clock step of more than a day ends no wait.", "engine/task.go",
			"c.SinceByClock = counted.byClock(r.LastSend, now)\n", "\n", "", "TestAStepOfMoreThanADayEndsNoWait"},
		{6, "A send whose end nobody recorded can last for its whole lease, by the count of the process that waits.", clockGo,
			"since = min(since, max(c.atMost(r.LostSend, now)-r.LostFor, 0))", "_ = since", "", "TestADeletedRecordDoesNotComeBack/while_a_send_hangs_whose_lease_a_clock_step_ended"},
		{6, "A create cannot have been applied over a record that another write of ours made under the unique key.", secondGo,
			"case madeByAnother(c) && (", "case false && (", "engine", "TestARecordOfAnEarlierWrite/the_refusal_lost_on_its_way"},
		{6, "Who cannot ask does not send.", fenceGo,
			"return latest, \"stopped before the send: the ledger cannot say whether the write still is this worker's: \" + err.Error(), false", "return t.now(), \"\", false", "", "TestFrozenWithoutALedgerDoesNotSend"},
		{6, "What asks for an approval is not sent without one, by whatever way it came.", runGo,
			"case unapproved:", "case unapproved && false:", "", "TestQueuedWritesAreLookedAtBeforeTheyAreSent/risky"},
		{6, "What can never be served is not sent, by whatever way it came.", runGo,
			"case unfit != nil:", "case unfit != nil && false:", "", "TestQueuedWritesAreLookedAtBeforeTheyAreSent/unfit"},
	}
}

// logins are the rules of a login that a destination refuses.
func logins() []Mutant {
	return []Mutant{
		{6, "A refused login burns nothing of a write's budget.", "ledger/record.go",
			"\"throttled\", fateLogin}", "\"throttled\"}", "engine", "TestARefusedLoginHoldsTheQueue/sends"},
		{6, "A refused login ends no write, however long it lasts.", standardGo,
			"if c.Last == connectors.FateLogin {", "if false {", "engine", "TestARefusedLoginHoldsTheQueue/sends,_without_guards"},
		{6, "Nor does one that a read before the send meets.", runGo,
			"if connectors.FateOf(err) == connectors.FateLogin {", "if false {", "", "TestARefusedLoginHoldsTheQueue/reads_before,_without_guards"},
		{6, "A refused login holds the destination at once.", "guards/breaker.go",
			"\t\tb.trip = trip\n\t\tb.kick()\n\t\treturn\n", "\t\treturn\n", "", "TestARefusedLoginHoldsTheDestination"},
		{6, "It does so also where the breaker is switched off.", "guards/breaker.go",
			"(!b.off() || !n.Login.IsZero())", "!b.off()", "", "TestARefusedLoginHoldsTheDestination/switched_off"},
		{6, "What a read verified is no failure of the destination.", "guards/breaker.go",
			"\t\tdone(true)\n", "\t\tdone(false)\n", "", "TestVerifiedEffectsCountAsSuccesses"},
		{6, "A destination that answers a third of its sends is sent to.", "guards/breaker.go",
			"c.TotalFailures > failShare*c.TotalSuccesses", "c.TotalFailures >= c.TotalSuccesses", "", "TestWhatOpensTheBreaker/a_third_answered"},
		{6, "Who waits for a login is told so.", "engine/outcome.go",
			"case WaitsLogin, WaitsBreaker,", "case WaitsBreaker,", "", "TestOutcomesSayWhatTheyWaitFor/login"},
		{6, "A token endpoint that refuses is a refused login.", "connectors/rest/token.go",
			"status == http.StatusUnauthorized ||", "", "", "TestWithoutATokenNothingIsSent/login"},
		{6, "A 401 is a refused login.", "connectors/httpsend/classify.go",
			"\tcase 401:\n\t\treturn login\n", "\tcase 401:\n\t\treturn refused\n", "", "TestClassify"},
		{6, "SQLSTATE class 28 is a refused login.", "connectors/sql/classify.go",
			"case class == \"28\":", "case class == \"--\":", "", "TestFates/login"},
	}
}

// sharing are the rules of workers and queues.
func sharing() []Mutant {
	return []Mutant{
		{6, "A commit of the ledger on PostgreSQL survives a failover to a synchronous standby.", "ledger/postgres/sql/guard.sql",
			"NOT IN ('on', 'remote_apply')", "= 'off'", "ledger/postgres", "TestSynchronousCommitOfEachTransaction"},
		{5, "The review UI marks two values as equal only after it compared them.", "internal/reviewui/compare.go",
			"if m == nil && r != nil {", "if m == nil && r != nil && false {", "", "TestACheckMarkIsAComparison"},
		{5, "A failed read does not replace what the last successful one found.", "ledger/apply.go",
			"if e.Evidence != nil { // a read", "if true { // a read", "internal/reviewui", "TestAFailedReadHidesNothing"},
		{9, "A request without params is answered like one with empty params.", "internal/mcpgate/pass.go",
			"if reflect.ValueOf(p).IsNil() {", "if reflect.ValueOf(p).IsNil() && false {", "", "TestRawMessagesOverStdio"},
		{6, "A slow destination takes no more than its share.", workGo,
			"return max(free-held+1, 0) / 2", "return free", "", "TestASlowDestinationStarvesNobody"},
		{6, "What is not begun is handed back at once.", checkGo,
			"if l.ending.Err() != nil {", "if l.ending.Err() != nil && false {", "", "TestWhatIsNotBegunIsHandedBackAtOnce"},
		{6, "What is under way has its grace, and no more.", workGo,
			"time.AfterFunc(w.o.Grace, cut)", "time.AfterFunc(100*w.o.Grace, cut)", "", "TestWorkerHandsBack/too_long"},
		{6, "A full queue takes nothing more.", queueGo,
			"n >= e.opts.MaxQueued {", "n >= 2*e.opts.MaxQueued {", "", "TestFullQueueRefuses"},
		{6, "While an undoing takes long, what it undoes is kept.", undoGo,
			"\tdefer t.keepLease()()\n", "", "", "TestLeaseIsKeptWhileAnUndoingTakesLong"},
		{6, "Who waits behind a write with a person is told so at once.", waitGo,
			"if head.State == ledger.Review {\n\t\t\t\treturn", "if head.State == ledger.Settled {\n\t\t\t\treturn", "", "TestBehindAReviewIsInProgress"},
		{6, "What was sent twice keeps its line while the first send can land.", standardGo,
			"\tcase mayStillLand(c):\n", "\tcase mayStillLand(c) && false:\n", "", "TestStandardAccepts/update,_repeated"},
		{6, "What is not proven to be our effect leaves our send under way.", standardGo,
			"\t\treturn !c.Own\n", "\t\treturn false\n", "engine", "TestAnothersEffectDoesNotSettleASendUnderWay/a_delete"},
	}
}

// looking are the rules of when what was sent is looked at.
func looking() []Mutant {
	return []Mutant{
		{5, "What a person approved is looked at at once.", whenGo,
			"w.Risk == intent.RiskApprove || ", "", "", "TestLookLater/approved"},
		{5, "What cannot be taken back is looked at at once.", whenGo,
			" || slices.Contains(p.Irreversible, w.Write)", " || slices.Contains(p.Irreversible, \"\")", "", "TestLookLater/irreversible"},
		{5, "A sample is drawn by the structural key.", whenGo,
			"float64(n)/(1<<(4*digits)) < part", "float64(n%2) < part", "", "TestSampleIsOfTheSizeAskedFor"},
		{5, "Only the look after an answered send is put off.", laterGo,
			"r.LastFate == ledger.FateAnswered && ", "", "", "TestLooksThatAreNeverPutOff/refused"},
		{5, "Who waits behind a write has it looked at.", laterGo,
			"if other.Behind == \"\" {", "if other.Behind != \"-\" {", "", "TestWhoWaitsHurriesTheLook/came_meanwhile"},
		{5, "Reads that show everything do not wait for a lag.", laggingGo,
			" || t.e.paths.of(t.way()).strong {", " {", "", "TestStrongReadsDoNotWait"},
		{5, "Only what tells of the lag is learned from.", laggingGo,
			"r.Sends != 1 || ", "", "", "TestWhatSaysNothingAboutTheLagIsNotTold/phantom"},
		{5, "A look is not put past the settle time, whatever is learned.", laggingGo,
			"\treturn policies.WithinReason(c, pause)\n}", "\treturn pause\n}", "", "TestLooksArePlacedByTheLag/wrong_about_the_world"},
		{6, "What may be doubled is rechecked once more, after a day.", "policies/record.go",
			"at = append(at, max(recheckLast, landed))", "", "engine", "TestFrozenInsideTheSendIsFoundByTheRecheck/hours"},
		{4, "A recheck whose read fails is made again at the pace of first reads.", recheckGo,
			"if t.rec.Unproven > 0 {", "if false {", "", "TestAFailedRecheckIsMadeAgainAtThePaceOfFirstReads"},
		{4, "What fails for days is rechecked ever more rarely.", "policies/pace.go",
			"passed/recheckShare", "passed*0/recheckShare", "", "TestRecheckPause"},
		{4, "An outcome says that a recheck is pending.", "engine/outcome.go",
			"if r.State == ledger.Settled && !r.Due.IsZero() {", "if false {", "", "TestAnOutcomeSaysUntilWhenARecheckIsPending"},
		{4, "And until when the last of them is.", "engine/outcome.go",
			"if r.RecheckUntil.After(r.Due) {", "if false {", "", "TestAnOutcomeSaysUntilWhenARecheckIsPending"},
		{4, "Who asks for the final outcome waits for rechecks too.", "engine/wait.go",
			"return e.waitFor(ctx, tenant, id, replayed, final)", "return e.waitFor(ctx, tenant, id, replayed, done)", "", "TestWaitFinalWaitsForTheRecheck"},
		{4, "Subscribers hear of an outcome that a recheck contradicts.", "engine/queue.go",
			"case final(rec):", "case done(rec):", "", "TestSubscribersHearOfAFlip"},
		{4, "Callers over HTTP can ask for the final outcome.", "internal/httpapi/v1/writes.go",
			"if !c.final || left <= 0", "if true || left <= 0", "", "TestTheFinalOutcomeIsWaitedFor/submit"},
		{4, "The webhook about a settled write says until when a recheck is pending.", messageGo,
			"if !out.RecheckUntil.IsZero() {", "if false {", "", "TestHooksAreToldOfAFlip"},
		{5, "Reads that fail are counted, and not the minutes between them.", standardGo,
			"inTime || c.Unproven < unprovenReads", "inTime", "", "TestStandardIsPatient/unreadable,_few_reads"},
		{5, "Two reads that fail in a backlog are no review.", applyGo,
			"if r.Unproven += max(e.Count, 1); !e.Unproven {", "if r.Unproven += 5 * max(e.Count, 1); !e.Unproven {", "engine", "TestTwoFailedReadsInABacklogAreNoReview"},
		{8, "What explains an alarm is found by the key of its record.", recheckGo,
			"KeyDigest: t.rec.KeyDigest, Limit: 200}", "Limit: 200}", "", "TestAnAlarmReadsTheWritesOfItsRecordAlone"},
		{8, "A lost lease is logged and counted.", taskGo,
			"\tt.e.meter.Failed(t.rec, err)\n", "", "", "TestALostLeaseIsLoggedAndCounted"},
		{6, "What a later write of ours moved is no alarm.", recheckGo,
			"r.Settlement == ledger.Verified && moves(w)", "false && moves(w)", "", "TestWhatWeMovedSinceIsNoAlarm/moved"},
		{6, "A write that declares its own key moves nothing.", recheckGo,
			"has && shown(declared) != shown(value)", "has && (true || shown(declared) != shown(value))", "", "TestWhatWeMovedSinceIsNoAlarm/not_moved"},
		{6, "What a later write of ours changed is no alarm.", recheckGo,
			"if later != \"\" {", "if later != \"\" && false {", "", "TestRecheckKnowsLaterWritesOfOurs/we_removed_it"},
		{6, "What was doubled is one, whatever we wrote since.", recheckGo,
			"c.Verdict != verify.Duplicated && ", "c.Verdict != verify.Collateral && ", "", "TestRecheckKnowsLaterWritesOfOurs/doubled,_and_changed_by_us"},
	}
}
