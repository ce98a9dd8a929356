//go:build unix

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
)

// pool is how many connections those contenders have that have no default: as many as DBOS
// takes by default. readback takes 16.
const pool = 20

// database makes an empty database and returns its DSN and how to drop it.
func (m *machine) database() (dsn string, drop func() error, err error) {
	name, err := m.pg.CreateDatabase()
	if err != nil {
		return "", nil, err
	}
	return m.pg.DSN(name), func() error { return m.pg.Exec("postgres", "DROP DATABASE "+name+" WITH (FORCE)") }, nil
}

// folder makes an empty folder on the disk that is measured.
func (m *machine) folder() (path string, remove func() error, err error) {
	path, err = os.MkdirTemp(m.dir, "store-")
	return path, func() error { return os.RemoveAll(path) }, err
}

// freePorts are ports of 127.0.0.1 that no one listens on at the moment. They are below 32768,
// since Temporal stores the ports of its services as small integers.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range 100 {
		l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if err != nil {
			continue // another program has it
		}
		defer l.Close() // all at the end, so that no port is given twice
		if ports = append(ports, l.Addr().(*net.TCPAddr).Port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, errors.New("no free ports of 127.0.0.1 below 32000")
}
