package telemetry

import "github.com/readback-go/readback/engine"

// Tee returns an observer that calls several, in turn. Nil ones are left out.
func Tee(observers ...func(engine.Activity)) func(engine.Activity) {
	return func(a engine.Activity) {
		for _, observe := range observers {
			if observe != nil {
				observe(a)
			}
		}
	}
}
