// Package snippets holds the tests of docs/guide/start.md, of the fault kit in
// docs/guide/your-200-lines.md and of the recipes in docs/guide/engines.md: every block is run, against the command as a process of its own and a
// destination that loses answers and counts what it did. A recipe runs in a stub of its workflow
// engine. It ships nothing, and knows of no block that the pages do not show.
package snippets
