package report

import (
	"fmt"
	"time"
)

// sealedLate is how long an event may wait to be sealed before an operator is notified.
// Sealing runs about once a second, a backlog of many thousand events takes seconds,
// another worker takes over within half a minute, and a sealer run by a timer runs every
// few minutes.
const sealedLate = 5 * time.Minute

// Audit is the state of the audit log. The head is as the ledger stores it: the signature
// is not checked here.
type Audit struct {
	// Configured says that this configuration asks for sealing.
	Configured bool `json:"configured"`
	// Problem is why the state of the log is not known; all else is zero then.
	Problem string `json:"problem,omitempty"`
	// Unsealed counts the commits that are not sealed. More says that there are more.
	Unsealed int  `json:"unsealed"`
	More     bool `json:"more,omitempty"`
	Unread   int  `json:"unread,omitempty"`
	// Oldest is the time of the oldest of them, Sealer the last sign of life of a sealer,
	// both on the ledger's clock.
	Oldest time.Time `json:"oldest_unsealed,omitzero"`
	Sealer time.Time `json:"sealer_seen,omitzero"`
	// Tenant is the owner of the chain that all below describes.
	Tenant  string    `json:"tenant"`
	Chained bool      `json:"chained"`
	HeadAt  time.Time `json:"head_signed,omitzero"`
	HeadKey string    `json:"head_key,omitempty"`
	BadHead string    `json:"head_problem,omitempty"`
	// Ahead describes the signed heads, of any tenant, that the ledger does not reach and
	// no operator has acknowledged: it is an older copy. NotCompared is why that is not
	// known.
	Ahead       []string `json:"ahead,omitempty"`
	NotCompared string   `json:"not_compared,omitempty"`
}

// AuditMatters lists what an operator should see to in the audit log.
func AuditMatters(f Found) []Matter {
	a, now := f.Audit, f.QueueStats.Now
	if a == nil {
		return nil
	}
	var older []Matter
	for _, what := range a.Ahead {
		older = append(older, matters("The ledger is an older copy: %s. The next worker that starts stops all sends.",
			"Run `readback audit verify --heads FILE --key FILE` and `readback recover --since TIME --reason TEXT`, find out at the destinations what was sent since, and only then release the stop.", Clip(what, maxText))...)
	}
	if a.NotCompared != "" {
		older = append(older, matters("Whether the ledger is an older copy is not known: %s", "See that the files of heads are there and can be read. If the key of heads was changed, name a new file in audit.heads.keep and keep the old one.", Clip(a.NotCompared, maxText))...)
	}
	return append(older, a.sealing(now)...)
}

// sealing lists what an operator should see to in the chain itself.
func (a Audit) sealing(now time.Time) []Matter {
	const seal = "See that `readback serve` or `readback work` runs with the section audit in its configuration and can reach the ledger, and read its log; `readback audit seal` seals once and says what is wrong. Until it is sealed an event can be altered unseen."
	gone := a.Sealer.IsZero() || now.Sub(a.Sealer) >= sealedLate
	var all []Matter
	switch {
	case a.Problem != "":
		all = matters("The state of the audit log could not be read: %s", "See that this program and the ledger are of one version.", Clip(a.Problem, maxText))
	case !a.Oldest.IsZero() && now.Sub(a.Oldest) >= sealedLate:
		all = matters("The audit log is behind: %s.", seal, a.behind(now))
	case (a.Unsealed > 0 || a.More) && a.Oldest.IsZero() && gone:
		all = matters("No process seals the audit log: %s.", seal, a.behind(now))
	case a.Configured && !a.Chained && gone:
		all = matters("No process seals the audit log, which is configured: tenant %s has no chain yet.", seal, Safe(a.Tenant))
	}
	if a.BadHead != "" {
		all = append(all, matters("The newest head of the audit log of tenant %s cannot be read: %s", "`readback audit verify` says more.", Safe(a.Tenant), Clip(a.BadHead, maxText))...)
	}
	return all
}

// behind describes what is not sealed, in words.
func (a Audit) behind(now time.Time) string {
	switch {
	case a.Unsealed == 0:
		return "everything is sealed"
	}
	text := fmt.Sprintf("%d not sealed", a.Unsealed)
	if a.More {
		text = "more than " + text
	}
	if a.Unread > 0 {
		text += fmt.Sprintf(", %d of them cannot be read", a.Unread)
	}
	if !a.Oldest.IsZero() {
		text += ", the oldest from " + Ago(a.Oldest, now)
	}
	return text
}

// Text describes the state of the audit log in one sentence.
func (a Audit) Text(now time.Time) string {
	if a.Problem != "" {
		return "not known: " + Clip(a.Problem, maxText)
	}
	text := a.behind(now)
	switch {
	case !a.HeadAt.IsZero():
		text += fmt.Sprintf("; tenant %s: newest head signed %s with key %s", Safe(a.Tenant), Ago(a.HeadAt, now), Clip(a.HeadKey, maxValue))
	case a.Chained:
		text += fmt.Sprintf("; tenant %s: no head was signed", Safe(a.Tenant))
	default:
		text += fmt.Sprintf("; tenant %s has no chain", Safe(a.Tenant))
	}
	return text
}

func (s Status) audit(now time.Time) string {
	if s.Audit == nil {
		return ""
	}
	return "  " + s.Audit.Text(now) + "\n"
}
