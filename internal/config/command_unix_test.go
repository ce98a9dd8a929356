//go:build unix

package config

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestACommandIsKilledWithWhatItStarted(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	all := make(chan string)
	go func() {
		f, err := os.Open(pipe)
		if err != nil {
			t.Error(err)
		}
		text, _ := io.ReadAll(f) // ends when every process that writes to it has
		_ = f.Close()
		all <- string(text)
	}()
	from := origin{dir: dir, commands: Commands{Timeout: 500 * time.Millisecond}, opened: new([]*command)}
	_, err := Secret{Command: argv{"sh", "-c", "exec 3>pipe; echo begun >&3; (sleep 5; echo late >&3) & wait"}}.as("token").open(from)
	if err == nil || !strings.Contains(err.Error(), "did not end within 500ms and was killed") {
		t.Errorf("got %v; want that it was killed", err)
	}
	if got := <-all; got != "begun\n" {
		t.Errorf("the processes wrote %q; want that all of them ended with the command", got)
	}
}
