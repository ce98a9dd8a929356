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
		{1, "An argument that nothing compares is refused.", "connectors/mcp/derive.go",
			"w.notCompared(args); len(others) > 0 {", "w.notCompared(args); len(others) > 999 {", "", "TestArgumentsThatNothingCompares/not_mentioned"},
		{1, "What the contract lists as not checked is named.", "connectors/mcp/notchecked.go",
			"found[pointer(at, p.names)] = true", "delete(found, pointer(at, p.names))", "", "TestArgumentsThatNothingCompares/listed"},
		{1, "A name that no argument has excuses nothing.", "connectors/mcp/notchecked.go",
			"if _, there := schema.Properties[u.path.names[0]]; !there {", "if false {", "", "TestNotCheckedNamesWhatThereIs"},
		{1, "An outcome says what was not compared.", "engine/redact.go",
			"	rec.NotChecked = e.notChecked(w)\n", "", "", "TestAnOutcomeSaysWhatWasNotCompared"},
		{1, "A tool that reads, and does not answer, is given up.", "internal/mcpgate/pass.go",
			"	ctx, cancel := context.WithTimeoutCause(ctx, passTime, errSilent)\n	defer cancel()\n	r, err := g.client.Call(", "	r, err := g.client.Call(", "", "TestAReadThatHangsEnds"},
		{1, "The digest of a tool is that of what its schema means.", "connectors/mcp/digest.go",
			"(string, error) { return digest(t, meaning) }", "(string, error) { return digest(t, func(schema any) any { return schema }) }", "", "TestDigestOfOneSchemaPrintedTwice/defined"},
		{1, "What a reference has beside it counts.", "connectors/mcp/digest.go",
			"rest[\"$ref\"] = read // both count\n			return rest, nil", "return read, nil", "", "TestDigestOfOneSchemaPrintedTwice/a_definition_beside_a_reference"},
		{1, "A digest over a schema as printed still counts.", "connectors/mcp/digest.go",
			"got != want && printed != want", "got != want && printed != got", "", "TestContractOfAnEarlierVersion"},
		{4, "A token works as the password of HTTP Basic.", "internal/access/resolve.go",
			"strings.HasPrefix(password, secretPrefix)", "false", "", "TestTokenAsPassword"},
		{4, "Types that are generated from the OpenAPI document compile.", "internal/httpapi/v1/schema.go",
			"value[\"items\"], value[\"additionalProperties\"] = map[string]any{}, map[string]any{}", "_ = value", "", "TestTypeScriptClient"},
		{6, "A write whose table does not exist ends before it is sent.", "engine/run.go",
			"if errors.Is(err, connectors.ErrNoTarget) {", "if false {", "", "TestAMistypedTableEndsTheWrite"},
		{6, "A table that does not exist is not one that cannot be read now.", "connectors/sql/errors.go",
			"strings.Contains(e.err.Error(), \"no such table: \")", "false", "", "TestMistypedTable"},
	}
}
