package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Resolve identifies the token in a request's one Authorization header: after Bearer, or
// as the password of HTTP Basic, since published clients of the gate support nothing
// else. A token anywhere else is ignored. It fails with [ErrUnknown], of which
// [ErrNoCredentials] is one; with [ErrUnavailable] if the ledger is unreachable (a token
// that was valid stays so for a minute); and with a [TooManyError] for an address that
// came with many bad ones.
func (t *Tokens) Resolve(r *http.Request) (Identity, error) {
	secret, err := bearer(r.Header)
	if err != nil {
		return Identity{}, err
	}
	have, err := t.check(r.Context(), r.RemoteAddr, secret)
	if err != nil {
		return Identity{}, err
	}
	return have.identity(), nil
}

// bearer is the token in the Authorization header. The user of HTTP Basic is ignored: the
// token identifies the caller. Errors repeat neither.
func bearer(h http.Header) (string, error) {
	all := h.Values("Authorization")
	switch len(all) {
	case 0:
		return "", ErrNoCredentials
	case 1:
	default:
		return "", fmt.Errorf("%w: there is more than one Authorization header; want one", ErrUnknown)
	}
	scheme, secret, ok := strings.Cut(all[0], " ")
	switch {
	case isASCII(scheme) && strings.EqualFold(scheme, "Basic"):
		_, password, ok := (&http.Request{Header: h}).BasicAuth()
		if ok && strings.HasPrefix(password, secretPrefix) {
			return password, nil
		}
		return "", ErrNoCredentials // is for other resolvers
	case !ok || !strings.EqualFold(scheme, "Bearer"):
		return "", fmt.Errorf("%w: the Authorization header is none that is known; want Bearer and a token", ErrUnknown)
	}
	return secret, nil
}

// isASCII excludes letters that look alike, or that EqualFold treats as those of a
// scheme.
func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
}

// check finds the token of a secret. A bad secret counts against its address.
func (t *Tokens) check(ctx context.Context, remote, secret string) (Token, error) {
	id, ok := idOf(secret)
	if !ok {
		return Token{}, t.failures.count(remote, fmt.Errorf("%w: this is no token of readback", ErrUnknown))
	}
	have, err := t.sought(ctx, remote, id)
	if errors.Is(err, ErrUnknown) || err == nil && !isHashOf(have.hash(), secret) {
		return Token{}, t.failures.count(remote, errNoSuchToken)
	}
	if err == nil {
		err = t.good(have.Token)
	}
	if errors.Is(err, ErrUnknown) {
		err = t.failures.count(remote, err)
	}
	return have.Token, err
}

// sought finds a token for an address. A cached one costs nothing, and is found for a
// limited address too.
func (t *Tokens) sought(ctx context.Context, remote, id string) (tokenNote, error) {
	if t.recall.has(tokenPrefix + id) {
		return t.find(ctx, id)
	}
	held := t.failures.held(remote) != nil
	done, err := t.failures.admit(ctx, remote, readFor)
	if err != nil {
		return tokenNote{}, err
	}
	defer done()
	have, err := t.find(ctx, id)
	if errors.Is(err, ErrUnknown) && held {
		t.recall.forget(tokenPrefix + id) // made-up tokens must not push out cached ones
	}
	return have, err
}

var errNoSuchToken = fmt.Errorf("%w: the token is not known", ErrUnknown)

// good fails if a token has ended, or is a person's where these are not configured. Only
// a caller that has the secret gets the reason.
func (t *Tokens) good(have Token) error {
	switch now := t.now(); {
	case !have.Revoked.IsZero():
		return fmt.Errorf("%w: the token was revoked", ErrUnknown)
	case !have.Active(now):
		return fmt.Errorf("%w: the token has expired", ErrUnknown)
	}
	return t.mayHave(have.Role, ErrForbidden)
}

// find reads a token. A cached one stays true except for a revocation. While the ledger
// is unreachable, a cached absence proves nothing.
func (t *Tokens) find(ctx context.Context, id string) (tokenNote, error) {
	n, err := t.recall.get(ctx, tokenPrefix+id)
	switch {
	case err != nil:
		return tokenNote{}, err
	case len(n.note.Value) == 0 && !n.fresh:
		return tokenNote{}, fmt.Errorf("%w: the ledger does not answer", ErrUnavailable)
	case len(n.note.Value) == 0:
		return tokenNote{}, errNoSuchToken
	}
	have, err := decodeToken(n.note)
	if err != nil {
		t.log.ErrorContext(ctx, "a token cannot be read and is good for nothing", "error", err)
		return tokenNote{}, errNoSuchToken
	}
	return have, nil
}

// byID reads the token that a session was begun with.
func (t *Tokens) byID(ctx context.Context, id string) (Token, error) {
	have, err := t.find(ctx, id)
	if err != nil {
		return Token{}, err
	}
	return have.Token, t.good(have.Token)
}
