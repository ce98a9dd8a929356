package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/readback-go/readback/internal/config"
)

// certificate is the server's certificate, which may be replaced while it runs.
type certificate struct {
	pair atomic.Pointer[tls.Certificate]
}

// loadPair reads a certificate and its key; nil where none is configured.
func loadPair(c config.Config) (*tls.Certificate, error) {
	s := c.Server
	if s.CertFile == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return nil, &config.InvalidError{Path: c.Path, Problems: []config.Problem{{Line: s.Line, Field: "server.tls",
			Problem: fmt.Sprintf("%s and %s cannot be used: %v; want a certificate with its chain and the key that belongs to it, as PEM", s.CertFile, s.KeyFile, err)}}}
	}
	return &pair, nil
}

// wrap makes a listener use TLS. Versions before 1.2 are broken.
func (c *certificate) wrap(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil }})
}
