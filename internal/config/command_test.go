package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// vault is a command that prints the secret that it holds.
type vault struct {
	mu      sync.Mutex
	secret  string
	failing error
	takes   time.Duration
	runs    int
}

func (v *vault) run(ctx context.Context) (string, error) {
	v.mu.Lock()
	v.runs++
	secret, failing, takes := v.secret, v.failing, v.takes
	v.mu.Unlock()
	select {
	case <-time.After(takes):
		return secret, failing
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (v *vault) set(secret string, failing error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secret, v.failing = secret, failing
}

func TestWhenACommandRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		v := &vault{secret: "one"}
		c := &command{name: "vault", run: v.run, how: Commands{Refresh: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))}.withDefaults(), early: newEarly()}
		want := func(when, secret string, runs int) {
			t.Helper()
			got, err := c.fetch(t.Context())
			if got != secret || err != nil || v.runs != runs {
				t.Fatalf("%s: got %q, %v after %d runs; want %q after %d", when, got, err, v.runs, secret, runs)
			}
		}
		want("the first use", "one", 1)
		v.set("two", nil)
		time.Sleep(time.Minute - time.Nanosecond)
		want("before the refresh is due", "one", 1)
		time.Sleep(time.Nanosecond)
		want("when it is due", "two", 2)
		v.set("three", nil)
		c.refused()
		want("after a refused login", "three", 3)

		v.set("", errors.New("sealed"))
		time.Sleep(time.Minute)
		want("when the command fails", "three", 4)
		want("at once after a failure", "three", 4)
		time.Sleep(againAfterFailure)
		want("when it fails again", "three", 5)
		if n := strings.Count(log.String(), "sealed"); n != 1 {
			t.Errorf("logged the failures %d times, want once:\n%s", n, log.String())
		}
		c.refused()
		if got, err := c.fetch(t.Context()); err == nil || got != "" {
			t.Errorf("got %q, %v; want an error, since the last secret was refused and there is no other", got, err)
		}
		v.set("four", nil)
		want("when the command works again", "four", 7)
	})
}

func TestManyUsesOfASecretRunItsCommandOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &vault{secret: "one", takes: time.Second}
		c := &command{name: "vault", run: v.run, how: Commands{}.withDefaults(), early: newEarly()}
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.fetch(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v; want the caller's own deadline", err)
		}
		for range 10 {
			go func() {
				if got, err := c.fetch(t.Context()); got != "one" || err != nil {
					t.Errorf("got %q, %v; want one", got, err)
				}
			}()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		if v.runs != 1 {
			t.Errorf("the command ran %d times, want once", v.runs)
		}
		v.takes = time.Hour
		c.refused()
		if _, err := c.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "did not end within 10s and was killed; secrets.timeout") {
			t.Errorf("got %v; want that it took too long, and which setting says how long it may", err)
		}
	})
}

// TestRefusedLoginsRunACommandSeldom: a destination that refuses every login, or a
// command that fails, does not make each of many attempts run it.
func TestRefusedLoginsRunACommandSeldom(t *testing.T) {
	down := errors.New("sealed")
	for name, tt := range map[string]struct {
		secret  string
		failing error
	}{"every login is refused": {"one", nil}, "the command fails, too": {"one", down}, "it has never worked": {"", down}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &vault{secret: tt.secret}
				c := &command{name: "vault", run: v.run, how: Commands{}.withDefaults(), early: newEarly()}
				if tt.secret == "" {
					v.failing = down
				} else if _, err := c.fetch(t.Context()); err != nil {
					t.Fatal(err)
				}
				v.set(tt.secret, tt.failing)
				for range 1000 {
					c.refused()
					got, err := c.fetch(t.Context())
					if !errors.Is(err, tt.failing) || err == nil && got != tt.secret {
						t.Fatalf("got %q, %v; want %q, %v", got, err, tt.secret, tt.failing)
					}
				}
				if v.runs < 2 || v.runs > 10 {
					t.Errorf("the command ran %d times for 1000 attempts at once, want a few", v.runs)
				}
				v.set("two", nil)
				time.Sleep(earlyEvery)
				c.refused()
				if got, err := c.fetch(t.Context()); got != "two" || err != nil {
					t.Errorf("later: got %q, %v; want the new secret", got, err)
				}
			})
		})
	}
}

func TestWhatACommandPrints(t *testing.T) {
	t.Setenv("A_SECRET_OF_OURS", "hunter2-hunter2")
	known.add("a file", "an earlier secret")
	for name, tt := range map[string]struct {
		command argv
		want    string
		wrong   []string
		not     string
	}{
		"a line":        {command: argv{"printf", "s3cret with blanks \n"}, want: "s3cret with blanks "},
		"no shell":      {command: argv{"printf", "%s", "$HOME;id"}, want: "$HOME;id"},
		"environment":   {command: argv{"sh", "-c", "echo ${A_SECRET_OF_OURS-none} ${PATH:+path}"}, want: "none path"},
		"named for it":  {command: argv{"env", "VAULT_ADDR=https://vault.example.org", "sh", "-c", "echo $VAULT_ADDR"}, want: "https://vault.example.org"},
		"leaves one":    {command: argv{"sh", "-c", "echo early; sleep 5 & exit 0"}, want: "early"},
		"fails":         {command: argv{"sh", "-c", "echo half-a-secret; printf 'half-a-secret\\n an earlier secret' >&2; exit 3", "argument-secret"}, wrong: []string{"sh: exit status 3; on standard error: \"[secret] [secret]\""}, not: "argument-secret"},
		"fails at much": {command: argv{"sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1"}, wrong: []string{"exit status 1", "xxx"}, not: strings.Repeat("x", maxStderr+1)},
		"nothing":       {command: argv{"true"}, wrong: []string{"true: it printed nothing; want the secret on standard output"}},
		"too much":      {command: argv{"head", "-c", "70000", "/dev/zero"}, wrong: []string{"head: it printed more than 65536 bytes; want the secret alone"}},
		"not there":     {command: argv{"/nowhere/vault", "argument-secret"}, wrong: []string{"vault: it cannot be started: no such file or directory"}, not: "argument-secret"},
		"not in PATH":   {command: argv{"no-such-program-here"}, wrong: []string{"no-such-program-here: it cannot be started: executable file not found in $PATH"}},
	} {
		t.Run(name, func(t *testing.T) {
			fetch, err := Secret{Command: tt.command}.as("token").open(origin{dir: t.TempDir(), opened: new([]*command)})
			if len(tt.wrong) > 0 {
				for _, want := range append(tt.wrong, "token_command: ") {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("got %v; want %q in it", err, want)
					}
				}
				if tt.not != "" && strings.Contains(fmt.Sprint(err), tt.not) {
					t.Errorf("%v holds %q", err, tt.not)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := fetch(t.Context()); got != tt.want || err != nil {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
			if len(tt.want) >= minScrubbed && Scrub(tt.want) != "[secret]" {
				t.Errorf("%q is not scrubbed from logs", tt.want)
			}
		})
	}
}
