// Package yamlfile reads YAML files strictly, as people write them by hand: the
// configuration and the declarations of destinations.
//
// A [Reader] collects every [Problem] with its line and its place, so that one
// run shows all of them. Unknown members are refused, and so are anchors, aliases, merge keys, a second document and values of another
// type. Nothing that may be a secret is repeated in a problem: no value of an
// unknown member, no piece of the file around a mistake.
//
// [Reader.Fill] fills structs, lists and maps of any depth. The package does not
// know what the files are for.
package yamlfile
