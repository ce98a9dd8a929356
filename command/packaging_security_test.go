package command

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/readback-go/readback/internal/need"
	"github.com/readback-go/readback/signing"
)

// Released programs for Linux start on images without a C library, such as the one of the
// Dockerfile: a position-independent one without cgo needs the loader of glibc. The others are
// position-independent by default.
func TestReleasedProgramsAreStatic(t *testing.T) {
	files := packaged(t)
	build := member(t, yamlOf(t, ".goreleaser.yaml", files[".goreleaser.yaml"]), "builds", 0)
	args := []string{"build"}
	for _, flag := range member(t, build, "flags").([]any) {
		args = append(args, flag.(string))
	}
	ldflags := member(t, build, "ldflags", 0).(string)
	if want := "go build " + strings.Join(args[1:], " ") + ` -ldflags "` + ldflags + `" -o /out/readback ./cmd/readback`; !strings.Contains(files["Dockerfile"], want) || !strings.Contains(files["Dockerfile"], "CGO_ENABLED=0 ") {
		t.Errorf("the image is not built as releases are: want %s", want)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "main.go": "package main\n\nimport _ \"net\"\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.CommandContext(t.Context(), "go", append(args, "-ldflags", ldflags, "-o", arch, ".")...) //nolint:gosec // our own flags
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOWORK=off", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		program, err := elf.Open(filepath.Join(dir, arch))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range program.Progs {
			if p.Type == elf.PT_INTERP {
				t.Errorf("%s: it needs a loader", arch)
			}
		}
		if err := program.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The image is built from a whole checkout: without .git, or with a tracked file missing, its
// program prints no version.
func TestImageKnowsItsVersion(t *testing.T) {
	git := need.Program(t, "git")
	text, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	patterns := strings.Fields(string(text))
	if slices.Contains(patterns, ".git") || len(patterns) == 0 {
		t.Errorf("the image is built without .git: %v", patterns)
	}
	for _, p := range patterns {
		cmd := exec.CommandContext(t.Context(), git, "-C", "..", "ls-files", "--", ":(glob)"+p, ":(glob)"+p+"/**") //nolint:gosec // our own patterns
		tracked, err := cmd.Output()
		if err != nil {
			need.Have(t, fmt.Errorf("git ls-files: %w", err))
		}
		if len(tracked) > 0 {
			t.Errorf("%s leaves out files of the repository:\n%s", p, tracked)
		}
	}
}

// Released artifacts contain the licences of their linked code, generated when they are
// built.
func TestReleasesHaveTheNoticesOfOthers(t *testing.T) {
	files := packaged(t)
	release := yamlOf(t, ".goreleaser.yaml", files[".goreleaser.yaml"])
	hooks, _ := member(t, release, "before", "hooks").([]any)
	if !slices.Contains(hooks, any("go run ./internal/notices -out bin/NOTICE")) {
		t.Errorf("releases do not make it: %v", hooks)
	}
	archived, _ := member(t, release, "archives", 0, "files").([]any)
	if !slices.ContainsFunc(archived, func(f any) bool {
		m, ok := f.(map[string]any)
		return ok && m["src"] == "bin/NOTICE" && m["dst"] == "NOTICE"
	}) {
		t.Errorf("archives do not have it: %v", archived)
	}
	if !slices.Contains(archived, any("deploy")) { // the folder, with all below it
		t.Errorf("archives do not have deploy/: %v", archived)
	}
	for _, want := range []string{"RUN go run ./internal/notices -out /out/NOTICE\n", "COPY --from=build /src/LICENSE /out/NOTICE /usr/share/doc/readback/\n"} {
		if !strings.Contains(files["Dockerfile"], want) {
			t.Errorf("the image lacks %q", want)
		}
	}
}

// No file that users are asked to create, and no file that is mounted, can be read by
// every user.
func TestDeployedFilesAreNotForEverybody(t *testing.T) {
	files := packaged(t)
	pages := []string{"../README.md", "../SECURITY.md"}
	for _, pattern := range []string{"../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(found), err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		files[page] = string(text)
	}
	modes := regexp.MustCompile(`(?:chmod|-m|--mode=?|Mode[:=]) *"?(0?[0-7]{3})\b`)
	found := 0
	for name, text := range files {
		for _, m := range modes.FindAllStringSubmatch(text, -1) {
			if found++; !strings.HasSuffix(m[1], "0") {
				t.Errorf("%s: %q is for every user; want 0640, 0600 or less", name, m[0])
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d modes were found", found)
	}
	for what, want := range map[string]string{
		"compose.yaml":              "-m 0600 -o 65532 /dev/stdin deploy/postgres-password",
		"readback.service":          "-m 0640 -g readback readback.yaml /etc/readback/readback.yaml",
		"../docs/operate/deploy.md": "-m 0640 -g readback readback.yaml /etc/readback/readback.yaml",
	} {
		if !strings.Contains(files[what], want) {
			t.Errorf("%s does not say %q", what, want)
		}
	}
	volumes, _ := member(t, yamlOf(t, "deployment.yaml", files["deployment.yaml"]), "spec", "template", "spec", "volumes").([]any)
	for i, v := range volumes {
		for kind, source := range v.(map[string]any) {
			if kind != "configMap" && kind != "secret" {
				continue
			}
			if mode := fmt.Sprint(member(t, source, "defaultMode")); mode != fmt.Sprint(0o440) { // else 0644
				t.Errorf("volume %d has the default mode %s; want 0440", i, mode)
			}
		}
	}
}

// The security policy is where forges look for it: it names a private way to report, and
// it and the page of the promises link to each other.
func TestSecurityPolicy(t *testing.T) {
	policy, err := os.ReadFile("../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"*Report a vulnerability*", "Do not open an issue", "(docs/operate/security.md)"} {
		if !strings.Contains(string(policy), want) {
			t.Errorf("SECURITY.md does not say %q", want)
		}
	}
	page, err := os.ReadFile("../docs/operate/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, reporting, ok := strings.Cut(string(page), "\n## Reporting\n"); !ok || !strings.Contains(reporting, "(../../SECURITY.md)") {
		t.Error("docs/operate/security.md does not lead to SECURITY.md")
	}
}

// The checksums of a release are signed as .goreleaser.yaml configures it, with a key of package
// signing, and the commands of docs/reference/versions.md verify them.
func TestChecksumsOfAReleaseAreVerified(t *testing.T) {
	need.Program(t, "openssl")
	sha256sum := need.Program(t, "sha256sum")
	page, err := os.ReadFile("../docs/reference/versions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "<!-- run: verify -->\n```sh\n")
	verify, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the page has no commands")
	}
	private, public, err := signing.Generate()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) error {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", name, err, out)
		}
		return nil
	}
	put("key.pem", string(private))
	put("release.pub", string(public))
	put("readback_0.1.0_linux_amd64.tar.gz", "an archive")
	sums, err := exec.CommandContext(t.Context(), sha256sum, filepath.Join(dir, "readback_0.1.0_linux_amd64.tar.gz")).Output()
	if err != nil {
		t.Fatal(err)
	}
	put("checksums.txt", strings.ReplaceAll(string(sums), dir+"/", "")+strings.Repeat("0", 64)+"  readback_0.1.0_linux_arm64.tar.gz\n")
	release := yamlOf(t, ".goreleaser.yaml", packaged(t)[".goreleaser.yaml"])
	sign := member(t, release, "signs", 0)
	of, signature := member(t, release, "checksum", "ids").([]any), member(t, sign, "id") // of what is not named here goreleaser adds the checksum after it signed
	if len(of) != 2 || !slices.Contains(of, member(t, release, "archives", 0, "id")) || !slices.Contains(of, member(t, release, "sboms", 0, "id")) || slices.Contains(of, signature) {
		t.Errorf("checksums are of %v, and the signature is %v", of, signature)
	}
	var args []string
	for _, a := range member(t, sign, "args").([]any) {
		args = append(args, strings.NewReplacer("$artifact", "checksums.txt", "$signature", "checksums.txt.sig", "{{ .Env.SIGNING_KEY }}", "key.pem").Replace(a.(string)))
	}
	if err := run(member(t, sign, "cmd").(string), args...); err != nil {
		t.Fatal(err)
	}
	if err := run("sh", "-e", "-c", verify); err != nil {
		t.Error(err)
	}
	put("readback_0.1.0_linux_amd64.tar.gz", "another archive")
	if err := run("sh", "-e", "-c", verify); err == nil {
		t.Error("a changed archive is verified")
	}
	put("readback_0.1.0_linux_amd64.tar.gz", "an archive")
	put("checksums.txt", string(sums))
	if err := run("sh", "-e", "-c", verify); err == nil {
		t.Error("changed checksums are verified")
	}
}

// A vulnerability database that is unreachable is no failure, is reported at the end of a
// run, and excuses no vulnerabilities that were found.
func TestLintWithoutTheDatabaseOfVulnerabilities(t *testing.T) {
	need.Program(t, "make")
	versions, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code     string
		fails    bool
		reported bool
	}{"none": {"0", false, false}, "away": {"1", false, true}, "found": {"3", true, false}} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			put := func(name, text string) {
				if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil { //nolint:gosec // it is run
					t.Fatal(err)
				}
			}
			put("unchecked", "of an earlier run\n")
			put("golangci-lint", "#!/bin/sh\n")
			put("actionlint", "#!/bin/sh\n")
			put("govulncheck", "#!/bin/sh\nexit "+c.code+"\n")
			for line := range strings.Lines(string(versions)) { // the stamps of what is installed
				if variable, version, ok := strings.Cut(strings.TrimSpace(line), " := v"); ok {
					put(map[string]string{"LINT_VERSION": "golangci-lint", "VULN_VERSION": "govulncheck", "ACTIONLINT_VERSION": "actionlint"}[variable]+"-v"+version, "")
				}
			}
			out, err := exec.CommandContext(t.Context(), "make", "-C", "..", "lint", "BIN="+bin).CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("error %v\n%s", err, out)
			}
			kept, err := os.ReadFile(filepath.Join(bin, "unchecked"))
			if reported := err == nil; reported != c.reported || reported && !strings.HasPrefix(string(kept), "warning: govulncheck could not ask") {
				t.Errorf("kept for the end: %q, %v", kept, err)
			}
		})
	}
	ci, err := os.ReadFile("../.ci/run")
	if err != nil || !strings.Contains(string(ci), "cat bin/unchecked\nfi\n") || !strings.HasSuffix(string(ci), "fi\n") {
		t.Errorf("the last thing that CI does is not to print it: %v", err)
	}
}
