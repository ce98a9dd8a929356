package imap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/template"
	"time"

	"github.com/emersion/go-imap/v2/imapclient"
)

// Dovecot is a real server, in a process of ours, with a folder of its own.
type Dovecot struct {
	addr     string
	lmtp     string
	password string
	folder   string
	cmd      *exec.Cmd
	log      *logTail
	accounts atomic.Int64
}

// ErrNoDovecot is returned by NewDovecot where there is no dovecot.
var ErrNoDovecot = errors.New("fakes/imap: no dovecot on this machine")

// dovecotStarts is how long Dovecot may take to report that it is up. It needs a tenth of a
// second.
const dovecotStarts = 20 * time.Second

// StartDovecot starts Dovecot for one test and stops it afterwards. Where it is
// not installed the test is skipped, or fails if READBACK_STRICT is 1.
func StartDovecot(tb TB) *Dovecot {
	tb.Helper()
	return StartReal(tb, NewDovecot, ErrNoDovecot, "dovecot is not installed (Debian: dovecot-imapd), so nothing was tested against a real IMAP server")
}

// Start opens a new, empty account for one test, with the faults before it, and
// closes it afterwards.
func (d *Dovecot) Start(tb TB, o Options) *Server {
	tb.Helper()
	s, err := d.NewServer(o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// NewDovecot starts Dovecot 2.3 and waits until it is up. Close it. The error
// wraps [ErrNoDovecot] where it is not installed.
func NewDovecot() (*Dovecot, error) {
	binary, err := findDovecot()
	if err != nil {
		return nil, err
	}
	owner, err := dovecotUser()
	if err != nil {
		return nil, fmt.Errorf("fakes/imap: %w", err)
	}
	// Not in the test's own folder: that is closed to other users, and as root we run Dovecot as
	// another user.
	folder, err := os.MkdirTemp("", "readback-dovecot-")
	if err != nil {
		return nil, fmt.Errorf("fakes/imap: %w", err)
	}
	d := &Dovecot{password: "password", folder: folder}
	if err := d.start(binary, owner); err != nil {
		return nil, errors.Join(fmt.Errorf("fakes/imap: start dovecot: %w", err), d.Close())
	}
	return d, nil
}

// NewServer opens a new, empty account with the proxy of faults. Close it; the process continues.
// Username, Password, NoUIDPlus and the options for servers in memory have no effect: see
// [Server.Account].
func (d *Dovecot) NewServer(o Options) (*Server, error) {
	o.Username, o.Password, o.NoUIDPlus = fmt.Sprintf("user%d", d.accounts.Add(1)), d.password, false
	o.SpecialUse, o.InProcess = nil, false
	o.defaults()
	s, err := newServer(o, d.addr, TCPDialer(d.addr), func() error { return nil })
	if err != nil {
		return nil, err
	}
	if err := s.makeMailboxes(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) makeMailboxes() error {
	return s.as(func(c *imapclient.Client) error {
		for _, name := range s.options.Mailboxes {
			if name == "INBOX" {
				continue // is always there
			}
			if err := c.Create(name, nil).Wait(); err != nil {
				return fmt.Errorf("create mailbox %q: %w", name, err)
			}
		}
		return nil
	})
}

// dovecotNames are where it may be: sbin is not on every user's path.
var dovecotNames = []string{"dovecot", "/usr/sbin/dovecot", "/usr/local/sbin/dovecot"}

func findDovecot() (string, error) {
	for _, name := range dovecotNames {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoDovecot
}

// owner is the user that Dovecot runs as.
type owner struct {
	name, group string
	uid, gid    int
	change      bool // we are root, and it must not be
}

// dovecotUser is the current user, or nobody if that is root: Dovecot refuses to serve mail as
// root.
func dovecotUser() (owner, error) {
	name := "nobody"
	if os.Getuid() != 0 {
		me, err := user.Current()
		if err != nil {
			return owner{}, err
		}
		name = me.Username
	}
	u, err := user.Lookup(name)
	if err != nil {
		return owner{}, err
	}
	uid, errU := strconv.Atoi(u.Uid)
	gid, errG := strconv.Atoi(u.Gid)
	g, err := user.LookupGroupId(u.Gid)
	if err := errors.Join(errU, errG, err); err != nil {
		return owner{}, err
	}
	return owner{name, g.Name, uid, gid, os.Getuid() == 0}, nil
}

// dovecotConf runs all of Dovecot as one ordinary user, in one folder.
var dovecotConf = template.Must(template.New("").Parse(`protocols = imap{{if .LMTP}} lmtp{{end}}
listen = 127.0.0.1
base_dir = {{.Folder}}/run
state_dir = {{.Folder}}/run
log_path = /dev/stderr
ssl = no
disable_plaintext_auth = no
default_internal_user = {{.Name}}
default_internal_group = {{.Group}}
default_login_user = {{.Name}}
first_valid_uid = 1
first_valid_gid = 1
last_valid_uid = 0
last_valid_gid = 0
mail_location = sdbox:{{.Folder}}/mail/%n
mail_max_userip_connections = 0
passdb {
  driver = static
  args = password={{.Password}}
}
userdb {
  driver = static
  args = uid={{.UID}} gid={{.GID}} home={{.Folder}}/home/%n
}
namespace inbox {
  inbox = yes
  separator = /
  mailbox {{.Sent}} {
    auto = create
    special_use = \Sent
  }
}
{{if .LMTP}}service lmtp {
  inet_listener lmtp {
    address = 127.0.0.1
    port = {{.LMTP}}
  }
}
postmaster_address = postmaster@localhost
{{end}}service imap-login {
  chroot =
  inet_listener imap {
    port = {{.Port}}
  }
  inet_listener imaps {
    port = 0
  }
}
service anvil {
  chroot =
}
service stats {
  chroot =
}
`))

// start writes the configuration and starts the process.
func (d *Dovecot) start(binary string, o owner) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	deliveries, err := d.deliveries()
	if err != nil {
		return err
	}
	var conf strings.Builder
	err = dovecotConf.Execute(&conf, map[string]any{
		"Folder": d.folder, "Name": o.name, "Group": o.group, "UID": o.uid, "GID": o.gid,
		"Password": d.password, "Port": port, "LMTP": deliveries, "Sent": DovecotSent,
	})
	if err != nil {
		return err
	}
	path := filepath.Join(d.folder, "dovecot.conf")
	if err := os.WriteFile(path, []byte(conf.String()), 0o644); err != nil {
		return err
	}
	d.cmd = exec.CommandContext(context.Background(), binary, "-F", "-c", path)
	d.cmd.Dir = d.folder
	if o.change {
		if err := os.Chown(d.folder, o.uid, o.gid); err != nil {
			return err
		}
		o.runs(d.cmd)
	}
	d.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	return d.run()
}

// DovecotSent is the mailbox for sent mail of every account on Dovecot, marked as such. No client
// has this name as its default.
const DovecotSent = "Gesendet"

// lmtpPlaces are where Dovecot's LMTP server may be.
var lmtpPlaces = []string{"/usr/lib/dovecot/lmtp", "/usr/libexec/dovecot/lmtp", "/usr/local/libexec/dovecot/lmtp"}

// deliveries chooses a port for LMTP, 0 where Dovecot has none.
func (d *Dovecot) deliveries() (port int, err error) {
	for _, place := range lmtpPlaces {
		if _, err := os.Stat(place); err != nil {
			continue
		}
		if port, err = freePort(); err == nil {
			d.lmtp = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		}
		return port, err
	}
	return 0, nil
}

// LMTP is where mail servers deliver to the accounts, whatever the domain; ""
// where Dovecot has no LMTP server (Debian: dovecot-lmtpd).
func (d *Dovecot) LMTP() string { return d.lmtp }

// run starts the process and waits for it to report that it listens.
func (d *Dovecot) run() error {
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := d.cmd.Start(); err != nil {
		d.cmd = nil
		return err
	}
	d.log = followLog(stderr)
	select {
	case <-d.log.up:
		return nil
	case <-d.log.ended:
		return fmt.Errorf("it stopped at once: %s", d.log.text())
	case <-time.After(dovecotStarts):
		return fmt.Errorf("not up after %v: %s", dovecotStarts, d.log.text())
	}
}

// Close stops Dovecot and removes its folder.
func (d *Dovecot) Close() error {
	var err error
	if d.cmd != nil {
		// A killed master would leave its children running; a signalled one ends them.
		err = d.cmd.Process.Signal(syscall.SIGTERM)
		<-d.log.ended
		_ = d.cmd.Wait() // its exit status is irrelevant
		d.cmd = nil
	}
	return errors.Join(err, os.RemoveAll(d.folder))
}

func freePort() (int, error) {
	ln, err := Listen(false)
	if err != nil {
		return 0, err
	}
	return ln.Addr().(*net.TCPAddr).Port, ln.Close()
}

// logTail reads Dovecot's log, keeps the end of it, and detects when it is up and when it has
// ended.
type logTail struct {
	up, ended chan struct{}
	lines     chan []string // holds the one list
}

func followLog(r io.Reader) *logTail {
	t := &logTail{up: make(chan struct{}), ended: make(chan struct{}), lines: make(chan []string, 1)}
	t.lines <- nil
	var once sync.Once
	go func() {
		defer close(t.ended)
		for scan := bufio.NewScanner(r); scan.Scan(); {
			lines := append(<-t.lines, scan.Text())
			t.lines <- lines[max(0, len(lines)-50):]
			if strings.Contains(scan.Text(), " starting up for ") {
				once.Do(func() { close(t.up) })
			}
		}
	}()
	return t
}

func (t *logTail) text() string {
	lines := <-t.lines
	t.lines <- lines
	return strings.Join(lines, "\n")
}
