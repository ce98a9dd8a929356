package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/rest"
	"github.com/readback-go/readback/internal/catalog"
	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/report"
)

func (a *app) initCommand() *cobra.Command {
	var s initSettings
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a configuration with comments, for a destination of yours",
		Long: `Write a configuration with a comment on every setting. On a terminal the command asks
for the destination. Elsewhere --destination and --set give it; without them the file has a
destination to try out. An existing file stays as it is, unless --force is given.

A destination is a name that ` + "`readback catalog`" + ` lists, such as stripe-refund or jira-cloud-issue,
a type (` + strings.Join(config.Types(), ", ") + `), or a file with a
declaration of yours. --set takes settings as they are in the file: a dot leads into a section,
and the value is YAML. The file never has a secret: it names an environment variable, or a
file. What is missing or wrong is named, and then nothing is written.

  readback init --destination jira --name tickets --set url=https://example.atlassian.net \
    --set user=ada@example.org --set token_env=JIRA_TOKEN
  readback init --destination stripe --set parameters.version=2025-09-30.clover --set secrets.key.file=/run/secrets/stripe`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.init(ctx, s) }),
	}
	cmd.Flags().BoolVar(&s.force, "force", false, "overwrite an existing file")
	cmd.Flags().StringVar(&s.destination, "destination", "", "what is written to: a name of the catalogue, a type, or a declaration")
	cmd.Flags().StringVar(&s.name, "name", "", "what callers call the destination (default what --destination says)")
	cmd.Flags().StringArrayVar(&s.set, "set", nil, "a setting of the destination, as NAME=VALUE; repeat it for several")
	return cmd
}

type initSettings struct {
	force             bool
	destination, name string
	set               []string
}

const firstSteps = `Wrote %[1]s. To try it out:

  readback simulated-orders --address 127.0.0.1:8177 &
  readback schema --example > intent.json
  readback submit -f intent.json
`

func (a *app) init(ctx context.Context, s initSettings) (int, error) {
	path := cmp.Or(a.config, a.env(config.Variable), config.FileName)
	if _, err := os.Lstat(path); err == nil && !s.force { // before questions are asked
		return 0, usagef("%s is there already; --force overwrites it", path)
	}
	made, err := a.asked(ctx, s, filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	text := config.Template()
	if made != nil {
		if text, err = made.template(path); err != nil {
			return 0, fmt.Errorf("nothing was written: %w", err)
		}
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if s.force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, how, 0o600) // it names secrets, though it holds none
	if errors.Is(err, fs.ErrExist) {
		return 0, usagef("%s is there already; --force overwrites it", path)
	}
	if err != nil {
		return 0, err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	if made == nil {
		return 0, a.print(map[string]string{"wrote": path}, func() string { return fmt.Sprintf(firstSteps, path) })
	}
	wrote := struct {
		Wrote       string `json:"wrote"`
		Destination string `json:"destination"`
		Type        string `json:"type"`
		// Unset are the variables of its secrets that this process does not have.
		Unset []string `json:"unset,omitempty"`
	}{path, made.name, made.kind, slices.DeleteFunc(made.variables, func(name string) bool { return a.env(name) != "" })}
	return 0, a.print(wrote, func() string {
		text := fmt.Sprintf("Wrote %s with the destination %s (%s).\n", path, made.name, made.kind)
		for _, name := range wrote.Unset {
			text += fmt.Sprintf("The environment variable %s is not set: set it to the secret before you continue.\n", name)
		}
		return text + "\n  readback doctor          check the file, the ledger and the login\n  readback destinations    what can be written there\n"
	})
}

// template is the configuration with the destination. It was checked, except for the
// secrets in the environment.
func (b *block) template(path string) ([]byte, error) {
	entry, err := b.text()
	if err != nil {
		return nil, err
	}
	text := config.TemplateFor(entry)
	c, err := config.Parse(path, text)
	if err == nil {
		c.Commands.Off = true
		_, err = c.Registry(anySecret)
	}
	if invalid := (*config.InvalidError)(nil); errors.As(err, &invalid) {
		for i := range invalid.Problems {
			invalid.Problems[i].Line = 0 // there is no file yet
		}
	}
	return text, err
}

// question is a setting that init asks for.
type question struct {
	setting, about, otherwise string // otherwise is the default
	optional                  bool
	secret                    bool     // setting is the prefix of _env and _file
	yaml                      bool     // the answer is YAML
	instead                   []string // other settings that make it unnecessary
}

// questions are the settings without which a type has no use.
var questions = map[string][]question{
	"simulated": {{setting: "url", about: "Address", otherwise: "http://127.0.0.1:8177"}},
	"jira": {
		{setting: "url", about: "Address, such as https://example.atlassian.net"},
		{setting: "user", about: "User, or the e-mail address of the token", optional: true},
		{setting: "token", about: "API token", secret: true}},
	"imap": {
		{setting: "addr", about: "Address, such as imap.example.org:993"},
		{setting: "username", about: "User"},
		{setting: "password", about: "Password", secret: true},
		{setting: "mailbox", about: "Mailbox", otherwise: "INBOX"}},
	"mail": {
		{setting: "addr", about: "Address of the server that sends, such as smtp.example.org:465"},
		{setting: "username", about: "User"},
		{setting: "password", about: "Password", secret: true},
		{setting: "from", about: "Sender, such as Ada <ada@example.org>"},
		{setting: "proof", about: "Where a sent mail is seen: filed (the server files it) or copied", otherwise: "filed"},
		{setting: "imap.addr", about: "Address of the mailbox where it is seen, such as imap.example.org:993"}},
	"s3": {
		{setting: "bucket", about: "Bucket"},
		{setting: "region", about: "Region", otherwise: "us-east-1"},
		{setting: "url", about: "Address of the store; empty for AWS", optional: true},
		{setting: "access_key", about: "Access key ID"},
		{setting: "secret", about: "Secret access key", secret: true}},
	"mcp": {{setting: "url", about: "Address of the server, such as https://mcp.example.org/mcp; empty for a program", optional: true, instead: []string{"command"}},
		{setting: "command", about: "Program and its arguments, such as [node, server.js]", yaml: true, instead: []string{"url"}}},
	"postgresql": {
		{setting: "dsn", about: "Address without the password, such as postgres://app@db.example.org/shop?sslmode=verify-full"},
		{setting: "password", about: "Password", secret: true, optional: true},
		{setting: "tables", about: "Tables, such as {order: {name: orders, columns: {number: text, amount: numeric}, key: [number]}}", yaml: true}},
}

// asked is the destination as the flags say and the user of a terminal answers; nil for
// the one to try out.
func (a *app) asked(ctx context.Context, s initSettings, folder string) (*block, error) {
	ask := a.interactive && !a.json
	if s.destination == "" && (s.name != "" || len(s.set) > 0) {
		return nil, usagef("--destination is missing; want a name of `readback catalog`, a type, or a file with a declaration")
	}
	if s.destination == "" && !ask {
		return nil, nil
	}
	in := bufio.NewScanner(a.stdin)
	answer := func(q question) (string, error) { return a.answer(ctx, in, q) }
	if s.destination == "" {
		var err error
		s.destination, err = answer(question{about: "What do you want to write to? A name that `readback catalog` lists, such as stripe or jira,\nor a file with a declaration; simulated is a destination to try out", otherwise: "simulated"})
		if err != nil || s.destination == "simulated" {
			return nil, err
		}
	}
	b, wanted, err := destinationOf(s.destination, folder)
	if err != nil {
		return nil, err
	}
	if b.name = s.name; b.name == "" {
		b.name = strings.TrimSuffix(s.destination[strings.LastIndexAny(s.destination, `/\`)+1:], ".yaml")
		if ask {
			if b.name, err = answer(question{about: "Name by which callers name it", otherwise: b.name}); err != nil {
				return nil, err
			}
		}
	}
	for _, one := range s.set {
		name, value, ok := strings.Cut(one, "=")
		if !ok {
			return nil, usagef("--set is %q; want NAME=VALUE, such as url=https://example.org", report.Clip(name, 40))
		}
		if err := b.add(name, value); err != nil {
			return nil, usagef("--set %s: %w", report.Safe(name), err)
		}
	}
	var missing []string
	for _, q := range wanted {
		switch {
		case b.has(q):
		case ask:
			text, err := answer(q)
			if err == nil {
				err = b.answer(q, text)
			}
			if err != nil {
				return nil, err
			}
		case q.otherwise != "":
			err = b.answer(q, q.otherwise)
		case !q.optional:
			missing = append(missing, fmt.Sprintf("  --set %s  # %s", q.flag(), q.about))
		}
		if err != nil {
			return nil, err
		}
	}
	if len(missing) > 0 {
		return nil, usagef("%s needs more settings:\n%s", report.Safe(s.destination), strings.Join(missing, "\n"))
	}
	return b, nil
}

// flag is how --set gives the answer.
func (q question) flag() string {
	switch {
	case q.secret && strings.Contains(q.setting, "."):
		return q.setting + ".env=VARIABLE (or " + q.setting + ".file=PATH)"
	case q.secret:
		return q.setting + "_env=VARIABLE (or " + q.setting + "_file=PATH)"
	}
	return q.setting + "=VALUE"
}

// answer asks a question on the terminal, again while a required answer is missing.
func (a *app) answer(ctx context.Context, in *bufio.Scanner, q question) (string, error) {
	prompt := q.about
	if q.secret {
		prompt += ": an environment variable, or a file (a path with a slash), that has it"
	}
	switch {
	case q.otherwise != "":
		prompt += " [" + q.otherwise + "]"
	case q.optional:
		prompt += " [none]"
	}
	for {
		_, _ = fmt.Fprintf(a.stderr, "%s: ", prompt)
		more := make(chan bool, 1)
		go func() { more <- in.Scan() }()
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("nothing was written: %w", context.Cause(ctx))
		case ok := <-more:
			if !ok {
				return "", usagef("the input ended before all questions were answered; nothing was written")
			}
		}
		if text := cmp.Or(strings.TrimSpace(in.Text()), q.otherwise); text != "" || q.optional {
			return text, nil
		}
	}
}

// destinationOf is the destination that a name means, without settings, and what must be
// asked about it.
func destinationOf(named, folder string) (*block, []question, error) {
	if strings.ContainsAny(named, `./\`) { // a file
		path, err := filepath.Abs(named)
		if folder == "." {
			path = named
		}
		if err != nil {
			return nil, nil, err
		}
		return declaredBlock(path)
	}
	if slices.Contains(config.Types(), named) && named != "rest" && named != "mcp" {
		return &block{kind: named}, questions[named], nil
	}
	if slices.Contains(rest.Shipped(), named) {
		return declaredBlock(named)
	}
	if c, ok := strings.CutPrefix(named, "mcp-"); ok && slices.Contains(mcp.Shipped(), c) {
		return contractBlock(c)
	}
	means := map[string]func() (*block, []question, error){}
	for _, s := range catalog.All() {
		if s.Name != named && !strings.HasPrefix(s.Name, named+"-") {
			continue
		}
		switch s.Type {
		case "":
		case "rest":
			d := longest(rest.Shipped(), s.Name)
			means[d] = func() (*block, []question, error) { return declaredBlock(d) }
		case "mcp":
			c := longest(mcp.Shipped(), strings.TrimPrefix(s.Name, "mcp-"))
			means["mcp-"+c] = func() (*block, []question, error) { return contractBlock(c) }
		default:
			means[s.Type] = func() (*block, []question, error) { return &block{kind: s.Type}, questions[s.Type], nil }
		}
	}
	switch names := slices.Sorted(maps.Keys(means)); len(names) {
	case 0:
		return nil, nil, usagef("no destination is called %q; `readback catalog` lists what there is", report.Clip(named, 80))
	case 1:
		return means[names[0]]()
	default:
		return nil, nil, usagef("%q can mean %s; want one of them", named, strings.Join(names, ", "))
	}
}

// longest is the longest of the names that a sheet of the catalogue begins with.
func longest(names []string, sheet string) (found string) {
	for _, n := range names {
		if (sheet == n || strings.HasPrefix(sheet, n+"-")) && len(n) > len(found) {
			found = n
		}
	}
	return found
}

// contractBlock is a server of MCP with an included contract.
func contractBlock(contract string) (*block, []question, error) {
	b := &block{kind: "mcp"}
	return b, questions["mcp"], b.answer(question{setting: "contract"}, contract)
}

// declaredBlock is a destination with a declaration, an included one or a file.
func declaredBlock(named string) (*block, []question, error) {
	d, err := config.Declaration(".", named)
	if err != nil {
		return nil, nil, err
	}
	b := &block{kind: "rest"}
	if err := b.answer(question{setting: "declaration"}, named); err != nil {
		return nil, nil, err
	}
	var wanted []question
	if d.BaseURL() == "" {
		wanted = append(wanted, question{setting: "base_url", about: "Address, such as https://api.example.org"})
	}
	logins := append(d.Logins(), nil)
	for _, p := range d.Parameters() {
		if len(p.Logins) > 0 && !slices.Contains(p.Logins, 0) {
			continue // of a login that is not asked for
		}
		about := cmp.Or(p.About, "The parameter "+p.Name)
		if p.Example != "" {
			about += ", such as " + p.Example
		}
		wanted = append(wanted, question{setting: "parameters." + p.Name, about: about, otherwise: p.Default})
	}
	for _, name := range logins[0] {
		q := question{setting: "secrets." + name, about: "The secret " + name, secret: true}
		for _, other := range d.Secrets() { // of another login
			if !slices.Contains(logins[0], other) {
				q.instead = append(q.instead, "secrets."+other)
			}
		}
		wanted = append(wanted, q)
	}
	return b, wanted, nil
}

// block is a destination in a configuration.
type block struct {
	name, kind string
	settings   yaml.MapSlice
	paths      []string // of the settings
	variables  []string // with its secrets
}

var (
	settingPath = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	// variableInCapitals excludes most secrets that were given in place of a name.
	variableInCapitals = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
)

// add adds a setting whose value is YAML.
func (b *block) add(path, value string) error {
	var v any
	switch ofVariable := strings.HasSuffix(path, "_env") || strings.HasSuffix(path, ".env"); {
	case !settingPath.MatchString(path):
		return errors.New("is no setting; want names of letters, digits, - and _, with dots between them")
	case ofVariable && !variableInCapitals.MatchString(value):
		return errors.New("is no environment variable in capital letters; want its name, never the secret itself")
	case ofVariable:
		b.variables = append(b.variables, value)
	}
	if err := yaml.UnmarshalWithOptions([]byte(value), &v, yaml.UseOrderedMap()); err != nil {
		return fmt.Errorf("is no YAML: %s", flat(err.Error()))
	}
	b.paths = append(b.paths, path)
	b.settings = put(b.settings, strings.Split(path, "."), v)
	return nil
}

// put sets a value in sections of sections.
func put(in yaml.MapSlice, path []string, v any) yaml.MapSlice {
	at := slices.IndexFunc(in, func(e yaml.MapItem) bool { return e.Key == path[0] })
	if at < 0 {
		at, in = len(in), append(in, yaml.MapItem{Key: path[0]})
	}
	if len(path) > 1 {
		section, _ := in[at].Value.(yaml.MapSlice) // anything else is replaced
		v = put(section, path[1:], v)
	}
	in[at].Value = v
	return in
}

// answer adds the answer to a question.
func (b *block) answer(q question, text string) error {
	path := q.setting
	switch {
	case text == "":
		return nil
	case q.yaml:
		return b.add(path, text)
	case q.secret:
		how := "_env"
		if strings.ContainsAny(text, `/\`) {
			how = "_file"
		}
		if strings.Contains(path, ".") {
			how = "." + how[1:]
		}
		path += how
		if strings.HasSuffix(path, "env") {
			if err := b.add(path, text); err != nil {
				return usagef("%s: the answer %w", path, err)
			}
			return nil
		}
	}
	quoted, err := json.Marshal(text) // JSON is YAML
	if err != nil {
		return err
	}
	return b.add(path, string(quoted))
}

// has reports whether a setting answers the question.
func (b *block) has(q question) bool {
	return slices.ContainsFunc(b.paths, func(path string) bool {
		return slices.ContainsFunc(append(q.instead, q.setting), func(name string) bool {
			rest, ok := strings.CutPrefix(path, name)
			return strings.HasPrefix(name, path+".") || ok && (rest == "" || rest[0] == '.' || q.secret && rest[0] == '_')
		})
	})
}

// text is the block in YAML, as an entry of `destinations`.
func (b *block) text() (string, error) {
	settings := append(yaml.MapSlice{{Key: "type", Value: b.kind}}, b.settings...)
	text, err := yaml.Marshal(yaml.MapSlice{{Key: b.name, Value: settings}})
	if err != nil {
		return "", err
	}
	return "  " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  ") + "\n", nil
}
