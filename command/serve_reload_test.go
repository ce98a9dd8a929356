package command

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/readback-go/readback/internal/fakes/orders"
)

func putFile(t *testing.T, dir, name, text string) {
	t.Helper()
	temp := filepath.Join(dir, name+".new")
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil { // at once, as tools do
		t.Fatal(err)
	}
}

const allowing = "version: 1\nrules:\n  - id: all\n    when: 'true'\n    decision: allow\n    reason: fine\n"

// Rules and limits are taken under a running server, a bad file is not, and what
// needs a restart is named.
func TestServeReloads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const base = "ledger: readback.db\ngate:\n  rules: rules.yaml\n"
	putFile(t, dir, "rules.yaml", allowing)
	putFile(t, dir, "readback.yaml", base)
	s := serveProcess(t, dir, "--verbose")
	_, created := s.ask("POST", "/api/v1/workflows", `{"workflow_name":"w"}`)
	n := 0
	decided := func() any {
		n++
		_, a := s.ask("POST", fmt.Sprintf("/api/v1/workflows/%s/steps/s%d/gate", created["workflow_id"], n), `{"step_type":"tool_call","tool_context":{"tool_name":"bank"}}`)
		return a["decision"]
	}
	if got := decided(); got != "allow" {
		t.Fatalf("at first: %v", got)
	}
	signal := func() {
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}

	putFile(t, dir, "rules.yaml", strings.ReplaceAll(allowing, "decision: allow", "decision: block"))
	signal()
	eventually(t, "the new rules", func() bool { return decided() == "block" })

	putFile(t, dir, "rules.yaml", "version: 1\nrules:\n  - id: all\n    when: 'tru'\n    decision: allow\n    reason: fine\n")
	signal()
	eventually(t, "the refusal", func() bool { return strings.Contains(s.errs.String(), "is not taken") })
	says(t, result{0, "", s.errs.String()}, "rules.yaml:4")
	if got := decided(); got != "block" {
		t.Errorf("bad rules are in force: %v", got)
	}

	// Without a signal, and a risk rule beside what needs a restart.
	putFile(t, dir, "rules.yaml", allowing)
	putFile(t, dir, "readback.yaml", base+"risk:\n  - {name: money, tool: bank}\ntenant: other\n")
	eventually(t, "the risk rule", func() bool { return decided() == "require_approval" })
	eventually(t, "the word about the tenant", func() bool { return strings.Contains(s.errs.String(), "need a restart\" settings=tenant") })
	code, text := fetched(t, s.url+"/metrics")
	for _, want := range []string{`readback_reloads_total{result="refused"} `, `readback_reloads_total{result="taken"} `} {
		if code != 200 || !strings.Contains(text, want) || strings.Contains(text, want+"0") {
			t.Errorf("%d: want %s above 0", code, want)
		}
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs)
	}
}

// A file that only a refused configuration names is checked as well: fixing it is enough.
func TestServeReloadsWhatIsPutRight(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	putFile(t, dir, "readback.yaml", "ledger: readback.db\n")
	s := serveProcess(t, dir, "--verbose")
	putFile(t, dir, "new.yaml", "version: 1\nrules: oops\n")
	putFile(t, dir, "readback.yaml", "ledger: readback.db\ngate: {rules: new.yaml}\n")
	eventually(t, "the refusal", func() bool { return strings.Contains(s.errs.String(), "is not taken") })
	putFile(t, dir, "new.yaml", allowing)
	eventually(t, "the rules", func() bool {
		return strings.Contains(s.errs.String(), `"the configuration was read again" rules=`)
	})
}

// And so it is for a server that runs.
func TestServeLetsGoOfARate(t *testing.T) {
	t.Parallel()
	p := newPlace(t, orders.Plain.Options())
	p.configure(p.url, "    rate: {calls: 1, per: 1h}\n")
	s := serveProcess(t, p.dir, "--verbose")
	verified := func(order string) {
		t.Helper()
		if code, out := s.ask("POST", "/v1/writes", sampleIntent("create_order", order), "Prefer", "wait=30"); out["status"] != "verified" {
			t.Errorf("%s: %d %v\n%s", order, code, out, s.errs)
		}
	}
	verified("A-1")
	p.configure(p.url, "")
	eventually(t, "the file to be read", func() bool { return strings.Contains(s.errs.String(), "was read again") })
	verified("A-2")
	if strings.Contains(s.errs.String(), "need a restart") {
		t.Errorf("it is taken:\n%s", s.errs)
	}
}

// selfSigned writes a certificate for this machine, with a number, and its key.
func selfSigned(t *testing.T, dir string, number int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(number), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	putFile(t, dir, "c.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	putFile(t, dir, "k.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

// A server with a certificate, which is replaced while it runs.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	selfSigned(t, dir, 1)
	putFile(t, dir, "readback.yaml", "ledger: readback.db\nserver:\n  tls: {cert_file: c.pem, key_file: k.pem}\n")
	s := serveProcess(t, dir)
	if !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatalf("it is at %s", s.url)
	}
	shown := func(most uint16) (int64, error) {
		d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: most}}
		conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
		if err != nil {
			return 0, err
		}
		defer func() { _ = conn.Close() }()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
	}
	if n, err := shown(0); n != 1 || err != nil {
		t.Errorf("certificate %d, %v", n, err)
	}
	if _, err := shown(tls.VersionTLS11); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	selfSigned(t, dir, 2)
	eventually(t, "the new certificate", func() bool { n, _ := shown(0); return n == 2 })
	putFile(t, dir, "k.pem", "no key")
	eventually(t, "the refusal", func() bool { return strings.Contains(s.errs.String(), "server.tls") })
	if n, err := shown(0); n != 2 || err != nil {
		t.Errorf("after a bad key: certificate %d, %v", n, err)
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.errs)
	}
}
