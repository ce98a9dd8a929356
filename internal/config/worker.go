package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/ledger"
)

// Retention configures what may be pruned.
type Retention struct {
	// Keep is how long a settled write keeps its intent, evidence and events;
	// [ledger.Forever] keeps them. Default 400 days.
	Keep time.Duration
	// Tenants and Destinations have times of their own, as in [ledger.Prune].
	Tenants, Destinations map[string]time.Duration
	// Remember is how long the keys and the outcome of a settled write are kept. At least
	// as long as everything that is not kept for ever; default 400 days, or that if it is
	// longer.
	Remember time.Duration
	// Every is how often a worker prunes. Default one hour.
	Every time.Duration
	// Default reports that nothing is configured: workers prune by the default, but only
	// after its notice.
	Default bool
	// Line is its line in the file, 0 if it is not set.
	Line int
}

// Queue bounds the waiting writes.
type Queue struct {
	// Waiting bounds the writes of one tenant that wait for one destination, InHand those
	// that callers of one process have in hand at once. Default 0, the engine's own
	// bounds.
	Waiting, InHand int
	// Bytes bounds the intents of one tenant's open writes, for all destinations. Default
	// 0, the engine's own bound.
	Bytes int64
}

// Metrics says where metrics are served.
type Metrics struct {
	// Listen is host and port; "" serves none.
	Listen string
	// Remote allows an address that other machines reach. Default false.
	Remote bool
}

// Prunes reports whether anything is ever pruned.
func (r Retention) Prunes() bool {
	finite := func(keep time.Duration) bool { return keep > 0 && keep != ledger.Forever }
	for _, keeps := range []map[string]time.Duration{r.Tenants, r.Destinations} {
		for _, keep := range keeps {
			if finite(keep) {
				return true
			}
		}
	}
	return finite(r.Keep)
}

// Rule is what a ledger may prune.
func (r Retention) Rule() ledger.Prune {
	return ledger.Prune{Keep: r.Keep, Remember: r.Remember, Tenants: r.Tenants, Destinations: r.Destinations}
}

// retentionOf is the retention of one tenant or destination.
type retentionOf struct {
	At   yamlfile.Place
	Keep keepFor `yaml:"keep"`
}

func (r *reader) retention(e yamlfile.Entry) Retention {
	var s struct {
		Keep         keepFor                `yaml:"keep"`
		Remember     keepFor                `yaml:"remember"`
		Every        age                    `yaml:"every"`
		Tenants      map[string]retentionOf `yaml:"tenants"`
		Destinations map[string]retentionOf `yaml:"destinations"`
	}
	if !r.Fill(e.Value, e.Name, &s) {
		return Retention{Line: e.Line}
	}
	if s.Every == 0 {
		s.Every = age(defaultPruneEvery)
	}
	longest := s.Keep
	for _, all := range []map[string]retentionOf{s.Tenants, s.Destinations} {
		for _, one := range all {
			if time.Duration(one.Keep) != ledger.Forever {
				longest = max(longest, one.Keep)
			}
		}
	}
	if s.Remember == 0 {
		s.Remember = max(keepFor(defaultRemember), longest)
	}
	if s.Keep == 0 {
		r.Say(e.Line, "retention.keep", "is missing; want how long a settled write keeps its intent and evidence, such as 30d, or forever")
	} else {
		r.checkRetained(yamlfile.Place{Line: e.Line, Field: "retention"}, s.Keep, s.Remember)
	}
	return Retention{Keep: time.Duration(s.Keep), Remember: time.Duration(s.Remember), Every: time.Duration(s.Every),
		Tenants: r.retained(s.Tenants, s.Remember), Destinations: r.retained(s.Destinations, s.Remember), Line: e.Line}
}

// retained are the retentions of tenants or destinations.
func (r *reader) retained(all map[string]retentionOf, remember keepFor) map[string]time.Duration {
	var keeps map[string]time.Duration
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one := all[name]
		switch {
		case one.Keep == 0:
			r.At(one.At, "has no keep; want how long its settled writes keep their intent and evidence, such as {keep: 30d}, or forever")
		case time.Duration(one.Keep) != ledger.Forever:
			r.checkRetained(one.At, one.Keep, remember)
		}
		if keeps == nil {
			keeps = map[string]time.Duration{}
		}
		keeps[name] = time.Duration(one.Keep)
	}
	return keeps
}

// checkRetained checks a time for which settled writes keep everything.
func (r *reader) checkRetained(at yamlfile.Place, keep, remember keepFor) {
	switch {
	case time.Duration(keep) < minKeep:
		r.Say(at.Line, at.Field+".keep", "is %s; want at least %s", time.Duration(keep), minKeep)
	case remember < keep && at.Field == "retention":
		r.Say(at.Line, "retention.remember", "is %s; want at least keep, %s", spelled(remember), spelled(keep))
	case remember < keep:
		r.Say(at.Line, at.Field+".keep", "is %s; want at most retention.remember, %s, or forever", spelled(keep), spelled(remember))
	}
}

func spelled(k keepFor) string {
	if time.Duration(k) == ledger.Forever {
		return "forever"
	}
	return time.Duration(k).String()
}

// defaultRetention is the retention if nothing is configured. Keys are kept for longer
// than the rest, and for as long as the gate needs them.
func defaultRetention(g Gate) Retention {
	return Retention{Keep: defaultKeep, Remember: max(defaultKeep+defaultRemember, g.Window), Every: defaultPruneEvery, Default: true}
}

func (r *reader) queue(e yamlfile.Entry) Queue {
	var s struct {
		Waiting count `yaml:"waiting"`
		InHand  count `yaml:"in_hand"`
		Bytes   size  `yaml:"bytes"`
	}
	r.Fill(e.Value, e.Name, &s)
	return Queue{Waiting: int(s.Waiting), InHand: int(s.InHand), Bytes: s.Bytes.bytes}
}

// count is a whole number of at least one: a bound of zero would stop everything, and is
// not what most users mean by 0.
type count int

// FillYAML reads it.
func (c *count) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	var i int
	if r.Fill(n, at.Field, &i) && i < 1 {
		r.At(at, "is 0; want at least 1, or the line taken out")
	}
	*c = count(i)
}

// metrics reads an address, or one with permission to be reached from other machines.
func (r *reader) metrics(e yamlfile.Entry) Metrics {
	var m Metrics
	field := e.Name
	if e.Value.IsMapping() {
		var s struct {
			Listen yamlfile.Text `yaml:"listen"`
			Remote bool          `yaml:"remote"`
		}
		if !r.Fill(e.Value, e.Name, &s) {
			return m
		}
		m, field = Metrics{Listen: s.Listen.Value, Remote: s.Remote}, field+".listen"
	} else if m.Listen = r.Text(e, e.Name); m.Listen == "" {
		return m
	}
	if problem := m.Problem(); problem != "" {
		r.Say(e.Line, field, "%s", problem)
	}
	return m
}

// Problem is what is wrong with the address, and the remedy; "" if nothing is. Metrics
// need no password: they stay on this machine unless the configuration says otherwise.
func (m Metrics) Problem() string {
	host, port, err := net.SplitHostPort(m.Listen)
	if err != nil || port == "" {
		return "is no address; want host:port, such as 127.0.0.1:9464"
	}
	ip := net.ParseIP(host)
	if m.Remote || host == "localhost" || ip != nil && ip.IsLoopback() {
		return ""
	}
	return "can be reached from other machines, and needs no login; want 127.0.0.1:" + port +
		", or {listen: " + yamlfile.Clip(m.Listen) + ", remote: true}"
}

// logForm reads the form of logs.
func (r *reader) logForm(e yamlfile.Entry) string {
	form := r.Text(e, e.Name)
	if form != "" && form != "text" && form != "json" {
		r.Say(e.Line, e.Name, "is %q; want text or json", yamlfile.Clip(form))
	}
	return form
}

// CheckRetention refuses a retention that prunes keys within a window. what names the
// window ("the window of idempotency keys"). It fails with [InvalidError].
func (c Config) CheckRetention(window time.Duration, what string) error {
	if c.Retention.Default || c.Retention.Keep == 0 || c.Retention.Remember >= window {
		return nil
	}
	return invalid(c.Path, []Problem{{Line: c.Retention.Line, Field: "retention.remember",
		Problem: fmt.Sprintf("is %s; want at least %s, %s: a repeat within it would be sent again", c.Retention.Remember, window, what)}})
}
