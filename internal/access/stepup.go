package access

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/oauth2"
)

// StepUp is what a login at the provider must have for decisions. The zero value requires
// nothing.
type StepUp struct {
	// ACR are authentication context classes of which the provider must name one
	// (claim acr).
	ACR []string
	// AMR are authentication methods of which the provider must name one (claim amr),
	// such as mfa, hwk or otp (RFC 8176).
	AMR []string
}

func (s StepUp) required() bool { return len(s.ACR)+len(s.AMR) > 0 }

// has reports whether a login's claims are enough: one of each list that is not empty.
func (s StepUp) has(c claims) bool {
	names := func(claim string, wanted []string) bool {
		return len(wanted) == 0 || slices.ContainsFunc(wanted, func(one string) bool { return c.has(claim, one) })
	}
	return names("acr", s.ACR) && names("amr", s.AMR)
}

// asked are the parameters of the request to the provider: to authenticate the user
// again, in one of the classes.
func (s StepUp) asked() []oauth2.AuthCodeOption {
	asked := []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("prompt", "login")}
	if len(s.ACR) > 0 {
		asked = append(asked, oauth2.SetAuthURLParam("acr_values", strings.Join(s.ACR, " ")))
	}
	return asked
}

// Deciding returns a resolver of the same credentials. If these logins require a step-up,
// credentials that are no login at the provider lack what decisions need.
func (l *Logins) Deciding(who Resolver) Resolver {
	if !l.stepUp.required() {
		return who
	}
	return deciding{who}
}

type deciding struct{ inner Resolver }

// Resolve implements [Resolver].
func (d deciding) Resolve(r *http.Request) (Identity, error) {
	who, err := d.inner.Resolve(r)
	who.NeedsStepUp = err == nil && (who.NeedsStepUp || who.Via != "login")
	return who, err
}
