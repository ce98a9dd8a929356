package browsertest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// patience is how long anything may take in a browser on a busy machine before it
// counts as not coming. Nothing waits that long when it is there.
const patience = 30 * time.Second

// person is somebody in a browser of their own: nothing is shared with others,
// no cookie and no storage.
type person struct {
	t     *testing.T
	s     *site
	name  string
	token string // by which they logged in, "" for none
	ctx   context.Context
	seen  *seen
}

// seen is what happened in somebody's browser that must not happen on our pages.
type seen struct {
	mu       sync.Mutex
	dialogs  []string           // that opened
	refused  []string           // by a content security policy
	thrown   []string           // by scripts
	requests []string           // to whom, of all requests over a network
	answers  map[string][]int64 // to requests, by address without its query
	allowed  []string           // hosts that the test has the browser go to
}

func (e *seen) add(list *[]string, what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*list = append(*list, what)
}

// answered notes how a request was answered.
func (e *seen) answered(r *network.Response) {
	e.mu.Lock()
	defer e.mu.Unlock()
	address, _, _ := strings.Cut(r.URL, "?")
	e.answers[address] = append(e.answers[address], r.Status)
}

// hear notes what the browser tells of one tab.
func (e *seen) hear(ctx context.Context) func(any) {
	return func(told any) {
		switch told := told.(type) {
		case *page.EventJavascriptDialogOpening:
			e.add(&e.dialogs, told.Message)
			go func() { _ = chromedp.Run(ctx, page.HandleJavaScriptDialog(false)) }() // the tab waits for it
		case *runtime.EventExceptionThrown:
			e.add(&e.thrown, told.ExceptionDetails.Error())
		case *audits.EventIssueAdded:
			if told.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
				e.add(&e.refused, told.Issue.Details.ContentSecurityPolicyIssueDetails.ViolatedDirective)
			}
		case *log.EventEntryAdded:
			if strings.Contains(told.Entry.Text, "Content Security Policy") {
				e.add(&e.refused, told.Entry.Text)
			}
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(told.Request.URL); err == nil && u.Host != "" {
				e.add(&e.requests, u.Host)
			}
			if told.RedirectResponse != nil {
				e.answered(told.RedirectResponse)
			}
		case *network.EventResponseReceived:
			e.answered(told.Response)
		}
	}
}

// visitor opens a browser for somebody who has not logged in. Whatever the test
// is about: at its end nothing has happened there that must not.
func (s *site) visitor(t *testing.T, name string) *person {
	t.Helper()
	ctx, end := s.window(t)
	p := &person{t: t, s: s, name: name, ctx: ctx, seen: &seen{answers: map[string][]int64{}}}
	t.Cleanup(func() {
		p.harmless()
		end()
	})
	chromedp.ListenTarget(ctx, p.seen.hear(ctx))
	// Not with a deadline: the tab would end with it.
	if err := chromedp.Run(ctx, network.Enable(), audits.Enable(), log.Enable(), emulation.SetFocusEmulationEnabled(true)); err != nil {
		t.Fatal(err)
	}
	return p
}

// unheard drops what chromedp says of events that are newer than it is.
var unheard = chromedp.WithErrorf(func(string, ...any) {})

// window opens a window that shares nothing with the others. (The option of
// chromedp for that wants a window to be there.)
func (s *site) window(t *testing.T) (context.Context, func()) {
	t.Helper()
	in := cdp.WithExecutor(s.browser, chromedp.FromContext(s.browser).Browser)
	own, err := target.CreateBrowserContext().Do(in)
	if err != nil {
		t.Fatal(err)
	}
	id, err := target.CreateTarget("about:blank").WithBrowserContextID(own).WithNewWindow(true).Do(in)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := chromedp.NewContext(s.browser, chromedp.WithTargetID(id))
	return ctx, func() {
		end()
		if err := target.DisposeBrowserContext(own).Do(in); err != nil {
			t.Error(err)
		}
	}
}

// person opens a browser for somebody who logs in with a token of a role.
func (s *site) person(t *testing.T, tenant, role, name string) *person {
	t.Helper()
	p := s.visitor(t, name)
	p.token = s.token(t, tenant, role, name)
	p.open("/login")
	p.do("log in", chromedp.SendKeys("#token", p.token, chromedp.ByQuery), chromedp.Submit("#token", chromedp.ByQuery))
	p.until("the inbox", "location.pathname === '/inbox' && document.readyState === 'complete'")
	return p
}

// harmless fails the test when something happened that must not.
func (p *person) harmless() {
	p.seen.mu.Lock()
	defer p.seen.mu.Unlock()
	own, _ := strings.CutPrefix(p.s.url, "http://")
	provider, _ := strings.CutPrefix(p.s.provider.URL, "http://")
	foreign := slices.DeleteFunc(slices.Clone(p.seen.requests), func(host string) bool {
		return host == own || host == provider || slices.Contains(p.seen.allowed, host)
	})
	for what, all := range map[string][]string{"a dialog opened": p.seen.dialogs, "the page's own policy refused something": p.seen.refused,
		"a script failed": p.seen.thrown, "a request left to another host": foreign} {
		if len(all) > 0 {
			p.t.Errorf("%s: %s: %q", p.name, what, all)
		}
	}
}

// do has somebody do something, in order.
func (p *person) do(what string, actions ...chromedp.Action) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		p.t.Fatalf("%s: %s: %v\n%s", p.name, what, err, p.sight())
	}
}

// sight is what somebody sees, for the message of a failed test.
func (p *person) sight() string {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	var text string
	if err := chromedp.Run(ctx, chromedp.Evaluate("location.href + '\\n' + document.body.innerText", &text)); err != nil {
		return err.Error()
	}
	return text
}

// open goes to a page of the site, or to an address.
func (p *person) open(where string) {
	p.t.Helper()
	if strings.HasPrefix(where, "/") {
		where = p.s.url + where
	}
	p.do("open "+where, chromedp.Navigate(where))
}

// unfollowing lets no page that is opened from here on follow what happens: what is
// remembered of it stays in it.
func (p *person) unfollowing() {
	p.t.Helper()
	p.do("follow nothing", chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument("delete window.EventSource").Do(ctx)
		return err
	}))
}

// look asks the page for something.
func look[T any](p *person, script string) T {
	p.t.Helper()
	var v T
	p.do("look for "+script, chromedp.Evaluate(script, &v))
	return v
}

// asked is how an address was answered, each time.
func (p *person) asked(address string) []int64 {
	p.seen.mu.Lock()
	defer p.seen.mu.Unlock()
	return slices.Clone(p.seen.answers[address])
}

// alarms is what rang so far.
func (p *person) alarms() (all struct{ dialogs, refused, requests []string }) {
	p.seen.mu.Lock()
	defer p.seen.mu.Unlock()
	all.dialogs, all.refused, all.requests = slices.Clone(p.seen.dialogs), slices.Clone(p.seen.refused), slices.Clone(p.seen.requests)
	return all
}

// forgive takes what a test did on purpose: that other hosts were asked, and what
// rang for that.
func (p *person) forgive(hosts ...string) {
	p.seen.mu.Lock()
	defer p.seen.mu.Unlock()
	p.seen.allowed = append(p.seen.allowed, hosts...)
	p.seen.refused, p.seen.thrown, p.seen.dialogs = nil, nil, nil
}

// awaited has a script's promise waited for.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// waitFor waits until something is so outside of the page.
func (p *person) waitFor(what string, is func() bool) {
	p.t.Helper()
	again, late := time.NewTicker(20*time.Millisecond), time.NewTimer(patience)
	defer again.Stop()
	defer late.Stop()
	for !is() {
		select {
		case <-again.C:
		case <-late.C:
			p.t.Fatalf("%s waited in vain for %s, and sees\n%s", p.name, what, p.sight())
		}
	}
}

// until waits until something is so on the page, which may be another one by
// then. (chromedp.Poll ends with the page, and a strict policy refuses it.)
func (p *person) until(what, script string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	again := time.NewTicker(40 * time.Millisecond)
	defer again.Stop()
	for {
		var is bool
		err := chromedp.Run(ctx, chromedp.Evaluate("Boolean("+script+")", &is))
		if err == nil && is {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			p.t.Fatalf("%s waited in vain for %s (%v), and sees\n%s", p.name, what, err, p.sight())
		}
	}
}

// text waits for a text on the page.
func (p *person) text(want string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%q", want), fmt.Sprintf("document.body.innerText.includes(%s)", quoted(want)))
}

// refinding repeats an action on an element that a live update of the page replaced after it was looked
// up. The browser refuses such an action before it clicks or types.
func refinding(action chromedp.Action) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			err := action.Do(ctx)
			var refused *cdproto.Error
			if ctx.Err() != nil || !errors.As(err, &refused) || refused.Message != "Could not find node with given id" {
				return err
			}
		}
	})
}

func (p *person) click(selector string) {
	p.t.Helper()
	p.do("click "+selector, refinding(chromedp.Click(selector, chromedp.ByQuery)))
}

func (p *person) write(selector, text string) {
	p.t.Helper()
	p.do("write into "+selector, refinding(chromedp.SendKeys(selector, text, chromedp.ByQuery)))
}

func (p *person) press(keys string) {
	p.t.Helper()
	p.do("press keys", chromedp.KeyEvent(keys))
}
