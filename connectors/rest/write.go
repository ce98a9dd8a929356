package rest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/connectors/httpsend"
	"github.com/readback-go/readback/intent"
)

// busyWait is the pause after an answer that an earlier send is at work, where it names none.
const busyWait = 5 * time.Second

// Write sends once. What keeps it from being sent now, such as a secret or a
// token that cannot be had, is of fate not sent, and so is a kind or a key that
// is not known. Anything else that the declaration cannot serve is refused, which
// is as sure, and no repeat would help it.
func (c *Connector) Write(ctx context.Context, r connectors.Request) (connectors.Receipt, error) {
	k, err := c.d.kindOf(r.Intent)
	if err != nil {
		return connectors.Receipt{}, connectors.NotSent(err)
	}
	if err := k.seen(r.Intent, c.given()); err != nil {
		return connectors.Receipt{}, unsent(err)
	}
	w := k.writes[r.Intent.Write]
	if w == nil {
		return connectors.Receipt{}, unsent(fmt.Errorf("%w: /write: there is no %s of this kind", errIntent, r.Intent.Write))
	}
	v, err := c.writeValues(k, w, r)
	if err != nil {
		return connectors.Receipt{}, unsent(err)
	}
	if err := c.assure(ctx, w); err != nil {
		return connectors.Receipt{}, unsent(err)
	}
	if w.prepare != nil {
		ref, receipt, err := c.prepared(ctx, w.prepare, r, v)
		if err != nil {
			return receipt, err
		}
		v["prepared"] = ref
	}
	return c.send(ctx, w, r, v)
}

// send makes one call.
func (c *Connector) send(ctx context.Context, w *write, r connectors.Request, v values) (connectors.Receipt, error) {
	d, err := w.draft(r, v)
	if err != nil {
		return connectors.Receipt{}, unsent(err)
	}
	u, err := c.url(d.path, d.query)
	if err != nil {
		return connectors.Receipt{}, unsent(err)
	}
	receipt, err := c.sendDraft(ctx, w, d, u, v)
	if errors.Is(err, errEnded) { // it was not applied, and is sent once more, by a new session
		receipt, err = c.sendDraft(ctx, w, d, u, v)
	}
	return receipt, err
}

func (c *Connector) sendDraft(ctx context.Context, w *write, d *draft, u *url.URL, v values) (connectors.Receipt, error) {
	req, used, err := c.request(ctx, c.writes, d, u)
	if err != nil {
		return connectors.Receipt{}, unsent(err)
	}
	a, err := c.client.Write(req)
	receipt, err := w.receipt(c.writes.auth.endings(), a, err, v)
	c.writes.heed(ctx, used, a.Status, err)
	receipt.Reply, receipt.URL = c.masked(receipt.Reply), c.Mask(receipt.URL)
	return receipt, err
}

// unsent is the error of a write that did not leave. What was not sent is tried
// for a day; an intent that cannot be served must not be.
func unsent(err error) error {
	switch {
	case errors.Is(err, errIntent):
		return connectors.Refused("", err)
	case connectors.FateOf(err) == connectors.FateLogin:
		return err
	}
	return connectors.NotSent(err)
}

// before is the one record that was there, nil when there was another number.
func before(r connectors.Request) *connectors.Record {
	if r.Before == nil || len(r.Before.Records) != 1 || r.Before.Records[0].Ref == "" {
		return nil
	}
	return &r.Before.Records[0]
}

// writeValues are the values of the placeholders of a write.
func (c *Connector) writeValues(k *kind, w *write, r connectors.Request) (values, error) {
	in, err := k.asNamed(w, r.Intent)
	if err != nil {
		return nil, err
	}
	if in.Want() != 1 {
		return nil, fmt.Errorf("%w: /count: is %d; one request writes one record", errIntent, in.Want())
	}
	if err := k.unforged(in); err != nil {
		return nil, err
	}
	v := c.given()
	both := maps.Clone(map[string]any(in.Payload))
	if both == nil {
		both = map[string]any{}
	}
	maps.Copy(both, in.Expect)
	v["key"], v["fields"] = map[string]any(in.Key), both
	v["expect"], v["payload"] = object1(in.Expect), object1(in.Payload)
	if len(in.Absent) > 0 {
		all := []any{}
		for _, p := range in.Absent {
			all = append(all, p)
		}
		v["absent"] = all
	}
	for name, text := range map[string]string{"stamp": k.record.stamped(r.Stamp), "idempotency_key": r.IdempotencyKey} {
		if text != "" {
			v[name] = text
		}
	}
	if w.key != nil && r.IdempotencyKey != "" {
		v["idempotency_key"] = formed(w.key.form, r.IdempotencyKey)
	}
	if k.firstSent != nil && !r.FirstSent.IsZero() {
		v["first_sent"] = k.firstSent.value(r.FirstSent)
	}
	b := before(r)
	changes := in.Write == intent.Update || in.Write == intent.Delete
	switch {
	case changes && r.Before != nil && b == nil:
		return nil, fmt.Errorf("%w: /write: %s needs exactly one record in the read before it", errIntent, in.Write)
	case w.needs.ref && b == nil:
		return nil, fmt.Errorf("%w: /write: %s needs the ref of the one record in the read before it", errIntent, in.Write)
	case w.needs.version && b.Version == "":
		return nil, fmt.Errorf("%w: /write: %s needs the version of the record in the read before it", errIntent, in.Write)
	}
	if b != nil && in.Write != intent.Create {
		v["ref"], v["before"] = b.Ref, object1(b.Fields)
		if b.Version != "" {
			v["version"] = b.Version
		}
		if b.Stamp != "" {
			v["stamp_before"] = k.record.stamped(b.Stamp)
		}
	}
	return v, w.serves(in, b)
}

func object1(f intent.Fields) map[string]any {
	if f == nil {
		return map[string]any{}
	}
	return f
}

// serves refuses an intent of which something would silently not be done.
func (w *write) serves(in intent.WriteIntent, b *connectors.Record) error {
	for _, part := range []struct {
		name   string
		fields intent.Fields
	}{{"expect", in.Expect}, {"payload", in.Payload}} {
		for _, name := range slices.Sorted(maps.Keys(part.fields)) {
			_, isKey := in.Key[name]
			if !isKey && !w.covers["fields"] && !w.covers[part.name] && !w.mentions["fields."+name] && !w.mentions[part.name+"."+name] {
				return unserved("/"+part.name+"/"+name, "/%s/%s: is not among what a %s can write", part.name, name, in.Write)
			}
		}
	}
	if w.takesAway() || b == nil {
		return nil
	}
	for _, path := range in.Absent {
		if _, there := intent.Lookup(b.Fields, path); there {
			return fmt.Errorf("%w: /absent: %s is there, and a %s cannot take fields away", errIntent, path, in.Write)
		}
	}
	return nil
}

// takesAway reports whether the write can remove fields.
func (w *write) takesAway() bool { return w.replaces || uses(w.holes(), "absent") }

// stampForm is the form of a stamp.
var stampForm = regexp.MustCompile(`(?i)\A\s*rb-[a-z2-7]{32}\s*\z`)

// unforged refuses values that would be read back as a stamp: they would make
// another write's record out of this one.
func (k *kind) unforged(in intent.WriteIntent) error {
	if k.record.stamp == nil {
		return nil
	}
	form := stampForm
	if k.record.stamp.match != nil {
		form = k.record.stamp.match
	}
	forged := false
	for _, part := range []intent.Fields{in.Key, in.Expect, in.Payload} {
		texts(map[string]any(part), func(s string) {
			// Some destinations trim, and keep what they get in lower case.
			forged = forged || form.MatchString(s) || form.MatchString(strings.ToLower(s)) || stampForm.MatchString(s)
		})
	}
	if forged {
		return fmt.Errorf("%w: a value has in it what would be read as a stamp", errIntent)
	}
	return nil
}

// draft fills the request, with the idempotency key and the condition where
// they are to be.
func (w *write) draft(r connectors.Request, v values) (*draft, error) {
	d, err := w.request.fill(filling{values: v})
	if err != nil {
		return nil, err
	}
	if w.key != nil {
		if r.IdempotencyKey == "" {
			return nil, fmt.Errorf("%w: {idempotency_key} is missing, by which the destination is to know the write again", errIntent)
		}
		key := fmt.Sprint(formed(w.key.form, r.IdempotencyKey))
		if w.key.header != "" {
			err = d.setHeader(w.key.header, key)
		}
		if w.key.query != "" {
			d.query.Set(w.key.query, key)
		}
	}
	if err != nil || !r.Conditional {
		return d, err
	}
	return d, w.condition(d, r, v)
}

// condition adds what makes the request conditional.
func (w *write) condition(d *draft, r connectors.Request, v values) error {
	g, b := w.guard, before(r)
	if g == nil {
		return fmt.Errorf("%w: /write: a %s cannot be conditional here", errIntent, r.Intent.Write)
	}
	switch {
	case b == nil && r.Before != nil && len(r.Before.Records) == 0 && g.ifAbsent != nil:
		g = g.ifAbsent
	case b == nil || b.Version == "":
		return fmt.Errorf("%w: a conditional %s needs one record with a version in the read before it", errIntent, r.Intent.Write)
	}
	if err := d.addHeaders(g.headers, filling{values: v}); err != nil {
		return err
	}
	query, err := fillNamed(g.query, filling{values: v})
	if err != nil {
		return err
	}
	maps.Copy(d.query, query)
	if g.body == nil {
		return nil
	}
	over, err := g.body.body(filling{values: v})
	d.body = overlay(d.body, over)
	return err
}

// receipt is the content of the answer; its error is what is known. ended are the answers of which the
// login says that the session has ended.
func (w *write) receipt(ended []answerRule, a httpsend.Answer, err error, v values) (connectors.Receipt, error) {
	if a.Status == 0 {
		return connectors.Receipt{}, err
	}
	doc, bodyErr := w.request.shape.decode(a)
	receipt := connectors.Receipt{Code: a.Code()}
	if w.key != nil && w.key.replay != nil {
		receipt.Replay, _ = w.key.replay.holds(doc, bodyErr == nil, a.Header)
	}
	err = w.throttle.heed(a, doc, bodyErr == nil, w.ours(a, err, w.meaning(ended, a, doc, bodyErr == nil, err)))
	receipt.Reply = w.refusal.reply(a, doc, bodyErr == nil, err != nil)
	if err != nil {
		return receipt, err
	}
	// The API accepted. An unreadable body does not change that.
	receipt.Ref = w.ref.of(doc, a.Header)
	if bodyErr == nil {
		receipt.URL = scalar(w.url, doc)
		receipt.Version = w.version.of(doc, a.Header)
	}
	if ref, ok := v["ref"].(string); ok && receipt.Ref == "" {
		receipt.Ref = ref // the record that the request addressed
	}
	return receipt, nil
}

// of is the version in an answer, "" if there is none.
func (v version) of(doc any, h http.Header) string {
	if v.header != "" {
		return bounded(h.Get(v.header))
	}
	return scalar(v.place, doc)
}

// meaning is what an answer means: by the declaration, otherwise by its status.
func (w *write) meaning(ended []answerRule, a httpsend.Answer, doc any, isJSON bool, byStatus error) error {
	g := w.request.graphql
	mayHaveRun := g != nil && g.mayHaveRun(doc)
	for _, rule := range slices.Concat(ended, w.answers) {
		if !slices.Contains(rule.statuses, a.Status) || mayHaveRun && rule.saysNotApplied() {
			continue
		}
		if rule.where != nil {
			holds, known := rule.where.holds(doc, isJSON, a.Header)
			if !known && byStatus == nil {
				return &connectors.Error{Code: a.Code(), Err: errors.New("what the answer says of the write cannot be read")}
			}
			if !holds {
				continue
			}
		}
		return rule.verdict(a, byStatus)
	}
	if g != nil {
		if err, decided := g.meaning(a, doc, isJSON, byStatus); decided {
			return err
		}
	}
	return byStatus
}

// ours makes a refusal one of unknown fate where what is in the way can only be of this write: a record with
// its stamp as the id, or what was prepared for it and was used since. A send before made it, or the same one,
// which a proxy repeated, or another actor used what was prepared.
func (w *write) ours(a httpsend.Answer, byStatus, err error) error {
	var e *connectors.Error
	if !errors.As(err, &e) || e.Fate != connectors.FateRefused {
		return err
	}
	gone := w.prepare != nil && errors.Is(err, byStatus) && (a.Status == http.StatusNotFound || a.Status == http.StatusGone)
	taken := e.Conflict && (w.prepare != nil || w.key != nil && w.key.stamp)
	if !gone && !taken {
		return err
	}
	return &connectors.Error{Conflict: e.Conflict, Code: e.Code, Err: fmt.Errorf("what it names can only be of this write: %w", e.Err)}
}

// saysNotApplied reports whether an answer by the rule means that the write had no effect.
func (r answerRule) saysNotApplied() bool {
	return r.means == "refused" || r.means == "throttled" || r.means == "login_refused" || r.means == meansEnded
}

func (r answerRule) verdict(a httpsend.Answer, byStatus error) error {
	cause := fmt.Errorf("the destination answered %d, which the declaration calls %s", a.Status, r.means)
	var e *connectors.Error
	wait := time.Duration(0)
	if errors.As(byStatus, &e) {
		wait = e.RetryAfter
	} else {
		wait, _ = httpsend.RetryAfter(a.Header, time.Now())
	}
	switch r.means {
	case "answered":
		return nil
	case "refused":
		return connectors.Refused(a.Code(), cause)
	case "conflict":
		return connectors.Conflict(a.Code(), cause)
	case "login_refused":
		return connectors.LoginRefused(a.Code(), cause)
	case meansEnded:
		return connectors.LoginRefused(a.Code(), fmt.Errorf("%w, as the destination answered with %d", errEnded, a.Status))
	case "throttled":
		return &connectors.Error{Fate: connectors.FateThrottled, Code: a.Code(), RetryAfter: wait, Err: cause}
	}
	if r.means == "busy" { // the key stays, since the fate of the earlier send is open
		cause = fmt.Errorf("the destination answered %d: an earlier send of this write is at work", a.Status)
		if wait == 0 {
			wait = busyWait
		}
	}
	return &connectors.Error{Code: a.Code(), RetryAfter: wait, Err: cause}
}
