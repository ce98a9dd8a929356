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

	// maxWord is how long names and other single words of a step may be, as a
	// cost is estimated with it: names end at 255 characters.
	maxWord = 255
	// maxText and maxMembers bound one text and one list or mapping of what a
	// step or an intent gives. A rule that asks about a larger one has no answer.
	// They are what costs are estimated with, so that the two belong together.
	maxText    = 64 << 10
	maxMembers = 1000

	// maxCost bounds one expression, estimated at load and counted when it is
	// evaluated, in units of CEL: about a tenth of a microsecond each, so that one
	// rule takes a second at the very most and microseconds as a rule.
	maxCost = 10_000_000
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
