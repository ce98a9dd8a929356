package command

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/guards"
	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/internal/server"
)

// nearEnd is how long before its end a token should be replaced: two weeks, so that an
// operator on leave has the time.
const nearEnd = 14 * 24 * time.Hour

// securityPage is a report for an auditor: the time, version and configuration, and the
// findings.
type securityPage struct {
	At   time.Time `json:"at"`
	User int       `json:"user"` // the user whose rights the files were compared with
	server.Version
	Configuration string `json:"configuration"`
	config.Digest
	report.Checks
}

func (p *securityPage) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Security of readback %s (%s) at %s, as user %d\n", p.Version.Version, p.Revision, p.At.Format(time.RFC3339), p.User)
	if p.Configuration != "" {
		fmt.Fprintf(&b, "Configuration %s", report.Safe(p.Configuration))
		if p.SHA256 != "" {
			fmt.Fprintf(&b, ", SHA-256 with the files that it names %s", p.SHA256)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n" + p.Checks.Text())
	return b.String()
}

// doctorSecurity checks what an auditor asks for, and writes nothing.
func (a *app) doctorSecurity(ctx context.Context) (int, error) {
	e := &examination{strict: true}
	p := securityPage{At: a.time().UTC().Truncate(time.Second), User: os.Geteuid(), Version: server.Built()}
	c, err := a.settings()
	p.Configuration = c.Path
	examineFiles(e, c)
	if err != nil {
		e.broken("configuration", err)
	} else {
		a.examineBoundaries(ctx, e, c)
		if p.Digest, err = c.Digest(); err != nil {
			e.broken("configuration", err)
		}
	}
	p.Checks = e.Checks
	return e.code, a.print(&p, p.text)
}

// examineBoundaries makes the checks that need a valid configuration.
func (a *app) examineBoundaries(ctx context.Context, e *examination, c config.Config) {
	reg := a.examineRegistry(e, c)
	examineTenants(e, c)
	examineLimits(e, c, reg)
	examinePlaintext(e, c)
	examineProxies(e, c)
	a.examineKeys(e, c)
	examineHeads(e, c)
	examineThisProcess(e, c)
	if len(c.Programs()) == 0 {
		e.ok("programs", "no destination starts one")
	}
	ctx, cancel := context.WithTimeout(ctx, server.LedgerTime)
	defer cancel()
	d, err := a.open(ctx, c, config.OpenOptions{})
	if err != nil {
		examineAbsence(e, c, err)
		return
	}
	defer d.Close()
	examineTokens(ctx, d, e, a.time)
	examineDigests(d, e)
	found, err := readStatus(ctx, d)
	if err != nil {
		e.broken("ledger contents", err)
		return
	}
	examineAudit(e, found)
}

// examineDigests shows how the ledger stores digests of business keys, against which a
// reader of it may test guesses.
func examineDigests(d *server.Instance, e *examination) {
	const name = "business keys"
	switch digests := d.Ledger.KeyDigests(); {
	case digests.Err() != nil:
		e.fail(name, "Add the key to redaction.keys, or put it back.", "%v", digests.Err())
	case digests.SealedBy() == "":
		e.ok(name, "digests of them are %s, as the intents are: there are no redaction keys", digests)
	default:
		e.ok(name, "digests of them are %s", digests)
	}
}

// examineFiles shows who may read and write each file.
func examineFiles(e *examination, c config.Config) {
	files := c.Files()
	if f, ok := c.LedgerFile(); ok {
		files = append(files, f)
	}
	for _, f := range files {
		name := "file"
		if f.Field != "" {
			name += " " + f.Field
		}
		may, ok := f.Access()
		if !ok {
			e.fail(name, "Check the access list of the file: only root, or an administrator, and the user of readback may write it.",
				"%s: this system does not show who may read and write it", f.Path)
			continue
		}
		if why := f.Exposed(); why != "" {
			what, do, _ := strings.Cut(why, "; want ")
			e.fail(name, "Want "+do+".", "%s: mode %04o, user %d: %s", f.Path, may.Mode.Perm(), may.Owner, strings.TrimPrefix(what, f.Path+" "))
			continue
		}
		mounted := ""
		if may.ReadOnly {
			mounted = ", mounted read-only"
		}
		e.ok(name, "%s: mode %04o, user %d%s", f.Path, may.Mode.Perm(), may.Owner, mounted)
	}
}

// examineTenants finds destinations and webhooks that serve more than one tenant: each of
// these acts with the same credentials, or is notified of all their writes.
func examineTenants(e *examination, c config.Config) {
	serves := map[string][]string{}
	for _, d := range c.Destinations {
		serves["destination "+d.Name] = d.Tenants
	}
	for _, w := range c.Webhooks {
		serves["webhook "+w.Name] = w.Tenants
	}
	shared := 0
	for _, name := range slices.Sorted(maps.Keys(serves)) {
		switch of := serves[name]; {
		case of == nil:
			e.fail("tenants", "Name in its `tenants` those whose credentials it has.", "%s serves every tenant", report.Safe(name))
		case len(of) > 1:
			e.fail("tenants", "Give each tenant one of its own, with credentials of its own.", "%s is shared by the tenants %s", report.Safe(name), report.Safe(strings.Join(of, ", ")))
		default:
			continue
		}
		shared++
	}
	if shared == 0 {
		e.ok("tenants", "no destination and no webhook serves more than one tenant")
	}
}

// examineLimits finds destinations to which one agent may send without limit.
func examineLimits(e *examination, c config.Config, reg *connectors.Registry) {
	limits, without := c.Limits(), []string(nil)
	for _, d := range c.Destinations {
		bounded := limits[d.Name].Concurrency > 0
		for _, kind := range kindsOf(reg, d.Name) { // the rate of the profile, from its declaration or the configuration
			if _, p, err := reg.Lookup(d.Name, kind); err == nil && p.Rate.Calls > 0 {
				bounded = true
			}
		}
		if !bounded {
			without = append(without, d.Name)
		}
	}
	if len(without) > 0 {
		e.ok("limits", "%d calls of a process at once and no rate, the default, bound what is sent to: %s", guards.DefaultConcurrency, report.Safe(strings.Join(without, ", ")))
		return
	}
	e.ok("limits", "each destination has a rate or a concurrency")
}

// examinePlaintext finds what others on the network can read.
func examinePlaintext(e *examination, c config.Config) {
	all := c.Plaintext()
	for _, p := range all {
		what, do, _ := strings.Cut(p.Problem, "; want ")
		e.fail("plaintext", "Want "+do+".", "%s: %s", report.Safe(p.Field), report.Safe(what))
	}
	if len(all) == 0 {
		e.ok("plaintext", "no listener and no destination of other machines goes without TLS")
	}
}

// examineProxies checks whether callers behind a proxy can be distinguished.
func examineProxies(e *examination, c config.Config) {
	s := c.Server
	inFront := s.CertFile == "" && (s.Plaintext && !s.Loopback() || strings.HasPrefix(s.PublicURL, "https://"))
	switch {
	case !inFront:
		return
	case len(s.Proxies) == 0:
		e.fail("proxies", "Name the proxy's address in server.trusted_proxies.", "a proxy is in front, as server.plaintext or server.public_url says: all callers have its address, and failed logins of one delay those of the others")
	default:
		e.ok("proxies", "callers have the address that a trusted proxy names")
	}
}

// examineHeads checks whether anything outside of the ledger proves its content.
func examineHeads(e *examination, c config.Config) {
	files, elsewhere := c.HeadPlaces()
	beside := slices.DeleteFunc(slices.Clone(files), func(f string) bool {
		return c.Ledger.Database() || filepath.Dir(f) != filepath.Dir(c.Ledger.File)
	})
	const do = "Say in `audit.heads` which key signs heads and where they are kept: http or objects of another machine, or a file on another disk, where who can write the ledger cannot write (docs/operate/evidence.md)."
	switch {
	case !c.Audit.On():
		e.fail("heads", do, "the events are in no chain: an alteration of the ledger would not be found")
	case !c.Audit.Key.Given():
		e.fail("heads", do, "no key signs the heads of the chain: who can write the ledger can make another chain")
	case len(files) == 0 && !elsewhere:
		e.fail("heads", do, "the key that signs heads has no place outside of the ledger to keep them: an older copy of the ledger would not be found")
	case len(beside) == len(files) && !elsewhere:
		e.fail("heads", do, "heads are kept beside the ledger alone: %s", report.Safe(strings.Join(beside, ", ")))
	default:
		e.ok("heads", "are signed, and kept outside of the ledger")
	}
}

// examineTokens finds tokens that should be replaced soon, that may write everything, or
// that are refused.
func examineTokens(ctx context.Context, d *server.Instance, e *examination, now func() time.Time) {
	good, err := access.NewTokens(d.Ledger, &access.TokenOptions{Now: now, Logger: d.Log}).Good(ctx)
	if err != nil {
		e.broken("tokens", err)
		return
	}
	near := 0
	for _, t := range good {
		if t.NearEnd(now(), nearEnd) {
			near++
			e.fail("tokens", "Make another with `readback token create`, and revoke this one.", "%s of %s, %s of tenant %s, ends at %s",
				t.ID, report.Safe(t.Name), t.Role, report.Safe(t.Tenant), t.Expires.UTC().Format(time.RFC3339))
		}
	}
	if near == 0 {
		e.ok("tokens", "%s good, none near its end", plural(len(good), "token"))
	}
	examineScopes(e, good)
	examinePersonTokens(e, good, d.Config.Server.PersonTokens)
}

// examineScopes finds agents that may write everything of their tenant.
func examineScopes(e *examination, good []access.Token) {
	wide := 0
	for _, t := range good {
		if t.Role == engine.RoleAgent && t.Scope == nil {
			wide++
			e.fail("scopes", "Make another with a scope (`readback token create --destination …`), and revoke this one.", "%s may write everything", tokenOf(t))
		}
	}
	if wide == 0 {
		e.ok("scopes", "the token of every agent has one")
	}
}

// examinePersonTokens finds tokens of people that are refused.
func examinePersonTokens(e *examination, good []access.Token, allowed bool) {
	for _, t := range good {
		if t.Role != engine.RoleAgent && !allowed {
			e.fail("person tokens", "Set `server.person_tokens: true`, or revoke it and let people log in with `server.oidc`.", "%s is refused", tokenOf(t))
		}
	}
}

func tokenOf(t access.Token) string {
	return fmt.Sprintf("%s of %s, %s of tenant %s,", t.ID, report.Safe(t.Name), t.Role, report.Safe(t.Tenant))
}
