package command

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/readback-go/readback/internal/config"
)

const (
	// softPercent is the part of a container's memory that Go's collector is to stay
	// within. The rest is for memory that it does not count, such as SQLite's pages and
	// the programs that destinations start.
	softPercent = 80
	// noLimit is above the memory of any machine: version 1 of control groups reports
	// such a number where there is no limit.
	noLimit = 1 << 60
	// callBytes is the memory of one write in hand, with its connections, its goroutines
	// and a small intent: 133 KiB were measured with 6000 sends that hang. A quarter of
	// the memory is for these.
	callBytes = 128 << 10
	// leastInHand and mostInHand bound the derived number: a process that can carry less
	// is of no use, and no destination takes more.
	leastInHand, mostInHand = 100, 10_000
)

// memory is the memory that this process may use, and where that was read.
type memory struct {
	// budget is what the limits below are derived from: GOMEMLIMIT, four fifths of the
	// container's limit, or half of the machine. 0: it is not known.
	budget int64
	// soft is the limit to set for Go's collector. 0: it is set already, or only the
	// machine limits this process.
	soft int64
	from string
}

// memoryOf reads the memory that the process may use from the machine's file system,
// below root. set is the limit of Go's collector, [math.MaxInt64] for none.
func memoryOf(root fs.FS, set int64) memory {
	if set < math.MaxInt64 {
		return memory{budget: set, from: "GOMEMLIMIT"}
	}
	machine := memTotal(root)
	if most := containerLimit(root); most > 0 && (machine == 0 || most < machine) {
		soft := most / 100 * softPercent
		return memory{budget: soft, soft: soft, from: fmt.Sprintf("%d%% of the %s of the container", softPercent, mebibytes(most))}
	}
	if machine == 0 {
		return memory{}
	}
	return memory{budget: machine / 2, from: fmt.Sprintf("half of the %s of the machine", mebibytes(machine))}
}

// apply sets the limit of Go's collector, which sets none from a container's limit by
// itself: without one the kernel kills the process where collecting would do.
func (m memory) apply() {
	if m.soft > 0 {
		debug.SetMemoryLimit(m.soft)
	}
}

// containerLimit is the smallest limit of the control groups of this process, 0 for none.
// Their version is read from /proc/self/cgroup.
func containerLimit(root fs.FS) (least int64) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, name := "sys/fs/cgroup", "memory.max"
		switch controllers := strings.Split(parts[1], ","); {
		case parts[0] == "0" && parts[1] == "":
		case len(controllers) == 1 && controllers[0] == "memory":
			dir, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// A group is limited by all above it. Within a container the path may be one of
		// the machine, of which only the top is mounted.
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			if n := limitIn(root, path.Join(dir, at, name)); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

// limitIn is the limit in a file, 0 for none.
func limitIn(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n <= 0 || n > noLimit { // "max", and its equivalent in version 1
		return 0
	}
	return n
}

// memTotal is the memory of the machine in bytes, 0 where it cannot be read.
func memTotal(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "MemTotal:")
	var kib int64
	if _, err := fmt.Sscan(after, &kib); err != nil || kib <= 0 || kib > noLimit>>10 {
		return 0
	}
	return kib << 10
}

// over sets what the configuration leaves open and the memory decides.
func (m memory) over(c *config.Config) {
	if m.budget == 0 {
		return
	}
	c.Queue.InHand = cmp.Or(c.Queue.InHand, int(min(max(m.budget/4/callBytes, leastInHand), mostInHand)))
	l := &c.Server.Limits
	most := l.Default()
	l.Requests = cmp.Or(l.Requests, min(most.Requests, c.Queue.InHand))
	l.Bodies = cmp.Or(l.Bodies, min(most.Bodies, max(m.budget/16, config.LeastBodies)))
}

// text is what was derived, for `readback doctor`.
func (m memory) text(c config.Config) string {
	l := c.Server.Limits.Default()
	return fmt.Sprintf("%s, which is %s: at most %d writes in hand, %d open requests, and %s in their bodies",
		mebibytes(m.budget), m.from, c.Queue.InHand, l.Requests, mebibytes(l.Bodies))
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// examineMemory reports the memory that this process may use, and the derived limits.
// Where it cannot be read, as on other systems than Linux, the defaults are those without
// a limit.
func (a *app) examineMemory(e *examination, c config.Config) {
	if a.memory.budget > 0 {
		e.ok("memory limit", "%s", a.memory.text(c))
	}
}
