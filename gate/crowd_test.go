package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/readback-go/readback/gate"
	"github.com/readback-go/readback/ledger/sqlite"
)

const (
	childEnv = "READBACK_GATE_CHILD" // the ledger's file and the workflow, for a process of the crowd
	crowd    = 32
	parties  = 3
)

func TestMain(m *testing.M) {
	if arg := os.Getenv(childEnv); arg != "" {
		if err := child(arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// coin decides at random, so that answers are equal only if all come from one ruling.
type coin struct{}

func (coin) Decide(context.Context, gate.Facts) (gate.Ruling, error) {
	return gate.Ruling{Decision: []gate.Decision{gate.Allow, gate.Block}[rand.N(2)], Reason: fmt.Sprint("coin ", rand.Uint64())}, nil
}

// flood gates one step at once.
func flood(ctx context.Context, g *gate.Gate, wf string) ([]gate.GateResponse, error) {
	var mu sync.Mutex
	var all []gate.GateResponse
	var first error
	var wg sync.WaitGroup
	for i := range crowd {
		wg.Go(func() {
			c := gate.Caller{Tenant: tenant, Name: fmt.Sprint("caller-", i)}
			got, err := g.Gate(ctx, c, wf, "pay", asking{StepType: "tool_call", IdempotencyKey: "k"})
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, got); err != nil && first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	return all, first
}

// checkCrowd checks that all were answered by one ruling, one of them got the lease, and every
// gate was counted once.
func checkCrowd(t *testing.T, all []gate.GateResponse) {
	t.Helper()
	var counts []int
	granted := 0
	for _, r := range all {
		counts = append(counts, r.RetryContext.GateCount)
		if r.Decision != all[0].Decision || r.Reason != all[0].Reason {
			t.Errorf("two answers: %s (%s) and %s (%s)", r.Decision, r.Reason, all[0].Decision, all[0].Reason)
		}
		if r.Lease == nil {
			continue
		}
		if r.LeaseGranted {
			granted++
		} else if r.LeaseID == "" || r.LeaseHolder == "" || r.RetryAfterSeconds < 1 {
			t.Errorf("a waiting caller does not get the holder and the time: %+v", r.Lease)
		}
	}
	slices.Sort(counts)
	want := make([]int, parties*crowd)
	for i := range want {
		want[i] = i + 1
	}
	same(t, "counts of gates", counts, want)
	leases := 0
	if all[0].Decision == gate.Allow {
		leases = 1
	}
	same(t, "leases granted", granted, leases)
}

func TestCrowdOnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	crowded(t, func() gate.Store {
		l, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	})
}

// crowded gates one step from many callers at once, and then another one.
func crowded(t *testing.T, open func() gate.Store) {
	t.Helper()
	var gates []*gate.Gate
	for range parties {
		gates = append(gates, gate.New(open(), &gate.Options{Rules: coin{}, AcrossWorkflows: gate.AcrossIgnore}))
	}
	for range 2 {
		made, err := gates[0].Create(t.Context(), agent, gate.CreateRequest{WorkflowName: "crowd"})
		if err != nil {
			t.Fatal(err)
		}
		var all []gate.GateResponse
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, g := range gates {
			wg.Go(func() {
				got, err := flood(t.Context(), g, made.WorkflowID)
				mu.Lock()
				defer mu.Unlock()
				if all = append(all, got...); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		checkCrowd(t, all)
	}
}

func TestCrowdOfProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	made, err := gate.New(l, nil).Create(t.Context(), agent, gate.CreateRequest{WorkflowName: "crowd"})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]bytes.Buffer, parties)
	var wg sync.WaitGroup
	for i := range parties {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"="+made.WorkflowID+path)
			cmd.Stdout = &out[i]
			var says bytes.Buffer
			cmd.Stderr = &says
			if err := cmd.Run(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, says.String())
			}
		})
	}
	wg.Wait()
	var all []gate.GateResponse
	for i := range out {
		var some []gate.GateResponse
		if err := json.Unmarshal(out[i].Bytes(), &some); err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	checkCrowd(t, all)
}

// child is one process of the crowd. Its argument is a workflow's ID and the path of a file.
func child(arg string) error {
	const length = len("wf_00000000")
	l, err := sqlite.Open(context.Background(), arg[length:], nil)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	all, err := flood(context.Background(), gate.New(l, &gate.Options{Rules: coin{}}), arg[:length])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}
