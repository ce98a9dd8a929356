package access

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/ledger"
)

// Bounds of tokens.
const (
	// DefaultTTL is the default lifetime of a token: a quarter of a year, so that a
	// forgotten one ends within it.
	DefaultTTL = 90 * day
	// MaxTTL is the longest lifetime of a token: a year and a month to renew it. Every
	// token ends.
	MaxTTL = 400 * day
	// minTTL is the shortest: a shorter one would end before its use.
	minTTL = time.Minute
	// keepEnded is how long a token that ended is still listed, so that an operator who
	// investigates its writes finds who made it.
	keepEnded = MaxTTL
	// maxTokens bounds the tokens of one tenant: one for each of a thousand callers; more
	// come from a program in a loop.
	maxTokens = 1000
	// maxText bounds names and tenants in bytes: as the ledger bounds names.
	maxText = 255
	// maxClip and maxReason bound foreign text in errors, in bytes: a name, and a
	// sentence with two addresses in it.
	maxClip   = 60
	maxReason = 400
	// setTries bounds the attempts to change a note that other processes change.
	setTries = 5
)

// tokenPrefix begins the names of the notes of tokens.
const tokenPrefix = "token/"

// TokenOptions of [NewTokens]. Nil and the zero value are valid.
type TokenOptions struct {
	// Now is the clock of lifetimes. Default [time.Now].
	Now func() time.Time
	// Logger logs damaged notes; never a secret. Default none.
	Logger *slog.Logger
	// People allows tokens of reviewers, operators and auditors. Default false: only
	// agents may have tokens, and a person's token that was made before is refused.
	People bool
}

// Tokens are the API tokens of a ledger. They are safe for concurrent use, by
// several processes too.
type Tokens struct {
	notes    ledger.Documents
	now      func() time.Time
	log      *slog.Logger
	people   bool
	recall   *recall
	failures *failures
}

// Token is a description of an API token, without its secret: that is shown once, when
// the token is made, and stored nowhere.
type Token struct {
	ID        string      `json:"id"`
	Tenant    string      `json:"tenant"`
	Name      string      `json:"name"`
	Role      engine.Role `json:"role"`
	Created   time.Time   `json:"created"`
	CreatedBy string      `json:"created_by"`
	Expires   time.Time   `json:"expires"`
	// Scope bounds what an agent may write with it, and never changes. Nil: all
	// that the role may.
	Scope *engine.Scope `json:"scope,omitempty"`
	// Revoked is when and RevokedBy by whom it was revoked; zero if it was not.
	Revoked   time.Time `json:"revoked,omitzero"`
	RevokedBy string    `json:"revoked_by,omitempty"`
}

// tokenNote is a token as it is stored.
type tokenNote struct {
	Token
	// Hash is the SHA-256 of the secret. A token with a scope has its hash in another
	// member: a server that knows no scopes refuses such a token, rather than serve it
	// without its scope.
	Hash       string `json:"hash,omitempty"`
	ScopedHash string `json:"scoped_hash,omitempty"`
}

// hash is the SHA-256 of the secret, "" for a damaged note.
func (n tokenNote) hash() string {
	switch {
	case n.Scope == nil && n.ScopedHash == "":
		return n.Hash
	case n.Scope != nil && n.Hash == "":
		return n.ScopedHash
	}
	return ""
}

// Active reports whether a token is valid at a time.
func (t Token) Active(now time.Time) bool {
	return t.Revoked.IsZero() && now.Before(t.Expires)
}

// ended is when a token ended, or will end.
func (t Token) ended() time.Time {
	if !t.Revoked.IsZero() && t.Revoked.Before(t.Expires) {
		return t.Revoked
	}
	return t.Expires
}

func (t Token) identity() Identity {
	return Identity{Tenant: t.Tenant, Name: t.Name, Role: t.Role, Via: "token", ID: t.ID, Scope: t.Scope}
}

// NewTokens returns the tokens of a ledger.
func NewTokens(n ledger.Documents, o *TokenOptions) *Tokens {
	if o == nil {
		o = &TokenOptions{}
	}
	t := &Tokens{notes: n, now: o.Now, log: o.Logger, people: o.People}
	if t.now == nil {
		t.now = time.Now
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.recall, t.failures = newRecall(n, t.now), newFailures(t.now)
	return t
}

// NewToken describes a token to make. All but TTL and Scope is required.
type NewToken struct {
	Tenant string
	Name   string // the name of its user, at most 255 bytes
	Role   engine.Role
	// TTL is its lifetime, a minute to [MaxTTL]. Default [DefaultTTL]: every token ends.
	TTL time.Duration
	By  string // the name of its maker
	// Scope bounds what an agent may write. Default nil: all that the role may.
	Scope *engine.Scope
}

// Create makes a token and returns its secret, which cannot be read again. The error
// wraps [ErrInvalid] and has the remedy, or is the ledger's; then there may be a token
// whose secret is lost.
func (t *Tokens) Create(ctx context.Context, n NewToken) (Token, string, error) {
	n.TTL = cmp.Or(n.TTL, DefaultTTL)
	err := n.check()
	if err == nil {
		err = t.mayHave(n.Role, ErrInvalid)
	}
	if err != nil {
		return Token{}, "", err
	}
	if err := t.evict(ctx, n.Tenant); err != nil {
		return Token{}, "", err
	}
	id, secret := newSecret()
	now := t.now().UTC().Truncate(time.Second)
	made := tokenNote{Hash: hashOf(secret), Token: Token{
		ID: id, Tenant: n.Tenant, Name: n.Name, Role: n.Role, Created: now, CreatedBy: n.By, Expires: now.Add(n.TTL), Scope: n.Scope,
	}}
	if made.Scope != nil {
		made.Hash, made.ScopedHash = "", made.Hash
	}
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
	if err := checkScope(n.Role, n.Scope); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// checkScope refuses an invalid scope, and one for a person: it does not bound decisions.
func checkScope(r engine.Role, s *engine.Scope) error {
	if s != nil && r != engine.RoleAgent {
		return fmt.Errorf("the role is %q, and the token has a scope; want the role %s, or no scope", r, engine.RoleAgent)
	}
	return s.Check()
}

// mayHave refuses tokens of people where they are not configured. The error wraps wraps.
func (t *Tokens) mayHave(r engine.Role, wraps error) error {
	if t.people || r == engine.RoleAgent {
		return nil
	}
	return fmt.Errorf("%w: the role is %q, and %w", wraps, r, errNoPeople)
}

var errNoPeople = errors.New("tokens of people are not configured; set server.person_tokens: true, or configure server.oidc so that people log in")

// evict deletes tokens that ended long ago, and fails if the tenant has too many.
func (t *Tokens) evict(ctx context.Context, tenant string) error {
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
			// A faster process does the same.
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

// keptToken is a token with its note.
type keptToken struct {
	note  ledger.Note
	token Token
}

// all are the tokens of all tenants. One that cannot be read is invalid, and is not
// changed.
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

// decodeToken reads a note. If it lacks a member it is invalid.
func decodeToken(n ledger.Note) (tokenNote, error) {
	var have tokenNote
	if err := json.Unmarshal(n.Value, &have); err != nil {
		return tokenNote{}, fmt.Errorf("token: %w", err)
	}
	if err := knownScope(n.Value); err != nil {
		return tokenNote{}, err
	}
	if tokenPrefix+have.ID != n.Name || have.hash() == "" || have.Expires.IsZero() || checkRole("role", have.Role) != nil || checkScope(have.Role, have.Scope) != nil ||
		cmp.Or(checkName("tenant", have.Tenant), checkName("name", have.Name)) != nil {
		return tokenNote{}, fmt.Errorf("token: note %q is damaged", n.Name)
	}
	return have, nil
}

// knownScope refuses a scope with a member that this version does not know: that bound
// would not be enforced here.
func knownScope(note []byte) error {
	var kept struct {
		Scope json.RawMessage `json:"scope"`
	}
	if err := json.Unmarshal(note, &kept); err != nil || len(kept.Scope) == 0 {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(kept.Scope))
	d.DisallowUnknownFields()
	if err := d.Decode(&engine.Scope{}); err != nil {
		return fmt.Errorf("token: its scope cannot be read: %w", err)
	}
	return nil
}

// Good returns the valid tokens of all tenants, those first that end first. The error is
// the ledger's.
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
// lifetime: a token of one hour is not near its end from the beginning.
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

// Revoke ends a token of a tenant, for every process within five seconds, and with it the
// sessions that were begun with it. A token that is revoked already does not change. The
// error wraps [ErrNoToken] or [ErrInvalid], or is the ledger's.
func (t *Tokens) Revoke(ctx context.Context, tenant, id, by string) error {
	if err := checkName("by", by); err != nil {
		return err
	}
	if !isID(id) { // and not repeated: users write the secret here
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
