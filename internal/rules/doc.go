// Package rules reads and applies the rules of the step gate: CEL expressions over the facts
// about a step, in a file.
//
// [Load] reads a file and checks everything that can be checked before a step arrives: names and
// types, so that a misspelt field is an error with its line and column, and the maximum cost of
// an expression. It warns of rules that can never fire, or always do. [Set.Decide] asks every
// rule about a step; the strictest decision wins, whatever the order. A rule that cannot be
// answered is an error that names it, and never an answer.
//
// The language is CEL, by github.com/google/cel-go. Kubernetes' admission policies and published
// step gates use it. It has types, no unbounded loops and no side effects, and its designers
// maintain the library. The library estimates costs before evaluation and stops evaluation at a
// deadline. It evaluates expressions of which only a part is known, which is how rules that never
// fire are found. Values are made here and not by its reflection over Go structs, since those
// panic if a step declares no intent.
//
// The package does not store steps, and calls nothing: the same facts give the same answer.
package rules
