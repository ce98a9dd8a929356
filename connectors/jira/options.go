package jira

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	lib "github.com/andygrunwald/go-jira"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/intent"
)

// The kinds of record.
const (
	KindIssue   = "issue"
	KindComment = "comment"
)

// Deployment is one of the two kinds of Jira, whose lookups differ.
type Deployment string

// The deployments. The zero value requests it from Jira once (serverInfo) and caches it.
const (
	Ask        Deployment = ""
	Cloud      Deployment = "cloud"
	DataCenter Deployment = "datacenter"
)

// Options define the Jira, the login, and the assumed lag of its index. URL and Token are
// required; every other zero value is the cautious one.
type Options struct {
	// URL is the base address: "https://example.atlassian.net",
	// "https://api.atlassian.com/ex/jira/CLOUD-ID", "https://jira.example.org/jira". http is
	// accepted for loopback addresses only. Required.
	URL string
	// User is the login of basic authentication: the e-mail address of the API token on Cloud,
	// the user name on Data Center. Default: Token is sent as a bearer token (OAuth 2.0 on Cloud,
	// a personal access token on Data Center).
	User string
	// Token fetches the API token, password or bearer token for each call.
	// Required.
	Token func(ctx context.Context) (string, error)
	// Deployment sets what is otherwise requested. Default [Ask].
	Deployment Deployment

	// Property is the key of the entity property that holds the stamp and the
	// reference. Default "readback".
	Property string
	// Settle is how long the search index may lag. Default 5 min; negative means undeclared: an
	// empty search then never proves absence.
	Settle time.Duration
	// Horizon is how long a write may still be applied after we gave up. Default 5 min; negative
	// means undeclared.
	Horizon time.Duration
	// SendTimeout and ReadTimeout bound one write and one read, all their
	// calls together. Default 30 s each.
	SendTimeout, ReadTimeout time.Duration

	// StickySession keeps the cookies of a Data Center's load balancer, so that a search goes to
	// the node that took the write, whose index lags least. Reads stay weak. Default false.
	StickySession bool
	// BrowseURL is where users find issues, if not at URL.
	BrowseURL string

	// Project, IssueType and Issue are for samples for measuring, in a sandbox: the project and
	// type of sample issues, and the issue that takes sample comments. Probe checks that Project
	// is visible. Default: no samples, IssueType "Task".
	Project, IssueType, Issue string

	// Transport carries the requests. Default: an http.Transport of the
	// connector's own.
	Transport http.RoundTripper
}

// Connector is one Jira as a destination. It is safe for concurrent use.
type Connector struct {
	o      Options
	lib    *lib.Client
	base   string
	browse string
	known  atomic.Value // Deployment, once it is known
}

var (
	_ connectors.Connector  = (*Connector)(nil)
	_ connectors.BulkReader = (*Connector)(nil)
	_ connectors.Checker    = (*Connector)(nil)
	_ connectors.Inverter   = (*Connector)(nil)
	_ connectors.Sampler    = (*Connector)(nil)
	_ connectors.Prober     = (*Connector)(nil)
)

var propertyForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// New checks the options. It does no I/O. The error names the option.
func New(o Options) (*Connector, error) {
	if o.Property == "" {
		o.Property = "readback"
	}
	if o.IssueType == "" {
		o.IssueType = "Task"
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = defaultReadTimeout
	}
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", errOptions, err)
	}
	c := &Connector{o: o, base: strings.TrimRight(o.URL, "/") + "/"}
	c.browse = c.base
	if o.BrowseURL != "" {
		c.browse = strings.TrimRight(o.BrowseURL, "/") + "/"
	}
	once := &carrier{o: o, http: httpsend.New(&httpsend.Options{Transport: o.Transport, MaxBody: maxBody, Timeout: o.ReadTimeout})}
	if o.StickySession {
		jar, err := cookiejar.New(nil)
		if err != nil {
			return nil, fmt.Errorf("%w: the option StickySession: %w", errOptions, err)
		}
		once.jar = jar
	}
	client, err := lib.NewClient(once, c.base)
	if err != nil {
		return nil, fmt.Errorf("%w: the option URL: %w", errOptions, err)
	}
	c.lib = client
	return c, nil
}

func (o Options) check() error {
	for _, a := range []struct{ name, value string }{{"URL", o.URL}, {"BrowseURL", o.BrowseURL}} {
		if a.name == "BrowseURL" && a.value == "" {
			continue
		}
		if err := checkURL(a.name, a.value); err != nil {
			return err
		}
	}
	switch {
	case o.Token == nil:
		return fmt.Errorf("the option Token is missing; want a function that fetches the token")
	case o.Deployment != Ask && o.Deployment != Cloud && o.Deployment != DataCenter:
		return fmt.Errorf("the option Deployment is %q; want %q, %q or none", o.Deployment, Cloud, DataCenter)
	case !propertyForm.MatchString(o.Property):
		return fmt.Errorf("the option Property is %q; want 1 to 100 letters, digits, dots, dashes and underscores", o.Property)
	case o.Project != "" && !projectForm.MatchString(o.Project):
		return fmt.Errorf("the option Project is %q; want a project key in capital letters, OPS for example", o.Project)
	case o.Issue != "" && !issueKeyForm.MatchString(o.Issue):
		return fmt.Errorf("the option Issue is %q; want the key of an issue, OPS-12 for example", o.Issue)
	case o.SendTimeout < 0:
		return fmt.Errorf("the option SendTimeout is %v; want a duration, or 0 for the default", o.SendTimeout)
	case o.ReadTimeout < 0:
		return fmt.Errorf("the option ReadTimeout is %v; want a duration, or 0 for the default", o.ReadTimeout)
	}
	return nil
}

func checkURL(name, value string) error {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return fmt.Errorf("the option %s is no address; want https://host, with a path if Jira has one", name)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("the option %s has a user, a query or a fragment; want https://host and a path alone", name)
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return fmt.Errorf("the option %s is http; want https: the token would cross a network in the clear", name)
	}
	return nil
}

// loopback is true only for what cannot leave this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Profiles is what Jira can do, by kind of record.
func (c *Connector) Profiles() map[string]connectors.Profile {
	issue := connectors.Profile{
		// An update has the issue in its key, and no project.
		Summary: connectors.Summary{Text: "an issue in {project}[: {subject}]", Subject: "/summary"},
		Writes:  []intent.WriteType{intent.Create, intent.Update, intent.Delete},
		// A delete addresses the id of one issue, and ids are never used again: a repeat deletes
		// the same issue or none. An update may be a transition, and a duplicate runs twice if
		// the workflow leads from a status to itself, as one that is open to all statuses does.
		Unique:  []intent.WriteType{intent.Delete},
		Stamped: true,
		Settle:  connectors.WithinOr(c.o.Settle, defaultSettle),
		Horizon: connectors.WithinOr(c.o.Horizon, defaultHorizon),
		// The index may not show a second issue of ours yet when the first is verified: read
		// again when it has caught up.
		Recheck:  connectors.WithinOr(c.o.Settle, defaultSettle),
		Volatile: []string{"/updated"},
		Compare:  comparisons(),
		Undo:     []intent.WriteType{intent.Create, intent.Update},
		Reads: []connectors.ReadPath{
			{Path: pathGet, By: "ref", Strength: connectors.Strong},
			{Path: pathSearch, By: "key"},
			{Path: pathSearch, By: "stamp"},
		},
		SendTimeout: c.o.SendTimeout, ReadTimeout: c.o.ReadTimeout,
	}
	comment := issue
	comment.Summary = connectors.Summary{Text: "a comment on {issue}[: {subject}]", Subject: "/body"}
	comment.Unique = []intent.WriteType{intent.Update, intent.Delete} // by the id of the comment, with given values
	comment.Settle, comment.Recheck = connectors.Within(0), connectors.Bound{}
	comment.Volatile = []string{"/updated", "/updateAuthor"}
	comment.Reads = []connectors.ReadPath{
		{Path: pathGet, By: "ref", Strength: connectors.Strong},
		{Path: pathList, By: "key", Strength: connectors.Strong},
		{Path: pathList, By: "stamp", Strength: connectors.Strong},
	}
	comment.Compare = map[string]intent.Comparison{
		"/body": {{Name: intent.RuleTrim}, {Name: intent.RuleCRLF}}, "/visibility": {{Name: intent.RuleEmpty}},
		"/created": {{Name: intent.RuleTime}}, "/updated": {{Name: intent.RuleTime}},
	}
	if c.o.Deployment != DataCenter {
		issue.BulkLimit = bulkLimit
	}
	return map[string]connectors.Profile{KindIssue: issue, KindComment: comment}
}

func comparisons() map[string]intent.Comparison {
	text := intent.Comparison{{Name: intent.RuleTrim}, {Name: intent.RuleCRLF}, {Name: intent.RuleEmpty}}
	set, empty, moment := intent.Comparison{{Name: intent.RuleSet}}, intent.Comparison{{Name: intent.RuleEmpty}}, intent.Comparison{{Name: intent.RuleTime}}
	return map[string]intent.Comparison{
		"/summary": {{Name: intent.RuleTrim}}, "/description": text, "/environment": text,
		"/labels": set, "/components": set, "/fixVersions": set, "/versions": set,
		"/assignee": empty, "/reporter": empty, "/duedate": empty, "/priority": empty, "/parent": empty, "/resolution": empty,
		"/created": moment, "/updated": moment, "/resolutiondate": moment,
	}
}
