package sqlite

import "context"

// MaxFound is how many writes or papers one portion finds.
const MaxFound = maxFound

// SwitchOn does one portion of what [Ledger.Chronicle] does, and says whether there
// is more. Within is called before the portion is committed.
func (l *Ledger) SwitchOn(begun bool, within func()) (more bool, err error) {
	err = l.writer.do(context.Background(), func(t *tx) (err error) {
		more, err = t.switchOver(true, begun)
		within()
		return err
	})
	return more, err
}
