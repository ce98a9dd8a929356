package main

const (
	riskGo     = "policies/risk.go"
	approveGo  = "engine/approve.go"
	resolveGo  = "engine/resolve.go"
	overrideGo = "engine/override.go"
	lookGo     = "engine/look.go"
	foundGo    = "engine/found.go"
	undoingGo  = "engine/undo.go"
)

// approving are the rules of who lets a write go, and until when.
func approving() []Mutant {
	return []Mutant{
		{9, "No rule lowers the risk class of an intent.", riskGo,
			"if careful(b) <= careful(a) {", "if false {", "", "TestClassify/not_lowered"},
		{9, "A rule for everything is for everything.", riskGo,
			"strings.ReplaceAll(s, \"/\", letter)", "strings.ReplaceAll(s, letter, letter)", "", "TestClassify/a_slash_is_a_letter"},
		{9, "A rule that nobody understands holds what it may be for.", riskGo,
			"return fits || err != nil", "return fits && err == nil", "", "TestClassify/no_pattern"},
		{9, "Of several rules the most careful counts: the most people.", riskGo,
			"h.Approvers = max(h.Approvers, r.Approvers)", "h.Approvers = max(1, r.Approvers)", "", "TestClassify/most_of_all"},
		{9, "Of several rules the most careful counts: denial.", riskGo,
			"\tcase h.OnTimeout == OnTimeoutDeny:\n", "\tcase false:\n", "", "TestRulesNeverLower"},
		{9, "A role that nobody understands decides about no write.", approveGo,
			"[]Role{\"\", RoleReviewer, RoleOperator}, p.Role):", "[]Role{\"\", \"Agent\", RoleReviewer, RoleOperator}, p.Role):", "", "TestWhoMayDecide/a_role_that_is_none"},
		{9, "Nobody decides in another's name.", approveGo,
			"case who.Name != \"\" && !ledger.SamePerson(who.Name, by):", "case false:", "", "TestWhoMayDecide/in_another's_name"},
		{9, "Whoever asked for a write does not approve it.", approveGo,
			"case !ledger.SamePerson(d.By, \"\") && ledger.SamePerson(d.By, rec.RequestedBy):", "case false:", "", "TestWhoMayDecide/who_asked,_by_name_alone"},
		{9, "Nor does the ledger take such an approval.", applyGo,
			"case SamePerson(e.By, r.RequestedBy):", "case false:", "", "TestCheckApproval"},
		{9, "Who asked is on record.", "engine/engine.go",
			"rec.RequestedBy, rec.Trace = Caller(ctx).Name, Traceparent(ctx)", "rec.Trace = Traceparent(ctx)", "", "TestWhoMayDecide/who_asked"},
		{9, "A sealed value is its write's alone.", "redact/token.go",
			"t.digest, tenant, write} {", "t.digest, tenant} {", "", "TestTokensCannotBeMoved"},
		{5, "A receipt rests on a read after the last send.", "receipt/observed.go",
			"\tcase sentSince:\n", "\tcase sentSince && false:\n", "", "TestWhatTheEventsDoNotShow"},
		{5, "A list that is not whole passes no check.", "eval/check.go",
			"case !l.Complete:", "case false:", "", "TestListsThatMayLackSomething"},
		{9, "One person is not two.", approveGo,
			"case ledger.AmongPeople(rec.Agreed, d.By):", "case false:", "", "TestTwoPeopleAreTwo"},
		{9, "Nor for the ledger.", applyGo,
			"case AmongPeople(r.Agreed, e.By):", "case false:", "", "TestCheckApproval"},
		{9, "Where two are needed one does not let it go.", approveGo,
			"if len(rec.Agreed)+1 < rec.Need {", "if false {", "", "TestTwoPeopleAreTwo"},
		{9, "An approval is for what the person saw.", approveGo,
			"case d.Digest != \"\" && d.Digest != rec.Digest:", "case false:", "", "TestWhoMayDecide/denies_something_else"},
		{9, "What was not approved in time expires.", approveGo,
			"!r.Due.IsZero() && !r.Now.Before(r.Due)", "false", "", "TestWhatNobodyApprovesExpires/a_worker"},
		{9, "Also when the decision itself comes too late.", resolveGo,
			"\tif lapsed(rec) {\n", "\tif lapsed(rec) && d.Word == WordApprove {\n", "", "TestWhatNobodyApprovesExpires/a_late_denial"},
		{9, "The ledger takes no approval that comes too late.", applyGo,
			"case !r.Due.IsZero() && !r.Overdue && !now.Before(r.Due):", "case false:", "", "TestCheckApproval"},
		{9, "What was never let go is not taken up again.", applyGo,
			"case e.Kind == EvEscalated && !r.Entrusted && ", "case false && ", "", "TestMemory/approval/ended_without_approval"},
		{9, "Who waits for a held write hears that it has expired.", waitGo,
			"(unverified(rec) || lapsed(rec))", "unverified(rec)", "", "TestWhatNobodyApprovesExpires/who_waits"},
		{9, "What is to be escalated goes on waiting.", approveGo,
			"w).OnTimeout == policies.OnTimeoutEscalate", "w).OnTimeout == \"\"", "", "TestWhatIsOverdueGoesOnWaiting/a_worker_finds_it"},
		{9, "An approval is asked for once, however rules change.", runGo,
			"if t.risk() != intent.RiskApprove || t.rec.Sends > 0 || len(t.rec.Agreed) > 0 {\n\t\treturn false, nil\n\t}\n", "if t.risk() == intent.RiskApprove {\n\t\treturn true, nil\n\t}\n", "", "TestOneApprovalIsEnoughAndLasts"},
		{9, "Whoever asked for an undoing does not approve it.", undoGo,
			"\t\t\twho = ev.By\n", "", "", "TestUndoingsAreApprovedBySomebodyElse/on_somebody's_ask"},
		{9, "Nor does whoever asked for what is undone by itself.", undoGo,
			"\twho := parent.RequestedBy\n", "\twho := \"\"\n", "", "TestUndoingsAreApprovedBySomebodyElse/by_itself"},
		{9, "What a step does itself is approved at the gate.", resolveGo,
			"\tcase WordApprove, WordDeny:\n\t\treturn fmt", "\tcase \"\":\n\t\treturn fmt", "", "TestEntrustedWritesAreApprovedAtTheGate"},
		{9, "An operation is let go by name and reason, and not by an agent.", overrideGo,
			"\tif err := mayDecide(ctx, by, reason); err != nil {\n\t\treturn err\n\t}\n", "", "", "TestYield/an_agent"},
		{9, "An operation that was let go stops nobody.", "ledger/operation.go",
			" || r.Yielded {", " {", "", "TestBlocks"},
	}
}

// reversing are the rules of undoing what was settled.
func reversing() []Mutant {
	return []Mutant{
		{6, "A settled write is undone only where it says that it may be.", undoingGo,
			"if t.intent.Reversibility != intent.Compensable {", "if false {", "", "TestUndoIsRefused/not_to_be"},
		{9, "An agent undoes only what it asked for itself.", undoingGo,
			"(who.Name == \"\" || who.Name != rec.RequestedBy)", "who.Name == \"\"", "", "TestWhoMayUndo/another_agent"},
		{6, "Only what was verified is undone.", undoingGo,
			"case rec.Settlement != ledger.Verified:", "case false:", "", "TestUndoIsRefused/not_applied"},
		{6, "What was as wished before is nothing of ours to undo.", undoingGo,
			"case rec.Sends == 0:", "case false:", "", "TestNothingOfOursIsUndone"},
		{6, "A way that the caller says requires what we left.", undoingGo,
			"\t\t\tw.Require[name] = value\n", "\t\t\t_ = value\n", "", "TestUndoAsTold/changed_since"},
		{6, "It is about the same record.", undoingGo,
			"(about != mine || ", "(about == mine && false || ", "", "TestUndoIsRefused/another_record"},
		{6, "What somebody added is not deleted with the record.", runGo,
			"case changed != \"\":", "case false:", "", "TestUndo/a_created_record,_added_to"},
		{6, "What is undone is what the write left, and not what a later look saw.", undoingGo,
			"look, found = last, last.Evidence != nil\n\t\t}\n", "look, found = last, last.Evidence != nil\n\t\t}\n\t\tlook = last\n", "", "TestUndo/rechecked_after_their_change"},
		{6, "One undoing is all there ever is: another way than the one begun is refused.", undoingGo,
			"if err == nil && recorded != received {", "if false {", "", "TestUndoAsTold/as_we_left_it"},
		{6, "An undoing of what has left its line stands in line itself.", undoGo,
			"\t\trec.KeyDigest = parent.KeyDigest\n", "", "", "TestUndoingWaitsItsTurn"},
		{6, "An undoing that came to nothing stays with a person.", undoGo,
			"if t.rec.Passed { // its", "if false { // its", "", "TestUndo/a_created_record,_added_to"},
		{6, "Undoing a settled write waits until no send of it can land.", undoingGo,
			"return max(horizon-c.SinceSend, 0)", "return 0 * horizon", "", "TestUndoingWaitsForTheHorizon/by_an_update"},
		{6, "What lands after an undoing is found.", recheckGo,
			"|| r.ID == t.rec.Child ", "", "", "TestLateDoubleOfAnUndoneWriteIsFound/without_stamps"},
		{6, "By itself nothing is brought back that was read weakly.", standardGo,
			"case !told && c.Intent.Write != intent.Create && !based(c):", "case false:", "engine", "TestUndoOfWhatIsNotSure/weakly_read"},
		{6, "Nor deleted that may be somebody else's.", standardGo,
			"\tcase !c.Own:\n", "\tcase false:\n", "engine", "TestUndoOfWhatIsNotSure/maybe_another's"},
	}
}

// witnessing are the rules of looking at what a caller writes itself.
func witnessing() []Mutant {
	return []Mutant{
		{5, "A look calls absent only what no send can still change.", foundGo,
			"return j.Firm && k.Profile.Horizon.Passed(j.AsOf) && ", "return j.Firm && ", "", "TestLook/not_created_yet"},
		{5, "Nor by a read that may lag.", foundGo,
			"return j.Firm && k.Profile.Horizon.Passed(j.AsOf) && ", "return k.Profile.Horizon.Passed(j.Since) && ", "", "TestLook/reads_lag_for_ever"},
		{5, "Nor what leaves nothing to be looked for.", foundGo,
			"Passed(j.AsOf) && !slices.Contains(k.Profile.Irreversible, k.Intent.Write)", "Passed(j.AsOf)", "", "TestAbsenceOfTheIrreversibleProvesNothing"},
		{5, "A look calls nothing present that was there before a create.", foundGo,
			"case k.Intent.Write == intent.Create && k.Before != nil && len(k.Before.Records) > 0:", "case false:", "", "TestLook/there_before"},
		{5, "What was as wished before is said to have been.", foundGo,
			"case j.Verdict == verify.Verified && was:", "case j.Verdict == verify.Absent && was:", "", "TestLook/as_wished_before"},
		{5, "A look says absent of no record that somebody else removed.", foundGo,
			"(j.Verdict == verify.Absent || j.Verdict == verify.Stale) && !j.Conflict", "(j.Verdict == verify.Absent || j.Verdict == verify.Stale)", "", "TestLook/removed_by_others"},
		{5, "Where a write of ours has the key, its outcome answers.", lookGo,
			"\tcase err == nil:\n\t\tfound := known(have, rec.Digest)\n", "\tcase err == nil && false:\n\t\tfound := known(have, rec.Digest)\n", "", "TestLookAsksTheLedger/undone"},
		{5, "One that asks for something else says nothing.", lookGo,
			"case r.Digest != digest:", "case false:", "", "TestLookAsksTheLedger/something_else"},
		{5, "What has no key of its own cannot be looked for.", lookGo,
			"if alone(l.intent, l.profile) {", "if false {", "", "TestLookForWhatHasNoKey"},
		{5, "Nobody else's write is missed because it bears no stamp.", lookGo,
			"\tl.profile.Stamped, l.profile.StampsUpdates = false, false\n", "", "", "TestLook/created"},
	}
}
