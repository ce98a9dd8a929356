package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Another process of the same user reads neither the environment nor the memory of the
// program, where secrets are; it reads those of a program that does not hide.
func TestOtherProcessesCannotReadSecrets(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "readback")
	copied(t, os.Args[0], self)
	var as *syscall.SysProcAttr
	if os.Geteuid() == 0 { // whom nothing is hidden from
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		for at := dir; at != "/" && at != os.TempDir(); at = filepath.Dir(at) {
			if err := os.Chmod(at, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	read := func(pid int, what string) (string, error) {
		cmd := exec.Command("/bin/cat", fmt.Sprintf("/proc/%d/%s", pid, what))
		cmd.SysProcAttr = as
		out, err := cmd.Output()
		return string(out), err
	}
	running := func(name string, args ...string) int {
		cmd := exec.Command(name, args...)
		cmd.SysProcAttr, cmd.Dir = as, dir
		cmd.Env = []string{asProgram + "=1", "SECRET=canary-in-the-environment"}
		out, err := cmd.StdoutPipe()
		if err == nil {
			_, err = cmd.StdinPipe() // open until the process is killed: the shell waits for it
		}
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		})
		said := make([]byte, 1)
		if _, err := io.ReadFull(out, said); err != nil {
			t.Fatalf("%s said nothing: %v", name, err)
		}
		return cmd.Process.Pid
	}
	if got, err := read(running("/bin/sh", "-c", "echo here; read nothing"), "environ"); err != nil || !strings.Contains(got, "canary") {
		t.Fatalf("a program that does not hide: %q, %v", got, err)
	}
	pid := running(self, "simulated-orders")
	for _, what := range []string{"environ", "maps"} {
		if got, err := read(pid, what); err == nil {
			t.Errorf("%s was read: %.200q", what, got)
		}
	}
}

// copied makes a copy of a program that every user can run.
func copied(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(strings.TrimSpace(err.Error()))
	}
}
