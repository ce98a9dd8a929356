package access_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/ledger"
)

// saying is the identity of a login with these claims; "" for none.
func saying(t *testing.T, claims string, rules ...access.ClaimRule) (string, int) {
	t.Helper()
	w := newWorld(t, func(o *access.LoginOptions) {
		if rules != nil {
			o.Rules = rules
		}
	})
	var all map[string]any
	if err := json.Unmarshal([]byte(claims), &all); err != nil {
		t.Fatal(err)
	}
	w.provider.Says(all)
	status, text := w.browser().login()
	if status != 200 {
		return "", status
	}
	return strings.TrimSuffix(text, " by login"), status
}

func TestClaims(t *testing.T) {
	rules := []access.ClaimRule{
		{Claim: "groups", Value: "ops", Tenant: "acme", Role: "operator"},
		{Claim: "realm_access.roles", Value: "reviewer", Tenant: "{org.id}", Role: "reviewer"},
		{Claim: "https://example.org/roles", Value: "audit", Tenant: "acme", Role: "auditor"},
		{Claim: "email", Value: "boss@example.org", Tenant: "acme", Role: "operator"},
		{Claim: "groups", Value: "staff", Tenant: "acme", Role: "auditor"},
		{Claim: "hd", Value: "example.org", Tenant: "{email}", Role: "auditor"},
	}
	for name, c := range map[string]struct{ claims, want, reason string }{
		"a list":               {`{"sub":"7","groups":["x","ops"]}`, "operator 7 of acme", "one of them fits"},
		"a text":               {`{"sub":"7","groups":"ops"}`, "operator 7 of acme", "some providers write one so"},
		"the first that fits":  {`{"sub":"7","groups":["staff","ops"]}`, "operator 7 of acme", "the order is that of the rules"},
		"a piece of a text":    {`{"sub":"7","groups":"devops"}`, "", "texts are compared as a whole"},
		"other letters":        {`{"sub":"7","groups":["OPS"]}`, "", "letter by letter"},
		"a number":             {`{"sub":"7","groups":7}`, "", "it is no text"},
		"a map":                {`{"sub":"7","groups":{"ops":true}}`, "", "it is no text and no list"},
		"nested":               {`{"sub":"7","realm_access":{"roles":["reviewer"]},"org":{"id":"beta"}}`, "reviewer 7 of beta", "names with dots between"},
		"a name with dots":     {`{"sub":"7","https://example.org/roles":["audit"]}`, "auditor 7 of acme", "the name as it is comes first"},
		"no tenant":            {`{"sub":"7","realm_access":{"roles":["reviewer"]}}`, "", "the rule needs the claim"},
		"a tenant that is bad": {`{"sub":"7","realm_access":{"roles":["reviewer"]},"org":{"id":"a\u0000b"}}`, "", "no tenant is called so"},
		"a tenant of a list":   {`{"sub":"7","realm_access":{"roles":["reviewer"]},"org":{"id":["beta","acme"]}}`, "", "which one is unknown"},
		"an e-mail":            {`{"sub":"7","groups":"ops","email":"Ann@Example.org","email_verified":true}`, "operator ann@example.org of acme", "it is proven"},
		"an e-mail, as text":   {`{"sub":"7","groups":"ops","email":"ann@example.org","email_verified":"true"}`, "operator ann@example.org of acme", "some write it so"},
		"unproven":             {`{"sub":"7","groups":"ops","email":"ann@example.org","email_verified":false}`, "operator 7 of acme", "any user can enter it"},
		"not stated":           {`{"sub":"7","groups":"ops","email":"ann@example.org"}`, "operator 7 of acme", "any user can enter it"},
		"by e-mail":            {`{"sub":"7","email":"boss@example.org","email_verified":true}`, "operator boss@example.org of acme", "a rule may use it"},
		"by unproven e-mail":   {`{"sub":"7","email":"boss@example.org","email_verified":false}`, "", "no rule may use it"},
		"tenant by unproven":   {`{"sub":"7","hd":"example.org","email":"boss@example.org"}`, "", "no rule may use it"},
		"an e-mail that looks": {`{"sub":"7","groups":"ops","email":"аnn@example.org","email_verified":true}`, "operator 7 of acme", "its first letter is Cyrillic"},
		"no e-mail":            {`{"sub":"7","groups":"ops","email":"ann","email_verified":true}`, "operator 7 of acme", "it has no @"},
		"a chosen name":        {`{"sub":"7","groups":"ops","preferred_username":"ann@example.org","name":"Ann"}`, "operator 7 of acme", "people choose it themselves"},
		"no name":              {`{"sub":" ","groups":"ops"}`, "", "a reviewer has a name"},
		"an unseen letter":     {`{"sub":"7\u200b","groups":"ops"}`, "", "it would be read as another"},
		"nothing":              {`{"sub":"7"}`, "", "no rule fits"},
	} {
		t.Run(name, func(t *testing.T) {
			got, status := saying(t, c.claims, rules...)
			if got != c.want || c.want == "" && status != 403 {
				t.Errorf("%s: got %q with %d, want %q", c.reason, got, status, c.want)
			}
		})
	}
}

func TestNamesAreOnePersons(t *testing.T) {
	var names []string
	for _, email := range []string{"Ann@Example.org", "ann@example.ORG"} {
		got, _ := saying(t, `{"sub":"7","groups":"operators","email":"`+email+`","email_verified":true}`)
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(got, "operator "), " of acme"))
	}
	if names[0] != names[1] || !ledger.SameName(names[0], "Ann@Example.org") {
		t.Errorf("%q are two people", names)
	}
}

func TestClaimRulesAreChecked(t *testing.T) {
	good := access.ClaimRule{Claim: "groups", Value: "ops", Tenant: "acme", Role: "operator"}
	for name, c := range map[string]struct {
		change func(*access.ClaimRule)
		wrong  string
	}{
		"good":              {func(*access.ClaimRule) {}, ""},
		"tenant of a claim": {func(r *access.ClaimRule) { r.Tenant = "{org.id}" }, ""},
		"no claim":          {func(r *access.ClaimRule) { r.Claim = " " }, "claim"},
		"deep claim":        {func(r *access.ClaimRule) { r.Claim = strings.Repeat("a.", 20) }, "claim"},
		"no value":          {func(r *access.ClaimRule) { r.Value = "" }, "value"},
		"no tenant":         {func(r *access.ClaimRule) { r.Tenant = "" }, "tenant"},
		"no tenant claim":   {func(r *access.ClaimRule) { r.Tenant = "{}" }, "tenant"},
		"no role":           {func(r *access.ClaimRule) { r.Role = "" }, "role"},
		"an agent":          {func(r *access.ClaimRule) { r.Role = "agent" }, "a login cannot have the role of an agent"},
		"another role":      {func(r *access.ClaimRule) { r.Role = "admin" }, "role"},
	} {
		t.Run(name, func(t *testing.T) {
			rule := good
			c.change(&rule)
			err := rule.Check()
			if c.wrong == "" && err != nil || c.wrong != "" && (!errors.Is(err, access.ErrInvalid) || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got %v, want what is wrong with %q", err, c.wrong)
			}
		})
	}
}
