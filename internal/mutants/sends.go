package main

const (
	secondGo   = "policies/secondsend.go"
	standardGo = "policies/standard.go"
	runGo      = "engine/run.go"
	checkGo    = "engine/check.go"
	taskGo     = "engine/task.go"
	applyGo    = "ledger/apply.go"
	clientGo   = "connectors/httpsend/client.go"
	classifyGo = "connectors/httpsend/classify.go"
)

// rows are the rows of the table of second sends.
func rows() []Mutant {
	return []Mutant{
		{6, "Row 1: a send of unknown fate is no proof that nothing left us.", secondGo,
			"case !c.Unknown && !c.Answered && !present(c):\n\t\treturn Permit", "case !c.Answered && !present(c):\n\t\treturn Permit", "", "TestSecondSendAfterRefusals/unknown"},
		{6, "Row 1: nor is one that was answered.", secondGo,
			"case !c.Unknown && !c.Answered && !present(c):\n\t\treturn Permit", "case !c.Unknown && !present(c):\n\t\treturn Permit", "", "TestSecondSendAfterRefusals/answered"},
		{6, "Row 1: a refusal that a read contradicts proves nothing.", secondGo,
			"case !c.Unknown && !c.Answered && !present(c):\n\t\treturn Permit", "case !c.Unknown && !c.Answered:\n\t\treturn Permit", "", "TestSecondSendAfterRefusals/refused,_and_it_is_there"},
		{6, "Row 1: with backoff.", standardGo,
			"return waitThenRetry(c, backoffAfter(c.Unsent, c.RetryAfter), why), true", "return waitThenRetry(c, 0, why), true", "", "TestStandardAfterRefusals/fourth_time"},
		{6, "Row 1: and Retry-After.", "policies/pace.go",
			"return max(pause, min(asked, maxRetryAfter))", "return pause", "", "TestStandardAfterRefusals/throttled"},
		{6, "Row 2: a native key serves for the write types that the profile names.", secondGo,
			"landed < c.Profile.NativeWindow[c.Intent.Write]", "(landed < c.Profile.NativeWindow[c.Intent.Write] || len(c.Profile.NativeWindow) > 0)", "", "TestSecondSendRecognised/native,_other_write_type"},
		{6, "Row 2: inside the destination's window only.", secondGo,
			"return c.SinceKey >= 0 && landed < ", "return landed >= landed && 0 < ", "", "TestSecondSendRecognised/native,_window_over"},
		{6, "Row 2: the repeat must land inside the window, not only leave.", secondGo,
			"landed := c.SinceKey + sendSlack + c.Profile.SendFor() + horizon", "landed := c.SinceKey + 0*horizon", "", "TestSecondSendRecognised/native,_window's_edge"},
		{6, "Row 2: the window counts from the first send under the key.", applyGo,
			"if r.KeySend.IsZero() || e.Generation > r.Generation {", "if e.Generation >= r.Generation {", "", "TestEffects"},
		{6, "Row 2: a repeat under a native key waits for no settle time.", standardGo,
			"c.Since < lag(c) && !recognised:", "c.Since < lag(c) && (!recognised || true):", "", "TestStandardIsPatient/weak,_native,_undeclared"},
		{6, "Row 2: a unique key serves for the write types that the profile names.", secondGo,
			"case slices.Contains(c.Profile.Unique, c.Intent.Write):", "case len(c.Profile.Unique) > 0:", "", "TestSecondSendRecognised/unique,_other_write_type"},
		{6, "Row 2: a repeat mends only the one record of ours, seen by a read that cannot be older.", secondGo,
			"c.Verdict == verify.Mismatched && c.Firm && replaces", "c.Verdict == verify.Mismatched && replaces", "", "TestSecondSendRecognised/unique_update,_differs,_weak"},
		{6, "What lost its key is not gone: a lost update or delete is looked for by the record it was aimed at.", taskGo,
			"case t.intent.Write != intent.Create && t.before != nil &&", "case false && t.before != nil &&", "connectors/jira", "TestDeletedOrOnlyLost"},
		{6, "Row 4: but for one that only says that the key is in use.", secondGo,
			"c.Verdict == verify.Absent && !keyInUse", "c.Verdict == verify.Absent && (!keyInUse || true)", "", "TestKnownNotApplied/key_in_use"},
		{6, "Row 4: a refusal that says that something is there outweighs a read that shows nothing.", secondGo,
			"settledFate(c) && !hidden(c)", "settledFate(c)", "", "TestSecondSendConclusive/hidden"},
		{6, "Row 3: a condition serves for the write types that the profile names.", secondGo,
			"case slices.Contains(c.Profile.Conditional, c.Intent.Write):", "case len(c.Profile.Conditional) > 0:", "", "TestSecondSendConditional/other_write_type"},
		{6, "Row 3: and only while the observation equals the pre-state.", secondGo,
			"case !untouched(c) && !ownRecordDiffers(c):", "case false:", "", "TestSecondSendConditional/differs"},
		{6, "Row 3: the repeat is sent with the condition.", runGo,
			"return t.before != nil && slices.Contains(t.profile.Conditional, t.intent.Write)", "return t.before != nil && slices.Contains(t.profile.Conditional, t.intent.Write) && t.rec.Sends < 1", "", "TestConditionalRepeatOverwritesNothing"},
		{6, "Row 4: absence is conclusive by a strong read or one after the settle time.", secondGo,
			"return c.Firm && c.Profile.Horizon.Passed(c.AsOf)", "return c.Profile.Horizon.Passed(c.Since)", "", "TestSecondSendConclusive/weak,_no_settle_time"},
		{6, "Row 4: and only when the horizon since the last send has passed.", secondGo,
			"return c.Firm && c.Profile.Horizon.Passed(c.AsOf)", "return c.Firm", "", "TestSecondSendConclusive/strong,_before_the_horizon"},
		{6, "Row 4: an undeclared horizon has never passed.", "connectors/profile.go",
			"return b.declared && elapsed >= b.d", "return elapsed >= b.d", "policies", "TestSecondSendConclusive/strong,_no_horizon"},
		{6, "Row 4: the read must show what landed in the last moment, however long it took.", secondGo,
			"return c.Firm && c.Profile.Horizon.Passed(c.AsOf)", "return c.Firm && c.Profile.Horizon.Passed(c.SinceSend)", "engine", "TestLastMomentOfTheHorizon/reads_take_long/1s"},
		{6, "Row 4: and however far it lags.", secondGo,
			"return c.Firm && c.Profile.Horizon.Passed(c.AsOf)", "return c.Firm && c.Profile.Horizon.Passed(c.Since)", "engine", "TestLastMomentOfTheHorizon/reads_lag/1s"},
		{6, "Row 4: a recheck is owed.", secondGo,
			"NewKey: replayed(c), OwesRecheck: true, Row: RowAbsence", "NewKey: replayed(c), Row: RowAbsence", "", "TestSecondSendConclusive/strong,_at_the_horizon"},
		{6, "Row 4: and the recheck is made, and finds what landed after its horizon.", recheckGo,
			"if t.rec.OwesRecheck || (how == ledger.NotApplied && (t.rec.Unknown || t.rec.Answered)) {", "if false {", "", "TestOwedRecheckFindsWhatComesLater/a_lost_send_lands_after_its_horizon"},
		{6, "Row 5: irreversible writes of unknown fate go to a person.", secondGo,
			"!hidden(c) && !slices.Contains(c.Profile.Irreversible, c.Intent.Write)", "!hidden(c)", "engine", "TestIrreversibleWritesAreNotRepeated"},
		{6, "Row 2: a native key serves irreversible writes too.", secondGo,
			"same key would only replay the lie\n\tcase native(c):", "same key would only replay the lie\n\tcase native(c) && !slices.Contains(c.Profile.Irreversible, c.Intent.Write):", "", "TestSecondSendRecognised/native,_irreversible"},
		{6, "Row 2: a payment whose request was lost is repeated under the provider's key.", secondGo,
			"\tcase !untouched(c) && !ownRecordDiffers(c):", "\tcase slices.Contains(c.Profile.Irreversible, c.Intent.Write), !untouched(c) && !ownRecordDiffers(c):", "engine", "TestIrreversibleWritesAreRepeatedUnderANativeKey"},
		{6, "Row 5: what somebody else stands in the way of goes to a person.", secondGo,
			"\tcase c.Conflict:\n", "\tcase false:\n", "", "TestSecondSendAfterRefusals/somebody_else's"},
		{6, "Row 5: an effect that was seen and is gone goes to a person.", secondGo,
			"case untouched(c) && c.EffectSeen:", "case false:", "", "TestSecondSendRecognised/seen_and_gone"},
		{6, "A lifetime budget of sends.", secondGo,
			"case c.Sends-c.Unsent >= c.Budget:\n", "case false:\n", "", "TestSecondSendWithinBounds/budget_used_up"},
		{6, "What was not taken up does not count in the budget.", secondGo,
			"case c.Sends-c.Unsent >= c.Budget:\n", "case c.Sends >= c.Budget:\n", "", "TestSecondSendWithinBounds/unsent_do_not_count"},
		{6, "No send is begun after the deadline.", secondGo,
			"\tcase c.Late:\n\t\treturn refuse", "\tcase false:\n\t\treturn refuse", "", "TestSecondSendWithinBounds/deadline,_native"},
		{6, "Not even the first.", taskGo,
			"return !w.Deadline.IsZero() && ", "return false && ", "", "TestDeadline"},
	}
}

// knowledge are the rules of keys, and of what is known about earlier sends.
func knowledge() []Mutant {
	return []Mutant{
		{6, "A phantom burns the key: the same key is not used again.", secondGo,
			"\tcase burnt(c):\n", "\tcase false:\n", "", "TestSecondSendKeys/burnt"},
		{6, "After an answered send and conclusive absence the next send carries a new key.", secondGo,
			"NewKey: replayed(c), OwesRecheck: true, Row: RowAbsence", "OwesRecheck: true, Row: RowAbsence", "engine", "TestKeysOfRepeats/phantom"},
		{6, "The new key is of another generation on the wire.", runGo,
			"\t\tgeneration++\n", "\t\tgeneration += 0\n", "", "TestKeysOfRepeats/phantom"},
		{6, "After an unanswered send never a new key.", secondGo,
			"func replayed(c Case) bool { return c.Last == connectors.FateAnswered }", "func replayed(c Case) bool { return c.Last == connectors.FateAnswered || c.Unknown }", "", "TestSecondSendKeys/unanswered,_conclusive"},
		{6, "Not even for a person.", secondGo,
			"NewKey: replayed(c), OwesRecheck: true, Row: RowPerson", "NewKey: true, OwesRecheck: true, Row: RowPerson", "", "TestSecondSendKeys/a_person,_unanswered"},
		{6, "A person who vouches is refused when a read shows something.", secondGo,
			"case c.Directed == DirectForce && untouched(c):", "case c.Directed == DirectForce:", "", "TestSecondSendKeys/a_person,_and_it_is_there"},
		{6, "No policy gets a second send that the table refuses.", standardGo,
			"if !d.Permit.Allowed {", "if false {", "", "TestDecideBounds/retry_without"},
		{6, "A policy cannot write its own permit.", standardGo,
			"\td.Permit = Permit{}\n", "", "", "TestNoPolicyOverridesTheRules"},
		{6, "Not applied is said only when it is known.", standardGo,
			"if _, known := KnownNotApplied(c); !known {\n\t\t\twhy", "if _, known := KnownNotApplied(c); !known && false {\n\t\t\twhy", "", "TestDecideBounds/fail_without"},
		{6, "A later refusal does not erase an earlier send of unknown fate.", secondGo,
			"case !c.Unknown && !c.Answered && !present(c):\n\t\treturn \"", "case c.Last == connectors.FateRefused:\n\t\treturn \"", "", "TestKnownNotApplied/unknown,_then_refused"},
		{6, "Nor does the ledger forget it.", applyGo,
			"r.Unknown = r.Unknown || e.Fate == FateUnknown", "r.Unknown = e.Fate == FateUnknown", "engine", "TestLaterRefusalDoesNotEraseAnUnknownSend"},
		{6, "A send that was announced and not reported is of unknown fate.", applyGo,
			"r.LastFate, r.Unknown = FateUnknown, true", "r.LastFate = FateUnknown", "", "TestEffects"},
		{6, "Absence never makes an irreversible write not applied.", secondGo,
			"!hidden(c) && !slices.Contains(c.Profile.Irreversible, c.Intent.Write)", "!hidden(c)", "", "TestKnownNotApplied/irreversible,_conclusive"},
		{6, "On attempt 2 a conflict is evidence that the first landed: read, never conclude failed.", secondGo,
			"case !c.Unknown && !c.Answered && !present(c):\n\t\treturn \"", "case !c.Answered && !present(c) || c.LastConflict:\n\t\treturn \"", "", "TestKnownNotApplied/unknown,_then_refused"},
		{6, "A create refused for a conflict, and a record as declared without stamp: nobody can tell.", secondGo,
			"c.LastConflict && c.Verdict == verify.Mismatched && !stamped", "c.LastConflict && !stamped", "", "TestKnownNotApplied/conflict,_as_declared"},
	}
}

// walk are the rules of the order of things.
func walk() []Mutant {
	return []Mutant{
		{6, "Every send is what was prepared before the first.", runGo,
			"Prepared: t.prepared,", "Prepared: nil,", "", "TestEverySendIsWhatWasPreparedBeforeTheFirst/lost"},
		{6, "What cannot be prepared is not sent.", runGo,
			"return notSent(\"prepare\", \"what is to be sent cannot be built", "_ = notSent(\"prepare\", \"what is to be sent cannot be built", "", "TestWhatCannotBePreparedIsNotSent/an_error"},
		{6, "What can never be served is not recorded.", "engine/engine.go",
			"err = verify.Check(conn, w)", "_ = verify.Check(conn, w)", "", "TestAnIntentThatCanNeverBeServedIsRefused"},
		{6, "A send is announced in the ledger before it is made.", checkGo,
			"if err := t.commit(t.ready(ev)); err != nil {", "if err := t.note(t.ready(ev)); err != nil {", "", "TestEverySendIsAnnouncedFirst/native"},
		{6, "One that was not announced cannot be recorded.", applyGo,
			"{[]State{Sending}, Checking},\n\tEvRecovered", "{[]State{Queued, Sending}, Checking},\n\tEvRecovered", "", "TestMoves"},
		{6, "Who takes over an announced send reads, and does not send.", runGo,
			"\t\tif t.mine {\n", "\t\tif true {\n", "", "TestTakenOverWriteIsReadFirst/died_after_the_send"},
		{6, "What the destination answers is evidence and never the result: after every send comes a read.", checkGo,
			"\tif t.needsRead() && !t.profile.Blind {\n", "\tif t.rec.Answered {\n\t\tt.judged.Verdict, t.agreeing = 1, 1 // verified, once\n\t} else if t.needsRead() {\n", "", "TestEverySendIsFollowedByARead/plain/no_vice"},
		{6, "After a send of unknown fate comes a read, never a send.", secondGo,
			"return (c.Verdict == verify.Absent || ", "return (c.Verdict == verify.Indeterminate || c.Verdict == verify.Absent || ", "", "TestSecondSendRecognised/native,_not_read"},
		{6, "And a read that failed does not count.", secondGo,
			"return (c.Verdict == verify.Absent || ", "return (c.Verdict == verify.Unavailable || c.Verdict == verify.Absent || ", "", "TestSecondSendRecognised/native,_unread"},
		{6, "While a later read can still change the verdict, nothing is sent and nobody is called.", standardGo,
			"\tinTime := c.Since < window(c)\n", "\tinTime := c.Since < 0*window(c)\n", "", "TestStandardIsPatient/unreadable_for_a_while"},
		{6, "Undoing waits until no send can land any more.", standardGo,
			"\tcase c.Unknown && !settledFate(c):\n\t\treturn", "\tcase false:\n\t\treturn", "", "TestDecideBounds/undo_the_unknown"},
		{6, "An effect that may be somebody else's is undone only when a person says so.", standardGo,
			"\tcase maybeAnothers(c) && ", "\tcase false && ", "", "TestDecideBounds/undo_what_may_be_another's"},
		{6, "Somebody else's record is no effect of ours: it is not undone.", judgeGo,
			"return !j.Conflict || j.Ours", "return true", "", "TestEffect"},
		{6, "The horizon counts from the latest moment at which an announced send can have ended.", applyGo,
			"r.LastSend = now.Add(e.SendFor)", "r.LastSend = now", "", "TestEffects"},
	}
}

// wire are the rules of one send.
func wire() []Mutant {
	return []Mutant{
		{6, "An error of no known kind is of unknown fate.", "connectors/errors.go",
			"\treturn FateUnknown\n}", "\treturn FateRefused\n}", "verify", "TestSend/any_error"},
		{6, "A panic is of unknown fate.", sendGo,
			"res = Result{Fate: connectors.FateUnknown,", "res = Result{Fate: connectors.FateNotSent,", "", "TestSend/panic"},
		{6, "Not sent is said only of a request that never had a connection.", clientGo,
			"if s.wanted.Load() && !s.had.Load() {", "if s.wanted.Load() {", "", "TestOneRequestOnTheWire/post"},
		{6, "A 2xx whose body cannot be read was applied.", clientGo,
			"\treturn a, Classify(a.Status, a.Header, time.Now())\n}", "\tif a.BodyErr != nil {\n\t\treturn a, a.BodyErr\n\t}\n\treturn a, Classify(a.Status, a.Header, time.Now())\n}", "", "TestYesStands/cut"},
		{6, "A redirect is not followed.", clientGo,
			"return http.ErrUseLastResponse }", "return nil }", "", "TestRedirectsAreNotFollowed/301"},
		{6, "A redirect of a write is an error.", classifyGo,
			"\tif status >= 200 && status <= 299 {", "\tif status >= 200 && status <= 399 {", "", "TestRedirectsAreNotFollowed/302"},
		{6, "A 409 says that something is there, and is no plain refusal.", classifyGo,
			"\tcase 409, 412:\n\t\treturn conflict", "\tcase 409, 412:\n\t\treturn refused", "", "TestClassify"},
		{6, "A 5xx is of unknown fate.", classifyGo,
			"\tcase 409, 412:\n", "\tcase 500, 502, 503, 504:\n\t\treturn refused\n\tcase 409, 412:\n", "", "TestClassify"},
		{6, "Go's transport does not send a request with an idempotency key twice.", clientGo,
			"\treq.GetBody = nil\n", "\t_ = req.GetBody\n", "", "TestOneRequestOnTheWire/post_with_key"},
		{6, "An Idempotency-Key is set only where it is honoured.", "connectors/simulated/connector.go",
			"if c.declare.Window > 0 && r.IdempotencyKey != \"\" {", "if r.IdempotencyKey != \"\" {", "engine", "TestKeysOfRepeats/no_keys"},
	}
}
