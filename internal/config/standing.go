package config

import (
	"fmt"
	"net"
	"time"

	"github.com/readback-go/readback/internal/yamlfile"
)

// Retention says what may be forgotten.
type Retention struct {
	// Keep is how long a settled write keeps its intent, evidence and events; 0
	// keeps everything for ever.
	Keep time.Duration
	// Remember is how long the keys and the outcome of a settled write stay
	// known. At least Keep; default 400 days, or Keep where that is longer.
	Remember time.Duration
	// Every is how often a worker prunes. Default one hour.
	Every time.Duration
	// Line is where it stands in the file, 0 when it does not.
	Line int
}

// Queue bounds what may wait.
type Queue struct {
	// Waiting bounds the writes of one tenant that wait for one destination,
	// InHand those that callers of one process have in hand at once. Default 0,
	// the engine's own bounds.
	Waiting, InHand int
}

// Metrics says where numbers are served.
type Metrics struct {
	// Listen is host and port; "" serves none.
	Listen string
	// Remote allows an address that other machines reach. Default false.
	Remote bool
}

type retentionSettings struct {
	Keep     age `yaml:"keep"`
	Remember age `yaml:"remember"`
	Every    age `yaml:"every"`
}

func (r *reader) retention(e yamlfile.Entry) Retention {
	var s retentionSettings
	if !r.Fill(e.Value, e.Name, &s) {
		return Retention{}
	}
	if s.Every == 0 {
		s.Every = age(defaultPruneEvery)
	}
	if s.Remember == 0 {
		s.Remember = max(age(defaultRemember), s.Keep)
	}
	switch {
	case s.Keep == 0:
		r.Say(e.Line, "retention.keep", "is missing; want how long a settled write keeps its intent and evidence, such as 30d")
	case time.Duration(s.Keep) < minKeep:
		r.Say(e.Line, "retention.keep", "is %s; want at least %s", time.Duration(s.Keep), minKeep)
	case s.Remember < s.Keep:
		r.Say(e.Line, "retention.remember", "is %s; want at least keep, %s", time.Duration(s.Remember), time.Duration(s.Keep))
	}
	return Retention{Keep: time.Duration(s.Keep), Remember: time.Duration(s.Remember), Every: time.Duration(s.Every), Line: e.Line}
}

func (r *reader) queue(e yamlfile.Entry) Queue {
	var s struct {
		Waiting count `yaml:"waiting"`
		InHand  count `yaml:"in_hand"`
	}
	r.Fill(e.Value, e.Name, &s)
	return Queue{Waiting: int(s.Waiting), InHand: int(s.InHand)}
}

// count is a whole number of at least one: a bound of nothing would stop
// everything, and is not what 0 means to most people.
type count int

// FillYAML reads it.
func (c *count) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	var i int
	if r.Fill(n, at.Field, &i) && i < 1 {
		r.At(at, "is 0; want at least 1, or the line taken out")
	}
	*c = count(i)
}

// metrics reads an address, or one with leave to be reached from elsewhere.
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

// Problem says what is wrong with the address, and what would be right; "" when
// nothing is. What is served needs no password: it stays on this machine unless
// the configuration says otherwise.
func (m Metrics) Problem() string {
	host, port, err := net.SplitHostPort(m.Listen)
	if err != nil || port == "" {
		return "is no address; want host:port, such as 127.0.0.1:9464"
	}
	ip := net.ParseIP(host)
	if m.Remote || host == "localhost" || ip != nil && ip.IsLoopback() {
		return ""
	}
	return "can be reached from other machines, and asks nobody who they are; want 127.0.0.1:" + port +
		", or {listen: " + yamlfile.Clip(m.Listen) + ", remote: true}"
}

// logForm reads how logs are written.
func (r *reader) logForm(e yamlfile.Entry) string {
	form := r.Text(e, e.Name)
	if form != "" && form != "text" && form != "json" {
		r.Say(e.Line, e.Name, "is %q; want text or json", yamlfile.Clip(form))
	}
	return form
}

// CheckRetention refuses a retention that forgets keys within a window, which
// is said in words ("the window of idempotency keys"). It fails with
// [InvalidError].
func (c Config) CheckRetention(window time.Duration, what string) error {
	if c.Retention.Keep == 0 || c.Retention.Remember >= window {
		return nil
	}
	return invalid(c.Path, []Problem{{Line: c.Retention.Line, Field: "retention.remember",
		Problem: fmt.Sprintf("is %s; want at least %s, %s: a repeat within it would be sent again", c.Retention.Remember, window, what)}})
}
