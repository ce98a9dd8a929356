package mail

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
	"strings"
	"sync"
	"syscall"
	"text/template"
	"time"

	fakeimap "github.com/readback-go/readback/internal/fakes/imap"
)

// Postfix is a real mail server, in processes of ours with a folder of their
// own, that delivers into a real Dovecot by LMTP.
type Postfix struct {
	dovecot *fakeimap.Dovecot
	addr    string
	folder  string
	master  string // the program
	cmd     *exec.Cmd
	log     *tail
}

// ErrNoPostfix is returned by NewPostfix if a part of it is missing. Its text names the part.
var ErrNoPostfix = errors.New("fakes/mail: no Postfix before a Dovecot on this machine")

// postfixStarts is how long Postfix may take to report that it is up. It needs less than a
// second.
const postfixStarts = 20 * time.Second

// postfixLives is after how many seconds Postfix ends by itself. A killed test cannot stop it,
// and Postfix does not notice; no test takes half an hour.
const postfixLives = "1800"

// StartPostfix starts both for one test and stops them afterwards. Where they
// are not installed, or we are not root, the test is skipped, or fails if
// READBACK_STRICT is 1.
func StartPostfix(tb TB) *Postfix {
	tb.Helper()
	return fakeimap.StartReal(tb, NewPostfix, ErrNoPostfix, "nothing was tested against a real mail server")
}

// Start opens a new, empty account for one test, with the faults before it, and
// closes it afterwards.
func (p *Postfix) Start(tb TB, o Options) *Server {
	tb.Helper()
	s, err := p.NewServer(o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// NewServer opens a new, empty account whose mail comes into INBOX. Mail for other recipients is
// dropped, or returned if it is for Nowhere. Nothing is filed, and the submission server has no
// login. Close it; the processes continue. Of the options only those of TLS have an effect: see
// [Server.Account].
func (p *Postfix) NewServer(o Options) (*Server, error) {
	box, err := p.dovecot.NewServer(fakeimap.Options{})
	if err != nil {
		return nil, err
	}
	name, password := box.Account()
	o.Address, o.Password, o.Sent = name+"@"+postfixDomain, password, fakeimap.DovecotSent
	o.FilesNothing, o.InProcess = true, false
	o.defaults()
	s, err := newServer(o, box, fakeimap.TCPDialer(p.addr), func() error { return nil })
	if err != nil {
		return nil, errors.Join(err, box.Close())
	}
	return s, nil
}

// postfixDomain is the domain whose mail is delivered.
const postfixDomain = "example.org"

// Nowhere is a domain whose mail Postfix returns to its sender.
const Nowhere = "nowhere.example"

// The places of Postfix: sbin is not on every user's path.
var (
	postfixNames  = []string{"postfix", "/usr/sbin/postfix"}
	postfixMaster = []string{"/usr/lib/postfix/sbin/master", "/usr/libexec/postfix/master"}
)

// first is the first program that there is, "" for none.
func first(names []string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// missing names a missing part, "" if none is missing.
func missing() string {
	switch _, err := user.Lookup("postfix"); {
	case first(postfixNames) == "" || first(postfixMaster) == "":
		return "postfix is not installed (Debian: postfix)"
	case err != nil:
		return "there is no user postfix (Debian: postfix)"
	case os.Getuid() != 0:
		return "its master process needs root, which we are not"
	}
	return ""
}

// NewPostfix starts Dovecot and Postfix 3 and waits until they are up. Close
// it. The error wraps [ErrNoPostfix] where something is missing.
func NewPostfix() (*Postfix, error) {
	if what := missing(); what != "" {
		return nil, fmt.Errorf("%w: %s", ErrNoPostfix, what)
	}
	dovecot, err := fakeimap.NewDovecot()
	if errors.Is(err, fakeimap.ErrNoDovecot) {
		return nil, fmt.Errorf("%w: dovecot is not installed (Debian: dovecot-imapd, dovecot-lmtpd)", ErrNoPostfix)
	}
	if err != nil {
		return nil, err
	}
	p := &Postfix{dovecot: dovecot}
	if dovecot.LMTP() == "" {
		return nil, errors.Join(fmt.Errorf("%w: Dovecot has no LMTP server (Debian: dovecot-lmtpd)", ErrNoPostfix), p.Close())
	}
	if err := p.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("fakes/mail: start postfix: %w", err), p.Close())
	}
	return p, nil
}

// mainConf is a Postfix that knows only this machine: mail for the domain goes to Dovecot, mail
// for Nowhere back to its sender, all other mail is dropped. It refuses at once what it cannot
// deliver, so that a bounce begins after an alias.
var mainConf = template.Must(template.New("").Parse(`compatibility_level = 3.6
queue_directory = {{.Folder}}/queue
data_directory = {{.Folder}}/data
command_directory = /usr/sbin
daemon_directory = {{.Daemons}}
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.{{.Domain}}
mydestination =
mynetworks = 127.0.0.0/8
local_recipient_maps =
alias_maps =
alias_database =
virtual_mailbox_domains = {{.Domain}}
virtual_mailbox_maps = static:all
virtual_transport = lmtp:inet:{{.LMTP}}
default_transport = discard
virtual_alias_maps = inline:{ { @{{.Nowhere}} = returned@gone.{{.Nowhere}} } }
transport_maps = inline:{ { gone.{{.Nowhere}} = error:5.1.1 no such user } }
relay_transport = discard
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
smtp_tls_security_level = none
smtpd_tls_security_level = none
lmtp_tls_security_level = none
maillog_file = {{.Folder}}/log
maillog_file_prefixes = {{.Folder}}
`))

var masterConf = template.Must(template.New("").Parse(`127.0.0.1:{{.Port}} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
lmtp unix - - n - - lmtp
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
local unix - n n - - local
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
`))

// start writes the configuration and starts the processes.
func (p *Postfix) start() error {
	folder, err := os.MkdirTemp("", "readback-postfix-")
	if err != nil {
		return err
	}
	p.folder = folder
	_, port, err := p.free()
	if err != nil {
		return err
	}
	p.master = first(postfixMaster)
	values := map[string]string{"Folder": folder, "Daemons": filepath.Dir(p.master), "Domain": postfixDomain, "Nowhere": Nowhere, "LMTP": p.dovecot.LMTP(), "Port": port}
	for _, name := range []string{"conf", "queue", "data"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			return err
		}
	}
	for name, form := range map[string]*template.Template{"main.cf": mainConf, "master.cf": masterConf} {
		var text strings.Builder
		if err := form.Execute(&text, values); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "conf", name), []byte(text.String()), 0o644); err != nil {
			return err
		}
	}
	if err := p.own(); err != nil {
		return err
	}
	return p.run()
}

// free chooses a port of the loopback address.
func (p *Postfix) free() (host, port string, err error) {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	p.addr = ln.Addr().String()
	host, port, err = net.SplitHostPort(p.addr)
	return host, port, errors.Join(err, ln.Close())
}

// own gives Postfix the folder of data, and access to ours.
func (p *Postfix) own() error {
	owner, err := user.Lookup("postfix")
	if err != nil {
		return err
	}
	var uid, gid int
	if _, err := fmt.Sscan(owner.Uid, &uid); err != nil {
		return err
	}
	if _, err := fmt.Sscan(owner.Gid, &gid); err != nil {
		return err
	}
	return errors.Join(os.Chmod(p.folder, 0o755), os.Chown(filepath.Join(p.folder, "data"), uid, gid)) //nolint:gosec // other users' processes must enter it
}

// run starts the master process in the foreground and waits until it listens.
func (p *Postfix) run() error {
	conf := filepath.Join(p.folder, "conf")
	if output, err := exec.CommandContext(context.Background(), first(postfixNames), "-c", conf, "check").CombinedOutput(); err != nil {
		return fmt.Errorf("postfix check: %w: %s", err, output)
	}
	p.cmd = exec.CommandContext(context.Background(), p.master, "-c", conf, "-d", "-e", postfixLives)
	p.cmd.Dir = filepath.Join(p.folder, "queue")
	p.cmd.Env = append(os.Environ(), "MAIL_CONFIG="+conf)
	ownGroup(p.cmd) // it ends the processes of its group
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		p.cmd = nil
		return err
	}
	p.log = follow(stderr)
	return p.awaitGreeting()
}

// awaitGreeting polls until the server greets: it does not report that it is up.
func (p *Postfix) awaitGreeting() error {
	ctx, cancel := context.WithTimeout(context.Background(), postfixStarts)
	defer cancel()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		if greeted(ctx, p.addr) {
			return nil
		}
		select {
		case <-p.log.ended:
			return fmt.Errorf("it stopped at once: %s", p.words())
		case <-ctx.Done():
			return fmt.Errorf("not up after %v: %s", postfixStarts, p.words())
		case <-pause.C:
		}
	}
}

func greeted(ctx context.Context, addr string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && strings.HasPrefix(line, "220")
}

// words is the output of Postfix, here and in its log.
func (p *Postfix) words() string {
	log, _ := os.ReadFile(filepath.Join(p.folder, "log")) // there may be none yet
	return p.log.text() + string(log[max(0, len(log)-4000):])
}

// Close stops Postfix and Dovecot and removes their folders.
func (p *Postfix) Close() error {
	var err error
	if p.cmd != nil {
		// A signalled master ends its children; a killed one leaves them running.
		err = p.cmd.Process.Signal(syscall.SIGTERM)
		<-p.log.ended
		_ = p.cmd.Wait() // its exit status is irrelevant
		p.cmd = nil
	}
	if p.folder != "" {
		err = errors.Join(err, os.RemoveAll(p.folder))
	}
	return errors.Join(err, p.dovecot.Close())
}

// tail keeps the end of a process's output, and detects when it has ended.
type tail struct {
	ended chan struct{}
	mu    sync.Mutex
	lines []string
}

func follow(r io.Reader) *tail {
	t := &tail{ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		for scan := bufio.NewScanner(r); scan.Scan(); {
			t.mu.Lock()
			t.lines = append(t.lines[max(0, len(t.lines)-49):], scan.Text())
			t.mu.Unlock()
		}
	}()
	return t
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
