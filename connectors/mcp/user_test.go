//go:build unix

package mcp_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/readback-go/readback/connectors/mcp"
	"github.com/readback-go/readback/connectors/mcp/mcptest"
)

// A program with a user runs as that user, in its group alone, with its home.
func TestProgramsOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root starts programs as others")
	}
	t.Setenv("READBACK_TEST_MCP_SECRET", "hunter2")
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

func TestUsersThatCannotBe(t *testing.T) {
	contract := pinned(t, mcptest.Contract)
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
