package command

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/readback-go/readback/internal/access"
	"github.com/readback-go/readback/internal/config"
)

// machineOf is a file system with these files.
func machineOf(files map[string]string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return all
}

// What the process may use is read from where it is limited, and its own limits
// follow from that.
func TestMemoryIsThatOfTheContainer(t *testing.T) {
	const mib = 1 << 20
	const meminfo = "MemTotal:        8388608 kB\nMemFree:  1 kB\n" // 8 GiB
	unset := int64(math.MaxInt64)
	for name, c := range map[string]struct {
		files        map[string]string
		set          int64
		budget, soft int64
		from, reason string
	}{
		"GOMEMLIMIT": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 300 * mib,
			300 * mib, 0, "GOMEMLIMIT", "the operator decided"},
		"a container": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, unset,
			536870912 / 100 * 80, 536870912 / 100 * 80, "80% of the 512 MiB of the container", "a fifth is for what Go does not count"},
		"a group above": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/system.slice/readback.service\n",
			"sys/fs/cgroup/system.slice/readback.service/memory.max": "max\n", "sys/fs/cgroup/system.slice/memory.max": "1073741824\n"}, unset,
			1073741824 / 100 * 80, 1073741824 / 100 * 80, "80% of the 1024 MiB of the container", "the smallest of all groups counts"},
		"version 1": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "12:cpu,cpuacct:/docker/a\n9:memory:/docker/a\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n"}, unset,
			268435456 / 100 * 80, 268435456 / 100 * 80, "80% of the 256 MiB of the container", "the path is the machine's, the file the container's"},
		"version 1 without a limit": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "9:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, unset,
			4096 * mib, 0, "half of the 8192 MiB of the machine", "that number means none"},
		"more than there is": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "17179869184\n"}, unset,
			4096 * mib, 0, "half of the 8192 MiB of the machine", "the machine is smaller"},
		"a machine": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n"}, unset,
			4096 * mib, 0, "half of the 8192 MiB of the machine", "other programs run there too"},
		"nonsense": {map[string]string{"proc/meminfo": "MemTotal: much\n", "proc/self/cgroup": "?\n0::/../..\n9:memory\n", "sys/fs/cgroup/memory.max": "-1\n"}, unset,
			0, 0, "", "nothing is made up"},
		"another system": {nil, unset, 0, 0, "", "there are no such files"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(memory{c.budget, c.soft, c.from}, memoryOf(machineOf(c.files), c.set), cmp.AllowUnexported(memory{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestLimitsFollowFromMemory(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		budget int64
		given  config.Config
		inHand int
		limits access.Limits
		reason string
	}{
		"half a GiB": {400 * mib, config.Config{}, 800, access.Limits{Requests: 800, Bodies: 25 * mib}, "a quarter, and a sixteenth"},
		"plenty":     {64 << 30, config.Config{}, 10_000, access.Limits{Requests: 4096, Bodies: 64 * mib}, "there is a most of everything"},
		"very small": {1 * mib, config.Config{}, 100, access.Limits{Requests: 100, Bodies: 8 * mib}, "and a least"},
		"configured": {400 * mib, config.Config{Queue: config.Queue{InHand: 7}, Server: config.Server{Limits: access.Limits{Requests: 9, Bodies: 99 * mib}}},
			7, access.Limits{Requests: 9, Bodies: 99 * mib}, "what is configured holds"},
		"not known": {0, config.Config{}, 0, access.Limits{}, "the defaults of those that have them"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.given
			memory{budget: c.budget}.over(&got)
			if got.Queue.InHand != c.inHand || got.Server.Limits != c.limits {
				t.Errorf("in hand %d, %+v; want %d, %+v: %s", got.Queue.InHand, got.Server.Limits, c.inHand, c.limits, c.reason)
			}
		})
	}
}

// The doctor reports the derived limits, and their source.
func TestDoctorChecksTheMemory(t *testing.T) {
	for name, c := range map[string]struct {
		memory memory
		want   string
	}{
		"known":     {memory{budget: 400 << 20, from: "GOMEMLIMIT"}, "400 MiB, which is GOMEMLIMIT: at most 800 writes in hand, 800 open requests, and 25 MiB in their bodies"},
		"not known": {memory{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, e, conf := &app{memory: c.memory}, &examination{}, config.Config{}
			a.memory.over(&conf)
			a.examineMemory(e, conf)
			if text := flat(e.Text()); !strings.Contains(text, c.want) || strings.Contains(text, "memory") != (c.want != "") {
				t.Errorf("%s; want %s", text, c.want)
			}
		})
	}
}
