package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/readback-go/readback/internal/config"
	"github.com/readback-go/readback/internal/visible"
	"github.com/readback-go/readback/ledger"
)

// maxForeign bounds the text of others in one line, in characters.
const maxForeign = 200

// line is one line of a message: our words, those of others, and the path of the page.
type line struct{ text, foreign, path string }

func stepPath(workflow, step string) string {
	return "/workflows/" + url.PathEscape(workflow) + "/steps/" + url.PathEscape(step)
}

func sagaPath(id string) string { return "/sagas/" + url.PathEscape(id) }

// message is the message of a batch. What no longer waits is left out; the zero text is that of
// a batch of which nothing waits.
func (s *Sender) message(ctx context.Context, n config.Notification, tenant string, b batch, st standing) (config.Message, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%s", len(n.Name), n.Name, len(tenant), tenant, stamp(b.Opened)))
	m := config.Message{ID: n.Name + "-" + hex.EncodeToString(sum[:8]), At: b.Opened}
	var lines []string
	count := b.More
	for _, i := range b.Items {
		if len(lines) == n.Lines { // whether the others still wait costs a read of each
			count++
			continue
		}
		l, waits, err := s.line(ctx, tenant, i, st)
		if err != nil {
			return m, err
		}
		switch {
		case waits && l.text == "":
			count++
		case waits:
			lines = append(lines, s.shown(n, l))
			count++
		}
	}
	if count == 0 {
		return m, nil
	}
	m.Subject = fmt.Sprintf("readback: %d items wait for a reviewer (tenant %s)", count, visible.Clip(tenant, maxForeign))
	if count == 1 {
		m.Subject = fmt.Sprintf("readback: 1 item waits for a reviewer (tenant %s)", visible.Clip(tenant, maxForeign))
	}
	text := []string{ours(n, m.Subject), ""}
	text = append(text, lines...)
	if more := count - len(lines); more > 0 {
		text = append(text, fmt.Sprintf("and %d more", more))
	}
	if s.ReviewUI != "" {
		text = append(text, "", "All that waits: "+s.link(n, "/inbox"))
	}
	m.Text = strings.Join(text, "\n")
	return m, nil
}

// line is the line of an item, and whether it still waits. It is the zero line for one that may
// wait and is not listed, since too many are.
func (s *Sender) line(ctx context.Context, tenant string, i item, st standing) (line, bool, error) {
	switch i.Kind {
	case write:
	case gap:
		return line{text: "Some changes were pruned before this notification read them.", path: "/inbox"}, true, nil
	case more:
		return line{text: fmt.Sprintf("At least %d %ss wait; the inbox has them, and not each is notified.", maxListed, strings.Fields(i.ID)[0]), path: "/inbox"}, true, nil
	default:
		l, waits := st.lines[i.name()]
		return l, waits || st.cut[i.Kind], nil
	}
	v, err := s.Service.View(ctx, reader(tenant), ledger.ID(i.ID))
	switch {
	case errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrCorrupt):
		return line{}, false, nil
	case err != nil:
		return line{}, false, err
	}
	l := line{foreign: v.Summary, path: "/writes/" + url.PathEscape(i.ID)}
	switch {
	case v.Record.State == ledger.Held && v.Record.Overdue:
		l.text = "The approval is overdue: "
	case v.Record.State == ledger.Held:
		l.text = "Waits for approval: "
	case v.Record.State == ledger.Review:
		l.text = "Is in review: "
	default:
		return line{}, false, nil
	}
	return l, true, nil
}

// shown is a line in the form of the notification.
func (s *Sender) shown(n config.Notification, l line) string {
	text := "- " + l.text
	if l.foreign != "" {
		text += foreign(n, l.foreign)
	}
	if s.ReviewUI != "" {
		text += "\n  " + s.link(n, l.path)
	}
	return text
}

// web is the beginning of an address that programs of mail and chat make a link of, without a
// scheme.
var web = regexp.MustCompile(`(?i)\b(www)\.`)

// foreign is text of others: one line, never a link and never markup. In Slack it is code, in
// which Slack finds neither.
func foreign(n config.Notification, text string) string {
	text = visible.Clip(text, maxForeign)
	if n.Slack {
		return "`" + strings.ReplaceAll(escaped(text), "`", "'") + "`"
	}
	return web.ReplaceAllString(strings.ReplaceAll(text, "://", "[://]"), "$1[.]")
}

// ours is text of our own in the form of the notification.
func ours(n config.Notification, text string) string {
	if n.Slack {
		return escaped(text)
	}
	return text
}

// escaped has the three characters escaped that Slack interprets.
func escaped(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

func (s *Sender) link(n config.Notification, path string) string {
	if n.Slack {
		return "<" + s.ReviewUI + path + ">"
	}
	return s.ReviewUI + path
}
