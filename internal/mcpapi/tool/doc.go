// Package tool describes one tool for models, as the configuration declares it: a model's
// arguments, their places in the intent, what is fixed, and which arguments are the
// business operation. [Tool.Check] refuses an invalid declaration, [Tool.InputSchema]
// describes the arguments, [Tool.Intent] makes an intent of them.
//
// It knows no protocol, no caller and no ledger: the handler of the call sets tenant,
// workflow, step and call. No argument has a part in them.
package tool
