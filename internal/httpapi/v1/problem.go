package v1

import (
	"errors"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/service"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/saga"
)

const (
	// maxDetail, maxPlace and maxProblems bound the error in a response, in bytes and in
	// number: a page, the longest valid path, and as many problems as a developer fixes
	// at once.
	maxDetail   = 4 << 10
	maxPlace    = 1 << 10
	maxProblems = 100
)

// Problem is an error as a caller receives it (RFC 9457).
type Problem struct {
	Type   string `json:"type" jsonschema:"the kind of problem; it never changes its meaning"`
	Title  string `json:"title" jsonschema:"the kind in words"`
	Status int    `json:"status" jsonschema:"the status of the answer"`
	Detail string `json:"detail,omitempty" jsonschema:"what is wrong this time, for people"`
	// Field is a JSON Pointer into the body, or the name of a header, of a part of the
	// path, or of a part of the query.
	Field    string           `json:"field,omitempty" jsonschema:"what is wrong: a JSON Pointer into the body, or the name of a header or of a parameter"`
	Problems []intent.Problem `json:"problems,omitempty" jsonschema:"everything that is wrong with an intent"`
	// Known is what is known about the effect of the write concerned.
	Known    string    `json:"known,omitempty" jsonschema:"what is known about the effect of the write: applied, not applied, or unknown"`
	ID       ledger.ID `json:"id,omitempty" jsonschema:"the write that is spoken of"`
	Recorded string    `json:"recorded_digest,omitempty" jsonschema:"the digest of the write that is in the ledger"`
	Received string    `json:"received_digest,omitempty" jsonschema:"the digest of what this request asks for"`
	// Outcome is that of the write that began the operation before.
	Outcome *engine.Outcome `json:"outcome,omitempty" jsonschema:"the state of the write in question"`

	retry int // the Retry-After in seconds; 0 sends none
}

// visible makes every character of what a problem quotes visible.
func (p *Problem) visible() {
	p.Detail, p.Field = visible.Lines(p.Detail), visible.Text(p.Field)
	p.Problems = slices.Clone(p.Problems)
	for i, one := range p.Problems {
		p.Problems[i] = intent.Problem{Path: visible.Text(one.Path), Problem: visible.Lines(one.Problem), Want: visible.Lines(one.Want)}
	}
}

// What a problem can say about an effect.
const (
	knownApplied    = "applied"
	knownNotApplied = engine.KnownNotApplied
	knownNothing    = engine.KnownNothing
)

// problemError is an error of this API itself.
type problemError struct {
	kind   *kind
	field  string
	detail string
	id     ledger.ID
	known  string
}

func (e *problemError) Error() string { return e.detail }

// badField reports a wrong part of a request.
func badField(field, what string) error {
	text := field + " " + what
	if field == "" {
		text = "the body " + what
	}
	return &problemError{kind: invalidRequest, field: field, detail: text}
}

// kindOf maps an error to its kind.
func kindOf(err error) *kind {
	var mine *problemError
	if errors.As(err, &mine) {
		return mine.kind
	}
	if p, ok := service.ProblemOf(err, func(p service.Problem) bool { return p.Type != "" }); ok {
		return kindNamed(p.Type)
	}
	return broken
}

// problemOf describes an error to a caller of this tenant, without what is for the log
// alone and without anything of another tenant.
func problemOf(err error, tenant string) (*kind, Problem) {
	k := kindOf(err)
	p := Problem{Type: k.uri(), Title: k.title, Status: k.status, retry: k.retry}
	if !k.quiet {
		p.Detail = err.Error()
	}
	var (
		mine    *problemError
		known   *engine.Error
		invalid *intent.InvalidError
		plan    *saga.PlanError
		digest  *ledger.DigestMismatchError
		blocked *ledger.BlockedError
		refused *ledger.RefusedError
		many    *access.TooManyError
		limit   *access.LimitError
	)
	if errors.As(err, &many) {
		p.retry = int(math.Ceil(many.After.Seconds()))
	}
	if errors.As(err, &limit) {
		p.retry = int(math.Ceil(limit.After.Seconds()))
	}
	if errors.Is(err, ledger.ErrCursor) {
		p.Field = "after"
	}
	if errors.As(err, &known) {
		// This request has sent nothing, but that does not mean that nothing was sent: it
		// may repeat one that has, which an unreachable ledger cannot show.
		p.ID, p.Known = known.ID, knownNothing
	}
	if errors.As(err, &invalid) {
		p.Problems = invalid.Problems
		p.Field = invalid.Problems[0].Path
	} else if k == invalidIntent || k == unknownDestination {
		p.Field = placeIn(err.Error())
	}
	var outside *engine.ScopeError
	if errors.As(err, &outside) {
		p.Field = outside.Field
	}
	if errors.As(err, &plan) {
		p.Field = plan.Path
	}
	if errors.As(err, &digest) {
		p.ID, p.Recorded, p.Received = digest.ID, digest.Recorded, digest.Received
	}
	if errors.As(err, &blocked) && blocked.Prior.Tenant == tenant {
		out := engine.OutcomeOf(blocked.Prior)
		p.ID, p.Recorded, p.Received, p.Outcome, p.Known = out.ID, blocked.Prior.Digest, blocked.Received, &out, knownOf(out)
	}
	if errors.As(err, &refused) {
		p.ID, p.Known = refused.ID, knownNotApplied
	}
	if errors.As(err, &mine) {
		p.Field, p.ID, p.Known = mine.field, mine.id, mine.known
	}
	if p.Known == "" && k == expired {
		p.Known = knownNotApplied
	}
	if p.Known == "" && (k == unsure || k == slow) {
		p.Known = knownNothing
	}
	return k, p.bounded()
}

// bounded is a problem that repeats only as much of a request as identifies the part: a
// name in a body may be as long as the body.
func (p Problem) bounded() Problem {
	p.Detail, p.Field = visible.Cut(p.Detail, maxDetail), visible.Cut(p.Field, maxPlace)
	p.Problems = slices.Clone(p.Problems[:min(len(p.Problems), maxProblems)])
	for i, each := range p.Problems {
		p.Problems[i] = intent.Problem{Path: visible.Cut(each.Path, maxPlace), Problem: visible.Cut(each.Problem, maxDetail), Want: visible.Cut(each.Want, maxDetail)}
	}
	return p
}

// place finds the path in errors without a path of their own.
var place = regexp.MustCompile(`(?:^|[ :])(/[a-z_]+(?:/[A-Za-z0-9_~-]+)*)[ :]`)

func placeIn(text string) string {
	if found := place.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
}

// knownOf is what an outcome knows about the effect.
func knownOf(out engine.Outcome) string {
	switch out.Status {
	case ledger.Verified:
		return knownApplied
	case ledger.NotApplied, ledger.Denied, ledger.Expired, ledger.StatusHeld:
		return knownNotApplied
	}
	return knownNothing
}

// Refuse responds with a problem of a route that is not one of this API.
func Refuse(w http.ResponseWriter, status int, name, title, known string) {
	_ = write(w, status, problemType, Problem{Type: problemBase + name, Title: title, Status: status, Known: known}) // texts always marshal
}

// refuse responds with a problem.
func refuse(w http.ResponseWriter, k *kind, p Problem) {
	h := w.Header()
	if p.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retry))
	}
	if k == unauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="readback"`)
	}
	if p.ID != "" && p.Status == http.StatusConflict {
		h.Set("Location", pathOfWrite(p.ID))
	}
	_ = write(w, p.Status, problemType, p) // texts always marshal
}
