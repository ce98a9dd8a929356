package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/readback-go/readback/internal/report"
)

const (
	// barAfter is how long a command takes before its progress is shown.
	barAfter = 2 * time.Second
	// lineEvery is how often a line about it is printed where there is no terminal.
	lineEvery = 5 * time.Second
)

// progress returns what shows on standard error how far a command is, and what removes it
// again: a bar on a terminal, elsewhere a line now and then. of is 0 where it is not known.
func (a *app) progress() (show func(doing string, done, of int), end func()) {
	began := time.Now()
	last, now := began, ""
	var bar *progressbar.ProgressBar
	end = func() {
		if bar != nil {
			_ = bar.Clear() // a terminal that is gone shows nothing
			bar = nil
		}
	}
	show = func(doing string, done, of int) {
		switch doing = report.Safe(doing); {
		case !a.bars && time.Since(last) >= lineEvery:
			last = time.Now()
			_, _ = fmt.Fprintf(a.stderr, "readback: %s: %s\n", doing, counted(done, of))
		case a.bars && time.Since(began) >= barAfter:
			if bar != nil && doing != now {
				end()
			}
			if now = doing; bar == nil {
				most := of
				if of == 0 {
					most = -1
				}
				bar = progressbar.NewOptions(most, progressbar.OptionSetWriter(a.stderr), progressbar.OptionSetDescription(doing),
					progressbar.OptionSetWidth(20), progressbar.OptionShowCount(), progressbar.OptionShowIts(),
					progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetSpinnerChangeInterval(0))
			}
			_ = bar.Set(done)
		}
	}
	return show, end
}

func counted(done, of int) string {
	if of > 0 {
		return fmt.Sprintf("%d of %d", done, of)
	}
	return fmt.Sprint(done)
}

// errInterrupted reports a command that a signal ended.
var errInterrupted = errors.New("interrupted")

// interrupted is the error of a command that may have been ended by a signal: it names what
// was done, and how to continue.
func interrupted(ctx context.Context, err error, format string, args ...any) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: "+format, append([]any{errInterrupted}, args...)...)
}
