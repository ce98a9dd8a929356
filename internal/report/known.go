package report

import (
	"encoding/json"
	"fmt"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/ledger"
)

// Known is what the ledger knew of a write at one of its events, that event
// included.
type Known struct {
	Seq int64 `json:"seq"`
	// Verdict is that of the last read or decision. Strength is that of the last read:
	// "strong", "weak" where it may lag behind, "" without a read.
	Verdict  string `json:"verdict,omitempty"`
	Strength string `json:"strength,omitempty"`
	// Records is how many records the last read found.
	Records int `json:"records"`
	// Sends, Unsent and Reads count as those of a [ledger.Record] do.
	Sends  int `json:"sends"`
	Unsent int `json:"unsent,omitempty"`
	Reads  int `json:"reads"`
	// Fate is that of the last send: "unknown" until it is known.
	Fate string `json:"fate,omitempty"`
	// Trace is the W3C trace context of the event, or the write's own if it has none.
	Trace string `json:"trace,omitempty"`
}

// after is what is known after an event.
func (k Known) after(e ledger.Event, own string) Known {
	k.Seq, k.Trace = e.Seq, own
	if e.Trace != "" {
		k.Trace = e.Trace
	}
	if e.Kind == ledger.EvLate { // evidence of a past holder decides nothing
		return k
	}
	if e.Verdict != "" {
		k.Verdict = e.Verdict
	}
	switch e.Kind {
	case ledger.EvRead:
		k.Reads += e.ReadCalls()
		k.Strength, k.Records = strengthOf(e)
	case ledger.EvAnnounced, ledger.EvRestored:
		k.Sends++
		k.Fate = unknownFate
	case ledger.EvRecovered:
		k.Fate = unknownFate
	case ledger.EvSent:
		if k.Fate = e.Fate; k.Fate == ledger.FateUnknown {
			k.Fate = unknownFate
		}
		if fate := connectors.Fate(e.Fate); fate == connectors.FateNotSent || fate == connectors.FateThrottled || fate == connectors.FateLogin {
			k.Unsent++
		}
	}
	return k
}

// unknownFate is the word for the fate of a send whose result is unknown.
const unknownFate = "unknown"

// strengthOf returns the strength of a read and the number of records it found; "" where
// none of it is stored.
func strengthOf(e ledger.Event) (strength string, records int) {
	o, _, ok := Seen(e.Evidence)
	switch {
	case !ok:
		return "", 0
	case o.Strength == connectors.Weak:
		return "weak", len(o.Records)
	}
	return string(o.Strength), len(o.Records)
}

// Seen decodes the stored result of a read. Where none can be shown, cut is a sentence that
// says why, "" if there was none.
func Seen(text json.RawMessage) (o connectors.Observation, cut string, ok bool) {
	var large struct {
		TooLarge int    `json:"too_large"`
		Sum      string `json:"sha256"`
		Digest   string `json:"digest"` // instead of Sum where something may be sensitive
	}
	switch {
	case len(text) == 0:
		return o, "", false
	case json.Unmarshal(text, &large) == nil && large.TooLarge > 0:
		digest := "SHA-256 " + large.Sum
		if large.Digest != "" {
			digest = "digest " + large.Digest
		}
		return o, fmt.Sprintf("What was seen has %d bytes, too many to keep (%s).", large.TooLarge, Clip(digest, maxName)), false
	case json.Unmarshal(text, &o) != nil:
		return o, "What was seen cannot be read: " + raw(text), false
	}
	return o, "", true
}

// text is what was known, for a sentence.
func (k Known) text() string {
	counts := fmt.Sprintf("%s, %s", Count(k.Sends, "send", "sends"), Count(k.Reads, "read", "reads"))
	if k.Unsent > 0 {
		counts = fmt.Sprintf("%s of which %d not taken up, %s", Count(k.Sends, "send", "sends"), k.Unsent, Count(k.Reads, "read", "reads"))
	}
	if k.Fate == unknownFate {
		counts += ", the last send's fate unknown"
	}
	if k.Verdict == "" {
		return counts
	}
	return Clip(k.Verdict, cell) + saw(k.Strength, k.Records) + " after " + counts
}

// saw describes how a verdict was reached.
func saw(strength string, records int) string {
	how := map[string]string{"strong": "a strong read of ", "weak": "a read that may lag of "}[strength]
	if how == "" {
		return ""
	}
	return ", by " + how + Count(records, "record", "records") + ","
}

// decides reports whether an event decides the next state of a write, so that what was
// known then is worth showing.
func decides(e ledger.Event, k Known) bool {
	switch e.Kind {
	case ledger.EvSettled, ledger.EvEscalated, ledger.EvCompensating:
		return k.Sends > 0 || k.Reads > 0
	case ledger.EvAnnounced:
		return k.Sends > 1
	}
	return false
}

// Count is a count in words.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
