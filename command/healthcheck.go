package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/readback-go/readback/internal/config"
)

// healthTime bounds a health check: its caller waits as long.
const healthTime = 5 * time.Second

func (a *app) healthcheckCommand() *cobra.Command {
	var at string
	var ready bool
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Check whether the server on this machine is running",
		Long: `Request /healthz of the server that the configuration (or the environment)
describes, for images without other programs. Exit code: 0 if the server is healthy,
otherwise 69. The certificate is not verified: it is for another name.`,
		Args: cobra.NoArgs,
		RunE: a.does(func(ctx context.Context, _ []string) (int, error) { return a.healthcheck(ctx, at, ready) }),
	}
	cmd.Flags().StringVar(&at, "url", "", "where the server is, such as http://127.0.0.1:8080 (default as configured)")
	cmd.Flags().BoolVar(&ready, "ready", false, "request /readyz: is the ledger reachable too")
	return cmd
}

func (a *app) healthcheck(ctx context.Context, at string, ready bool) (int, error) {
	path := "/healthz"
	if ready {
		path = "/readyz"
	}
	if at == "" {
		on, err := a.whereItListens()
		if err != nil {
			return 0, err
		}
		if at, err = ownAddress(on.Listen, on.CertFile != ""); err != nil {
			return 0, err
		}
	}
	if u, err := url.Parse(at); err != nil || u.Host == "" || u.User != nil {
		return 0, usagef("--url is no address; want one such as http://127.0.0.1:8080")
	}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+path, http.NoBody)
	if err != nil {
		return 0, usagef("--url: %w", err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}}} //nolint:gosec // no secret is sent
	defer client.CloseIdleConnections()
	status, code := "ok", exitVerified
	resp, err := client.Do(r)
	switch {
	case err != nil:
		status, code = err.Error(), exitUnavailable
	default:
		_ = resp.Body.Close() // the status is enough
		if resp.StatusCode != http.StatusOK {
			status, code = "answers "+resp.Status, exitUnavailable
		}
	}
	return code, a.print(map[string]string{"status": status}, func() string { return status + "\n" })
}

// whereItListens is the configuration of the server. An error made in the file while a
// server runs does not affect that server. So what can be read is used, and if nothing
// can, the environment is.
func (a *app) whereItListens() (config.Server, error) {
	c, err := a.serverConfig(serveSettings{})
	if err == nil || !errors.Is(err, config.ErrInvalid) {
		return c.Server, err
	}
	if c.Server.Listen == "" {
		c, _ = config.Without(a.environment(), devLedger) // its problems are those of the variables
	}
	return c.Server, nil
}

// ownAddress is the address at which this machine reaches a server with a listen address.
func ownAddress(listen string, secure bool) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("server.listen: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port), nil
}
