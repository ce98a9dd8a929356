package readback_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/engine"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/verify"
)

// pages are all pages of the documentation by their paths, with their text.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	add := func(name string) {
		text, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	add("README.md")
	add("SECURITY.md")
	add("CONTRIBUTING.md")
	err := filepath.WalkDir("docs", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".md" {
			add(filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	named   = regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md(?:#[a-z-]+)?`)
)

// anchors are the names under which the headings of a page can be linked to.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		all[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return all
}

// Every link of a page leads to a file that exists, and to a heading of it.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		for _, l := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(target, ":") || l[1] == "?" { // another site, or an expression in code
				continue
			}
			to := name
			if target != "" {
				to = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(filepath.FromSlash(to)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, l[1])
			} else if anchor != "" && !anchors(all[to])[anchor] {
				t.Errorf("%s links to %s, which has no such heading", name, l[1])
			}
		}
	}
}

// Every page that code, configurations and commands name exists, with the heading.
func TestPagesThatAreNamedExist(t *testing.T) {
	all, found := pages(t), 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && name != "." || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		switch ext := filepath.Ext(name); {
		case d.IsDir() || name == "CHANGELOG.md": // a version names the pages that it had
			return nil
		case ext != ".go" && ext != ".yaml" && ext != ".md" && d.Name() != "Makefile" && d.Name() != "Dockerfile":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, n := range named.FindAllString(string(text), -1) {
			page, anchor, _ := strings.Cut(n, "#")
			if content, ok := all[page]; !ok || anchor != "" && !anchors(content)[anchor] {
				t.Errorf("%s names %s, which does not exist", name, n)
			}
			found++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 40 {
		t.Errorf("only %d names of pages were found", found)
	}
}

// declared are the exported names of a package: X, and X.Y of the fields and methods of X.
func declared(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(folder), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					of := d.Recv.List[0].Type
					if star, ok := of.(*ast.StarExpr); ok {
						of = star.X
					}
					if named, ok := of.(*ast.Ident); ok {
						name = named.Name + "." + name
					}
				}
				all[name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							all[name.Name] = true
						}
					case *ast.TypeSpec:
						all[spec.Name.Name] = true
						if of, ok := spec.Type.(*ast.StructType); ok {
							for _, field := range of.Fields.List {
								for _, name := range field.Names {
									all[spec.Name.Name+"."+name.Name] = true
								}
							}
						}
					}
				}
			}
		}
	}
	return all
}

var (
	selector = regexp.MustCompile("`([a-z]+)\\.([A-Z][A-Za-z.]*)`(?: in `([a-z/]+)`)?")
	arrow    = regexp.MustCompile(`(?m)^  ([a-z]+)(?:\["[^"]*"\])? --> ([a-z]+)`)
	node     = regexp.MustCompile(`(?m)\b([a-z]+)\["([^":]*)`)
)

// Every term of the glossary names something that the code has, and every verdict and state
// of the code is in the glossary. Every arrow of the picture is an import, and every package
// that is not below another is in the picture.
func TestGlossary(t *testing.T) {
	text := pages(t)["docs/reference/glossary.md"]
	terms, known := 0, map[string]map[string]bool{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || strings.HasSuffix(line, "| in the code |\n") {
			continue
		}
		terms++
		names := selector.FindAllStringSubmatch(cells[2], -1)
		if len(names) == 0 {
			t.Errorf("%s: no Go identifier in %q", cells[0], cells[2])
		}
		for _, n := range names {
			folder := n[3]
			if folder == "" {
				folder = n[1]
			}
			if known[folder] == nil {
				known[folder] = declared(t, folder)
			}
			if !known[folder][n[2]] {
				t.Errorf("%s: %s has no %s", cells[0], folder, n[2])
			}
		}
	}
	if terms < 40 {
		t.Errorf("only %d terms were found", terms)
	}
	source, err := os.ReadFile(filepath.Join("ledger", "record.go"))
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, v := range verify.Verdicts() {
		words = append(words, v.String())
	}
	for _, m := range regexp.MustCompile(`\bState += "([a-z]+)"`).FindAllStringSubmatch(string(source), -1) {
		words = append(words, m[1])
	}
	if len(words) < 17 {
		t.Errorf("only %d verdicts and states were found", len(words))
	}
	for _, word := range words {
		if !strings.Contains(text, "`"+word+"`") {
			t.Errorf("the glossary does not have %q", word)
		}
	}

	folders := map[string][]string{}
	for _, n := range node.FindAllStringSubmatch(text, -1) {
		base := ""
		for _, folder := range strings.Split(n[2], ", ") {
			if base == "" {
				base = path.Dir(folder)
			} else if !strings.Contains(folder, "/") {
				folder = path.Join(base, folder)
			}
			if folder != "…" && path.Base(folder) != "…" {
				folders[n[1]] = append(folders[n[1]], folder)
			}
		}
	}
	imports := map[string][]string{} // of shipped code, by package
	for _, f := range parsed(t) {
		if !f.test {
			for _, p := range f.imports(t) {
				imports[f.dir] = append(imports[f.dir], strings.TrimPrefix(p, module+"/"))
			}
		}
	}
	arrows := arrow.FindAllStringSubmatch(text, -1)
	if len(arrows) < 20 {
		t.Errorf("only %d arrows were found", len(arrows))
	}
	shown := map[string]bool{}
	for _, a := range arrows {
		from, to := folders[a[1]], folders[a[2]]
		if from == nil {
			from = []string{a[1]}
		}
		if to == nil {
			to = []string{a[2]}
		}
		for _, f := range from {
			shown[f], shown[to[0]] = true, true
			if imports[f] == nil {
				t.Errorf("the picture has %s, which is no package: want one of %v", f, slices.Sorted(maps.Keys(imports)))
			} else if reached := reach(imports, f, f == "command"); !slices.ContainsFunc(to, func(to string) bool { return reached[to] }) {
				t.Errorf("the picture has an arrow from %s to %v, which it does not import", f, to)
			}
		}
	}
	for _, p := range slices.Concat(floors...) {
		if !shown[p] && p != "." && !strings.Contains(p, "/") {
			t.Errorf("the picture does not show %s", p)
		}
	}
}

// reach are the packages that a package imports, or reaches through others.
func reach(imports map[string][]string, from string, through bool) map[string]bool {
	all := map[string]bool{}
	next := imports[from]
	for len(next) > 0 {
		p := next[0]
		if next = next[1:]; !all[p] {
			all[p] = true
			if through {
				next = slices.Concat(next, imports[p])
			}
		}
	}
	return all
}

// doc.go names every package of the module, and no other. Its program, and the Go of
// README.md, are lines of examples that are compiled and run.
func TestMapOfPackages(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	all := slices.DeleteFunc(slices.Concat(floors...), func(p string) bool { return p == "." })
	folder := regexp.MustCompile(`\b(?:` + module + `/[a-z/]+|(?:internal|connectors|ledger|readbacktest|cmd)/[a-z0-9/]+)`)
	var named []string
	for _, n := range folder.FindAllString(string(text), -1) {
		named = append(named, strings.TrimPrefix(n, module+"/"))
	}
	for _, p := range all {
		if !slices.Contains(named, p) {
			t.Errorf("doc.go does not name %s", p)
		}
	}
	for _, n := range named {
		if !slices.Contains(all, n) {
			t.Errorf("doc.go names %s, which is no package", n)
		}
	}

	blocks := strings.Split(pages(t)["README.md"], "```go\n")
	if len(blocks) != 3 {
		t.Fatalf("README.md has %d blocks of Go; want that of package once and that of the engine", len(blocks)-1)
	}
	small, _, _ := strings.Cut(blocks[1], "```")
	readme, _, _ := strings.Cut(blocks[2], "```")
	var example strings.Builder
	for line := range strings.Lines(string(text)) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			example.WriteString(code)
		}
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	ofOnce, err := os.ReadFile("once/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(string(examples), "func Example() {")
	first, second, _ := strings.Cut(first, "func Example_readme() {")
	for of, code := range map[string][2]string{"doc.go": {example.String(), first}, "README.md": {readme, second}, "once in README.md": {small, string(ofOnce)}} {
		shown, compiled := lines(code[0]), lines(code[1])
		if len(shown) < 10 {
			t.Errorf("%s has only %d lines of code", of, len(shown))
		}
		for _, line := range shown {
			i := slices.Index(compiled, line)
			if i < 0 {
				t.Errorf("%s has %q, which is not in its example, or not in this place", of, line)
				continue
			}
			compiled = compiled[i+1:]
		}
	}
}

// Each package that people import has an example, which is compiled and mostly run.
func TestPackagesHaveExamples(t *testing.T) {
	for _, p := range slices.Concat(floors...) {
		if first, _, _ := strings.Cut(p, "/"); slices.Contains([]string{"internal", "cmd", "examples"}, first) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(filepath.FromSlash(p), "example_test.go"))
		if err != nil || !strings.Contains(string(text), "\nfunc Example") {
			t.Errorf("%s has no example in its example_test.go: %v", p, err)
		}
	}
}

// lines are the lines of a text that are not empty, without what only gofmt is about.
func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			all = append(all, strings.Join(words, " "))
		}
	}
	return all
}

// Every test that a page of the guide names exists.
func TestTestsThatPagesNameExist(t *testing.T) {
	found := 0
	for _, m := range regexp.MustCompile("`([a-z/]+): (Test[A-Za-z]+)`").FindAllStringSubmatch(pages(t)["docs/guide/your-200-lines.md"], -1) {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(m[1]), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "func "+m[2]+"(t *testing.T)")
		}) {
			t.Errorf("%s has no test %s", m[1], m[2])
		}
		found++
	}
	if found < 20 {
		t.Errorf("only %d tests were found", found)
	}
}

// Every package that a target of the Makefile or a step of CI names exists: go test ends at one that
// does not.
func TestPackagesOfTargetsExist(t *testing.T) {
	for _, file := range []string{"Makefile", ".ci/run"} {
		text, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`(?:^|\s)\./([a-z][a-z0-9/]*)`).FindAllStringSubmatch(string(text), -1)
		if file == "Makefile" && len(named) < 20 {
			t.Errorf("%s: only %d packages were found", file, len(named))
		}
		for _, m := range named {
			if m[1] == "readback" { // the program, in bin/
				continue
			}
			if found, err := filepath.Glob(filepath.Join(filepath.FromSlash(m[1]), "*.go")); err != nil || len(found) == 0 && !strings.HasSuffix(m[1], "/") {
				t.Errorf("%s names ./%s, which has no Go files", file, m[1])
			}
		}
	}
}

// Every decision has a row, and every row says whether the decision still holds.
func TestDecisionsHaveAStatus(t *testing.T) {
	index := pages(t)["docs/decisions/README.md"]
	files, err := filepath.Glob(filepath.Join("docs", "decisions", "[0-9]*.md"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d decisions, %v", len(files), err)
	}
	row := regexp.MustCompile(`(?m)^\| \[\d+\]\(([^)]+)\) \| .* \| (accepted|superseded by|withdrawn)\b[^|]*\|$`)
	rows := map[string]int{}
	for _, m := range row.FindAllStringSubmatch(index, -1) {
		rows[m[1]]++
	}
	for _, file := range files {
		if n := rows[filepath.Base(file)]; n != 1 {
			t.Errorf("docs/decisions/README.md has %d rows with a status for %s, want 1", n, filepath.Base(file))
		}
	}
}

// The page on writes has every member of an intent and of an outcome and every status, and
// its example is a valid intent.
func TestThePageOnWrites(t *testing.T) {
	text := pages(t)["docs/guide/writes.md"]
	for _, of := range []reflect.Type{reflect.TypeFor[intent.WriteIntent](), reflect.TypeFor[engine.Outcome]()} {
		for f := range of.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !strings.Contains(text, "`"+name+"`") {
				t.Errorf("docs/guide/writes.md does not say what `%s` of %s is", name, of)
			}
		}
	}
	source, err := os.ReadFile(filepath.Join("ledger", "record.go"))
	if err != nil {
		t.Fatal(err)
	}
	statuses := regexp.MustCompile(`\bStatus = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(statuses) < 10 {
		t.Errorf("only %d statuses were found", len(statuses))
	}
	for _, m := range statuses {
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("docs/guide/writes.md does not say what the status `%s` is", m[1])
		}
	}
	_, block, _ := strings.Cut(text, "```json\n")
	block, _, _ = strings.Cut(block, "```")
	if _, err := intent.Decode([]byte(block)); err != nil {
		t.Error(err)
	}
}
