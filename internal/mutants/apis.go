package main

// interfaces are the rules of what callers hear over HTTP and MCP.
func interfaces() []Mutant {
	return []Mutant{
		{1, "A step that is reported as done is read back, with or without a business operation.", "workflow/complete.go",
			"w != nil && q.canLook && !s.completed()", "w != nil && q.canLook && !s.completed() && d.rec != nil", "", "TestACompletionIsHeldAgainstTheDestination/not_there,_unnamed"},
		{1, "The gate of a completed step says what the destination shows of it.", "workflow/complete.go",
			"s.Found = &found{Verification: d.looked.verification(d.looked.at, d.now), Fence: s.Lent.Fence}\n", "s.Found = nil\n", "", "TestACompletionIsHeldAgainstTheDestination/not_there"},
		{1, "What was not seen of a completed step is looked for again.", "workflow/step.go",
			"case s.Found.Effect != effectPresent && !s.Found.fresh(s, d.now):\n\t\t\tl :=", "case false:\n\t\t\tl :=", "", "TestACompletionIsHeldAgainstTheDestination/not_there"},
		{1, "What was seen before a completion says nothing about it.", "workflow/complete.go",
			"\t\ts.Found = nil // what a gate found before", "\t\t// what a gate found before", "", "TestWhatWasSeenBeforeIsNotSaidOfACompletion"},
	}
}
