//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestContenders: every contender that can run here makes each of its writes. A system under
// test may send one twice, since most of them promise at least once; readback and the bare pair
// do not.
func TestContenders(t *testing.T) {
	// t.TempDir is closed to the user of PostgreSQL's server.
	m, err := newMachine(options{dir: os.TempDir(), restate: os.Getenv("RESTATE_SERVER"), temporal: os.Getenv("TEMPORAL_SERVER")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	var left bytes.Buffer
	present := m.present(&left, contenders)
	t.Log(left.String())
	for _, c := range present {
		t.Run(c.name, func(t *testing.T) {
			d := newDestination()
			s, err := c.open(t.Context(), m, d)
			if err != nil {
				t.Fatal(err)
			}
			const callers = 5
			writes, err := writeWith(t.Context(), s, "order", callers, 0)
			if err != nil || writes != callers {
				t.Errorf("%d writes, %v; want %d", writes, err, callers)
			}
			orders, sends := d.count()
			if orders != writes || sends < writes || sends > writes && (c.isReadback() || strings.HasPrefix(c.name, "bare")) {
				t.Errorf("the destination has %d orders from %d sends after %d writes", orders, sends, writes)
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestResults: the tables and the chart of figures that are known.
func TestResults(t *testing.T) {
	r := results{contenders: []contender{readbackOnPostgres, dbosOnPostgres, restateServer}, rates: map[string][][]float64{}}
	for i, c := range r.contenders {
		r.rates[c.name] = [][]float64{{10, 30, 20}, {100 * float64(i+1), 100, 100}, {2000, 1000, 3000}}
	}
	var out bytes.Buffer
	printResults(&out, r)
	for _, want := range []string{
		"| contender | 1 caller | 8 callers | 64 callers |\n",
		"| DBOS, PostgreSQL | 20.0 (10.0 to 30.0) | 100 (100 to 200) | 2,000 (1,000 to 3,000) |\n",
		"| readback, PostgreSQL ÷ DBOS, PostgreSQL | 1.00 (1.00 to 1.00) | 1.00 (0.50 to 1.00) | 1.00 (1.00 to 1.00) |\n",
		"| readback, PostgreSQL ÷ Restate |",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	file := filepath.Join(t.TempDir(), "chart.svg")
	if err := drawChart(r, file); err != nil {
		t.Fatal(err)
	}
	chart, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(chart, []byte(">DBOS, PostgreSQL")) || !bytes.Contains(chart, []byte(">2,000<")) {
		t.Errorf("the chart, %v: %s", err, chart)
	}
}

// TestThePage: docs/performance.md has the guarantees as the program prints them.
func TestThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), guaranteesTable()) {
		t.Errorf("docs/performance.md does not have this table:\n%s", guaranteesTable())
	}
}
