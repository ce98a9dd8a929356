// Package tool says what one tool for models is, as the configuration declares
// it: which arguments a model gives, where they stand in the intent, what is
// fixed, and which arguments are the business operation. [Tool.Check] refuses
// what cannot work, [Tool.InputSchema] describes the arguments,
// [Tool.Intent] makes an intent of them.
//
// It knows no protocol, no caller and no ledger: tenant, workflow, step and call
// are for whoever takes the call. No argument has a part in them.
package tool
