// Package lag learns how long after a send its effect becomes visible, and
// says when to look.
package lag
