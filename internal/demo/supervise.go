package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
)

// run is one trial under way. Only one goroutine uses it.
type run struct {
	trial
	spec  spec
	kills map[stop]bool // still to come
	lose  func()        // makes the destination lose its next answer; nil if it does so by itself
	lost  map[int]bool  // by order: lose was called
	ended map[int]ending
	made  int // kills so far
	show  func(trial, int, int)
}

// newRun prepares a trial of n orders in a folder. show receives how many orders have ended and
// how many kills were made.
func newRun(t trial, dir string, n int, show func(trial, int, int)) *run {
	r := &run{trial: t, lost: map[int]bool{}, ended: map[int]ending{}, show: show,
		spec: spec{Role: roleWorker, Dir: dir, Orders: n, Strategy: t.strategy, Target: t.target}}
	if t.killed {
		r.kills = maps.Clone(kills(n))
	}
	return r
}

// supervise starts the worker as often as it gets killed, until it is done.
func (r *run) supervise(ctx context.Context) error {
	for {
		killed, err := r.once(ctx)
		if err != nil {
			return fmt.Errorf("%s: worker: %w", r.name, err)
		}
		if !killed {
			return nil
		}
	}
}

// once runs one worker until it ends, or until it is killed at its point.
func (r *run) once(ctx context.Context) (killed bool, err error) {
	p, err := start(ctx, r.spec)
	if err != nil {
		return false, err
	}
	killed, listenErr := r.listen(p)
	if listenErr != nil {
		_ = p.kill()
	}
	ended := p.wait()
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case killed:
		return true, nil // that is how it ended, and its last output may be truncated
	}
	return false, errors.Join(listenErr, ended)
}

// listen reads the worker's output until it ends.
func (r *run) listen(p *process) (killed bool, err error) {
	for dec := json.NewDecoder(p.out); ; {
		var m message
		switch err := dec.Decode(&m); {
		case err == io.EOF:
			return killed, nil
		case err != nil:
			return killed, err
		case m.Ended != "":
			r.ended[m.Order] = m.Ended
			r.show(r.trial, len(r.ended), r.made)
		case r.kills[stop{m.Order, m.Point}]:
			delete(r.kills, stop{m.Order, m.Point})
			if err := p.kill(); err != nil {
				return false, err
			}
			killed = true
			r.made++
			r.show(r.trial, len(r.ended), r.made)
		case !killed:
			if err := r.goOn(p, m); err != nil {
				return false, err
			}
		}
	}
}

// goOn releases the worker, with a lost answer where the plan requires it.
func (r *run) goOn(p *process, m message) error {
	if r.lose != nil && m.Point == beforeSend && loses(m.Order) && !r.lost[m.Order] {
		r.lost[m.Order] = true
		r.lose()
	}
	_, err := io.WriteString(p.in, "\n")
	return err
}

// toOrders runs a trial against the orders, a process of their own.
func (r *run) toOrders(ctx context.Context) (Figures, error) {
	at := r.spec
	at.Role = roleDestination
	destination, err := start(ctx, at)
	if err != nil {
		return Figures{}, fmt.Errorf("%s: destination: %w", r.name, err)
	}
	url, err := destination.out.ReadString('\n')
	if err == nil {
		r.spec.Addr = strings.TrimSpace(url)
		err = r.supervise(ctx)
	}
	if stopped := destination.stop(); stopped != nil && ctx.Err() == nil {
		err = errors.Join(err, fmt.Errorf("%s: destination: %w", r.name, stopped))
	}
	if ctx.Err() != nil {
		return Figures{}, context.Cause(ctx)
	}
	if err != nil {
		return Figures{}, err
	}
	return r.countOrders()
}
