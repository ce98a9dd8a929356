package shards

import "github.com/readback-go/readback/ledger"

// Places applies a function to each place of a cursor, without those before all changes.
func (l *Ledger) Places(cursor string, f func(ledger.Place) ledger.Place) (string, error) {
	v, err := l.parse(cursor)
	for name, text := range v {
		p, failed := ledger.PlaceOf(text)
		if err == nil {
			err = failed
		}
		if p = f(p); p.N == 0 {
			delete(v, name)
			continue
		}
		v[name] = p.Cursor()
	}
	return l.cursor(v), err
}
