// Package snippets holds the tests of docs/guide/start.md: every block of that page is
// run, against the command as a process of its own and a destination that loses
// answers and counts what it did. It ships nothing, and knows of no block that the
// page does not show.
package snippets
