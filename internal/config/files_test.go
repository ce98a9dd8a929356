//go:build linux || darwin

package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/need"
)

// A user who may change a file decides what is started and where secrets are sent.
func TestWhoMayWriteTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		reason      string
		use         config.FileUse
		mode        fs.FileMode
		owner, user int
		readOnly    bool
		want        string
	}{
		{"the owner alone writes it", config.UseSettings, 0o644, 7, 7, false, ""},
		{"root may write everything anyway", config.UseSettings, 0o644, 0, 7, false, ""},
		{"its group writes it", config.UseSettings, 0o664, 7, 7, false, "chmod go-w PATH"},
		{"everybody writes it", config.UseSettings, 0o646, 0, 7, false, "chmod go-w PATH"},
		{"its owner can give the right to write it", config.UseSettings, 0o600, 8, 7, false, "chown 7 PATH"},
		{"also where this is root", config.UseSettings, 0o600, 8, 0, false, "chown 0 PATH"},
		{"a read-only mount cannot be written", config.UseSettings, 0o666, 8, 7, true, ""},
		{"its files can be exchanged", config.UseSettings, fs.ModeDir | 0o777, 0, 7, false, "exchange its files"},
		{"those of others cannot be exchanged in a sticky one", config.UseSettings, fs.ModeDir | fs.ModeSticky | 0o777, 0, 7, false, ""},
		{"its owner can exchange them", config.UseSettings, fs.ModeDir | fs.ModeSticky | 0o777, 8, 7, false, "chown 7 PATH"},
		{"a link has no mode", config.UseSettings, fs.ModeSymlink | 0o777, 7, 7, false, ""},
		{"the owner of a link can point it elsewhere", config.UseSettings, fs.ModeSymlink | 0o777, 8, 7, false, "chown 7 PATH"},
		{"a password may be read by others, as in Docker", config.UseSecret, 0o444, 0, 7, false, ""},
		{"a key that everybody reads is none", config.UseKey, 0o444, 0, 7, false, "chmod o-rwx PATH"},
		{"also where it cannot be written", config.UseKey, 0o444, 0, 7, true, "chmod o-rwx PATH"},
		{"its group may read it", config.UseKey, 0o440, 0, 7, false, ""},
		{"everybody may read what is beside a key", config.UseKey, fs.ModeDir | 0o755, 0, 7, false, ""},
	} {
		got := config.Wrong(c.use, c.mode, c.owner, c.user, c.readOnly)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %v of %d for %d: %q; want %q; reason: %s", c.use, c.mode, c.owner, c.user, got, c.want, c.reason)
		}
	}
}

const namesFiles = `ledger: {type: postgres, url_file: url}
gate: {rules: rules.yaml}
server:
  tls: {cert_file: cert.pem, key_file: tls.pem}
receipts:
  key_file: receipts.pem
  trusted: [old.pem]
redaction:
  keys: [{id: a, key_file: seal}]
destinations:
  shop:
    type: rest
    declaration: ./shop.yaml
    base_url: https://shop.example.org
    secrets: {token: {file: shop-token}, other: {command: [./fetch, fetched.txt, -x]}}
  a.b:
    type: mcp
    dir: tools
    command: [./server, main.py, --fast]
    env: {key_file: url}
    contract: ./contract.yaml
  far:
    type: mcp
    url: https://far.example.org
    headers: {Authorization: {file: far-token}}
    contract: filesystem
  path:
    type: mcp
    dir: tools
    command: [python3.11]
    contract: filesystem
  mailbox:
    type: imap
    password_command: [./fetch-mail, ./fetched-mail]
`

// Each file that the configuration names is refused when others may write to it,
// with the line that names it; none is refused where the file is used elsewhere.
func TestFilesThatOthersMayWrite(t *testing.T) {
	path := write(t, namesFiles)
	dir := filepath.Dir(path)
	if err := os.Mkdir(filepath.Join(dir, "tools"), 0o700); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{ // and how a refusal begins
		config.FileName: "readback.yaml: can be written", "url": ":1: ledger.url_file: ", "rules.yaml": ":2: gate.rules: ",
		"cert.pem": ":4: server.tls.cert_file: ", "tls.pem": ":4: server.tls.key_file: ", "receipts.pem": ":6: receipts.key_file: ",
		"old.pem": ":7: receipts.trusted[0]: ", "seal": ":9: redaction.keys[0].key_file: ",
		"shop.yaml": ":13: destinations.shop.declaration: ", "shop-token": ":15: destinations.shop.secrets.token.file: ",
		"tools/server": ":19: destinations.a.b.command[0]: ", "tools/main.py": ":19: destinations.a.b.command[1]: ",
		"contract.yaml": ":21: destinations.a.b.contract: ", "far-token": ":25: destinations.far.headers.Authorization.file: ",
		"fetch": ":15: destinations.shop.secrets.other.command[0]: ", "fetched.txt": ":15: destinations.shop.secrets.other.command[1]: ",
		"fetch-mail": ":34: destinations.mailbox.password_command[0]: ", "fetched-mail": ":34: destinations.mailbox.password_command[1]: ",
	}
	for name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(namesFiles), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, want string) {
		t.Helper()
		if _, err := config.Load(path); err != nil {
			t.Errorf("a file for elsewhere is refused: %v", err)
		}
		_, err := config.LoadOver(path, over())
		if want == "" && err != nil || want != "" && (!errors.Is(err, config.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v; want %q", err, want)
		}
		if err != nil && strings.Count(err.Error(), "\n") != 1 {
			t.Errorf("want one problem: %v", err)
		}
	}
	check(t, "")
	for name, want := range names {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			chmod(t, file, 0o620)
			check(t, want)
			chmod(t, file, 0o600)
		})
	}
	t.Run("program from PATH", func(t *testing.T) { // not the file of that name, which is not started
		file := filepath.Join(dir, "tools", "python3.11")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		chmod(t, file, 0o666)
		check(t, "")
	})
	t.Run("public key", func(t *testing.T) { // in the place of a private one, of which its reader complains
		file := filepath.Join(dir, "receipts.pem")
		if err := os.WriteFile(file, []byte("-----BEGIN PUBLIC KEY-----\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		chmod(t, file, 0o644)
		check(t, "")
		chmod(t, file, 0o664)
		check(t, ":6: receipts.key_file: "+file+" can be written by others")
		chmod(t, file, 0o600)
	})
	t.Run("key", func(t *testing.T) {
		chmod(t, filepath.Join(dir, "seal"), 0o604)
		check(t, ":9: redaction.keys[0].key_file: "+filepath.Join(dir, "seal")+" can be read by every user")
		chmod(t, filepath.Join(dir, "seal"), 0o600)
	})
	t.Run("key beside a certificate", func(t *testing.T) {
		file := filepath.Join(dir, "cert.pem")
		if err := os.WriteFile(file, []byte("-----BEGIN PRIVATE KEY-----\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		check(t, "")
		chmod(t, file, 0o644)
		check(t, ":4: server.tls.cert_file: "+file+" can be read by every user")
		chmod(t, file, 0o600)
	})
	t.Run("directory", func(t *testing.T) {
		chmod(t, filepath.Join(dir, "tools"), 0o770)
		_, err := config.LoadOver(path, over())
		if err == nil || !strings.Contains(err.Error(), "is in the directory "+filepath.Join(dir, "tools")+", which others can write to") {
			t.Errorf("error %v", err)
		}
		chmod(t, filepath.Join(dir, "tools"), 0o770|fs.ModeSticky)
		check(t, "")
	})
	t.Run("owner", func(t *testing.T) {
		file := filepath.Join(dir, "rules.yaml")
		if err := os.Chown(file, 65533, -1); err != nil {
			need.Have(t, fmt.Errorf("root, who gives files away: %w: %w", need.ErrMissing, err))
		}
		check(t, ":2: gate.rules: "+file+" belongs to user 65533")
		if err := os.Chown(file, os.Geteuid(), -1); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("owner of a link", func(t *testing.T) {
		file, older := filepath.Join(dir, "old.pem"), filepath.Join(dir, "older.pem")
		if err := errors.Join(os.Rename(file, older), os.Symlink(older, file)); err != nil {
			t.Fatal(err)
		}
		check(t, "")
		if err := os.Lchown(file, 65533, -1); err != nil {
			need.Have(t, fmt.Errorf("root, who gives links away: %w: %w", need.ErrMissing, err))
		}
		check(t, ":7: receipts.trusted[0]: is reached by a symbolic link that belongs to user 65533")
		if err := os.Lchown(file, os.Geteuid(), -1); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("directory of a link", func(t *testing.T) {
		open, safe := filepath.Join(t.TempDir(), "open"), filepath.Join(t.TempDir(), "safe.yaml")
		if err := errors.Join(os.Mkdir(open, 0o700), os.WriteFile(safe, nil, 0o600), os.Symlink(safe, filepath.Join(open, "rules.yaml"))); err != nil {
			t.Fatal(err)
		}
		through := write(t, "ledger: a.db\ngate: {rules: "+filepath.Join(open, "rules.yaml")+"}\n")
		if _, err := config.LoadOver(through, over()); err != nil {
			t.Error(err)
		}
		chmod(t, open, 0o777)
		if _, err := config.LoadOver(through, over()); err == nil || !strings.Contains(err.Error(), ":2: gate.rules: is in the directory "+open) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("link", func(t *testing.T) {
		open := filepath.Join(t.TempDir(), "open")
		if err := errors.Join(os.Mkdir(open, 0o700), os.Rename(filepath.Join(dir, "rules.yaml"), filepath.Join(open, "rules")),
			os.Symlink(filepath.Join(open, "rules"), filepath.Join(dir, "rules.yaml"))); err != nil {
			t.Fatal(err)
		}
		check(t, "")
		chmod(t, open, 0o777)
		check(t, ":2: gate.rules: is in the directory "+open)
	})
	t.Run("environment", func(t *testing.T) {
		rules := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(rules, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		chmod(t, rules, 0o666)
		_, err := config.LoadOver(write(t, "ledger: a.db\n"), over("READBACK_GATE_RULES", rules))
		if err == nil || !strings.Contains(err.Error(), "gate.rules: "+rules) {
			t.Errorf("error %v", err)
		}
		if _, err = config.Without(over("READBACK_GATE_RULES", rules), "a.db"); err == nil {
			t.Error("without a configuration it is taken")
		}
	})
}

func chmod(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// The digest follows the content of the configuration and of its files, and holds no
// digest of a secret.
func TestDigestOfTheConfiguration(t *testing.T) {
	path := write(t, "ledger: a.db\ngate: {rules: rules.yaml}\nreceipts: {key_file: key}\ndestinations:\n"+
		"  box: {type: imap, addr: 'a.example:993', username: u, password_command: [./fetch, ./key], ca_file: ca.pem}\n"+
		"  tools: {type: mcp, command: [./server], contract: filesystem}\n")
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	digest := func() config.Digest {
		c, err := config.LoadOver(path, over())
		if err != nil {
			t.Fatal(err)
		}
		d, err := c.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	put("rules.yaml", "abc")
	for _, name := range []string{"key", "ca.pem", "server", "fetch"} {
		put(name, "abc")
	}
	first := digest()
	var files []string
	for _, f := range first.Files {
		files = append(files, filepath.Base(f.File))
	}
	if diff := cmp.Diff([]string{config.FileName, "fetch", "ca.pem", "server", "rules.yaml"}, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := first.Files[4].SHA256; got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" { // FIPS 180-2
		t.Errorf("the digest of rules.yaml is %s", got)
	}
	put("key", "def")
	if diff := cmp.Diff(first, digest()); diff != "" {
		t.Errorf("another key (-want +got):\n%s", diff)
	}
	c, err := config.LoadOver(path, over())
	if err != nil {
		t.Fatal(err)
	}
	put(config.FileName, "ledger: other.db\n") // after it was read: the configuration in force has the digest
	if d, err := c.Digest(); err != nil || d.SHA256 != first.SHA256 {
		t.Errorf("the digest of what was read: %+v, %v", d, err)
	}
	put(config.FileName, string(text))
	put("rules.yaml", "abcd")
	if second := digest(); second.SHA256 == first.SHA256 || second.Files[0] != first.Files[0] {
		t.Errorf("other rules: %+v, then %+v", first, second)
	}
}

// TestAnExpiredPairIsNotShown: the last pair is shown no longer than it is valid, and a
// key that others may read is not taken in its place.
func TestAnExpiredPairIsNotShown(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(1, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	path := write(t, "ledger: a.db\n")
	keep(t, path, "c.pem", cert)
	keep(t, path, "k.pem", key)
	in := func(name string) string { return filepath.Join(filepath.Dir(path), name) }
	shown, err := config.Pair(in("c.pem"), in("k.pem"))
	if err != nil {
		t.Fatal(err)
	}
	next, nextKey := a.valid(2)
	keep(t, path, "k.pem.new", nextKey)
	if err := os.Chmod(in("k.pem.new"), 0o644); err != nil {
		t.Fatal(err)
	}
	exchange(t, path, "c.pem", next)
	if err := os.Rename(in("k.pem.new"), in("k.pem")); err != nil {
		t.Fatal(err)
	}
	got, err := shown(time.Now())
	if err != nil || got.Leaf.SerialNumber.Int64() != 1 {
		t.Errorf("with a key that every user reads: %v, want the last pair", err)
	}
	if _, err := shown(time.Now().Add(2 * time.Hour)); err == nil || !strings.Contains(err.Error(), "client_certificate: key_file: ") || !strings.Contains(err.Error(), "every user") {
		t.Errorf("after the last pair has expired: %v, want why the new one is not used", err)
	}
	if err := os.Chmod(in("k.pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := shown(time.Now()); err != nil || got.Leaf.SerialNumber.Int64() != 2 {
		t.Errorf("with the new pair: %v", err)
	}
	if _, err := shown(time.Now().Add(2 * time.Hour)); err == nil || !strings.Contains(err.Error(), "expired at") {
		t.Errorf("after the new pair has expired: %v", err)
	}
}
