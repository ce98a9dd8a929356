//go:build unix

package soak

import "testing"

func TestUnderFire(t *testing.T) {
	var o Options
	if *dispatching {
		o.Env = []string{dispatched + "=1"}
	}
	UnderFire(t, o)
}
