package policies

// unseen decides about what was sent to a destination at which nothing can be
// read: a yes is reported, and what was not answered is sent again where the
// destination makes one of two, or else is a person's.
func unseen(c Case) (Decision, bool) {
	if !c.Profile.Blind {
		return Decision{}, false
	}
	if c.Answered {
		return Decision{Kind: Report, Rule: "blind", Reason: "the destination said yes; nobody can look"}, true
	}
	permit := SecondSend(c)
	if !permit.Allowed || spent(c) {
		why := "it may have arrived, and nothing shows whether it did: " + permit.Reason
		if c.LastRefusal != "" {
			why += " (" + c.LastRefusal + ")"
		}
		return Decision{Kind: Escalate, Rule: "blind", Reason: why}, true
	}
	return waitThenRetry(c, blindPause(c.Sends-c.Unsent, c.RetryAfter), permit.Reason), true
}
