package main

import (
	"context"
	"crypto/tls"
	"os"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/workflow/rules"
)

// reloader puts what can be changed under a running server into force when its
// file has changed, or when SIGHUP comes: the rules of the gate, risk rules, the
// limits of destinations, and certificates.
//
// Files are looked at every few seconds: what watches files hears nothing from
// network file systems, and misses files that are put into place by exchanging a
// link, as Kubernetes does.
type reloader struct {
	sv    *serving
	house *house
	// inForce is the configuration that is, read the one that was read last, which
	// may have been refused; looked is what the files of both looked like then.
	inForce, read config.Config
	looked        map[string]stamp
}

// stamp is what a file looks like from outside; the zero value is none.
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

// newReloader looks at the files as they are now: make it when they have just
// been read, and give it its house when there is one.
func newReloader(sv *serving) *reloader {
	r := &reloader{sv: sv, inForce: sv.config, read: sv.config}
	r.looked = r.look()
	return r
}

// look says what the files look like. Those that only a refused configuration
// names are among them: it may be one of them that has to be put right.
func (r *reloader) look() map[string]stamp {
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
	now := r.look()
	for path, s := range now {
		if r.looked[path] != s {
			return true
		}
	}
	return len(now) != len(r.looked)
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

// reload reads everything anew and puts all of it into force, or nothing.
func (r *reloader) reload(ctx context.Context) {
	r.looked = r.look() // before: what changes while it is read is read again
	log := r.house.desk.log
	c, reg, set, pair, err := r.readAll()
	changed := c.Changed(r.inForce)
	if err == nil {
		e := settingsEvent{Event: settingsReloaded, Command: "serve", Changed: changed}
		err = r.sv.app.recordSettings(ctx, r.house.desk, e, c)
	}
	r.house.meter.Reloaded(err == nil)
	defer func() { r.looked = r.also() }()
	if err != nil {
		log.Error("the configuration was read again and is not taken; what was in force stays so", "error", err)
		return
	}
	if set != nil {
		r.house.gate.SetRules(set)
	} else {
		r.house.gate.SetRules(nil)
	}
	r.house.gate.SetRisks(c.Risks)
	r.house.engine.SetRisks(c.Risks)
	if g := r.house.desk.standing.guards; g != nil {
		g.Set(limited(settings(c.Limits()), reg))
	}
	if pair != nil {
		r.sv.certificate.pair.Store(pair)
	}
	if left := restarts(changed); len(left) > 0 {
		log.Warn("the configuration was read again; these settings are changed and need a restart", "settings", strings.Join(left, ", "))
	}
	r.inForce = c
	log.Info("the configuration was read again", "rules", c.Gate.Rules, "risk rules", len(c.Risks))
}

// also is what was looked at, and files that are named now for the first time.
func (r *reloader) also() map[string]stamp {
	now := r.look()
	for path := range now {
		if s, ok := r.looked[path]; ok {
			now[path] = s
		}
	}
	return now
}

// limited are guards with a rate for each destination: that of its profiles where
// none is set, as they are read now, or none. Otherwise a rate that is taken out of
// the configuration would stay, since profiles in force were made with it.
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

// readAll reads the configuration and all that it names and can be changed. What
// was read is there when it fails, too; reg is nil where there is no file.
func (r *reloader) readAll() (c config.Config, reg *connectors.Registry, set *rules.Set, pair *tls.Certificate, err error) {
	c = r.inForce // where there is no file, the rules and the certificate may still have one
	if c.Path != "" {
		c, err = config.LoadOver(c.Path, r.sv.app.environment())
		r.read = c
		r.looked = r.also() // what it names, before that is read
		if err != nil {
			return c, nil, nil, nil, err
		}
		if reg, err = c.Registry(r.sv.app.env); err != nil { // what could not be started with is not taken
			return c, nil, nil, nil, err
		}
	}
	if c.Gate.Rules != "" {
		if set, _, err = gateRules(c); err != nil {
			return c, nil, nil, nil, err
		}
	}
	pair, err = loadPair(c)
	return c, reg, set, pair, err
}

// reloadable are the settings that are taken while a server runs; * stands for
// one name.
var reloadable = []string{"gate.rules", "risk", "destinations.*.rate", "destinations.*.concurrency", "destinations.*.breaker", "server.tls"}

// restarts are those settings that need one.
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
