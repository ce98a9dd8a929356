package config

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/readback-go/readback/internal/yamlfile"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/ledger/shards"
)

// Shard is one partition of the ledger.
type Shard struct {
	Name string
	// Tenants are placed in it when they are seen first.
	Tenants []string

	database
}

// partitioned are the settings of a ledger in several databases.
type partitioned struct {
	Shards    []shardSettings `yaml:"shards"`
	Directory yamlfile.Text   `yaml:"directory"`
	Default   []yamlfile.Text `yaml:"default"`
}

type shardSettings struct {
	At       yamlfile.Place
	Name     yamlfile.Text   `yaml:"name"`
	Tenants  []yamlfile.Text `yaml:"tenants"`
	Database database        `yaml:",inline"`
}

func (s partitioned) given() bool {
	return len(s.Shards) > 0 || s.Directory.Value != "" || len(s.Default) > 0
}

// shards reads the partitions of the ledger.
func (r *reader) shards(e yamlfile.Entry, l *Ledger, s partitioned, d database) {
	if d.given() {
		r.Say(e.Line, "ledger", "has shards, and settings of one database; write url, password_env and the others into each shard")
		return
	}
	l.Directory, l.Default = s.Directory.Value, yamlfile.Values(s.Default)
	var names []string
	same, of := map[string]string{}, map[string]string{}
	before := len(r.Problems)
	for _, one := range s.Shards {
		if !r.Required(one.Name, one.At, "name", "one such as a: it names the partition in the directory") {
			continue
		}
		r.databaseSettings(yamlfile.Entry{Line: one.At.Line}, one.Database, one.At.Field)
		if where := one.Database.where(); where != "" && same[where] != "" {
			r.At(one.At, "is in the same database as %s; each shard needs a database of its own", same[where])
		} else {
			same[where] = one.Name.Value
		}
		for _, t := range one.Tenants {
			if of[t.Value] != "" {
				r.At(t.Place, "is in shard %s already; a tenant is in one", of[t.Value])
			}
			of[t.Value] = one.Name.Value
		}
		names = append(names, one.Name.Value)
		l.Shards = append(l.Shards, Shard{Name: one.Name.Value, Tenants: yamlfile.Values(one.Tenants), database: one.Database})
	}
	if len(r.Problems) == before {
		if err := shards.Check(names, l.shardOptions()); err != nil {
			r.Say(e.Line, "ledger.shards", "%s", strings.TrimPrefix(err.Error(), shards.ErrInvalid.Error()+": "))
		}
	}
}

// where names the database as far as the file says which it is, without what differs between two
// connections to one.
func (d database) where() string {
	u, err := url.Parse(d.URL)
	if d.URL != "" && err == nil {
		return u.Host + u.Path + "?" + u.Query().Get("host") + u.Query().Get("search_path")
	}
	return strings.Join(append([]string{d.URLEnv, d.URLFile}, d.URLArgv...), "\x00")
}

func (l Ledger) shardOptions() shards.Options {
	o := shards.Options{Home: l.Directory, Default: l.Default, Tenants: map[string]string{}}
	for _, s := range l.Shards {
		for _, t := range s.Tenants {
			o.Tenants[t] = s.Name
		}
	}
	return o
}

// openShards opens a ledger in several databases.
func (l Ledger) openShards(ctx context.Context, env func(string) string, o *OpenOptions) (ledger.Ledger, io.Closer, error) {
	var all []shards.Shard
	for _, s := range l.Shards {
		all = append(all, shards.Shard{Name: s.Name, Open: func(ctx context.Context) (ledger.Partition, error) {
			opened, _, err := Ledger{path: l.path, line: l.line, database: s.database}.openDatabase(ctx, env, o)
			if err != nil {
				return nil, err
			}
			return opened, nil
		}})
	}
	options := l.shardOptions()
	options.Logger = o.Logger
	opened, err := shards.Open(ctx, all, options)
	if errors.Is(err, shards.ErrInvalid) {
		return nil, nil, l.invalid(err)
	}
	if err != nil {
		return nil, nil, err
	}
	return opened, opened, nil
}
