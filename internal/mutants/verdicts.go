package main

const (
	diffGo    = "verify/diff.go"
	judgeGo   = "verify/judge.go"
	ownGo     = "verify/own.go"
	rulesGo   = "verify/rules.go"
	sendGo    = "verify/send.go"
	verdictGo = "verify/verdict.go"
)

// table is every rule.
func table() []Mutant {
	var all []Mutant
	for _, part := range [][]Mutant{verdicts(), comparisons(), readings(), preStates(), rows(), knowledge(), walk(), wire(), guarding(), logins(), sharing(), looking(), removing(), approving(), reversing(), witnessing(), unseeing(), choosing(), interfaces()} {
		all = append(all, part...)
	}
	return all
}

// verdicts are the rules of what a comparison says.
func verdicts() []Mutant {
	return []Mutant{
		{5, "A verdict that was forgotten proves nothing: the zero value is indeterminate.", verdictGo,
			"Indeterminate Verdict = iota // nothing below is proven\n\tVerified", "Verified Verdict = iota\n\tIndeterminate",
			"", "TestForgottenVerdictProvesNothing"},
		{5, "A word for a verdict that nobody knows is indeterminate.", verdictGo,
			"\tvar v Verdict\n\t_ = v.Unm", "\tv := Verified\n\t_ = v.Unm", "", "TestForgottenVerdictProvesNothing"},
		{5, "Only verified, or vacuous, passes: no policy accepts anything else.", "policies/standard.go",
			"if c.Profile.Blind || c.Verdict != verify.Verified && c.Verdict != verify.Vacuous {", "if false {", "", "TestDecideBounds"},
		{5, "A record that is as declared and came to nothing is not verified.", judgeGo,
			"if c.Seen.Failed != \"\" &&", "if false &&", "", "TestJudgeFailed"},
		{6, "The removal of a copy takes nothing back.", "policies/standard.go",
			"case verified && gone && c.Profile.Proof == \"\":", "case verified && gone:", "", "TestRecheckOfACopy"},
		{5, "More records of ours than declared are duplicated.", judgeGo,
			"case len(ours) > want:", "case len(ours) > want+1:", "", "TestJudgeCreate/duplicated"},
		{5, "Fewer records than declared are not verified.", judgeGo,
			"case len(ours) < want:", "case len(ours) == 0:", "", "TestJudgeCreate/too_few"},
		{5, "A record under our key without our stamp is somebody else's: a conflict.", judgeGo,
			"if r.Stamp == c.Stamp && c.Stamp != \"\" || answered(c, r) {", "if true {", "", "TestJudgeCreate/somebody_else's"},
		{5, "An empty stamp is nobody's.", judgeGo,
			"if r.Stamp == c.Stamp && c.Stamp != \"\" || answered(c, r) {", "if r.Stamp == c.Stamp {", "", "TestJudgeWithoutStamp"},
		{5, "Nothing where a record was before is not the state from before.", judgeGo,
			"if c.Intent.Write != intent.Create && !wasAbsent(c) {", "if false {", "", "TestJudgeUpdateAsBefore/gone"},
		{5, "Still equal to the pre-state is stale, not mismatched: a replica may lag.", judgeGo,
			"\t\tcase !asBefore(c, found, untouched):\n", "\t\tcase true:\n", "", "TestJudgeUpdateAsBefore/stale"},
		{5, "Another record with the same fields is not the one from before.", judgeGo,
			"return *all.only, all.only.Ref == r.Ref", "return *all.only, true", "", "TestJudgeDelete/another_record"},
		{5, "A record that bears another stamp than before was written to.", judgeGo,
			"return old.Stamp == now.Stamp && (", "return (", "", "TestJudgeUpdateAsBefore/our_stamp,_old_fields"},
		{5, "A record of another version than before was written to.", judgeGo,
			"(old.Version == now.Version || ", "(true || ", "", "TestJudgeDelete/new_version"},
		{5, "A field nobody asked to change and that changed is collateral.", judgeGo,
			"if changed := collateral(c, found); len(changed) > 0 {", "if changed := collateral(c, found); len(changed) > 999 {", "", "TestJudgeCollateral/collateral"},
		{5, "Naming one member of an object does not speak of its neighbours.", diffGo,
			"if sub, ok := v.(map[string]any); ok && len(sub) > 0 {", "if sub, ok := v.(map[string]any); ok && len(sub) > 99 {", "", "TestJudgeCollateral/collateral_beside_a_named_member"},
		{5, "What the destination changes by itself is no collateral.", judgeGo,
			"placesOf(named(c.Intent), c.Profile.Volatile)", "placesOf(named(c.Intent))", "", "TestJudgeCollateral/payload,_absent_and_volatile"},
		{5, "Every record of an intent with a count is compared.", judgeGo,
			"\tfor _, r := range found {\n\t\tall = append(all, Diff(c", "\tfor _, r := range found[:min(256, len(found))] {\n\t\tall = append(all, Diff(c", "", "TestJudgeLooksAtEveryRecord"},
	}
}

// comparisons are the rules of how fields are compared.
func comparisons() []Mutant {
	return []Mutant{
		{5, "Every expected field is compared.", diffGo,
			"range []intent.Fields{w.Key, w.Expect} {\n\t\tvar r", "range []intent.Fields{w.Key} {\n\t\tvar r", "", "TestDiffOfValues/1_and_\"1\""},
		{5, "So is the key: a record found by its stamp may be under another.", diffGo,
			"range []intent.Fields{w.Key, w.Expect} {\n\t\tvar r", "range []intent.Fields{w.Expect} {\n\t\tvar r", "", "TestDiffOfValues/key_differs"},
		{5, "What must be absent is looked for.", diffGo,
			"for _, p := range w.Absent {", "for _, p := range w.Absent[:0] {", "", "TestDiffOfPlaces/absent_and_there"},
		{5, "Null, missing and empty are three things.", diffGo,
			"\t\t\tg = missing{}\n\t\t}\n\t\tif x, y", "\t\t\tg = nil\n\t\t}\n\t\tif x, y", "", "TestDiffOfValues/null_wanted,_missing"},
		{5, "Numbers are what they denote.", rulesGo,
			"return okX && okY && x.Cmp(y) == 0", "return okX && okY && x == y", "", "TestDiffOfValues/1_and_1.0"},
		{5, "The intent's comparison of a field wins over the profile's.", diffGo,
			"if c, ok := d.intent[string(path)]; ok {", "if c, ok := d.intent[string(path)]; ok && len(c) > 0 {", "", "TestDiffPrecedence/the_intent_is_exact"},
		{5, "The profile's comparison applies where the intent has none.", diffGo,
			"return d.profile[string(path)]", "return nil", "", "TestDiffPrecedence/the_profile's"},
		{5, "No coercion beyond the rules: a rule nobody knows allows nothing.", rulesGo,
			"\ts, ok := v.(string)\n\tif !ok {\n\t\treturn v\n\t}\n\tswitch rule {", "\ts, ok := v.(string)\n\tif !ok || rule == \"soundex\" {\n\t\treturn nil\n\t}\n\tswitch rule {", "", "TestSetRuleAndOrder/unknown_rule"},
		{5, "Numeric allows the tolerance and no more.", rulesGo,
			".Cmp(tolerance) <= 0", ".Cmp(tolerance) <= 1", "", "TestNumericRule/tolerance,_beyond"},
		{5, "Time has a precision, and a whole unit is too far.", rulesGo,
			"return a.Sub(b).Abs() < p", "return a.Sub(b).Abs() <= p", "", "TestTimeRule/time,_unit"},
		{5, "Time has a zone for values that name none.", rulesGo,
			"\t\tzone = z\n", "\t\t_ = z\n", "", "TestTimeRule/time,_zone"},
		{5, "In a set every element counts.", rulesGo,
			"maps.Equal(members(a), members(b))", "(len(b) > 0 || maps.Equal(members(a), members(b)))", "", "TestSetRuleAndOrder/set,_types"},
		{5, "Rules are applied in the order written.", rulesGo,
			"\tfor _, r := range rules {", "\tfor i := range rules {\n\t\tr := rules[len(rules)-1-i]", "", "TestSetRuleAndOrder/in_order"},
		{5, "A destination cannot make us compute for ever.", rulesGo,
			"> maxExponentDigits)", "> 99)", "", "TestDiffDoesNotHangOnNumbers"},
	}
}

// readings are the rules of what a read proves.
func readings() []Mutant {
	return []Mutant{
		{5, "A read that fails is unavailable, never absent.", sendGo,
			"return Judgement{Verdict: Unavailable,", "return Judgement{Verdict: Absent,", "", "TestRead/error"},
		{5, "The error of a read says nothing about whether a write was applied.", "connectors/errors.go",
			"return &readError{err, e}", "return err", "eval", "TestAFailedReadSaysNothingOfWrites"},
		{5, "A read that panics has failed.", sendGo,
			"obs, err = connectors.Observation{}, panicked(\"read\", p)", "obs, err = connectors.Observation{}, nil", "", "TestRead/panic"},
		{5, "A record that cannot be understood is no absence.", sendGo,
			"return connectors.Observation{}, fmt.Errorf(\"record %q cannot be read: %w\", r.Ref, err)", "obs.Records = nil\n\t\t\tbreak", "", "TestRead/bad_number"},
		{5, "A weak read that shows the wanted value may be older than the send.", judgeGo,
			"if !proves(c, found) {", "if false {", "", "TestJudgeUpdate/weak"},
		{5, "A record that bears the stamp of this write proves it, and another's stamp does not.", judgeGo,
			"return r.Stamp != stamp })", "return r.Stamp == \"\" })", "", "TestJudgeUpdate/weak,_bears_another_stamp"},
		{5, "A stamp from its creation proves no update.", ownGo,
			"return creates(c) && c.Profile.Stamped || c.Profile.StampsUpdates }", "return c.Profile.Stamped || c.Profile.StampsUpdates }", "", "TestJudgeUpdate/weak,_stamped_at_creation_only"},
		{5, "A weak read counts when the settle time has passed.", judgeGo,
			"return c.Since - settle, declared", "return c.Since - 0*settle, declared", "", "TestJudgeUpdate/weak"},
		{5, "Without a declared settle time a weak read never proves absence.", judgeGo,
			"return c.Since - settle, declared", "return c.Since - settle, declared || true", "", "TestJudgeDelete/gone,_weak,_undeclared"},
		{5, "A strong read that began before the send had ended proves nothing.", judgeGo,
			"return known && moment >= 0", "return known || moment >= 0", "", "TestJudgeCreate/strong,_begun_before_the_send"},
		{5, "A read made before it was asked for is as old as it says.", sendGo,
			"k.Since -= age", "k.Since -= 0 * age", "", "TestLookTakesAReadToBeAsOldAsItIs/made_before_the_send"},
		{5, "A delete is verified by absence that a read can prove, and no other.", judgeGo,
			"case len(found) == 0 && firm(c):\n\t\treturn Judgement{Verdict: Verified", "case len(found) == 0:\n\t\treturn Judgement{Verdict: Verified", "", "TestJudgeDelete/gone,_weak"},
	}
}

// preStates are the rules of what is found before the first send.
func preStates() []Mutant {
	return []Mutant{
		{5, "A wish that was fulfilled before is vacuous: nothing is sent.", judgeGo,
			"case c.Intent.Write != intent.Delete && len(found) == want && firm(c) && len(diffAll(c, found)) == 0:", "case false:", "engine", "TestVacuousWritesAreNotSent/update"},
		{5, "So is a delete of what is not there.", judgeGo,
			"case c.Intent.Write == intent.Delete && len(found) == 0 && firm(c):", "case false:", "engine", "TestVacuousWritesAreNotSent/delete"},
		{5, "Only a read that can prove it makes a write vacuous.", judgeGo,
			"len(found) == want && firm(c) && len(diffAll(c, found)) == 0:", "len(found) == want && len(diffAll(c, found)) == 0:", "", "TestJudgeBefore/update,_done,_weak"},
		{5, "A create under a key that is taken is a conflict, for a person.", judgeGo,
			"case !c.Profile.Stamped && len(ours) > 0, len(others) > 0:", "case len(others) > 999:", "engine", "TestCreateUnderATakenKey/somebody's"},
		{5, "A create that finds our stamp is our own earlier send, and is judged, not sent.", judgeGo,
			"\tcase len(ours) > 0: // our own", "\tcase false: // our own", "engine", "TestCreateUnderATakenKey/ours"},
		{5, "What the intent requires must hold before anything is sent.", judgeGo,
			"if unmet := required(c); len(unmet) > 0 {", "if unmet := required(c); len(unmet) > 999 {", "", "TestJudgeBefore/update,_requirement_not_held"},
		{5, "A key that names more records than declared is not written to.", judgeGo,
			"case len(found) > want:\n\t\treturn Judgement{Verdict: Duplicated, Firm: true", "case false:\n\t\treturn Judgement{Verdict: Duplicated, Firm: true", "", "TestJudgeBefore/delete,_two"},
	}
}
