//go:build linux

package command

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/readback-go/readback/internal/fakes/orders"
	"github.com/readback-go/readback/internal/need"
)

// insideNamespace marks a test binary that runs in a namespace of its own.
const insideNamespace = "READBACK_TEST_IN_NAMESPACE"

// inNamespace runs the calling test again in a process with a user and mount namespace of
// its own, as the user uid there, and reports whether this is that process. As user 0,
// disks can be mounted, filled and made read-only there without privileges. Any other
// user has fewer rights than the owner of the test.
func inNamespace(t *testing.T, uid int) bool {
	t.Helper()
	if os.Getenv(insideNamespace) != "" {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		need.Have(t, fmt.Errorf("%w: a namespace of our own to spoil a disk in: %w", need.ErrMissing, err))
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// disk mounts a small disk.
func disk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill leaves no room on a disk, and returns what makes room again.
func fill(t *testing.T, dir string) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for piece := make([]byte, 4096); err == nil; {
		_, err = f.Write(piece)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

func same(h http.Handler) http.Handler { return h }

func TestFullDisk(t *testing.T) {
	if !inNamespace(t, 0) {
		return
	}
	p := newPlaceIn(t, disk(t), orders.Plain.Options(), same)
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	empty := fill(t, p.dir)
	p.refused(exitUnavailable, "ledger_unavailable", order("A-2", ""), "ledger unavailable", p.ledger, "it may be full", "Nothing was sent by this call.", "Repeat the command as it is when the cause is gone")
	p.calls(1)
	empty()
	says(t, p.want(0, p.run("show", write)), "VERIFIED")
	p.submit(exitVerified, order("A-2", ""))
	p.effects(1, "A-2")
	if n := len(p.writes()); n != 2 {
		t.Errorf("%d writes in the ledger, want 2", n)
	}
}

func TestOutcomeThatCannotBePrinted(t *testing.T) {
	p := newPlace(t, orders.Plain.Options())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	var errs lines
	code := p.start(t.Context(), strings.NewReader(order("A-1", "")), full, &errs, "submit", "-f", "-")
	if code != exitVerified || !strings.Contains(errs.String(), "the outcome could not be printed") {
		t.Errorf("exit code %d; the write was made, whatever can be printed\n%s", code, errs.String())
	}
}

// The disk fills up between the send and its outcome: the write was sent, and the ledger
// cannot record it.
func TestDiskThatFillsUpDuringTheSend(t *testing.T) {
	if !inNamespace(t, 0) {
		return
	}
	dir, empty := disk(t), func() {}
	p := newPlaceIn(t, dir, orders.Plain.Options(), func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				empty = fill(t, dir)
			}
			h.ServeHTTP(w, r)
		})
	})
	failed := decode(t, p.submit(exitUnknown, order("A-1", ""), "--json"))["error"].(map[string]any)
	if failed["kind"] != "unknown" {
		t.Errorf("kind %v, want unknown", failed["kind"])
	}
	p.effects(1, "A-1")
	empty()
	write := failed["write"].(string)
	says(t, p.want(0, p.run("show", write)), "sending", "send 1 announced", "readback resume "+write)
	p.want(exitVerified, p.run("resume", write)) // the lease still runs, and its owner has ended
	p.effects(1, "A-1")
	p.calls(1)
}

func TestReadOnlyDisk(t *testing.T) {
	if !inNamespace(t, 0) {
		return
	}
	p := newPlaceIn(t, disk(t), orders.Plain.Options(), same)
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	if err := syscall.Mount("", p.dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	p.refused(exitUnavailable, "ledger_unavailable", order("A-2", ""), "ledger unavailable", p.ledger, "must be writable", "Nothing was sent")
	p.want(exitUnavailable, p.run("work"))
	p.calls(1)
	if err := syscall.Mount("", p.dir, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	p.submit(exitVerified, order("A-2", ""))
	p.want(0, p.run("show", write))
}

func TestReadOnlyLedgerFile(t *testing.T) {
	if !inNamespace(t, 1000) {
		return
	}
	p := newPlace(t, orders.Plain.Options())
	write := id(t, p.submit(exitVerified, order("A-1", "")))
	if err := os.Chmod(p.ledger, 0o400); err != nil {
		t.Fatal(err)
	}
	p.refused(exitUnavailable, "ledger_unavailable", order("A-2", ""), "ledger unavailable", p.ledger, "writable by the user of this process", "Nothing was sent")
	p.calls(1)
	files, err := filepath.Glob(p.ledger + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files { // SQLite gives -wal and -shm the mode of the file
		if err := os.Chmod(file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.submit(exitVerified, order("A-2", ""))
	p.want(0, p.run("show", write))
}

func TestLedgerInAFolderThatCannotBeWritten(t *testing.T) {
	if !inNamespace(t, 1000) {
		return
	}
	p := newPlace(t, orders.Plain.Options())
	if err := os.Chmod(p.dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(p.dir, 0o700) })
	p.refused(exitUnavailable, "ledger_unavailable", order("A-1", ""), p.ledger, "permission denied", "Nothing was sent")
	p.calls(0)
}

func TestNetworkDisksAreKnown(t *testing.T) {
	smb := uint32(0xff534d42)
	for magic, want := range map[int64]string{0x6969: "NFS", int64(smb): "SMB", int64(int32(smb)): "SMB", 0xef53: "", 0x01021994: ""} {
		if got := networkKind(magic); got != want {
			t.Errorf("%#x is %q, want %q", magic, got, want)
		}
	}
	if got := networkDisk("/proc"); got != "" {
		t.Errorf("/proc is on %q", got)
	}
}
