package main

const (
	surplusPolicy = "policies/surplus.go"
	surplusGo     = "engine/surplus.go"
)

// removing are the rules of what may be removed at a recheck.
func removing() []Mutant {
	var all []Mutant
	for _, m := range []struct{ rule, old, new, test string }{
		{"Only where the caller allows undoing.", "c.Intent.Reversibility != intent.Compensable || ", "", "pivot"},
		{"Only where the caller asks for it.", " || c.Intent.OnMismatch != intent.MismatchCompensate", "", "a_person_is_asked_for"},
		{"Only where stamps tell ours from others'.", "\tcase !c.Profile.Stamped:\n", "\tcase false:\n", "no_stamps"},
		{"Only by a read that is no older than the last send.", "\tcase !c.Firm:\n", "\tcase false:\n", "weak"},
		{"Only where two sends can have made two records.", "\tcase reached < 2:\n", "\tcase reached < 1:\n", "one_send"},
		{"Only where nothing can land any more.", "reached > 2 && !settledFate(c)", "reached > 3", "three_sends,_not_over"},
		{"Only one of two.", "len(d.Records) != 2", "len(d.Records) < 2", "three_records"},
		{"Never beside another write of ours.", "\tcase d.Other != \"\":\n", "\tcase false:\n", "another_write"},
		{"Never without the record that was verified.", "c.Doubled.Verified == \"\" || kept.Ref != c.Doubled.Verified", "false", "verified_one_gone"},
		{"Never what does not bear our stamp.", " || surplus.Stamp != stamp", "", "surplus_not_ours"},
		{"Never what somebody worked on.", "case differs(c, surplus), ", "case ", "surplus_changed"},
		{"Never what somebody added to.", ", !slices.Equal(names(kept), names(surplus)):", ":", "surplus_has_more"},
		{"Never where what stays is not as declared.", "\tcase differs(c, kept):\n", "\tcase false:\n", "verified_changed"},
	} {
		all = append(all, Mutant{6, "A surplus record is removed: " + m.rule, surplusPolicy, m.old, m.new, "", "TestSurplus/" + m.test})
	}
	return append(all, []Mutant{
		{6, "A surplus record is removed: never the one that was verified.", surplusPolicy,
			"\t\tkept, surplus = surplus, kept\n", "", "", "TestSurplus/ours,_twice"},
		{6, "No policy of anybody's removes what is not proven to be surplus.", "policies/standard.go",
			"_, not := Surplus(c); not != \"\"", "_, not := Surplus(c); not != \"\" && false", "", "TestSurplus/one_send"},
		{6, "What removed a surplus record has undone nothing.", undoGo,
			"err == nil && child.Digest == asked && removed(child)", "err == nil && asked != \"\" && removed(child)", "", "TestRemovalIsNoUndoing"},
		{6, "A removal that waited is sent only if its write waits for it.", surplusGo,
			"if parent.State != ledger.Review {", "if parent.State == ledger.Held {", "", "TestRemovalThatWaited/a_person_accepted_both"},
		{6, "And only if the other record is still there.", surplusGo,
			"\tif plan.why != \"\" {\n\t\treturn \"what", "\tif plan.why != \"\" && false {\n\t\treturn \"what", "", "TestRemovalThatWaited/another_write_came"},
		{6, "While a removal is open its write is neither repeated nor undone.", "engine/resolve.go",
			"undoingID(rec))", "rec.Child)", "", "TestRemovalThatWaited/nothing_happened"},
		{6, "What has a removal is given to a person until that is settled.", checkGo,
			"if handled, err := t.awaitRemoval(); handled || err != nil {", "if handled, err := t.awaitRemoval(); handled && err != nil {", "", "TestRemovalThatWaited/the_verified_one_is_gone"},
	}...)
}
