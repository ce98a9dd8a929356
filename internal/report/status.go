package report

import (
	"time"

	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
)

// Found is the state of a ledger and of the workers on it.
type Found struct {
	Ledger     string // its name
	Version    Version
	Clock      Clock
	QueueStats ledger.QueueStats
	Status     guards.InForce
	Lags       []lag.PathLag
	// Holds counts the held writes whose time is short or over, by tenant.
	Holds map[string]Holds
	// Serves reports whether the configuration has a destination, for a tenant. Default
	// it has none.
	Serves func(tenant, destination string) bool
	// Audit is the state of the audit log; nil where there is none.
	Audit *Audit
	// Retention is what the default retention prunes, "" where one is configured.
	Retention string
	// Restore is the last restore of the ledger; zero if there was none.
	Restore ledger.Restore
}

// Version is the version of a ledger, and the newest that this program knows; 0 where it
// is not known.
type Version struct {
	Ledger  int `json:"ledger"`
	Program int `json:"program"`
}

// Clock compares this machine's clock with the ledger's.
type Clock struct {
	Ledger time.Time `json:"ledger"`
	// Ahead is how far this machine's clock is ahead of the ledger's, in seconds,
	// negative when it is behind, give or take Within.
	Ahead  float64 `json:"machine_ahead_seconds"`
	Within float64 `json:"within_seconds"`
}

// Status is the state of a ledger and of the workers on it, for machines and for an
// operator. It never holds an intent, and at most a sentence of a destination's response.
type Status struct {
	Ledger  string  `json:"ledger"`
	Version Version `json:"version"`
	Clock   Clock   `json:"clock"`
	// Attention lists what an operator should see to, the most urgent first.
	Attention    []Matter         `json:"attention"`
	Queues       []ledger.Queue   `json:"queues"`
	Outbox       Outbox           `json:"outbox"`
	Damaged      []ledger.Refused `json:"damaged"`
	Destinations []Destination    `json:"destinations"`
	Stops        []Stop           `json:"stops"`
	Lags         []Lag            `json:"lags"`
	// Audit is nil where nothing is sealed or to be sealed.
	Audit *Audit `json:"audit,omitempty"`
	// Retention is what the default retention prunes, "" where one is configured.
	Retention string `json:"retention,omitempty"`
}

// Matter is one thing to see to.
type Matter struct {
	What string `json:"what"`
	// Do is the remedy, a command where there is one.
	Do string `json:"do"`
}

// Outbox is what was enqueued and has not left the outbox yet.
type Outbox struct {
	Count   int              `json:"count"`
	Oldest  time.Time        `json:"oldest,omitzero"`
	Refused []ledger.Refused `json:"refused"`
}

// Destination is the state of the guards of a destination.
type Destination struct {
	Name         string    `json:"name"`
	Breaker      string    `json:"breaker"`
	BreakerSince time.Time `json:"breaker_since,omitzero"`
	BreakerUntil time.Time `json:"breaker_until,omitzero"`
	BreakerWhy   string    `json:"breaker_why,omitempty"`
	LoginRefused time.Time `json:"login_refused_since,omitzero"`
	PausedUntil  time.Time `json:"paused_until,omitzero"`
	PausedWhy    string    `json:"paused_why,omitempty"`
	UnderWay     int       `json:"under_way"`
	Concurrency  int       `json:"concurrency,omitempty"`
	RateCalls    int       `json:"rate_calls,omitempty"`
	RateSeconds  float64   `json:"rate_seconds,omitempty"`
	Damaged      []string  `json:"damaged,omitempty"`
}

// Stop is a kill switch, or the record of a past one.
type Stop struct {
	Scope       string    `json:"scope"`
	Tenant      string    `json:"tenant,omitempty"`
	Destination string    `json:"destination,omitempty"`
	Tool        string    `json:"tool,omitempty"`
	Active      bool      `json:"active"`
	By          string    `json:"by"`
	Reason      string    `json:"reason"`
	At          time.Time `json:"at,omitzero"`
	Damaged     bool      `json:"damaged,omitempty"`
}

// Lag is a [lag.PathLag]; times in seconds.
type Lag struct {
	Destination string  `json:"destination"`
	Kind        string  `json:"kind"`
	Path        string  `json:"path,omitempty"`
	Writes      float64 `json:"writes"`
	P50         float64 `json:"p50_seconds"`
	P90         float64 `json:"p90_seconds"`
	P99         float64 `json:"p99_seconds"`
}

// NewStatus makes a Status of what was found.
func NewStatus(f Found) Status {
	s := Status{
		Ledger: f.Ledger, Version: f.Version, Clock: f.Clock, Attention: attention(f),
		Queues: append([]ledger.Queue{}, f.QueueStats.Queues...), Damaged: append([]ledger.Refused{}, f.QueueStats.Damaged...), Destinations: []Destination{}, Stops: Stops(f.Status.Stops), Lags: []Lag{},
		Audit: f.Audit, Retention: f.Retention,
		Outbox: Outbox{Count: f.QueueStats.Outbox, Oldest: f.QueueStats.Oldest, Refused: append([]ledger.Refused{}, f.QueueStats.Refused...)},
	}
	for _, d := range f.Status.Destinations {
		one := Destination{Name: d.Name, Breaker: d.Breaker.State, PausedUntil: d.Pause, PausedWhy: d.PauseWhy, UnderWay: d.InUse(),
			Concurrency: d.Limit, RateCalls: d.Rate.Calls, RateSeconds: d.Rate.Per.Seconds(), Damaged: d.Damaged}
		if d.Breaker.State != "closed" {
			one.BreakerSince, one.BreakerUntil, one.BreakerWhy = d.Breaker.Since, d.Breaker.Until, d.Breaker.Why
			one.LoginRefused = d.Breaker.Login
		}
		s.Destinations = append(s.Destinations, one)
	}
	for _, l := range f.Lags {
		s.Lags = append(s.Lags, Lag{l.Destination, l.Kind, l.Path, l.Count, l.P50.Seconds(), l.P90.Seconds(), l.P99.Seconds()})
	}
	return s
}

// Stops are the kill switches, those in force first.
func Stops(all []guards.Stopped) []Stop {
	list := []Stop{}
	for _, s := range all {
		last := s.Last()
		list = append(list, Stop{Scope: s.Scope.String(), Tenant: s.Tenant, Destination: s.Destination, Tool: s.Tool,
			Active: s.Active, By: last.By, Reason: last.Reason, At: last.At, Damaged: s.Damaged})
	}
	return list
}
