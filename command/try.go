package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
	"github.com/readback-go/readback/verify"
)

// maxShownBody is how much of a body is shown.
const maxShownBody = 4 << 10

// try is one trial of a declaration.
type try struct {
	kind, write, name, baseURL, answers string
	parameters, secrets                 map[string]string
	send                                bool
}

func (a *app) tryCommand() *cobra.Command {
	var t try
	cmd := &cobra.Command{
		Use:   "try FILE",
		Short: "Try a declaration: each request, each answer, each field and where it is read",
		Long: "Takes the declaration's sample through its requests: a read, the write, a read. Secrets are\n" +
			"masked. Without --send and --answers nothing is sent: the first request of each step is shown.\n" +
			"With --answers FILE the answers are read from FILE, one JSON object on a line, in the order of\n" +
			"the requests: {\"status\": 201, \"header\": {}, \"body\": {\"id\": 7}}; a body of XML is a text. With --send\n" +
			"the requests go to the API, and the write makes a record: use a sandbox.",
		Args: cobra.ExactArgs(1),
		RunE: a.does(func(ctx context.Context, args []string) (int, error) { return a.try(ctx, args[0], t) }),
	}
	f := cmd.Flags()
	f.StringVar(&t.kind, "kind", "", "the kind of record; default the only one")
	f.StringVar(&t.write, "write", "create", "create, update, upsert or delete")
	f.StringVar(&t.name, "name", "try", "the name of the sample: letters and digits")
	f.StringVar(&t.baseURL, "base-url", "", "another address than the declaration's")
	f.StringToStringVar(&t.parameters, "parameter", nil, "a parameter of the account, NAME=VALUE")
	f.StringToStringVar(&t.secrets, "secret", nil, "the environment variable of a secret, NAME=VARIABLE")
	f.StringVar(&t.answers, "answers", "", "a file of recorded answers")
	f.BoolVar(&t.send, "send", false, "send the requests, the write included")
	cmd.MarkFlagsMutuallyExclusive("answers", "send")
	return cmd
}

func (a *app) try(ctx context.Context, named string, t try) (int, error) {
	d, err := config.Declaration(".", named)
	if err != nil {
		return 0, err
	}
	if t.kind == "" {
		if len(d.Kinds()) > 1 {
			return 0, usagef("--kind is missing; want one of %s", strings.Join(d.Kinds(), ", "))
		}
		t.kind = d.Kinds()[0]
	}
	in, err := d.Sample(t.kind, intent.WriteType(t.write), t.name)
	if err != nil {
		return 0, usagef("%w", err)
	}
	in.Tenant, in.Workflow, in.Step, in.Tool, in.Destination = "try", "try", t.name, "try", d.Name()
	show := &showing{out: a.stdout}
	if err := t.account(d, a.env, show); err != nil {
		return 0, err
	}
	if err := t.answering(show); err != nil {
		return 0, err
	}
	o := rest.Options{BaseURL: t.baseURL, Parameters: t.parameters, Secrets: map[string]func(context.Context) (string, error){}, Transport: show}
	for name, value := range show.secrets {
		o.Secrets[name] = func(context.Context) (string, error) { return value, nil }
	}
	o.Rotate = map[string]func(context.Context, func(string) (string, error)) error{}
	for _, name := range d.Rotating() {
		if t.send && show.secrets[name] != "" {
			return 0, usagef("the secret %s gives the next one at each use, which nothing here keeps; want another login, or no --send", name)
		}
		o.Rotate[name] = func(_ context.Context, exchange func(string) (string, error)) error {
			_, err := exchange(show.secrets[name])
			return err
		}
	}
	c, err := rest.New(d, o)
	if err != nil {
		return 0, usagef("%w", err)
	}
	show.mask = c.Mask
	if err := c.Check(in); err != nil {
		return 0, err
	}
	return show.steps(ctx, c.Declaration(), c, in), nil
}

// account completes the parameters by the declaration's examples, and fetches the secrets.
func (t *try) account(d *rest.Declaration, env func(string) string, show *showing) error {
	if t.parameters == nil {
		t.parameters = map[string]string{}
	}
	for _, p := range d.Parameters() {
		if value := cmp.Or(t.parameters[p.Name], p.Default); value == "" && p.Example != "" && !t.send {
			t.parameters[p.Name] = p.Example
		}
	}
	show.secrets = map[string]string{}
	for _, name := range t.login(d) {
		variable := t.secrets[name]
		switch value := env(variable); {
		case value != "":
			show.secrets[name] = value
		case t.send, variable != "":
			return usagef("the secret %s is missing; want --secret %s=VARIABLE, and the secret in that environment variable", name, name)
		default:
			show.secrets[name] = "secret-" + name
		}
	}
	return nil
}

// login is the secrets of the first login to which those that are given belong.
func (t *try) login(d *rest.Declaration) []string {
	for _, one := range d.Logins() {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(t.secrets)), func(name string) bool { return !slices.Contains(one, name) }) {
			return one
		}
	}
	return d.Secrets() // of two logins, which is refused
}

// answering decides what answers.
func (t *try) answering(show *showing) error {
	switch {
	case t.send:
		show.next = httpsend.NewTransport(nil, nil)
	case t.answers != "":
		text, err := os.ReadFile(t.answers)
		if err != nil {
			return usagef("--answers: %w", err)
		}
		show.next = &recorded{name: t.answers, lines: bytes.Split(bytes.TrimSpace(text), []byte("\n"))}
	}
	return nil
}

// showing prints requests and their answers.
type showing struct {
	out     io.Writer
	next    http.RoundTripper // nil: nothing is sent
	secrets map[string]string
	mask    func(string) string // that of the connector, which knows them in each spelling
	answer  func()              // prints the last answer, once the connector knows the secrets in it
}

var errNotSent = errors.New("nothing is sent without --send or --answers")

// steps are a read, the write, and a read.
func (s *showing) steps(ctx context.Context, d *rest.Declaration, c *rest.Connector, in intent.WriteIntent) int {
	profile := c.Profiles()[in.Kind]
	q := connectors.Query{Intent: in, Stamp: in.Stamp()}
	code := 0
	step := func(what string, err error) {
		switch {
		case err == nil:
		case s.next == nil:
			s.print("  %v", errNotSent)
		default:
			s.print("  %s: %v", what, err)
			code = exitAttention
		}
		s.print("")
	}
	var before *connectors.Observation
	if !profile.WriteOnly {
		s.print("# Read before the write")
		seen, err := c.Read(ctx, q)
		if err == nil {
			before = &seen
			s.observed(d, in, profile, seen, false)
		}
		step("not read", err)
		if s.next != nil && err != nil {
			return code // what is there is not known: nothing is sent
		}
		if in.Write == intent.Create && slices.ContainsFunc(seen.Records, func(r connectors.Record) bool { return r.Stamp == q.Stamp }) {
			s.print("  the sample is there already; give another --name")
			return exitAttention
		}
	}
	s.print("# The %s", in.Write)
	key := intent.SendKey(in.StructuralKey(), 1)
	receipt, err := c.Write(ctx, connectors.Request{Intent: in, Stamp: q.Stamp, IdempotencyKey: key, Attempt: 1, Before: before,
		Keep: func(context.Context, []byte) error { return nil }}) // it is sent once
	if err == nil {
		s.print("  accepted; ref %q", receipt.Ref)
		q.Ref = receipt.Ref
	}
	step(fmt.Sprint(connectors.FateOf(err)), err)
	if profile.WriteOnly || err != nil && s.next != nil {
		return code
	}
	s.print("# Read back")
	seen, err := c.Read(ctx, q)
	if err == nil && !s.observed(d, in, profile, seen, true) {
		code = exitAttention
	}
	step("not read", err)
	return code
}

// observed prints what was read, where each field is, and reports whether it is as declared.
func (s *showing) observed(d *rest.Declaration, in intent.WriteIntent, p connectors.Profile, o connectors.Observation, judge bool) bool {
	s.print("  %d records, by a %s read", len(o.Records), cmp.Or(string(o.Strength), "weak"))
	good := len(o.Records) == 1 || in.Write == intent.Delete && len(o.Records) == 0
	for _, r := range o.Records {
		mark := "of another actor"
		if r.Stamp == in.Stamp() {
			mark = "ours"
		}
		s.print("  ref %q, stamp %q: %s", r.Ref, r.Stamp, mark)
		for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
			value, _ := json.Marshal(r.Fields[name])
			s.print("    %s = %s (from %s)", name, value, d.Place(in.Kind, name))
		}
		if judge {
			for _, m := range verify.Diff(in, p.Compare, r.Fields) {
				good = false
				want, _ := json.Marshal(m.Want)
				s.print("    differs: %s: %s; want %s", m.Path, m.Problem, want)
			}
		}
	}
	return good
}

// print prints one line.
func (s *showing) print(format string, args ...any) {
	if answer := s.answer; answer != nil {
		s.answer = nil
		answer()
	}
	_, _ = fmt.Fprintln(s.out, report.Safe(s.masked(fmt.Sprintf(format, args...)))) // a terminal that is gone
}

// masked hides the secrets.
func (s *showing) masked(text string) string { return tokens.ReplaceAllString(s.mask(text), `$1"***"`) }

// tokens are what a login answers with.
var tokens = regexp.MustCompile(`("(?:access_token|refresh_token|id_token|token)"\s*:\s*)"[^"]*"`)

// RoundTrip implements [http.RoundTripper].
func (s *showing) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyOf(&r.Body)
	if err != nil {
		return nil, err
	}
	s.print("%s %s", r.Method, r.URL)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		value := strings.Join(r.Header[name], ", ")
		if name == "Authorization" {
			value, _, _ = strings.Cut(value, " ")
			value += " ***"
		}
		s.print("  %s: %s", name, value)
	}
	s.body(body)
	if s.next == nil {
		return nil, errNotSent
	}
	answer, err := s.next.RoundTrip(r)
	if err != nil {
		s.print("  -> no answer: %v", err)
		return nil, err
	}
	if body, err = bodyOf(&answer.Body); err != nil {
		return nil, err
	}
	s.answer = func() {
		s.print("  -> %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
		s.body(body)
	}
	return answer, nil
}

func (s *showing) body(body []byte) {
	if len(body) == 0 {
		return
	}
	text, more := s.masked(string(body)), "" // whole: a cut secret would not be recognised
	if len(text) > maxShownBody {
		text, more = text[:maxShownBody], " …"
	}
	s.print("  %s%s", text, more)
}

// bodyOf reads a body and puts it back.
func bodyOf(body *io.ReadCloser) ([]byte, error) {
	if *body == nil {
		return nil, nil
	}
	all, err := io.ReadAll(*body)
	*body = io.NopCloser(bytes.NewReader(all))
	return all, err
}

// recorded answers from a file.
type recorded struct {
	name  string
	lines [][]byte
	next  int
}

// RoundTrip implements [http.RoundTripper].
func (r *recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.next >= len(r.lines) {
		return nil, fmt.Errorf("%s has %d answers, and this is one request more", r.name, len(r.lines))
	}
	var one struct {
		Status int               `json:"status"`
		Header map[string]string `json:"header"`
		Body   json.RawMessage   `json:"body"`
	}
	d := json.NewDecoder(bytes.NewReader(r.lines[r.next]))
	d.DisallowUnknownFields()
	r.next++
	if err := d.Decode(&one); err != nil || one.Status == 0 {
		return nil, fmt.Errorf("%s:%d: want {\"status\": 200, \"header\": {…}, \"body\": …}: %w", r.name, r.next, err)
	}
	var text string
	if bytes.HasPrefix(one.Body, []byte(`"`)) && json.Unmarshal(one.Body, &text) == nil {
		one.Body = json.RawMessage(text) // of another type than JSON
	}
	answer := &http.Response{StatusCode: one.Status, Header: http.Header{"Content-Type": {"application/json"}}, Request: req, Body: io.NopCloser(bytes.NewReader(one.Body))}
	for name, value := range one.Header {
		answer.Header.Set(name, value)
	}
	return answer, nil
}
