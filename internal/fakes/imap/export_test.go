package imap

import "testing"

// HideDovecot makes the machine look as if it had none.
func HideDovecot(t *testing.T) {
	was := dovecotNames
	dovecotNames = nil
	t.Cleanup(func() { dovecotNames = was })
}
