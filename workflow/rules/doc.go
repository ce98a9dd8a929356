// Package rules reads and applies the rules of the step gate: expressions in CEL
// over what is known about a step, in a file.
//
// [Load] reads a file and checks everything that can be checked before a step
// comes: names and types, so that a misspelt field is an error with its line and
// column, and what an expression can cost at the most. It warns of rules that
// can never fire, or always do. [Set.Decide] asks every rule about a step; the
// most careful decision wins, whatever the order. A rule that cannot be answered
// is an error that names it, and never an answer.
//
// The language is CEL, by github.com/google/cel-go: it is the language of
// Kubernetes' admission policies and of published step gates, it has types, no
// loops without an end and no side effects, and the library is the one that its
// designers keep. It estimates costs before evaluation, and ends it with its
// time, and it evaluates expressions of which only a part is known, which is how a
// rule that never fires is found. Values are made here and not by its reflection
// over Go structs, since those panic where a step declares no intent.
//
// The package does not know where steps are kept, and calls nothing: it gives
// the same answer to the same facts.
package rules
