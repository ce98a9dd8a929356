package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/intent"
)

const (
	// DefaultWindow is how long a receiver is assumed to know the ids of the messages that it
	// accepted. The standard requires that and names no time; large senders repeat for a day.
	DefaultWindow = 24 * time.Hour
	// DefaultSends is how often a message is sent that is not accepted. With the pauses between
	// them, which grow to an hour, that takes ten hours: a night in which no operator repairs the
	// receiver.
	DefaultSends = 16
	// DefaultTimeout is how long a receiver may take to answer, as the standard
	// recommends.
	DefaultTimeout = 15 * time.Second
	// maxBody limits a message, in bytes. Standard Webhooks recommends small ones.
	maxBody = 64 << 10
	// maxAnswer limits how much of an answer is read, in bytes: only its status counts, and a
	// short body lets the connection be used again.
	maxAnswer = 8 << 10
	// minSecret and maxSecret bound the key in a secret, in bytes: those of Standard
	// Webhooks.
	minSecret = 24
	maxSecret = 64
)

// Kind is the one kind of record: a message.
const Kind = "notice"

// Options are the choices of a [Connector].
type Options struct {
	// URL is where messages are posted to. HTTPS is required, but where Private
	// allows addresses of the own network. Required.
	URL string
	// Secret signs messages: "whsec_" and 24 to 64 bytes in base64. Required.
	Secret string
	// Previous signs them too, while receivers change from one secret to the
	// other. Default none.
	Previous string
	// Secrets fetches Secret and Previous again for each message, so that they can be changed
	// while the program runs. Default: they do not change.
	Secrets func(ctx context.Context) (secret, previous string, err error)
	// Window is how long the receiver recognises copies by the id of a message: within it a
	// message without an answer is sent again. Default [DefaultWindow]; negative: the receiver
	// promises nothing, and one attempt without an answer goes to a reviewer.
	Window time.Duration
	// Sends is how often a message may reach the receiver. Default [DefaultSends].
	Sends int
	// Timeout bounds one send. Default [DefaultTimeout].
	Timeout time.Duration
	// Private lists networks that are not public and may be posted to all the
	// same. Default none: no address of this machine, of the own network, of a
	// cloud's metadata service.
	Private []netip.Prefix
	// TLS is the TLS configuration: the roots for the receiver's certificate, and the client
	// certificate. Default the system's roots, and none.
	TLS *tls.Config
	// Transport carries the requests. Default one of the connector's own, which uses no proxy,
	// and checks each address after its name was resolved. With another one TLS has no effect,
	// and Private only on http URLs.
	Transport http.RoundTripper
}

// Connector posts messages. It is safe for concurrent use.
type Connector struct {
	opts  Options
	url   string
	signs []*standardwebhooks.Webhook
	http  *httpsend.Client
}

var (
	_ connectors.Connector = (*Connector)(nil)
	_ connectors.Checker   = (*Connector)(nil)
	_ connectors.Preparer  = (*Connector)(nil)
)

// New makes a connector. The error names the option and what would be right, and
// never holds a secret.
func New(o Options) (*Connector, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("url: it is no address; want https://host/path") // with its query it may be a secret
	case u.User != nil:
		return nil, errors.New("url: it holds a user or password; messages are signed, leave it out")
	case u.Fragment != "":
		return nil, errors.New("url: it holds a fragment, which is never sent; leave it out")
	case u.Scheme == "http" && len(o.Private) == 0:
		return nil, errors.New("url: it begins with http, so the network can read the messages; want https, or name the own network that it is in (allow_private)")
	}
	c := &Connector{opts: o, url: u.String()}
	if c.signs, err = signers(o.Secret, o.Previous); err != nil {
		return nil, err
	}
	transport := o.Transport
	if transport == nil {
		transport = guarded(o.Private, o.TLS)
	}
	c.http = httpsend.New(&httpsend.Options{Transport: transport, MaxBody: maxAnswer, Timeout: cmp.Or(max(o.Timeout, 0), DefaultTimeout)})
	return c, nil
}

var errSecret = fmt.Errorf("want whsec_ and %d to %d random bytes in base64", minSecret, maxSecret)

// signers sign with a secret and, where there is one, with the one before it.
func signers(secret, previous string) (all []*standardwebhooks.Webhook, err error) {
	for _, s := range []struct{ name, secret string }{{"secret", secret}, {"previous secret", previous}} {
		if s.secret == "" && s.name != "secret" {
			continue
		}
		wh, err := signer(s.secret)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		all = append(all, wh)
	}
	return all, nil
}

func signer(secret string) (*standardwebhooks.Webhook, error) {
	text, ok := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, errSecret
	}
	return standardwebhooks.NewWebhook(secret)
}

// Destination is the connector with its profile.
func (c *Connector) Destination() connectors.Destination {
	return connectors.Destination{Connector: c, Profiles: map[string]connectors.Profile{Kind: c.profile()}}
}

func (c *Connector) profile() connectors.Profile {
	p := connectors.Profile{
		Summary:   connectors.Summary{Text: "a message[: {subject}]", Verb: "send", Subject: "/type"},
		WriteOnly: true, Writes: []intent.WriteType{intent.Create}, FreshKeys: true,
		Sends:       cmp.Or(max(c.opts.Sends, 0), DefaultSends),
		SendTimeout: cmp.Or(max(c.opts.Timeout, 0), DefaultTimeout),
	}
	if window := cmp.Or(c.opts.Window, DefaultWindow); window > 0 {
		p.NativeWindow = map[intent.WriteType]time.Duration{intent.Create: window}
	}
	return p
}

// message is the form that Standard Webhooks defines.
type message struct {
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// messageOf is the message that an intent declares.
func messageOf(w intent.WriteIntent) (message, error) {
	m := message{}
	for name := range w.Expect {
		if name != "type" && name != "timestamp" && name != "data" {
			return m, fmt.Errorf("%w: /expect/%s: a message has type, timestamp and data; put it into data", intent.ErrInvalid, name)
		}
	}
	if m.Type, _ = w.Expect["type"].(string); m.Type == "" {
		return m, fmt.Errorf("%w: /expect/type: want what has happened, such as \"write.settled\"", intent.ErrInvalid)
	}
	m.Timestamp, _ = w.Expect["timestamp"].(string)
	if _, err := time.Parse(time.RFC3339, m.Timestamp); err != nil {
		return m, fmt.Errorf("%w: /expect/timestamp: want when it happened, in RFC 3339", intent.ErrInvalid)
	}
	data, ok := w.Expect["data"].(map[string]any)
	if !ok {
		return m, fmt.Errorf("%w: /expect/data: want an object", intent.ErrInvalid)
	}
	text, err := json.Marshal(data)
	m.Data = text
	return m, err
}

// Check refuses an intent that is no message.
func (c *Connector) Check(w intent.WriteIntent) error {
	switch {
	case w.Write != intent.Create:
		return fmt.Errorf("%w: /write: a message is created, and nothing else; want create", intent.ErrInvalid)
	case len(w.Payload) > 0:
		return fmt.Errorf("%w: /payload: all of a message is in expect; leave it out", intent.ErrInvalid)
	case w.Want() != 1:
		return fmt.Errorf("%w: /count: one intent is one message; leave it out", intent.ErrInvalid)
	}
	_, err := body(w)
	return err
}

func body(w intent.WriteIntent) ([]byte, error) {
	m, err := messageOf(w)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(b.Bytes())
	if len(text) > maxBody {
		return nil, fmt.Errorf("%w: /expect: the message has %d bytes; want at most %d", intent.ErrInvalid, len(text), maxBody)
	}
	return text, nil
}

// Prepare builds the body, so that every copy of a message is the same.
func (c *Connector) Prepare(_ context.Context, r connectors.Request) ([]byte, error) {
	return body(r.Intent)
}

// Read fails: nothing can be read at a receiver.
func (c *Connector) Read(context.Context, connectors.Query) (connectors.Observation, error) {
	return connectors.Observation{}, connectors.ErrWriteOnly
}

// Write posts the message once. Its id is the idempotency key, the same for every
// copy; its time, which the signature covers, is that of the attempt.
func (c *Connector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(r.Prepared))
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(errors.New("the address cannot be asked"))
	}
	signs := c.signs
	if c.opts.Secrets != nil {
		secret, previous, err := c.opts.Secrets(ctx)
		if err == nil {
			signs, err = signers(secret, previous)
		}
		if err != nil {
			return connectors.Receipt{}, connectors.NotSent(fmt.Errorf("the message cannot be signed: %w", err))
		}
	}
	signatures := make([]string, 0, len(signs))
	now := time.Now()
	for _, s := range signs {
		signed, err := s.Sign(r.IdempotencyKey, now, r.Prepared)
		if err != nil {
			return connectors.Receipt{}, connectors.NotSent(errors.New("the message cannot be signed"))
		}
		signatures = append(signatures, signed)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "readback-webhook/1")
	req.Header.Set(standardwebhooks.HeaderWebhookID, r.IdempotencyKey)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	a, err := c.http.Write(req)
	if err != nil && a.Status == 0 {
		return connectors.Receipt{}, err
	}
	return connectors.Receipt{Code: a.Code(), Reply: a.Reply(false)}, meaning(a, err)
}

// meaning is what a status means for a message: only a 2xx accepts it. A receiver that is gone,
// or that cannot accept this message, refuses for good. Every other answer means a temporary
// failure of the receiver: it counts as none, so that the message is sent again, as the standard
// requires.
func meaning(a httpsend.Answer, err error) error {
	if err == nil {
		return nil
	}
	var known *connectors.Error
	wait := time.Duration(0)
	if errors.As(err, &known) {
		wait = known.RetryAfter
	}
	cause := fmt.Errorf("the receiver answered %s", strings.TrimSpace(a.Code()+" "+http.StatusText(a.Status)))
	if a.Status >= 300 && a.Status <= 399 {
		cause = fmt.Errorf("%w: redirects are not followed; the URL should name the final address", cause)
	}
	switch a.Status {
	case http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusRequestHeaderFieldsTooLarge:
		return connectors.Refused(a.Code(), cause)
	case http.StatusTooManyRequests:
		return &connectors.Error{Fate: connectors.FateThrottled, RetryAfter: wait, Code: a.Code(), Err: cause}
	}
	return &connectors.Error{RetryAfter: wait, Code: a.Code(), Err: cause}
}
