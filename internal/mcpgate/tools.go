package mcpgate

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/internal/mcpapi"
)

// class says how the gateway treats a tool.
type class string

const (
	reads     class = "reads"      // passes through
	verified  class = "verified"   // is verified by a contract
	writeOnly class = "write-only" // is sent once and never verified
	hidden    class = "hidden"     // is not shown
)

// shown is a tool as it is listed now.
type shown struct {
	class  class
	digest string
	tool   *sdk.Tool // as the upstream server lists it, made visible
}

// refresh asks the upstream server for its tools if the list is old, and lists them again
// if something has changed. If the server cannot be reached, the list stays: a call
// reports that.
func (g *Gateway) refresh(ctx context.Context) {
	select {
	case g.listing <- struct{}{}:
		defer func() { <-g.listing }()
	case <-ctx.Done():
		return
	}
	tools, err := g.client.Tools(ctx, false)
	if err != nil {
		g.log.WarnContext(ctx, "the tools of the server cannot be listed", "error", err)
		return
	}
	now := map[string]shown{}
	for _, t := range tools {
		c, why := g.config.classify(t, tools)
		g.say(t.Name, c, why)
		if c == hidden {
			continue
		}
		d, err := mcp.Digest(t)
		if err != nil {
			g.say(t.Name, hidden, fmt.Errorf("it cannot be written as JSON: %w", err))
			continue
		}
		clean, err := visibleTool(t)
		if err != nil {
			g.say(t.Name, hidden, err)
			continue
		}
		now[t.Name] = shown{c, d, clean}
	}
	g.list(now)
}

// list updates the tools that clients see.
func (g *Gateway) list(now map[string]shown) {
	g.mu.Lock()
	before := g.shown
	g.shown = now
	g.mu.Unlock()
	var gone []string
	for name := range before {
		if _, there := now[name]; !there {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		g.full.RemoveTools(gone...)
	}
	for name, s := range now {
		if old, there := before[name]; there && old.class == s.class && old.digest == s.digest {
			continue
		}
		if err := g.add(s); err != nil {
			g.say(name, hidden, err)
			g.mu.Lock()
			delete(g.shown, name)
			g.mu.Unlock()
			g.full.RemoveTools(name)
		}
	}
}

// add lists a tool. The library panics at tools that it cannot list.
func (g *Gateway) add(s shown) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be listed: %v", p)
		}
	}()
	switch s.class {
	case reads:
		g.full.AddTool(s.tool, g.pass)
	case verified:
		check, err := schemaOf(s.tool)
		if err != nil {
			g.log.Warn("the schema of a tool is not understood; its arguments are checked by its contract alone", "tool", s.tool.Name, "error", err)
		}
		g.full.AddTool(g.describe(s), g.verified(s.tool, check))
	case writeOnly:
		g.full.AddTool(g.describe(s), g.unverified(s.tool))
	}
	return nil
}

// say logs why a tool is hidden or withdrawn, once.
func (g *Gateway) say(name string, c class, why error) {
	text := string(c)
	if why != nil {
		text += ": " + why.Error()
	}
	g.mu.Lock()
	again := g.logged[name] == text
	g.logged[name] = text
	g.mu.Unlock()
	switch {
	case again:
	case why != nil:
		g.log.Warn("a tool is not shown", "tool", name, "reason", why)
	default:
		g.log.Info("a tool is shown", "tool", name, "as", string(c))
	}
}

// classify classifies a tool; the error is why it is not shown.
func (c *Config) classify(t *sdk.Tool, all []*sdk.Tool) (class, error) {
	contract := c.Connector.Contract()
	outcome := mcpapi.OutcomeToolName
	_, _, contracted := contract.Target(t.Name)
	switch {
	case slices.Contains(c.Hide, t.Name):
		return hidden, fmt.Errorf("the configuration hides it")
	case t.Name == outcome:
		return hidden, fmt.Errorf("it is called as a tool of readback")
	case !nameForm.MatchString(t.Name):
		return hidden, fmt.Errorf("its name has other characters than letters, digits, _, - and ., or more than 128")
	case !contracted && alike(t.Name, outcome):
		return hidden, fmt.Errorf("its name is nearly that of %s, a tool of readback", outcome)
	case !contracted && slices.ContainsFunc(contract.Writes(), func(name string) bool { return alike(t.Name, name) }):
		return hidden, fmt.Errorf("its name is nearly that of a tool with a contract")
	case slices.ContainsFunc(all, func(o *sdk.Tool) bool { return o != t && o.Name == t.Name }):
		return hidden, fmt.Errorf("the server lists it twice")
	}
	if err := contract.Trusts(t); err != nil {
		return hidden, err
	}
	switch {
	case contracted:
		if err := c.proven(t.Name, all); err != nil {
			return hidden, err
		}
		return verified, nil
	case slices.Contains(contract.Reads(), t.Name) || slices.Contains(c.Reads, t.Name):
		return reads, nil
	case c.Connector.WriteOnly():
		return writeOnly, nil
	}
	return hidden, fmt.Errorf("it has no contract and is not declared to read; write a contract, name it in reads, or set uncontracted: allow")
}

// Survey is what a gateway does with what its server offers.
type Survey struct {
	// Verified, Reads, Unverified and Hidden are the tools by name.
	Verified, Reads, Unverified, Hidden []string
	// Unpassed are the features that the server declares and the gateway does not pass.
	Unpassed []string
}

// Survey asks the server for its tools and features. Of c only Connector, Reads and Hide
// are used.
func (c *Config) Survey(ctx context.Context) (Survey, error) {
	var s Survey
	session, err := c.Connector.Client().Session(ctx)
	if err != nil {
		return s, err
	}
	tools, err := c.Connector.Client().Tools(ctx, false)
	if err != nil {
		return s, err
	}
	for _, t := range tools {
		is, err := c.classify(t, tools)
		if _, unseen := visibleTool(t); err != nil || unseen != nil {
			is = hidden
		}
		to := map[class]*[]string{verified: &s.Verified, reads: &s.Reads, writeOnly: &s.Unverified, hidden: &s.Hidden}[is]
		*to = append(*to, t.Name)
	}
	if r := session.InitializeResult(); r != nil && r.Capabilities != nil {
		if r.Capabilities.Resources != nil && r.Capabilities.Resources.Subscribe {
			s.Unpassed = append(s.Unpassed, "subscriptions to resources")
		}
		for _, more := range []map[string]any{r.Capabilities.Extensions, r.Capabilities.Experimental} {
			s.Unpassed = append(s.Unpassed, slices.Sorted(maps.Keys(more))...)
		}
	}
	return s, nil
}

// nameForm is what the protocol allows as a tool's name. Any other name can look like
// another one.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// alike reports whether a model could mistake one name for another: they differ only in
// case and in the separators between words.
func alike(a, b string) bool {
	words := strings.NewReplacer("_", "", "-", "", ".", "")
	return strings.EqualFold(words.Replace(a), words.Replace(b))
}

// proven checks that the tools that prove a write exist and are those that the contract
// was written for. Without its proof a write is not offered.
func (c *Config) proven(tool string, all []*sdk.Tool) error {
	contract := c.Connector.Contract()
	for _, proof := range contract.Proofs(tool) {
		i := slices.IndexFunc(all, func(t *sdk.Tool) bool { return t.Name == proof })
		if i < 0 {
			return fmt.Errorf("%w: the tool %s, which proves it, is not there", mcp.ErrWithdrawn, proof)
		}
		if err := contract.Trusts(all[i]); err != nil {
			return err
		}
	}
	return nil
}

// describe is a tool that writes, as clients see it: the same name and arguments, and the
// outcome as its result.
func (g *Gateway) describe(s shown) *sdk.Tool {
	t := *s.tool
	t.OutputSchema = mcpapi.OutputSchema()
	// The server's own annotations are not passed on as ours, and what its digest does
	// not cover might change from one list to the next.
	t.Title, t.Annotations, t.Icons, t.Meta = "", nil, nil, nil
	t.Description += "\n\n" + verifiedAdvice
	if s.class == writeOnly {
		t.Description = s.tool.Description + "\n\n" + writeOnlyAdvice
	}
	return &t
}
