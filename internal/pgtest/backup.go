package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Archiving are the settings of a server whose log is archived, so that a [Server.Backup] of it can be
// restored to a moment.
var Archiving = map[string]string{"archive_mode": "on", "archive_command": "mkdir -p ../archive && cp %p ../archive/%f"}

// Backup makes a base backup and returns it as a server that was not started: [Server.RestoreTo]
// starts it. It is closed with the server it is of, or earlier.
func (s *Server) Backup() (*Server, error) {
	backup, err := prepare()
	if err != nil {
		return nil, err
	}
	if err := backup.run("pg_basebackup", "-D", backup.data(), "-X", "none", "-c", "fast", "--no-sync", "-d", s.DSN("postgres")); err != nil {
		return nil, errors.Join(err, backup.Close())
	}
	s.standbys = append(s.standbys, backup)
	return backup, nil
}

// RestoreTo starts a backup as it was at a moment on the clock of the server it is of, from that
// server's archived log. The server must have committed something since that moment.
func (s *Server) RestoreTo(at time.Time, of *Server) error {
	var segment string
	if err := of.query("SELECT pg_walfile_name(pg_switch_wal())", &segment); err != nil {
		return err
	}
	if err := of.until("SELECT last_archived_wal >= '" + segment + "' FROM pg_stat_archiver"); err != nil {
		return err
	}
	err := s.configure(map[string]string{
		"restore_command": "cp " + filepath.Join(of.folder, "archive") + "/%f %p", "archive_mode": "off",
		"recovery_target_time": at.UTC().Format("2006-01-02 15:04:05.000000+00"), "recovery_target_action": "promote",
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(s.data(), "recovery.signal"), nil, 0o600)
	}
	if err == nil && s.user != nil {
		err = os.Chown(filepath.Join(s.data(), "recovery.signal"), int(s.user.Uid), int(s.user.Gid))
	}
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	if err := s.start(); err != nil {
		return err
	}
	return s.until("SELECT NOT pg_is_in_recovery()")
}
