package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/sql"
	"github.com/readback-go/readback/intent"
	"github.com/readback-go/readback/internal/declared"
	"github.com/readback-go/readback/internal/yamlfile"
)

type postgresSettings struct {
	Type             string                   `yaml:"type"`
	DSN              string                   `yaml:"dsn"`
	PasswordEnv      string                   `yaml:"password_env"`
	PasswordFile     string                   `yaml:"password_file"`
	PasswordArgv     argv                     `yaml:"password_command"`
	ReadDSN          string                   `yaml:"read_dsn"`
	ReadPasswordEnv  string                   `yaml:"read_password_env"`
	ReadPasswordFile string                   `yaml:"read_password_file"`
	ReadPasswordArgv argv                     `yaml:"read_password_command"`
	Plaintext        bool                     `yaml:"plaintext"`
	Certificate      certificate              `yaml:"client_certificate"`
	StandbyWait      yamlfile.Span            `yaml:"standby_wait"`
	MaxConnections   int                      `yaml:"max_connections"`
	Tables           map[string]tableSettings `yaml:"tables"`
	Promises         promises                 `yaml:",inline"`
}

// tableSettings are one kind of record.
type tableSettings struct {
	Schema           string                   `yaml:"schema"`
	Name             string                   `yaml:"name"`
	Columns          map[string]yamlfile.Text `yaml:"columns"`
	ReadOnly         []yamlfile.Text          `yaml:"read_only"`
	Volatile         []yamlfile.Text          `yaml:"volatile"`
	Key              []yamlfile.Text          `yaml:"key"`
	Unique           bool                     `yaml:"unique"`
	ID               string                   `yaml:"id"`
	Stamp            string                   `yaml:"stamp"`
	StampUpdates     bool                     `yaml:"stamp_updates"`
	Version          string                   `yaml:"version"`
	VersionByTrigger bool                     `yaml:"version_by_trigger"`
	Whole            bool                     `yaml:"whole"`
	Summary          *declared.Summary        `yaml:"summary"`
	SampleCreate     map[string]scalar        `yaml:"sample_create"`
	SampleUpdate     map[string]scalar        `yaml:"sample_update"`
}

// scalar is a value of one column.
type scalar struct{ value any }

// FillYAML reads it.
func (s *scalar) FillYAML(r *yamlfile.Reader, n yamlfile.Node, at yamlfile.Place) {
	s.value, _ = r.Scalar(n, at.Field)
}

func (s *postgresSettings) promises() promises { return s.Promises }

func (s *postgresSettings) destination(from origin) (connectors.Destination, error) {
	o := sql.Options{DSN: s.DSN, ReadDSN: s.ReadDSN, Plaintext: s.Plaintext, StandbyWait: time.Duration(s.StandbyWait), MaxConnections: s.MaxConnections,
		SendTimeout: time.Duration(s.Promises.SendTimeout), ReadTimeout: time.Duration(s.Promises.ReadTimeout), Tables: map[string]sql.Table{}}
	o.Settle, o.Horizon = s.Promises.Settle.Time, s.Promises.Horizon.Time
	if s.Promises.Horizon.Set && !s.Promises.Horizon.Known {
		o.Horizon = -1 // the connector's own default differs
	}
	password := Secret{s.PasswordEnv, s.PasswordFile, s.PasswordArgv}.as("password")
	toRead := Secret{s.ReadPasswordEnv, s.ReadPasswordFile, s.ReadPasswordArgv}.as("read_password")
	var err error
	o.Egress = s.Promises.Egress.list
	if o.ClientCertificate, err = s.Certificate.open(from); err != nil {
		return connectors.Destination{}, err
	}
	if o.Password, err = password.openIfGiven(from); err != nil {
		return connectors.Destination{}, err
	}
	if o.ReadPassword, err = toRead.openIfGiven(from); err != nil {
		return connectors.Destination{}, err
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Tables)) {
		if o.Tables[kind], err = s.Tables[kind].table(kind); err != nil {
			return connectors.Destination{}, fmt.Errorf("tables.%s: %w", yamlfile.Clip(kind), err)
		}
	}
	c, err := sql.New(o)
	if err != nil {
		return connectors.Destination{}, err
	}
	return connectors.Destination{Connector: c, Profiles: c.Profiles()}, nil
}

// table is the table in the connector's form.
func (s tableSettings) table(kind string) (sql.Table, error) {
	t := sql.Table{Schema: s.Schema, Name: s.Name, Unique: s.Unique, ID: s.ID, Stamp: s.Stamp, StampUpdates: s.StampUpdates,
		Version: s.Version, VersionByTrigger: s.VersionByTrigger, Whole: s.Whole,
		Sample: sql.Sample{Create: fieldsOf(s.SampleCreate), Update: fieldsOf(s.SampleUpdate)}}
	if t.Name == "" {
		t.Name = kind
	}
	t.Key = yamlfile.Values(s.Key)
	readOnly, volatile := setOf(s.ReadOnly), setOf(s.Volatile)
	for _, name := range slices.Sorted(maps.Keys(s.Columns)) {
		t.Columns = append(t.Columns, sql.Column{Name: name, Type: sql.Type(s.Columns[name].Value), ReadOnly: readOnly[name], Volatile: volatile[name]})
		delete(readOnly, name)
		delete(volatile, name)
	}
	if strange := slices.Sorted(maps.Keys(readOnly)); len(strange) > 0 {
		return t, fmt.Errorf("read_only: %s: no such column; the columns are %s", strings.Join(strange, ", "), yamlfile.Names(s.Columns))
	}
	if strange := slices.Sorted(maps.Keys(volatile)); len(strange) > 0 {
		return t, fmt.Errorf("volatile: %s: no such column; the columns are %s", strings.Join(strange, ", "), yamlfile.Names(s.Columns))
	}
	t.Summary = s.Summary.Declared()
	if err := t.Summary.Valid(); err != nil {
		return t, fmt.Errorf("summary: %w", err)
	}
	for _, path := range t.Summary.Fields() {
		if name := strings.TrimPrefix(path, "/"); s.Columns[name] == (yamlfile.Text{}) {
			return t, fmt.Errorf("summary: %s: no such column; the columns are %s", yamlfile.Clip(name), yamlfile.Names(s.Columns))
		}
	}
	if len(t.Columns) == 0 {
		return t, errors.New("columns: none; want the name and the type of each, for example  amount: numeric")
	}
	return t, nil
}

func setOf(all []yamlfile.Text) map[string]bool {
	set := map[string]bool{}
	for _, t := range all {
		set[t.Value] = true
	}
	return set
}

func fieldsOf(values map[string]scalar) intent.Fields {
	if len(values) == 0 {
		return nil
	}
	f := intent.Fields{}
	for name, s := range values {
		f[name] = s.value
	}
	return f
}
