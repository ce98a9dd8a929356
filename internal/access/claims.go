package access

import (
	"fmt"
	"slices"
	"strings"

	"github.com/readback-go/readback/engine"
)

// ClaimRule gives a tenant and a role to users whose claims match. The first rule that
// matches counts.
type ClaimRule struct {
	// Claim names a claim of the ID token: its exact name, or else a path of names with
	// dots between. The claim is a text or a list of texts.
	Claim string
	// Value is the claim, or an entry of its list, compared exactly.
	Value string
	// Tenant is the tenant whose writes are seen. As "{claim}" it is the text of another
	// claim, and the rule matches no user without that claim. Use a claim that users
	// cannot set themselves.
	Tenant string
	// Role is reviewer, operator or auditor. A login never gives the role agent.
	Role engine.Role
}

// Check returns what is wrong with a rule, and the remedy; the error wraps [ErrInvalid].
func (c ClaimRule) Check() error {
	switch {
	case strings.TrimSpace(c.Claim) == "" || len(c.Claim) > maxText || strings.Count(c.Claim, ".") >= maxPath:
		return fmt.Errorf("%w: claim is %q; want the name of a claim, such as groups", ErrInvalid, clip(c.Claim))
	case c.Value == "" || len(c.Value) > maxText:
		return fmt.Errorf("%w: value is %q; want what the claim has, such as readback-operators", ErrInvalid, clip(c.Value))
	case c.Role == engine.RoleAgent:
		return fmt.Errorf("%w: role is %q; a login cannot have the role of an agent; agents have tokens", ErrInvalid, c.Role)
	}
	tenant := c.Tenant
	if from, ok := c.tenantClaim(); ok {
		tenant = from
	}
	if err := checkName("tenant", tenant); err != nil {
		return err
	}
	return checkRole("role", c.Role)
}

func (c ClaimRule) tenantClaim() (string, bool) {
	inner, ok := strings.CutPrefix(c.Tenant, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	return inner, ok && closed
}

// claims are the provider's claims about a user.
type claims map[string]any

// proven are the claims without unverified ones: a user can enter any address that is not
// verified.
func (c claims) proven() claims {
	if v := c["email_verified"]; v == true || v == "true" { // some providers write it as text
		return c
	}
	kept := claims{}
	for name, v := range c {
		if name != "email" {
			kept[name] = v
		}
	}
	return kept
}

// at is a claim by its name or path.
func (c claims) at(name string) any {
	if v, ok := c[name]; ok { // names may contain dots
		return v
	}
	var v any = map[string]any(c)
	for part := range strings.SplitSeq(name, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[part]
	}
	return v
}

// has reports whether a claim is a text, or has it in its list.
func (c claims) has(name, text string) bool {
	switch v := c.at(name).(type) {
	case string:
		return v == text
	case []any:
		return slices.Contains(v, any(text))
	}
	return false
}

// name is a user's display name: the address if it is verified and cannot be mistaken for
// another by eye, else the provider's own name for the user. A name that users choose
// themselves is not used.
func (c claims) name() string {
	if email, _ := c["email"].(string); strings.Contains(email, "@") && isASCII(email) && checkName("email", email) == nil {
		return strings.ToLower(email)
	}
	sub, _ := c["sub"].(string)
	return sub
}

// identity applies the first rule that matches. It fails with [ErrForbidden].
func (c claims) identity(rules []ClaimRule) (Identity, error) {
	c = c.proven()
	who := Identity{Name: c.name(), Via: "login"}
	if err := checkName("sub", who.Name); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	for _, rule := range rules {
		tenant := rule.Tenant
		if from, ok := rule.tenantClaim(); ok {
			tenant, _ = c.at(from).(string)
		}
		if c.has(rule.Claim, rule.Value) && checkName("tenant", tenant) == nil && rule.Check() == nil {
			who.Tenant, who.Role = tenant, rule.Role
			return who, nil
		}
	}
	return Identity{}, fmt.Errorf("%w: no rule fits what the provider says of %q", ErrForbidden, who.Name)
}
