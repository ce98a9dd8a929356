package access

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// tokenPrefix begins the names of the notes of tokens.
const tokenPrefix = "token/"

// TokenOptions of [NewTokens]. Nil and the zero value work.
type TokenOptions struct {
	// Now is the clock that lifetimes are measured with. Default [time.Now].
	Now func() time.Time
	// Logger gets what is wrong with what is kept; never a secret. Default none.
	Logger *slog.Logger
}

// Tokens are the API tokens of a ledger. They are safe for concurrent use, by
// several processes too.
type Tokens struct {
	notes    ledger.Notes
	now      func() time.Time
	log      *slog.Logger
	recall   *recall
	failures *failures
	doubted  chan struct{} // room for those from addresses that are held back
}

// Token is what is known about an API token. The secret is not: it is shown
// once, when the token is made, and kept nowhere.
type Token struct {
	ID        string      `json:"id"`
	Tenant    string      `json:"tenant"`
	Name      string      `json:"name"`
	Role      engine.Role `json:"role"`
	Created   time.Time   `json:"created"`
	CreatedBy string      `json:"created_by"`
	Expires   time.Time   `json:"expires"`
	// Revoked is when and RevokedBy by whom it was ended; zero for one that was
	// not.
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
}

// tokenNote is a token as it is kept.
type tokenNote struct {
	Token
	Hash string `json:"hash"` // SHA-256 of the secret
}

// Active reports whether a token is good at a time.
func (t Token) Active(now time.Time) bool {
	return t.Revoked.IsZero() && now.Before(t.Expires)
}

// ended is when a token ceased to be good, or will.
func (t Token) ended() time.Time {
	if !t.Revoked.IsZero() && t.Revoked.Before(t.Expires) {
		return t.Revoked
	}
	return t.Expires
}

func (t Token) identity() Identity {
	return Identity{Tenant: t.Tenant, Name: t.Name, Role: t.Role, Via: "token", ID: t.ID}
}

// NewTokens returns the tokens that are kept in a ledger.
func NewTokens(n ledger.Notes, o *TokenOptions) *Tokens {
	if o == nil {
		o = &TokenOptions{}
	}
	t := &Tokens{notes: n, now: o.Now, log: o.Logger, doubted: make(chan struct{}, maxDoubted)}
	if t.now == nil {
		t.now = time.Now
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.recall, t.failures = newRecall(n, t.now), newFailures(t.now)
	return t
}

// NewToken is what a token is to be. All but TTL is required.
type NewToken struct {
	Tenant string
	Name   string // who acts with it, at most 255 bytes
	Role   engine.Role
	// TTL is how long it is good, a minute to [MaxTTL]. Default [DefaultTTL]:
	// none is good for ever.
	TTL time.Duration
	By  string // who makes it
}

// Create makes a token and returns its secret, which is never to be had again.
// The error wraps [ErrInvalid] and says what would be right, or is the ledger's;
// then there may be a token that nobody has the secret of.
func (t *Tokens) Create(ctx context.Context, n NewToken) (Token, string, error) {
	n.TTL = cmp.Or(n.TTL, DefaultTTL)
	if err := n.check(); err != nil {
		return Token{}, "", err
	}
	if err := t.makeRoom(ctx, n.Tenant); err != nil {
		return Token{}, "", err
	}
	id, secret := newSecret()
	now := t.now().UTC().Truncate(time.Second)
	made := tokenNote{Hash: hashOf(secret), Token: Token{
		ID: id, Tenant: n.Tenant, Name: n.Name, Role: n.Role, Created: now, CreatedBy: n.By, Expires: now.Add(n.TTL),
	}}
	value, err := json.Marshal(made)
	if err != nil {
		return Token{}, "", err
	}
	if _, err := t.notes.SetNote(ctx, ledger.Note{Name: tokenPrefix + id, Value: value}); err != nil {
		return Token{}, "", fmt.Errorf("token: %w", err)
	}
	return made.Token, secret, nil
}

func (n NewToken) check() error {
	if err := cmp.Or(checkName("tenant", n.Tenant), checkName("name", n.Name), checkName("by", n.By), checkRole("role", n.Role)); err != nil {
		return err
	}
	if n.TTL < minTTL || n.TTL > MaxTTL {
		return fmt.Errorf("%w: ttl is %s; want %s to %dd: no token is good for ever", ErrInvalid, n.TTL, minTTL, MaxTTL/day)
	}
	return nil
}

// makeRoom forgets what ended long ago, and fails where a tenant has too much.
func (t *Tokens) makeRoom(ctx context.Context, tenant string) error {
	all, err := t.all(ctx)
	if err != nil {
		return err
	}
	good, now := 0, t.now()
	for _, each := range all {
		if each.token.Tenant == tenant && each.token.Active(now) {
			good++
		}
		if now.Sub(each.token.ended()) > keepEnded {
			// Whoever is faster does the same.
			if _, err := t.notes.SetNote(ctx, ledger.Note{Name: each.note.Name, Version: each.note.Version}); err != nil && !isStale(err) {
				return fmt.Errorf("token: %w", err)
			}
		}
	}
	if good >= maxTokens {
		return fmt.Errorf("%w: tenant %q has %d tokens that are good; want at most %d: revoke some", ErrInvalid, clip(tenant), good, maxTokens)
	}
	return nil
}

// keptToken is a token with the note it stands in.
type keptToken struct {
	note  ledger.Note
	token Token
}

// all are the tokens of all tenants. One that cannot be read is good for
// nothing, and stays as it is.
func (t *Tokens) all(ctx context.Context) ([]keptToken, error) {
	notes, _, err := t.notes.Notes(ctx, tokenPrefix)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	var all []keptToken
	for _, n := range notes {
		if have, err := decodeToken(n); err == nil {
			all = append(all, keptToken{n, have.Token})
		} else {
			t.log.WarnContext(ctx, "a token cannot be read and is good for nothing", "note", n.Name, "error", err)
		}
	}
	return all, nil
}

// decodeToken reads a note. Whatever it lacks, it is good for nothing without.
func decodeToken(n ledger.Note) (tokenNote, error) {
	var have tokenNote
	if err := json.Unmarshal(n.Value, &have); err != nil {
		return tokenNote{}, fmt.Errorf("token: %w", err)
	}
	if tokenPrefix+have.ID != n.Name || have.Hash == "" || have.Expires.IsZero() || checkRole("role", have.Role) != nil ||
		cmp.Or(checkName("tenant", have.Tenant), checkName("name", have.Name)) != nil {
		return tokenNote{}, fmt.Errorf("token: note %q is damaged", n.Name)
	}
	return have, nil
}

// Good returns the tokens of all tenants that are good now, those first that end first.
// The error is the ledger's.
func (t *Tokens) Good(ctx context.Context) ([]Token, error) {
	all, err := t.all(ctx)
	if err != nil {
		return nil, err
	}
	now := t.now()
	var good []Token
	for _, each := range all {
		if each.token.Active(now) {
			good = append(good, each.token)
		}
	}
	slices.SortFunc(good, func(a, b Token) int { return cmp.Or(a.Expires.Compare(b.Expires), cmp.Compare(a.ID, b.ID)) })
	return good, nil
}

// NearEnd reports whether a token ends within a time, and is in the last quarter of its
// own: one that was made for an hour is not near its end from the beginning.
func (t Token) NearEnd(now time.Time, within time.Duration) bool {
	left := t.Expires.Sub(now)
	return t.Active(now) && left < within && left < t.Expires.Sub(t.Created)/4
}

// List returns the tokens of a tenant, the newest first; those that ended are
// listed for [MaxTTL] after. The error is the ledger's.
func (t *Tokens) List(ctx context.Context, tenant string) ([]Token, error) {
	all, err := t.all(ctx)
	if err != nil {
		return nil, err
	}
	var found []Token
	for _, each := range all {
		if each.token.Tenant == tenant {
			found = append(found, each.token)
		}
	}
	slices.SortStableFunc(found, func(a, b Token) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// Revoke ends a token of a tenant, for every process within five seconds, and
// with it the sessions that were begun with it. One that is revoked already
// stays as it is. The error wraps [ErrNoToken] or [ErrInvalid], or is the
// ledger's.
func (t *Tokens) Revoke(ctx context.Context, tenant, id, by string) error {
	if err := checkName("by", by); err != nil {
		return err
	}
	if !isID(id) { // and not repeated: people write the secret here
		return fmt.Errorf("%w: want its id, the %d letters behind %s", ErrNoToken, idLen, secretPrefix)
	}
	missing := fmt.Errorf("%w: tenant %q has none with the id %s", ErrNoToken, clip(tenant), id)
	err := change(ctx, t.notes, tokenPrefix+id, func(n ledger.Note) ([]byte, error) {
		if len(n.Value) == 0 {
			return nil, missing
		}
		have, err := decodeToken(n)
		switch {
		case err != nil:
			return nil, err
		case have.Tenant != tenant:
			return nil, missing
		case !have.Revoked.IsZero():
			return nil, nil
		}
		have.Revoked, have.RevokedBy = t.now().UTC().Truncate(time.Second), by
		return json.Marshal(have)
	})
	t.recall.forget(tokenPrefix + id)
	return err
}
