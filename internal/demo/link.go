package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"sync"
)

// message is what a worker sends its parent, one JSON object a line: that it is at a point and
// waits for an empty line to continue, or its belief about an order.
type message struct {
	Order int    `json:"order"`
	Point point  `json:"point,omitempty"`
	Ended ending `json:"ended,omitempty"`
}

// link is a child's end of the pipes to its parent.
type link struct {
	asking sync.Mutex // one question at a time
	saying sync.Mutex
	enc    *json.Encoder
	goOn   chan struct{} // one value for each line from the parent
}

// newLink reads from in until it ends, and calls gone then.
func newLink(in io.Reader, out io.Writer, gone func()) *link {
	l := &link{enc: json.NewEncoder(out), goOn: make(chan struct{}, 1)}
	go func() {
		defer gone()
		for lines := bufio.NewScanner(in); lines.Scan(); {
			l.goOn <- struct{}{}
		}
	}()
	return l
}

func (l *link) say(m message) error {
	l.saying.Lock()
	defer l.saying.Unlock()
	return l.enc.Encode(m)
}

// reach reports that an order is at a point and waits until it may continue.
func (l *link) reach(ctx context.Context, order int, p point) error {
	l.asking.Lock()
	defer l.asking.Unlock()
	if err := l.say(message{Order: order, Point: p}); err != nil {
		return err
	}
	select {
	case <-l.goOn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
