package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Resolve finds out whose token a request carries in its one Authorization header:
// behind Bearer, or as the password of HTTP Basic, since published clients of the
// gate can do nothing else; a token anywhere else is none. It fails with [ErrUnknown], of
// which [ErrNoCredentials] is one, with [ErrUnavailable] when the ledger cannot
// be asked (a token that was good is so for a minute more), and with a
// [TooManyError] for an address that came with many bad ones.
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

// bearer is the token in the Authorization header. The user of HTTP Basic names
// nobody: the token does. Errors repeat neither.
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
		return "", ErrNoCredentials // is for others
	case !ok || !strings.EqualFold(scheme, "Bearer"):
		return "", fmt.Errorf("%w: the Authorization header is none that is known; want Bearer and a token", ErrUnknown)
	}
	return secret, nil
}

// isASCII keeps letters out that look alike, or that EqualFold takes for those
// of a scheme.
func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
}

// check finds the token of a secret. Whatever is bad counts against the address
// it came from.
func (t *Tokens) check(ctx context.Context, remote, secret string) (Token, error) {
	id, ok := idOf(secret)
	if !ok {
		return Token{}, t.failures.count(remote, fmt.Errorf("%w: this is no token of readback", ErrUnknown))
	}
	have, err := t.sought(ctx, remote, id)
	if errors.Is(err, ErrUnknown) || err == nil && !isHashOf(have.Hash, secret) {
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

// sought looks up a token that came from an address. From one that is held back
// they are looked up few at a time, each in its turn: behind a proxy all callers
// have one address, and whoever guesses there must not lock the others out.
func (t *Tokens) sought(ctx context.Context, remote, id string) (tokenNote, error) {
	held := t.failures.held(remote)
	if held == nil || t.recall.has(tokenPrefix+id) {
		return t.find(ctx, id)
	}
	patience := time.NewTimer(readFor)
	defer patience.Stop()
	select {
	case t.doubted <- struct{}{}:
		defer func() { <-t.doubted }()
	case <-patience.C:
		return tokenNote{}, held
	case <-ctx.Done():
		return tokenNote{}, ctx.Err()
	}
	have, err := t.find(ctx, id)
	if errors.Is(err, ErrUnknown) {
		t.recall.forget(tokenPrefix + id) // what is made up must not push out what is remembered
	}
	return have, err
}

var errNoSuchToken = fmt.Errorf("%w: the token is not known", ErrUnknown)

// good fails when a token has ended. Only who has the secret is told how.
func (t *Tokens) good(have Token) error {
	switch now := t.now(); {
	case !have.Revoked.IsZero():
		return fmt.Errorf("%w: the token was revoked", ErrUnknown)
	case !have.Active(now):
		return fmt.Errorf("%w: the token has expired", ErrUnknown)
	}
	return nil
}

// find looks a token up. What is remembered of one stays true but for a
// revocation: while the ledger does not answer, only that there was none proves
// nothing.
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

// byID looks up a token that a session was begun with.
func (t *Tokens) byID(ctx context.Context, id string) (Token, error) {
	have, err := t.find(ctx, id)
	if err != nil {
		return Token{}, err
	}
	return have.Token, t.good(have.Token)
}
