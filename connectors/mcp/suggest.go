package mcp

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/intent"
)

// Suggest drafts a contract from a server's declaration of its tools, for an operator to finish.
// Names, schemas and annotations are only hints: every guess is marked, and the draft cannot be
// loaded until its first line is removed. server is its name and version, for display. The error
// names the tool that cannot be written as JSON.
func Suggest(server string, tools []*sdk.Tool) (string, error) {
	d := &draft{server: server}
	for _, t := range slices.SortedFunc(slices.Values(tools), func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) }) {
		if err := d.add(t); err != nil {
			return "", fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return d.text(), nil
}

// draft is a contract that is being guessed.
type draft struct {
	server  string
	digests map[string]string
	reads   []*sdk.Tool
	writes  []*sdk.Tool
}

func (d *draft) add(t *sdk.Tool) error {
	sum, err := Digest(t)
	if err != nil {
		return err
	}
	if d.digests == nil {
		d.digests = map[string]string{}
	}
	d.digests[t.Name] = sum
	if isRead(t) {
		d.reads = append(d.reads, t)
	} else {
		d.writes = append(d.writes, t)
	}
	return nil
}

var (
	readWords   = regexp.MustCompile(`(?i)^(get|list|read|search|find|fetch|query|show|open|describe|count|directory|lookup|view)([_A-Z-]|$)`)
	createWords = regexp.MustCompile(`(?i)^(create|add|insert|post|send|new|append|open)`)
	deleteWords = regexp.MustCompile(`(?i)^(delete|remove|drop|destroy|archive)`)
	upsertWords = regexp.MustCompile(`(?i)^(put|set|upsert|write|save|store|replace)`)
	keyWords    = regexp.MustCompile(`(?i)^(id|key|name|path|slug|number|title|email|[a-z]+_?(id|key|number))$`)
)

// isRead requires a name that suggests a read; annotations of the server can only rule it out.
func isRead(t *sdk.Tool) bool {
	if t.Annotations != nil && t.Annotations.DestructiveHint != nil && *t.Annotations.DestructiveHint && !t.Annotations.ReadOnlyHint {
		return false
	}
	return readWords.MatchString(t.Name)
}

// guessWrite is the write type that a name speaks for.
func guessWrite(name string) intent.WriteType {
	switch {
	case deleteWords.MatchString(name):
		return intent.Delete
	case createWords.MatchString(name):
		return intent.Create
	case upsertWords.MatchString(name):
		return intent.Upsert
	}
	return intent.Update
}

// properties are the arguments of a tool by its schema.
func properties(t *sdk.Tool) map[string]any {
	m, _ := object(t.InputSchema)
	p, _ := object(m["properties"])
	return p
}

const draftLine = "draft: a reviewer must check every line marked GUESS, then remove this line\n"

func (d *draft) text() string {
	var b strings.Builder
	b.WriteString("# Drafted from what the server says of its tools. It knows what it says, not what is true.\n")
	b.WriteString(draftLine + "contract: 1\n")
	fmt.Fprintf(&b, "name: %s # GUESS\nserver: %s\n", nameOf(d.server), quoted(d.server))
	b.WriteString("# serial: true # if the server loses one of two writes that come at once\n\n")
	b.WriteString("# Tools that only read, and pass through. GUESS by their names: a tool that writes\n# and is listed here is called as often as a caller asks, and is never read back.\nreads:\n")
	for _, t := range d.reads {
		fmt.Fprintf(&b, "  - %s # GUESS%s\n", quoted(t.Name), hints(t))
	}
	if len(d.reads) == 0 {
		b.WriteString("  []\n")
	}
	b.WriteString("\n# What the tools say of themselves today. A tool that says something else later is withdrawn.\ndigests:\n")
	for _, name := range slices.Sorted(maps.Keys(d.digests)) {
		fmt.Fprintf(&b, "  %s: %s\n", quoted(name), d.digests[name])
	}
	b.WriteString("\nkinds:\n")
	for _, t := range d.writes {
		d.kind(&b, t)
	}
	return b.String()
}

// hints are the annotations, as a comment.
func hints(t *sdk.Tool) string {
	if t.Annotations == nil {
		return ""
	}
	return fmt.Sprintf(" (it calls itself readOnly: %t, idempotent: %t)", t.Annotations.ReadOnlyHint, t.Annotations.IdempotentHint)
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

func nameOf(server string) string {
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(server), "-"), "-")
	if name == "" {
		return "server"
	}
	return name
}

// quoted is a text of the server that cannot become anything else in YAML.
func quoted(s string) string {
	text, err := intent.Canonical(strings.ToValidUTF8(s, "?"))
	if err != nil {
		return `"?"`
	}
	return string(text)
}

// kind drafts the kind of one tool.
func (d *draft) kind(b *strings.Builder, t *sdk.Tool) {
	w := guessWrite(t.Name)
	keys, others := d.keysOf(t)
	name := notWord.ReplaceAllString(t.Name, "_")
	fmt.Fprintf(b, "  %s: # GUESS: a name for the records that it writes; tools that write the same records belong into one kind\n", quoted(name))
	fmt.Fprintf(b, "    writes:\n      %s: # GUESS by the name of the tool%s\n        tool: %s\n", w, hints(t), quoted(t.Name))
	b.WriteString("        # GUESS: the arguments by which the record can be found again. If an argument is a list of\n        # records, write each: $.list and the paths within one of them.\n")
	fmt.Fprintf(b, "        key: {%s}\n", paths(keys))
	if w != intent.Delete {
		fmt.Fprintf(b, "        expect: {%s} # GUESS: what a later read must find\n", paths(others))
	}
	b.WriteString("        # idempotent: true # only if you know that a repeat does no harm\n        # refused: ['^…'] # texts of an error after which surely nothing was done\n")
	d.drafted(b, keys, others)
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// drafted is the part that defines how records are read.
func (d *draft) drafted(b *strings.Builder, keys, others []string) {
	tool, argument := "TOOL_THAT_READS", "ARGUMENT"
	if len(d.reads) > 0 {
		tool = d.reads[0].Name
		for _, r := range d.reads {
			for _, k := range keys {
				if _, has := properties(r)[k]; has {
					tool, argument = r.Name, k
				}
			}
		}
	}
	fmt.Fprintf(b, "    reads:\n      - tool: %s # GUESS: a tool that shows these records, by another way than the answer of the write\n", quoted(tool))
	key := "KEY"
	if len(keys) > 0 {
		key = keys[0]
	}
	fmt.Fprintf(b, "        arguments: {%s: %s} # GUESS\n        records: $.items[*] # GUESS: where they stand in its answer\n", quoted(argument), quoted("{key."+key+"}"))
	b.WriteString("        # absent: ['not found'] # texts of an error that say that it is not there\n        # strength: strong # only if it shows everything that was applied before\n")
	b.WriteString("    record:\n      # ref: $.id\n")
	fmt.Fprintf(b, "      fields: {%s} # GUESS\n", paths(slices.Concat(keys, others)))
	b.WriteString("    # undo: {create: delete}\n    profile: {} # GUESS: settle (how long reads may lag) and horizon (how long a call may land late)\n")
}

// keysOf guesses which arguments name the record; the others are what is
// expected.
func (d *draft) keysOf(t *sdk.Tool) (keys, others []string) {
	for _, name := range slices.Sorted(maps.Keys(properties(t))) {
		switch {
		case !argumentName.MatchString(name):
		case keyWords.MatchString(name):
			keys = append(keys, name)
		default:
			others = append(others, name)
		}
	}
	if len(keys) == 0 && len(others) > 0 {
		keys, others = others[:1], others[1:]
	}
	if len(others) == 0 {
		others = keys
	}
	return keys, others
}

var argumentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func paths(names []string) string {
	all := make([]string, 0, len(names))
	for _, n := range slices.Compact(slices.Sorted(slices.Values(names))) {
		all = append(all, n+": $."+n)
	}
	return strings.Join(all, ", ")
}
