package server

import (
	"context"
	"crypto/tls"
	"os"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/rules"
)

// reloadEvery is how often files are checked for changes: soon enough for an operator who
// waits, at a negligible cost.
const reloadEvery = 3 * time.Second

// reloader applies the settings that can change under a running server, when their file
// has changed or on SIGHUP: the rules of the gate, risk rules, the limits of
// destinations, and certificates.
//
// Files are polled every few seconds: file watchers get no events from network file
// systems, and miss files that are replaced by exchanging a link, as Kubernetes does.
type reloader struct {
	sv       *server
	services *Services
	// inForce is the configuration in force, read the one that was read last, which may
	// have been refused; stats is the state of the files of both then.
	inForce, read config.Config
	stats         map[string]stamp
}

// stamp is the state of a file, without its content; the zero value is none.
type stamp struct {
	changed time.Time
	size    int64
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// newReloader records the current state of the files: call it when they have just been
// read, and set its services when they exist.
func newReloader(sv *server) *reloader {
	r := &reloader{sv: sv, inForce: sv.Config, read: sv.Config}
	r.stats = r.stat()
	return r
}

// stat returns the state of the files, including those that only a refused configuration
// names: the fix may be in one of them.
func (r *reloader) stat() map[string]stamp {
	all := map[string]stamp{}
	for _, c := range []config.Config{r.inForce, r.read} {
		for _, path := range []string{c.Path, c.Gate.Rules, c.Server.CertFile, c.Server.KeyFile} {
			if path != "" {
				all[path] = stampOf(path)
			}
		}
	}
	return all
}

func (r *reloader) stale() bool {
	now := r.stat()
	for path, s := range now {
		if r.stats[path] != s {
			return true
		}
	}
	return len(now) != len(r.stats)
}

// work reloads until ctx ends.
func (r *reloader) work(ctx context.Context) error {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.sv.asked:
			r.reload(ctx)
		case <-tick.C:
			if r.stale() {
				r.reload(ctx)
			}
		}
	}
}

// reload reads everything again and applies all of it, or nothing.
func (r *reloader) reload(ctx context.Context) {
	r.stats = r.stat() // before the read: a file that changes meanwhile is read again
	log := r.services.Instance.Log
	c, reg, set, pair, err := r.readAll()
	changed := c.Changed(r.inForce)
	if err == nil {
		e := ConfigurationEvent{Event: Reloaded, Command: "serve", Changed: changed}
		err = r.services.Instance.RecordConfiguration(ctx, e, c)
	}
	r.services.meter.Reloaded(err == nil)
	defer func() { r.stats = r.also() }()
	if err != nil {
		r.services.events.Record(access.Event{Event: access.EventReloadRefused, Action: c.Path, Reason: err.Error()})
		log.Error("the configuration was read again and is not taken; what was in force stays so", "error", err)
		return
	}
	if set != nil {
		r.services.gate.SetRules(set)
	} else {
		r.services.gate.SetRules(nil)
	}
	r.services.gate.SetRisks(c.Risks)
	r.services.engine.SetRisks(c.Risks)
	if g := r.services.Instance.guards; g != nil {
		g.Set(limited(c.Limits(), reg))
	}
	if pair != nil {
		r.sv.presented.pair.Store(pair)
	}
	if left := restarts(changed); len(left) > 0 {
		log.Warn("the configuration was read again; these settings are changed and need a restart", "settings", strings.Join(left, ", "))
	}
	r.inForce = c
	log.Info("the configuration was read again", "rules", c.Gate.Rules, "risk rules", len(c.Risks))
}

// also is the recorded state, plus that of files that are named for the first time.
func (r *reloader) also() map[string]stamp {
	now := r.stat()
	for path := range now {
		if s, ok := r.stats[path]; ok {
			now[path] = s
		}
	}
	return now
}

// limited are guards with a rate for each destination: that of its profiles as they are
// read now, or none, where no rate is set. Otherwise a rate that is removed from the
// configuration would stay, since the profiles in force were made with it.
func limited(all map[string]guards.Settings, reg *connectors.Registry) map[string]guards.Settings {
	if reg == nil {
		return all
	}
	for name, s := range all {
		if s.Rate == (connectors.Rate{}) {
			if s.Rate = guards.RateOf(reg, name); s.Rate == (connectors.Rate{}) {
				s.Rate = connectors.Rate{Calls: -1} // none
			}
			all[name] = s
		}
	}
	return all
}

// readAll reads the configuration and everything it names that can change. What was read
// is returned on failure, too; reg is nil where there is no file.
func (r *reloader) readAll() (c config.Config, reg *connectors.Registry, set *rules.Set, pair *tls.Certificate, err error) {
	c = r.inForce // without a file, the rules and the certificate may still have one
	if c.Path != "" {
		c, err = config.LoadOver(c.Path, r.sv.Env)
		c.Commands.Logger = r.services.Instance.Log
		r.read = c
		r.stats = r.also() // the files that it names, before they are read
		if err != nil {
			return c, nil, nil, nil, err
		}
		if reg, err = c.Registry(r.sv.Env.Get); err != nil { // a configuration that could not start is not applied
			return c, nil, nil, nil, err
		}
	}
	if c.Gate.Rules != "" {
		if set, _, err = GateRules(c); err != nil {
			return c, nil, nil, nil, err
		}
	}
	pair, err = LoadCertificate(c)
	return c, reg, set, pair, err
}

// reloadable are the settings that are applied while a server runs; * stands for one
// name.
var reloadable = []string{"gate.rules", "risk", "destinations.*.rate", "destinations.*.concurrency", "destinations.*.breaker", "server.tls"}

// restarts are those settings that need a restart.
func restarts(changed []string) []string {
	var left []string
	for _, path := range changed {
		if !taken(path) {
			left = append(left, path)
		}
	}
	return left
}

func taken(path string) bool {
	for _, pattern := range reloadable {
		if covers(strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' }), strings.Split(pattern, ".")) {
			return true
		}
	}
	return false
}

func covers(path, pattern []string) bool {
	if len(path) < len(pattern) {
		return false
	}
	for i, p := range pattern {
		if p != "*" && p != path[i] {
			return false
		}
	}
	return true
}
