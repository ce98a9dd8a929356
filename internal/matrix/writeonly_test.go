package matrix

import (
	"slices"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/crashtest"
	"github.com/readback-go/readback/ledger"
)

const reported = ledger.Reported

// whyWriteOnly is why a write-only result needs a reviewer.
const whyWriteOnly = "the write may have been applied, the destination cannot be read, and no further send is harmless"

// writeOnlyProfile is what is left of a profile where nothing can be read.
func writeOnlyProfile(p connectors.Profile) connectors.Profile {
	return connectors.Profile{
		WriteOnly: true, Writes: []intent.WriteType{intent.Create}, NativeWindow: p.NativeWindow, Horizon: p.Horizon, SendTimeout: p.SendTimeout,
	}
}

func answeredYes(powers) verdict { return verdict{may: []ledger.Status{reported}} }

// firstLost: the first send is not answered.
func firstLost(p powers) verdict {
	if p.native {
		return answeredYes(p)
	}
	return aReviewer(whyWriteOnly)(p)
}

// allLost: no send is ever answered.
func allLost(p powers) verdict { return aReviewer(whyWriteOnly)(p) }

// writeOnlyWants is the expected result of faults of a write-only destination. It leaves out those of
// reads, and what a destination does later by itself, which is invisible.
var writeOnlyWants = map[string]func(powers) verdict{
	"none":                                         answeredYes,
	"answer lost after the commit":                 firstLost,
	"every answer lost after the commit":           allLost,
	"502 after the commit":                         firstLost,
	"dropped before the commit":                    firstLost,
	"every send dropped before the commit":         allLost,
	"phantom success":                              answeredYes,
	"nothing but phantom success":                  answeredYes,
	"silently dropped field":                       answeredYes,
	"normalised field":                             answeredYes,
	"taken back at once":                           answeredYes,
	"unreachable five times":                       answeredYes,
	"never reachable":                              must(notApplied),
	"throttled once":                               answeredYes,
	"throttled for ever":                           must(notApplied),
	"refused once":                                 must(notApplied),
	"refused":                                      must(notApplied),
	"late commit, 2 s after the client's time-out": firstLost,
}

// wantedWriteOnly is the expected result of a run with a write-only destination. A process that dies
// loses its answer: then a repeat decides if copies are recognised, otherwise a reviewer does.
func (r *run) wantedWriteOnly() verdict {
	p := r.cell.powers()
	want := writeOnlyWants[r.cell.fault.name](p)
	if r.point.Fate == crashtest.Lives || slices.Contains(want.may, review) {
		return want
	}
	may := slices.Clone(want.may)
	if slices.Contains(may, notApplied) && r.cell.fault.name == "refused once" {
		may = append(may, reported)
	}
	if !p.native || slices.Contains(may, notApplied) {
		may = append(may, review)
	}
	return verdict{may, whyLostAnswer}
}

// judgeWriteOnly: nothing is read, and nothing is reported that was not answered.
func (r *run) judgeWriteOnly() {
	if r.reads > 0 {
		r.flaw("%s: %d reads of what cannot be read", other, r.reads)
	}
	for _, e := range r.ends {
		switch {
		case e.as == verified:
			r.flaw("%s: verified, and it cannot be read", silentWrong)
		case e.as == reported && e.then.applied == 0 && e.then.lied == 0:
			r.flaw("%s: settled as reported, and there is %s", silentWrong, show(e.then))
		}
	}
}
