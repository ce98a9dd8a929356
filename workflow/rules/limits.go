package rules

import "time"

const (
	// maxFile bounds a file of rules in bytes: a thousand rules fit.
	maxFile = 1 << 20
	// maxRules bounds the rules of a file: each is asked at every step.
	maxRules = 1000
	// maxExpression bounds one expression in bytes, maxNesting how deep it goes:
	// people write some hundred, and the type checker is recursive.
	maxExpression = 8 << 10
	maxNesting    = 100

	// maxWord bounds names and other single words of a step in bytes: names end at
	// 255 characters of at most four. A rule that asks for a longer one has no
	// answer.
	maxWord = 4 * 255
	// maxText and maxMembers bound one text and one list or mapping of what a
	// step or an intent gives. A rule that asks about a larger one has no answer.
	// They are what costs are estimated with, so that the two belong together.
	maxText    = 64 << 10
	maxMembers = 1000

	// maxCost bounds one expression, as it is estimated at load, in units of CEL:
	// about a tenth of a microsecond each at the most, so that one rule takes a
	// second at the very most and microseconds as a rule.
	maxCost = 10_000_000
	// perState is what one state of a pattern costs for a letter of the text.
	perState = 0.1
	// evalTime bounds all rules of a step together: whoever waits for the gate
	// waits for them.
	evalTime = 2 * time.Second
	// interruptEvery is after how many elements of a list the time is looked at.
	interruptEvery = 100

	// maxCases bounds the combinations of words with which it is tried whether a
	// rule can fire at all; where there are more, it is not tried.
	maxCases = 512
	// maxWhy bounds the expression and the values that are recorded with a match.
	maxWhy = 1000
	// maxNamed bounds the identifier of a rule.
	maxNamed = 100
)
