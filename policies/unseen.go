package policies

// unseen decides about sends to a destination that cannot be read. An answered send is
// reported. An unanswered one is sent again where the destination deduplicates, and otherwise
// goes to a reviewer.
func unseen(c Case) (Decision, bool) {
	if !c.Profile.WriteOnly {
		return Decision{}, false
	}
	if c.Answered {
		return Decision{Kind: Report, Rule: "blind", Reason: "the destination accepted it; it cannot be read"}, true
	}
	permit := SecondSend(c)
	if !permit.Allowed || spent(c) {
		why := "it may have arrived, and nothing shows whether it did: " + permit.Reason
		if c.LastRefusal != "" {
			why += " (" + c.LastRefusal + ")"
		}
		return Decision{Kind: Escalate, Rule: "blind", Reason: why}, true
	}
	return waitThenRetry(c, writeOnlyPause(c.Sends-c.Unsent, c.RetryAfter), permit.Reason), true
}
