package main

const (
	unseenGo    = "policies/unseen.go"
	principalGo = "engine/principal.go"
	choicesGo   = "engine/choices.go"
	webhookGo   = "connectors/webhook/webhook.go"
	addressGo   = "connectors/webhook/address.go"
	senderGo    = "internal/webhooks/sender.go"
	messageGo   = "internal/webhooks/message.go"
)

// unseeing are the rules of destinations at which nothing can be read, and of the
// messages that are sent to such.
func unseeing() []Mutant {
	return []Mutant{
		{6, "Where nobody can look only the key or a person shows a repeat harmless.", secondGo,
			"case c.Profile.Blind:\n\t\treturn blindly(c)", "case false:\n\t\treturn blindly(c)", "", "TestBlind/unique,_which_no_read_shows"},
		{6, "Where nothing can be read, a native key serves irreversible writes too.", secondGo,
			"\tcase native(c):\n\t\treturn Permit{Allowed: true, Row: RowNativeKey, Reason: \"same idempotency key, inside the destination's window\"}\n\tcase c.Profile.NativeWindow",
			"\tcase native(c) && !slices.Contains(c.Profile.Irreversible, c.Intent.Write):\n\t\treturn Permit{Allowed: true, Row: RowNativeKey, Reason: \"same idempotency key, inside the destination's window\"}\n\tcase c.Profile.NativeWindow", "", "TestBlind/deduplicated,_and_irreversible"},
		{5, "Where nobody can look nothing is verified.", standardGo,
			"if c.Profile.Blind || c.Verdict != verify.Verified", "if c.Verdict != verify.Verified", "", "TestBlind/a_verdict_from_nowhere"},
		{5, "Only a yes is reported.", standardGo,
			"if !c.Profile.Blind || !c.Answered {", "if !c.Profile.Blind {", "", "TestReportIsBounded"},
		{5, "And only where nobody can look.", standardGo,
			"if !c.Profile.Blind || !c.Answered {", "if !c.Answered {", "", "TestReportIsBounded"},
		{5, "Nor does the ledger take a report of what nobody answered.", applyGo,
			"r.State == Checking && r.Answered", "r.State == Checking", "engine", "TestReportNeedsAYes"},
		{6, "Copies come ever more rarely.", unseenGo,
			"blindPause(c.Sends-c.Unsent, c.RetryAfter)", "blindPause(1, c.RetryAfter)", "", "TestBlindPauses"},
		{5, "What cannot be read is not read before the write.", runGo,
			"if t.profile.Blind {", "if false {", "", "TestBlind/a_yes/create"},
		{6, "A blind profile claims nothing that needs a read.", "connectors/profile.go",
			"if claim.claimed {", "if false {", "", "TestRegisterRefusesWhatABlindDestinationCannotClaim"},
		{6, "Every copy of a message has the same id.", webhookGo,
			"HeaderWebhookID, r.IdempotencyKey)", "HeaderWebhookID, r.IdempotencyKey+now.String())", "", "TestCopies"},
		{9, "Messages go to no address of the own network.", addressGo,
			"!a.IsGlobalUnicast() || a.IsPrivate()", "!a.IsGlobalUnicast()", "", "TestAddresses"},
		{9, "However it is written.", addressGo,
			"Addr().Unmap()", "Addr()", "", "TestAddresses"},
		{6, "A notice is one however often it is made.", messageGo,
			"fmt.Sprintf(\"%s/%d\", c.ID, c.Seq)", "fmt.Sprintf(\"%s/%d/%d\", c.ID, c.Seq, time.Now().UnixNano())", "internal/webhooks", "TestCrashes"},
		{6, "What was pruned before it was told is told as missed.", senderGo,
			"if err := s.enqueue(ctx, h, s.gap(h, at.Cursor, now)); err != nil {", "if err := error(nil); err != nil {", "internal/webhooks", "TestAGap"},
	}
}

// choosing are the rules of what people are shown, and of who asks.
func choosing() []Mutant {
	return []Mutant{
		{9, "Who decides or only looks asks for no write.", principalGo,
			"if slices.Contains(asking, p.Role) {", "if slices.Contains(asking, p.Role) || true {", "", "TestWhoMayAsk/an_auditor"},
		{9, "Nor for an undoing.", undoingGo,
			"if err := who.asks(); err != nil {", "if err := who.asks(); false && err != nil {", "", "TestWhoMayAsk/a_reviewer"},
		{9, "Nobody is shown a choice that an undoing stands in the way of.", choicesGo,
			"if err := d.beside(child); err != nil {", "if err := d.beside(child); false {", "", "TestChoicesAreWhatResolveSays"},
		{9, "Nor one for which the time is over.", choicesGo,
			"case lapsed(v.rec) && !v.waits:", "case false:", "", "TestChoicesAreWhatResolveSays"},
		{9, "Nor one that their role does not have.", choicesGo,
			"cmp.Or(v.who.decides(), d.refused(v.rec))", "cmp.Or(d.refused(v.rec))", "", "TestChoicesAreWhatResolveSays"},
		{9, "An auditor moves no step.", "workflow/body.go",
			"firstOf(c.check(), c.mayAct())", "firstOf(c.check())", "", "TestWhoOnlyLooks"},
		{9, "Slots that were taken under other settings count as what may be now.", "guards/slots.go",
			"min(s.held, s.limit())", "s.held", "", "TestWhatWasTakenBeforeIsNotUsed/slots"},
	}
}
