package matrix

import (
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
)

const reported = engine.StatusReported

// whyBlind is why a write-only result needs a reviewer.
const whyBlind = "it may have been applied, nobody can look there, and no further send is harmless"

// blinded is what is left of a profile where nothing can be read.
func blinded(p connectors.Profile) connectors.Profile {
	return connectors.Profile{
		WriteOnly: true, Writes: []intent.WriteType{intent.Create}, NativeWindow: p.NativeWindow, Horizon: p.Horizon, SendTimeout: p.SendTimeout,
	}
}

func toldYes(powers) verdict { return verdict{may: []engine.Status{reported}} }

// untold: the first send is not answered.
func untold(p powers) verdict {
	if p.native {
		return toldYes(p)
	}
	return aPerson(whyBlind)(p)
}

// neverTold: no send is ever answered.
func neverTold(p powers) verdict { return aPerson(whyBlind)(p) }

// blindly is the expected result of faults of a write-only destination. It leaves out those of
// reads, and what a destination does later by itself, which is invisible.
var blindly = map[string]func(powers) verdict{
	"none":                                         toldYes,
	"answer lost after the commit":                 untold,
	"every answer lost after the commit":           neverTold,
	"502 after the commit":                         untold,
	"dropped before the commit":                    untold,
	"every send dropped before the commit":         neverTold,
	"phantom success":                              toldYes,
	"nothing but phantom success":                  toldYes,
	"silently dropped field":                       toldYes,
	"normalised field":                             toldYes,
	"taken back at once":                           toldYes,
	"unreachable five times":                       toldYes,
	"never reachable":                              must(notApplied),
	"throttled once":                               toldYes,
	"throttled for ever":                           must(notApplied),
	"refused once":                                 must(notApplied),
	"refused":                                      must(notApplied),
	"late commit, 2 s after the client's time-out": untold,
}

// wantedBlind is the expected result of a run with a write-only destination. A process that dies
// loses its answer: then a repeat decides if copies are recognised, otherwise a reviewer does.
func (r *run) wantedBlind() verdict {
	p := r.cell.powers()
	want := blindly[r.cell.vice.name](p)
	if r.point.how == lives || slices.Contains(want.may, review) {
		return want
	}
	may := slices.Clone(want.may)
	if slices.Contains(may, notApplied) && r.cell.vice.name == "refused once" {
		may = append(may, reported)
	}
	if !p.native || slices.Contains(may, notApplied) {
		may = append(may, review)
	}
	return verdict{may, whyNotTold}
}

// judgeBlind: nothing is read, and nothing is reported that was not answered.
func (r *run) judgeBlind() {
	if r.reads > 0 {
		r.flaw("%s: %d reads of what cannot be read", other, r.reads)
	}
	for _, e := range r.ends {
		switch {
		case e.as == verified:
			r.flaw("%s: verified, and nobody can have looked", silentWrong)
		case e.as == reported && e.then.applied == 0 && e.then.lied == 0:
			r.flaw("%s: settled as reported, and there is %s", silentWrong, show(e.then))
		}
	}
}
