//go:build unix

package mcp_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/readback-go/readback/connectors/mcp"
	fakemcp "github.com/readback-go/readback/internal/fakes/mcp"
	"github.com/readback-go/readback/internal/need"
)

// A program with a user runs as that user, in its group alone, with its home.
func TestProgramsOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		need.Have(t, fmt.Errorf("root, who starts programs as other users: %w", need.ErrMissing))
	}
	t.Setenv("READBACK_TEST_MCP_SECRET", "hunter2")
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setgroups(append([]int{4711}, groups...)); err != nil { // which no program of another user may have
		need.Have(t, fmt.Errorf("the right to set groups: %w: %w", need.ErrMissing, err))
	}
	defer func() { _ = syscall.Setgroups(groups) }() // which has just worked
	for user, want := range map[string]string{
		"":       "0 home=" + os.Getenv("HOME") + " secret=",
		"nobody": "65534 65534 home=/nonexistent secret=",
		"64999":  "64999 64999 home=/ secret=", // no user of this machine
	} {
		cmd, err := mcp.Process(mcp.Server{User: user, Command: []string{"/bin/sh", "-c", `echo $(id -u) $(id -G) home=$HOME secret=$READBACK_TEST_MCP_SECRET`}}, context.Background())
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.Output()
		got := strings.TrimSpace(string(out))
		if user == "" { // whose groups are those of the machine
			got = got[:1] + got[strings.Index(got, " home="):]
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", user, got, err, want)
		}
	}
}

// The configured environment overrides the inherited one.
func TestTheEnvironmentOfAProgram(t *testing.T) {
	cmd, err := mcp.Process(mcp.Server{Env: map[string]string{"HOME": "/own"}, Command: []string{"/bin/sh"}}, context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var homes []string
	for _, v := range cmd.Env {
		if strings.HasPrefix(v, "HOME=") {
			homes = append(homes, v)
		}
	}
	if len(homes) != 1 || homes[0] != "HOME=/own" {
		t.Errorf("%q, want one HOME of the configuration", homes)
	}
}

func TestUsersThatCannotBe(t *testing.T) {
	contract := pinned(t, fakemcp.Contract)
	for name, c := range map[string]struct {
		server mcp.Server
		want   string
	}{
		"unknown": {mcp.Server{User: "readback-no-such-user", Command: []string{"a"}}, "want the name or the number of a user"},
		"far":     {mcp.Server{User: "nobody", URL: "https://a.example"}, "user: belongs to command"},
	} {
		if _, err := mcp.New(contract, mcp.Options{Server: c.server}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want %q", name, err, c.want)
		}
	}
}
