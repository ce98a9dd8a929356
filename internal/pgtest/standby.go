package pgtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// StandbyOptions say how a standby lags. The zero value follows as fast as it
// can.
type StandbyOptions struct {
	// ApplyDelay is how long a commit waits before it is applied
	// (recovery_min_apply_delay). Default none.
	ApplyDelay time.Duration
	// Settings are further lines of postgresql.conf, by name. Default none.
	Settings map[string]string
}

// Standby starts a streaming standby that can be read, and waits until it
// answers and follows its primary. It is closed with its primary, or earlier.
func (s *Server) Standby(o StandbyOptions) (*Server, error) {
	standby, err := prepare()
	if err != nil {
		return nil, err
	}
	if err := standby.follow(s, o); err != nil {
		return nil, errors.Join(err, standby.Close())
	}
	s.standbys = append(s.standbys, standby)
	return standby, nil
}

func (s *Server) follow(primary *Server, o StandbyOptions) error {
	err := s.run("pg_basebackup", "-D", s.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", primary.DSN("postgres"))
	if err != nil {
		return err
	}
	conf := map[string]string{"recovery_min_apply_delay": fmt.Sprintf("%dms", o.ApplyDelay.Milliseconds())}
	for name, value := range o.Settings {
		conf[name] = value
	}
	if err := s.configure(conf); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	return s.until("SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')")
}

// Pause stops the replay of a standby and returns when it has stopped.
func (s *Server) Pause() error {
	if err := s.Exec("postgres", "SELECT pg_wal_replay_pause()"); err != nil {
		return err
	}
	return s.until("SELECT pg_get_wal_replay_pause_state() = 'paused'")
}

// Resume lets a paused standby go on.
func (s *Server) Resume() error { return s.Exec("postgres", "SELECT pg_wal_replay_resume()") }

// Promote makes a primary of a standby and returns when it takes writes. The former primary
// continues: that is what a split brain is.
func (s *Server) Promote() error {
	if err := s.Exec("postgres", "SELECT pg_promote(false)"); err != nil {
		return err
	}
	return s.until("SELECT NOT pg_is_in_recovery()")
}

// CaughtUp returns when a standby has replayed everything that its primary has
// done by now.
func (s *Server) CaughtUp(primary *Server) error {
	var lsn string
	if err := primary.query("SELECT pg_current_wal_flush_lsn()::text", &lsn); err != nil {
		return err
	}
	return s.until("SELECT pg_last_wal_replay_lsn() >= '" + lsn + "'")
}

func (s *Server) until(sql string) error {
	end := time.Now().Add(starts)
	for {
		var done *bool
		err := s.query(sql, &done)
		if err != nil || (done != nil && *done) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("pgtest: after %v still not: %s", starts, sql)
		}
		<-time.After(pause)
	}
}

func (s *Server) query(sql string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), starts)
	defer cancel()
	c, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return err
	}
	return errors.Join(c.QueryRow(ctx, sql).Scan(into), c.Close(ctx))
}
