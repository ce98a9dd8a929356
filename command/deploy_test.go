package command

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
)

const deploy = "../deploy"

// packaged are the files that start the program somewhere, by name.
func packaged(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	paths := []string{"../Dockerfile", "../.goreleaser.yaml"}
	err := filepath.WalkDir(deploy, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(p)] = string(text)
	}
	if len(all) < 8 {
		t.Fatalf("only %d files were found", len(all))
	}
	return all
}

// yamlOf reads a file as YAML.
func yamlOf(t *testing.T, name, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := yaml.UnmarshalWithOptions([]byte(text), &v, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// member is the value at a path within YAML, by names and indices.
func member(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch at := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[at]
		case int:
			list, _ := v.([]any)
			if at >= len(list) {
				t.Fatalf("%v is missing", path)
			}
			v = list[at]
		}
	}
	return v
}

func TestPackagingParses(t *testing.T) {
	for name, text := range packaged(t) {
		if strings.HasSuffix(name, ".yaml") {
			yamlOf(t, name, text)
		}
	}
}

var variableShape = regexp.MustCompile(`READBACK_[A-Z_]+`)

// Every variable that is set somewhere is also read.
func TestPackagingKnowsItsVariables(t *testing.T) {
	known := []string{config.Variable}
	for _, s := range config.Settings() {
		known = append(known, s.Variable)
	}
	found := 0
	for name, text := range packaged(t) {
		for _, v := range variableShape.FindAllString(text, -1) {
			if found++; !slices.Contains(known, v) {
				t.Errorf("%s sets %s, which has no effect", name, v)
			}
		}
	}
	if found < 8 {
		t.Errorf("only %d were found", found)
	}
	text, err := os.ReadFile("../docs/reference/config.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range known {
		if !strings.Contains(string(text), "`"+v+"`") {
			t.Errorf("docs/reference/config.md does not list %s", v)
		}
	}
}

// started are the command lines in the files, without the program's name.
func started(t *testing.T) map[string][]string {
	t.Helper()
	files := packaged(t)
	all := map[string][]string{}
	for _, line := range strings.Split(files["readback.service"], "\n") {
		if key, command, ok := strings.Cut(line, "="); ok && strings.HasPrefix(key, "Exec") && strings.Contains(command, "readback ") {
			all[key] = strings.Fields(command)[1:]
		}
	}
	for _, found := range regexp.MustCompile(`(?m)(?:^|\s)CMD (\[.*\])$`).FindAllStringSubmatch(files["Dockerfile"], -1) {
		var args []string
		if err := yaml.Unmarshal([]byte(found[1]), &args); err != nil {
			t.Fatal(err)
		}
		all["CMD "+found[1]] = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "/") })
	}
	for what, args := range map[string]any{
		"compose":    member(t, yamlOf(t, "compose.yaml", files["compose.yaml"]), "services", "readback", "command"),
		"deployment": member(t, yamlOf(t, "deployment.yaml", files["deployment.yaml"]), "spec", "template", "spec", "containers", 0, "args"),
	} {
		list, _ := args.([]any)
		for _, a := range list {
			all[what] = append(all[what], a.(string))
		}
	}
	return all
}

// Every command that is started there is, with its flags.
func TestPackagingStartsWhatThereIs(t *testing.T) {
	all := started(t)
	for _, want := range []string{"ExecStart", "ExecStartPre", "compose", "deployment", `CMD ["serve"]`, `CMD ["/usr/local/bin/readback", "healthcheck"]`} {
		if len(all[want]) == 0 {
			t.Errorf("%s was not found in %v", want, all)
		}
	}
	for what, args := range all {
		a := &app{env: func(string) string { return "" }}
		cmd, rest, err := a.root().Find(args)
		if err != nil || !cmd.HasParent() {
			t.Errorf("%s: %q is no command: %v", what, args, err)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// seconds is a number of them.
func seconds(t *testing.T, v any) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(fmt.Sprint(v) + "s")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A test that stops a server waits for as long as the stop may take.
func TestPackagingWaitsForTheGrace(t *testing.T) {
	files := packaged(t)
	grace := config.DefaultServer().Grace
	spec := member(t, yamlOf(t, "deployment.yaml", files["deployment.yaml"]), "spec", "template", "spec")
	pod := seconds(t, member(t, spec, "terminationGracePeriodSeconds"))
	pause := seconds(t, member(t, spec, "containers", 0, "lifecycle", "preStop", "sleep", "seconds"))
	compose, err := time.ParseDuration(member(t, yamlOf(t, "compose.yaml", files["compose.yaml"]), "services", "readback", "stop_grace_period").(string))
	if err != nil {
		t.Fatal(err)
	}
	unit, err := time.ParseDuration(regexp.MustCompile(`TimeoutStopSec=(\S+)`).FindStringSubmatch(files["readback.service"])[1])
	if err != nil {
		t.Fatal(err)
	}
	for what, is := range map[string]time.Duration{"the pod": pod - pause, "compose": compose, "the unit": unit} {
		if is < grace+5*time.Second {
			t.Errorf("%s waits %s, and a server may take %s", what, is, grace)
		}
	}
}

// bytesOf parses a size in the notation of a file: Go, Docker, systemd and Kubernetes use
// different units.
func bytesOf(t *testing.T, text string) int64 {
	t.Helper()
	units := map[string]int64{"m": 1 << 20, "M": 1 << 20, "Mi": 1 << 20, "MiB": 1 << 20, "g": 1 << 30, "G": 1 << 30, "Gi": 1 << 30, "GiB": 1 << 30}
	found := regexp.MustCompile(`^(\d+)([A-Za-z]+)$`).FindStringSubmatch(text)
	if found == nil || units[found[2]] == 0 {
		t.Fatalf("%q is no size that is known", text)
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n * units[found[2]]
}

// What Go's collector stays within is below what the kernel allows, and not so far
// below that the rest is of no use.
func TestPackagingLimitsMemory(t *testing.T) {
	files := packaged(t)
	service := func(key string) string {
		found := regexp.MustCompile(`(?m)^` + key + `=(\S+)$`).FindStringSubmatch(files["readback.service"])
		if found == nil {
			t.Fatalf("the unit has no %s", key)
		}
		return found[1]
	}
	compose := member(t, yamlOf(t, "compose.yaml", files["compose.yaml"]), "services", "readback")
	container := member(t, yamlOf(t, "deployment.yaml", files["deployment.yaml"]), "spec", "template", "spec", "containers", 0)
	inPod := ""
	for _, each := range member(t, container, "env").([]any) {
		if member(t, each, "name") == "GOMEMLIMIT" {
			inPod = member(t, each, "value").(string)
		}
	}
	for what, is := range map[string]struct {
		soft, hard string
		least      int64 // percent
	}{
		"compose":  {fmt.Sprint(member(t, compose, "environment", "GOMEMLIMIT")), fmt.Sprint(member(t, compose, "mem_limit")), 75},
		"the pod":  {inPod, member(t, container, "resources", "limits", "memory").(string), 75},
		"the unit": {service("Environment=GOMEMLIMIT"), service("MemoryMax"), 45}, // programs run in it too
	} {
		soft, hard := bytesOf(t, is.soft), bytesOf(t, is.hard)
		if share := soft * 100 / hard; share < is.least || share > softPercent {
			t.Errorf("%s: GOMEMLIMIT is %d%% of the limit; want %d%% to %d%%", what, share, is.least, softPercent)
		}
	}
}

// The configurations are such as the program takes.
func TestPackagedConfigurations(t *testing.T) {
	files := packaged(t)
	data := member(t, yamlOf(t, "configuration.yaml", files["configuration.yaml"]), "data").(map[string]any)
	mounted := map[string]string{}
	for name, text := range data {
		mounted[name] = text.(string)
	}
	for what, beside := range map[string]map[string]string{"compose": {"readback.yaml": files["readback.yaml"]}, "kubernetes": mounted} {
		if r := checks(t, beside, nil); r.code != 0 {
			t.Errorf("%s: %s", what, r)
		}
	}
	for _, port := range []any{member(t, yamlOf(t, "deployment.yaml", files["deployment.yaml"]), "spec", "template", "spec", "containers", 0, "ports", 0, "containerPort")} {
		if !strings.Contains(files["deployment.yaml"], "0.0.0.0:8080") || port.(uint64) != 8080 {
			t.Errorf("the port is %v", port)
		}
	}
}

// What is released is what `make cross` builds.
func TestReleasedSystems(t *testing.T) {
	build := member(t, yamlOf(t, ".goreleaser.yaml", packaged(t)[".goreleaser.yaml"]), "builds", 0)
	var released []string
	for _, system := range member(t, build, "goos").([]any) {
		for _, machine := range member(t, build, "goarch").([]any) {
			released = append(released, system.(string)+"/"+machine.(string))
		}
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`for target in ((?:\w+/\w+ ?)+); do`).FindSubmatch(makefile)
	if found == nil {
		t.Fatal("the Makefile builds for no system")
	}
	if diff := cmp.Diff(released, strings.Fields(string(found[1]))); diff != "" {
		t.Error(diff)
	}
	if env := member(t, build, "env").([]any); !slices.Contains(env, any("CGO_ENABLED=0")) || !bytes.Contains(makefile, []byte("CGO_ENABLED=0")) {
		t.Error("cgo is not off")
	}
}
