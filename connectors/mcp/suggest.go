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

// Tool is a tool as a server lists it.
type Tool = sdk.Tool

// Suggest drafts a contract from a server's declaration of its tools, for an operator to finish.
// Names, schemas and annotations are only hints: every guess is marked, and the draft cannot be
// loaded until its first line is removed. server is its name and version, for display. The error
// names the tool that cannot be written as JSON.
func Suggest(server string, tools []*sdk.Tool) (string, error) {
	d := &draft{server: server, digests: map[string]string{}}
	tools = slices.SortedFunc(slices.Values(tools), func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range tools {
		sum, err := Digest(t)
		if err != nil {
			return "", fmt.Errorf("%s: %w", t.Name, err)
		}
		d.digests[t.Name] = sum
	}
	d.guesses = guessed(tools)
	return d.text(), nil
}

// draft is a contract that is being guessed.
type draft struct {
	server  string
	digests map[string]string
	guesses []guess
}

// guess is what the name and the arguments of a tool speak for.
type guess struct {
	tool *sdk.Tool
	// write is how it writes; "" for one that reads, and for one that is unsure.
	write intent.WriteType
	// unsure means that a text of the caller decides what it does: it is proposed for nothing.
	unsure bool
	// nouns are what it is about.
	nouns []string
	// by is the reading tool for a write, nil where none is about the same.
	by *sdk.Tool
}

// verbs by what they speak for. A name has its verb first, or last (issue_write).
var verbs = map[intent.WriteType]string{
	"":            "get list read search find fetch query show open describe count directory lookup view retrieve generate",
	intent.Create: "create add insert post send new append reply fork upload apply",
	intent.Delete: "delete remove drop destroy archive",
	intent.Upsert: "write put set upsert save store replace",
}

// filler are words of a name that are no nouns.
const filler = " a an the to of by for from in with all id current my or and on as "

var (
	wordOf   = regexp.MustCompile(`[A-Z]+(?:[a-z0-9]*)|[a-z0-9]+`)
	keyWords = regexp.MustCompile(`(?i)^(id|key|name|path|slug|number|title|email|[a-z]+_?(id|key|number))$`)
	// deciding are arguments that are a language of their own.
	deciding = []string{"sql", "query", "command"}
)

// guessed guesses what each tool does, and pairs tools that write with tools that read by what
// they are about.
func guessed(tools []*sdk.Tool) []guess {
	common := commonWord(tools)
	all := make([]guess, len(tools))
	for i, t := range tools {
		all[i] = guessOne(t, common)
	}
	for i := range all {
		best := 0
		for _, r := range all {
			if n := all[i].fits(r); n > best {
				best, all[i].by = n, r.tool
			}
		}
	}
	return all
}

// words are the words of a name, in lower case and in the singular.
func words(name string) []string {
	all := wordOf.FindAllString(name, -1)
	for i, w := range all {
		w = strings.ToLower(w)
		switch {
		case strings.HasSuffix(w, "ies"):
			w = strings.TrimSuffix(w, "ies") + "y"
		case strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "sses"):
			w = strings.TrimSuffix(w, "es")
		case !strings.HasSuffix(w, "ss"):
			w = strings.TrimSuffix(w, "s")
		}
		all[i] = w
	}
	return all
}

// commonWord is the word that each name begins with, "" for none: it names the server.
func commonWord(tools []*sdk.Tool) string {
	common := ""
	for i, t := range tools {
		w := words(t.Name)
		if len(w) < 2 || i > 0 && w[0] != common || slices.ContainsFunc(slices.Collect(maps.Values(verbs)), func(known string) bool {
			return slices.Contains(strings.Fields(known), w[0])
		}) {
			return ""
		}
		common = w[0]
	}
	return common
}

func guessOne(t *sdk.Tool, common string) guess {
	g := guess{tool: t, write: intent.Update}
	all := words(t.Name)
	if common != "" {
		all = all[1:]
	}
	verb := -1
	for _, i := range []int{0, len(all) - 1, 1} {
		if verb >= 0 || i < 0 || i >= len(all) {
			continue
		}
		for write, known := range verbs {
			if slices.Contains(strings.Fields(known), all[i]) && (i == 0 || all[i] != "write") { // issue_write says nothing
				verb, g.write = i, write
			}
		}
	}
	for i, w := range all {
		if i != verb && !strings.Contains(filler, " "+w+" ") {
			g.nouns = append(g.nouns, w)
		}
	}
	// Annotations of the server can only rule a read out.
	if a := t.Annotations; g.write == "" && a != nil && a.DestructiveHint != nil && *a.DestructiveHint && !a.ReadOnlyHint {
		g.write = intent.Update
	}
	decides := func(name string) bool { _, has := properties(t)[name]; return has }
	if g.write == "" || verb < 0 {
		g.unsure = slices.ContainsFunc(deciding, decides)
	}
	return g
}

// fits is how well a tool that reads would show what a tool writes: by the nouns that both are
// about, then by the way that suits the write, then by the arguments that both have.
func (g guess) fits(r guess) int {
	if g.write == "" || g.unsure || r.write != "" || r.unsure {
		return 0
	}
	shared := 0
	for _, n := range g.nouns {
		if slices.Contains(r.nouns, n) {
			shared++
		}
	}
	if shared == 0 {
		return 0
	}
	score := 1000*shared - 300*(len(r.nouns)-shared)
	lists := slices.Contains([]string{"list", "search"}, words(r.tool.Name)[0])
	if lists == (g.write == intent.Create) {
		score += 100
	}
	for name := range properties(r.tool) {
		if _, has := properties(g.tool)[name]; has {
			score += 10
		}
	}
	return max(score, 1)
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
	none, unsure := true, ""
	for _, g := range d.guesses {
		switch {
		case g.unsure:
			unsure += fmt.Sprintf("  # - %s # what it does is in its argument: it may write\n", quoted(g.tool.Name))
		case g.write == "":
			none = false
			fmt.Fprintf(&b, "  - %s # GUESS%s\n", quoted(g.tool.Name), hints(g.tool))
		}
	}
	if none {
		b.WriteString("  []\n")
	}
	b.WriteString(unsure)
	b.WriteString("\n# What the tools say of themselves today. A tool that says something else later is withdrawn.\ndigests:\n")
	for _, name := range slices.Sorted(maps.Keys(d.digests)) {
		fmt.Fprintf(&b, "  %s: %s\n", quoted(name), d.digests[name])
	}
	b.WriteString("\nkinds:\n")
	for _, g := range d.guesses {
		var kind strings.Builder
		switch {
		case g.write == "" || g.unsure:
			continue
		case g.by != nil:
			draftKind(&b, g)
			continue
		}
		draftKind(&kind, g)
		b.WriteString("  # GUESS: no tool that reads is about the same, so that nothing could prove this one\n")
		for line := range strings.Lines(kind.String()) {
			b.WriteString("  #" + strings.TrimPrefix(line, " "))
		}
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

// draftKind drafts the kind of one tool.
func draftKind(b *strings.Builder, g guess) {
	t, w := g.tool, g.write
	keys, others := keysOf(t)
	name := notWord.ReplaceAllString(t.Name, "_")
	fmt.Fprintf(b, "  %s: # GUESS: a name for the records that it writes; tools that write the same records belong into one kind\n", quoted(name))
	fmt.Fprintf(b, "    writes:\n      %s: # GUESS by the name of the tool%s\n        tool: %s\n", w, hints(t), quoted(t.Name))
	b.WriteString("        # GUESS: the arguments by which the record can be found again. If an argument is a list of\n        # records, write each: $.list and the paths within one of them.\n")
	fmt.Fprintf(b, "        key: {%s}\n", paths(keys))
	if w != intent.Delete {
		fmt.Fprintf(b, "        expect: {%s} # GUESS: what a later read must find\n", paths(others))
	}
	b.WriteString("        # idempotent: true # only if you know that a repeat does no harm\n        # refused: ['^…'] # texts of an error after which surely nothing was done\n")
	drafted(b, g, keys, others)
}

var notWord = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// drafted is the part that defines how records are read.
func drafted(b *strings.Builder, g guess, keys, others []string) {
	tool, argument, key := "TOOL_THAT_READS", "ARGUMENT", "KEY"
	if len(keys) > 0 {
		key = keys[0]
	}
	if g.by != nil {
		tool = g.by.Name
		for _, k := range keys {
			if _, has := properties(g.by)[k]; has {
				argument, key = k, k
			}
		}
	}
	fmt.Fprintf(b, "    reads:\n      - tool: %s # GUESS: a tool that shows these records, by another way than the answer of the write\n", quoted(tool))
	fmt.Fprintf(b, "        arguments: {%s: %s} # GUESS\n        records: $.items[*] # GUESS: where they stand in its answer\n", quoted(argument), quoted("{key."+key+"}"))
	b.WriteString("        # absent: ['not found'] # texts of an error that say that it is not there\n        # strength: strong # only if it shows everything that was applied before\n")
	b.WriteString("    record:\n      # ref: $.id\n")
	fmt.Fprintf(b, "      fields: {%s} # GUESS\n", paths(slices.Concat(keys, others)))
	b.WriteString("    # undo: {create: delete}\n    profile: {} # GUESS: settle (how long reads may lag) and horizon (how long a call may land late)\n")
}

// keysOf guesses which arguments name the record; the others are what is
// expected.
func keysOf(t *sdk.Tool) (keys, others []string) {
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
