package postgres

import "context"

// MaxFound is how many writes or papers one portion finds, MaxCleared how many rows
// one forgets.
const (
	MaxFound   = maxFound
	MaxCleared = maxCleared
)

// Switch does one portion of what [Ledger.Chronicle] does, and says whether there
// is more. Within is called before the portion is committed.
func (l *Ledger) Switch(on, begun bool, within func()) (more bool, err error) {
	err = l.within(context.Background(), func(t *tx) (err error) {
		more, _, err = t.switchOver(on, begun)
		within()
		return err
	})
	return more, err
}
