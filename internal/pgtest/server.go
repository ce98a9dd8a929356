package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// starts is how long a server may take to answer. It needs a fifth of a
	// second; a machine that runs other tests needs more.
	starts = 30 * time.Second
	// stops is how long a server may take to stop before it is killed.
	stops = 10 * time.Second
	// pause lies between two looks at a server that starts or catches up.
	pause = 10 * time.Millisecond
	// maxLog is how much of a server's log an error repeats.
	maxLog = 4 << 10
)

// Superuser is the role that owns the cluster. It has no password.
const Superuser = "postgres"

// Options say how a server differs from PostgreSQL's defaults. The zero value
// is a server like any other.
type Options struct {
	// Settings are lines of postgresql.conf, by name. Default none.
	Settings map[string]string
}

// Server is one running PostgreSQL. Its methods are not for concurrent use,
// but for DSN, Exec and CreateDatabase.
type Server struct {
	folder    string // the server's own: data, log and socket
	port      int
	bin       string
	user      *credential
	cmd       *exec.Cmd
	exited    chan struct{}
	watchdog  io.Closer
	databases atomic.Int64
	standbys  []*Server
}

// Open starts a server with an empty cluster and waits until it answers. Close
// it. The error wraps [ErrMissing] where PostgreSQL is not installed.
func Open(o Options) (*Server, error) {
	s, err := prepare()
	if err != nil {
		return nil, err
	}
	if err := s.initialise(o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare makes the folder and finds the binaries, a port and a user.
func prepare() (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	user, err := unprivileged()
	if err != nil {
		return nil, err
	}
	// Not in the test's own folder: that is closed to other users, and its
	// path is too long for a socket.
	folder, err := os.MkdirTemp("", "pg-")
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	s := &Server{folder: folder, bin: bin, user: user}
	if user != nil {
		err = os.Chown(folder, int(user.Uid), int(user.Gid))
	}
	if err == nil {
		s.port, err = freePort()
	}
	if err == nil {
		s.watchdog, err = watch(folder)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: %w", err), s.Close())
	}
	return s, nil
}

func freePort() (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

func (s *Server) initialise(o Options) error {
	// --no-sync is about initdb alone: a cluster that a crash of the machine spoils is not used
	// again.
	if err := s.run("initdb", "-D", s.data(), "-U", Superuser, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"); err != nil {
		return err
	}
	conf := map[string]string{
		"wal_level": "replica", "max_wal_senders": "8", "hot_standby": "on", "max_connections": "60",
		"shared_buffers": "16MB", "autovacuum_naptime": "10min", "wal_receiver_status_interval": "1s",
	}
	for name, value := range o.Settings {
		conf[name] = value
	}
	return s.configure(conf)
}

// configure appends to postgresql.conf; what comes last counts.
func (s *Server) configure(settings map[string]string) error {
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	for name, value := range settings {
		if _, err = fmt.Fprintf(f, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''")); err != nil {
			break
		}
	}
	return errors.Join(err, f.Close())
}

// run runs one of PostgreSQL's programs to its end.
func (s *Server) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), starts)
	defer cancel()
	cmd := s.command(ctx, program, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: %s: %w: %s", program, err, tail(out))
	}
	return nil
}

func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	cmd.Dir = s.folder
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + s.folder}
	own(cmd, s.user)
	return cmd
}

// start starts the server process and waits until it answers.
func (s *Server) start() error {
	end := time.Now().Add(starts)
	for {
		err := s.launch()
		if err == nil || time.Now().After(end) || !errors.Is(err, errExited) {
			return err
		}
		// After a kill the backends take a moment to notice, and the server
		// does not start beside them.
		<-time.After(pause)
	}
}

var errExited = errors.New("the server has ended")

func (s *Server) launch() error {
	log, err := os.OpenFile(filepath.Join(s.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := s.command(context.Background(), "postgres", "-D", s.data(), "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="+s.folder)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	s.cmd, s.exited = cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log has the error
		close(s.exited)
	}()
	return s.await(starts)
}

// ends stops the server of a folder and removes the folder unless it is called off: the process
// at the other end of the pipe is dead then. A program that was still filling the folder can make
// a file between two removals.
const ends = `read _ && exit
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1"; sleep 1; [ -e "$1" ] || exit; done`

// watch stops the server and removes its folder when this process dies without
// doing so, as a test that is killed or runs into its time-out does.
func watch(folder string) (io.Closer, error) {
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", ends, "sh", folder)
	own(cmd, nil)
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	return dog{cmd, in}, nil
}

type dog struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// Close calls the watchdog off.
func (d dog) Close() error {
	_, err := io.WriteString(d.in, "\n")
	return errors.Join(err, d.in.Close(), d.cmd.Wait())
}

func (s *Server) await(most time.Duration) error {
	end := time.Now().Add(most)
	for {
		err := s.Exec("postgres", "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return errors.Join(fmt.Errorf("pgtest: %w: %s", errExited, s.Log()), s.stop(0))
		case <-time.After(pause):
		}
		if time.Now().After(end) {
			return fmt.Errorf("pgtest: after %v: %w: %s", most, err, s.Log())
		}
	}
}

// Log is the end of the server's log.
func (s *Server) Log() string {
	text, err := os.ReadFile(filepath.Join(s.folder, "log"))
	if err != nil {
		return err.Error()
	}
	return tail(text)
}

func tail(text []byte) string { return string(text[max(0, len(text)-maxLog):]) }

// Addr is where the server listens, host and port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN is a connection string for the superuser, to a database. Other roles are made by SQL; no
// role needs a password.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=%s sslmode=disable", s.port, Superuser, database)
}

// Exec runs SQL, several statements at will, as the superuser on a connection
// of its own.
func (s *Server) Exec(database, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), starts)
	defer cancel()
	c, err := pgx.Connect(ctx, s.DSN(database))
	if err != nil {
		return err
	}
	_, err = c.PgConn().Exec(ctx, sql).ReadAll()
	return errors.Join(err, c.Close(ctx))
}

// CreateDatabase makes an empty database and returns its name.
func (s *Server) CreateDatabase() (string, error) {
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	return name, s.Exec("postgres", "CREATE DATABASE "+name)
}

// CopyDatabase makes a database like one that no session uses, and returns its name.
// Settings of the database are not copied.
func (s *Server) CopyDatabase(of string) (string, error) {
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	return name, s.Exec("postgres", "CREATE DATABASE "+name+" TEMPLATE "+of)
}

// Restart stops the server in order and starts it again, on the same port.
func (s *Server) Restart() error { return errors.Join(s.stop(syscall.SIGINT), s.start()) }

// Kill ends the server with SIGKILL: what was not on disk is lost. Start it
// again with [Server.Recover].
func (s *Server) Kill() error { return s.stop(syscall.SIGKILL) }

// Recover starts a server that was killed.
func (s *Server) Recover() error { return s.start() }

// stop sends the signal, 0 for none, and waits for the end of the process.
func (s *Server) stop(sig syscall.Signal) error {
	if s.cmd == nil {
		return nil
	}
	cmd := s.cmd
	s.cmd = nil
	var errs []error
	if sig != 0 {
		if err := cmd.Process.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}
	select {
	case <-s.exited:
	case <-time.After(stops):
		errs = append(errs, fmt.Errorf("pgtest: the server did not stop in %v: %s", stops, s.Log()), cmd.Process.Kill())
		<-s.exited
	}
	return errors.Join(errs...)
}

// Close stops the server and its standbys and removes what they stored.
func (s *Server) Close() error {
	var errs []error
	for _, standby := range s.standbys {
		errs = append(errs, standby.Close())
	}
	s.standbys = nil
	// Immediately: the cluster is not needed any more.
	errs = append(errs, s.stop(syscall.SIGQUIT), os.RemoveAll(s.folder))
	if s.watchdog != nil {
		errs = append(errs, s.watchdog.Close())
		s.watchdog = nil
	}
	return errors.Join(errs...)
}
