// Command temporalserver is Temporal's server: on PostgreSQL for the benchmark beside it, and on an
// SQLite file for the tests of the adapter, which kill it and start it again. An empty pair of
// databases, or a file that does not exist, gets the schema, and then the four services run in this
// process until it is interrupted.
//
// Temporal's own test server keeps everything in memory, and so has no durability to compare or to
// test.
// The program is a module of its own since the server and readback need versions of one library
// that exclude each other.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
	"go.temporal.io/server/tools/common/schema"
	sqltool "go.temporal.io/server/tools/sql"
)

func main() {
	var (
		postgres   = flag.String("postgres", "127.0.0.1:5432", "where PostgreSQL listens")
		user       = flag.String("user", "postgres", "its user, without a password")
		database   = flag.String("database", "temporal", "the empty database of workflows")
		visibility = flag.String("visibility", "temporal_visibility", "the empty database of the search index")
		ports      = flag.String("ports", "", "a JSON list of eight free ports of 127.0.0.1 below 32768, two for each service; clients use the first")
		file       = flag.String("sqlite", "", "a file to use instead of PostgreSQL, made with the namespace \"default\" where it does not exist")
		version    = flag.Bool("version", false, "print the version of the server")
	)
	flag.Parse()
	if *version {
		fmt.Println(serverVersion())
		return
	}
	stores := map[string]*config.SQL{"temporal": store(*postgres, *user, *database, 20), "visibility": store(*postgres, *user, *visibility, 2)}
	setup := setupPostgres
	if *file != "" {
		c := &config.SQL{PluginName: sqlite.PluginName, DatabaseName: *file, ConnectAttributes: map[string]string{"mode": "rwc"}}
		stores, setup = map[string]*config.SQL{"temporal": c, "visibility": c}, setupSQLite
	}
	var free []int
	err := json.Unmarshal([]byte(*ports), &free)
	if err == nil {
		err = setup(stores)
	}
	if err == nil {
		err = run(stores, free)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "temporalserver:", err)
		os.Exit(1)
	}
}

func serverVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "go.temporal.io/server" {
				return d.Version
			}
		}
	}
	return "unknown"
}

// store has as many connections as Temporal's development configuration gives it.
func store(address, user, database string, conns int) *config.SQL {
	return &config.SQL{
		PluginName: postgresql.PluginName, ConnectProtocol: "tcp", ConnectAddr: address, DatabaseName: database, User: user,
		MaxConns: conns, MaxIdleConns: conns, MaxConnLifetime: time.Hour,
	}
}

func run(stores map[string]*config.SQL, ports []int) error {
	c, err := configuration(stores, ports)
	if err != nil {
		return err
	}
	authorizer, err := authorization.GetAuthorizerFromConfig(&c.Global.Authorization)
	if err != nil {
		return err
	}
	s, err := temporal.NewServer(temporal.WithConfig(c), temporal.ForServices(temporal.DefaultServices),
		temporal.WithLogger(log.NewZapLogger(log.BuildZapLogger(log.Config{Level: "error"}))), temporal.WithAuthorizer(authorizer), temporal.InterruptOn(temporal.InterruptCh()))
	if err != nil {
		return err
	}
	return s.Start() // and waits for the interrupt
}

// setupPostgres does what temporal-sql-tool does.
func setupPostgres(stores map[string]*config.SQL) error {
	for name, c := range stores {
		conn, err := sqltool.NewConnection(c, log.NewNoopLogger())
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := schema.NewSetupSchemaTask(conn, &schema.SetupConfig{InitialVersion: "0.0"}, log.NewNoopLogger()).Run(); err != nil {
			return err
		}
		update := &schema.UpdateConfig{DBName: c.DatabaseName, SchemaName: "postgresql/v12/" + name}
		if err := schema.NewUpdateSchemaTask(conn, update, log.NewNoopLogger()).Run(); err != nil {
			return err
		}
	}
	return nil
}

// setupSQLite makes the file where it does not exist.
func setupSQLite(stores map[string]*config.SQL) error {
	c := stores["temporal"]
	if _, err := os.Stat(c.DatabaseName); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := sqliteschema.SetupSchema(c); err != nil {
		return err
	}
	namespace, err := sqliteschema.NewNamespaceConfig(clusterName, "default", false, nil)
	if err != nil {
		return err
	}
	return sqliteschema.CreateNamespaces(c, namespace)
}

// clusterName is the name of the only cluster.
const clusterName = "active"

func configuration(stores map[string]*config.SQL, ports []int) (*config.Config, error) {
	services := []string{"frontend", "history", "matching", "worker"}
	if len(ports) != 2*len(services) {
		return nil, fmt.Errorf("-ports has %d ports; want %d", len(ports), 2*len(services))
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	c := &config.Config{
		Persistence: config.Persistence{
			DefaultStore: "temporal", VisibilityStore: "visibility", NumHistoryShards: 4, DataStores: map[string]config.DataStore{},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: clusterName, CurrentClusterName: clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            map[string]config.Service{},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: "disabled"},
			Visibility: config.VisibilityArchival{State: "disabled"},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: "disabled"},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
		PublicClient: config.PublicClient{HostPort: address},
	}
	c.Global.Membership = config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: "127.0.0.1"}
	for name, s := range stores {
		c.Persistence.DataStores[name] = config.DataStore{SQL: s}
	}
	for i, name := range services {
		c.Services[name] = config.Service{RPC: config.RPC{GRPCPort: ports[2*i], MembershipPort: ports[2*i+1], BindOnLocalHost: true}}
	}
	return c, nil
}
