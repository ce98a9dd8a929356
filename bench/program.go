//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stops is how long a server may take to stop before it is killed.
const stops = 15 * time.Second

// find returns the path of a program, or "" if this machine does not have it. It is looked for
// in PATH unless it is named.
func find(named, program string) string {
	if named == "" {
		named = program
	}
	path, err := exec.LookPath(named)
	if err != nil {
		return ""
	}
	if path, err = filepath.Abs(path); err != nil {
		return ""
	}
	return path
}

// version is what a program says of itself.
func version(ctx context.Context, program, path string) string {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return program + " " + err.Error()
	}
	return program + " " + strings.TrimSpace(strings.TrimPrefix(string(out), program))
}

// start starts a server and returns how to stop it. Its output goes to a file in the folder of
// the run.
func (m *machine) start(program string, env []string, args ...string) (stop func() error, err error) {
	log, err := os.OpenFile(filepath.Join(m.dir, program+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(m.programs[program], args...)
	cmd.Env = append(append(os.Environ(), "TMPDIR="+m.dir), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt from the terminal is for this program
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // it ends by the signals below
	return func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(stops):
			_ = cmd.Process.Kill()
			<-ended
		}
		return log.Close()
	}, nil
}

// How soon until repeats what fails while a server starts, and a call of hundreds that fails since the server is busy.
const (
	startPause = 50 * time.Millisecond
	busyPause  = 3 * time.Second
)

// until repeats what fails until it succeeds or the context ends.
func until(ctx context.Context, pause time.Duration, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}
