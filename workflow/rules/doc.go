// Package rules reads and applies the rules of the step gate: expressions in CEL
// over what is known about a step, in a file. [Load] checks them, a [Set] rules.
//
// The package does not know where steps are kept, and calls nothing: it gives
// the same answer to the same facts.
package rules
