package mail

import "testing"

// HidePostfix makes the machine look as if it had none.
func HidePostfix(t *testing.T) {
	was := postfixNames
	postfixNames = nil
	t.Cleanup(func() { postfixNames = was })
}
