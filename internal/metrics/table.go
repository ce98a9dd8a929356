package metrics

import "github.com/prometheus/client_golang/prometheus"

// metric is one name that is served.
type metric struct {
	name   string
	kind   string // counter, gauge, histogram
	labels []string
	help   string
}

func (m metric) desc() *prometheus.Desc {
	return prometheus.NewDesc(m.name, m.help, m.labels, nil)
}

var (
	sends = metric{"readback_sends_total", "counter", []string{"destination", "kind", "fate"},
		"Sends, by fate: answered, unknown, refused, throttled, not_sent."}
	sendSeconds = metric{"readback_send_duration_seconds", "histogram", []string{"destination", "kind"},
		"Duration of sends."}
	reads = metric{"readback_reads_total", "counter", []string{"destination", "kind", "verdict"},
		"Calls that read destinations after a send, by verdict."}
	readSeconds = metric{"readback_read_duration_seconds", "histogram", []string{"destination", "kind"},
		"Duration of reads."}
	ended = metric{"readback_writes_ended_total", "counter", []string{"destination", "kind", "status"},
		"Writes that were settled, by outcome; that went to a reviewer (review); or whose read is postponed on purpose (unverified)."}
	lifeSeconds = metric{"readback_write_duration_seconds", "histogram", []string{"destination", "kind", "status"},
		"From the reservation of a write to its end, on the ledger's clock."}
	writeReads = metric{"readback_write_reads", "histogram", []string{"destination", "kind"},
		"Calls that read the destination for each verified write."}
	writeSends = metric{"readback_write_sends", "histogram", []string{"destination", "kind"},
		"Sends of each write until its end."}
	shownSeconds = metric{"readback_write_shown_seconds", "histogram", []string{"destination", "kind"},
		"From a send that was answered to the read that first showed its effect."}
	prevented = metric{"readback_duplicates_prevented_total", "counter", []string{"destination", "kind", "by"},
		"Second effects that were prevented, by cause: replay (a repeated call got the outcome), read (a read found the effect of a send of unknown fate)."}
	held = metric{"readback_holds_total", "counter", []string{"destination", "kind", "rule"},
		"Sends that a guard held, by rule: rate, breaker, login, busy, stopped."}
	failed = metric{"readback_failures_total", "counter", []string{"destination", "kind", "cause"},
		"Failures of the ledger or of a worker on a write, by cause: fenced, ledger_unavailable, ledger_corrupt, clock, other."}
	replays = metric{"readback_replays_total", "counter", []string{"destination", "kind"},
		"Calls for an earlier write. They got its outcome and were not sent."}
	reloads = metric{"readback_reloads_total", "counter", []string{"result"},
		"Changed configurations that a running server read, by result: taken, refused. A refused one has no effect."}
	limited = metric{"readback_limited_requests_total", "counter", []string{"limit"},
		"Requests refused with 429 because their token, their tenant or the server had reached a limit, by limit: rate, requests, streams, bodies."}

	statsUp = metric{"readback_survey_up", "gauge", nil,
		"1 when the ledger could be counted for this scrape. When it is 0 the metrics below are missing."}
	queued = metric{"readback_queue_writes", "gauge", []string{"destination", "state"},
		"Open writes of all tenants, by state; in state settled those with a pending recheck."}
	queueDue = metric{"readback_queue_due_writes", "gauge", []string{"destination", "state"},
		"Open writes that are due and that no worker has leased."}
	queueLeased = metric{"readback_queue_leased_writes", "gauge", []string{"destination", "state"},
		"Open writes that a worker has leased."}
	queueOrphaned = metric{"readback_queue_orphaned_writes", "gauge", []string{"destination", "state"},
		"Open writes whose lease has ended."}
	queueWaiting = metric{"readback_queue_behind_writes", "gauge", []string{"destination", "state"},
		"Open writes that wait for an earlier write of the same record."}
	queueOldest = metric{"readback_queue_oldest_due_age_seconds", "gauge", []string{"destination", "state"},
		"Time since the oldest due write became due; 0 when none is due."}
	queueAge = metric{"readback_queue_oldest_age_seconds", "gauge", []string{"destination", "state"},
		"Time since the oldest open write was reserved."}
	outbox = metric{"readback_outbox_entries", "gauge", nil,
		"Entries of the outbox that are not in the ledger yet, without refused ones."}
	outboxOldest = metric{"readback_outbox_oldest_age_seconds", "gauge", nil,
		"Time since the oldest of them was enqueued; 0 when there is none."}
	outboxRefused = metric{"readback_outbox_refused_entries", "gauge", nil,
		"Entries of the outbox that can never be moved into the ledger, counted up to 100. An operator must check them."}
	damaged = metric{"readback_damaged_writes", "gauge", nil,
		"Writes whose rows cannot be read, counted up to 100. An operator must check them."}

	breaker = metric{"readback_breaker_state", "gauge", []string{"destination", "state"},
		"1 for the current state of a destination's circuit breaker: closed, half-open, open."}
	loginRefused = metric{"readback_login_refused_seconds", "gauge", []string{"destination"},
		"Time since the destination began to refuse the login, on the ledger's clock; 0 while it does not. Its writes wait: readback_queue_writes counts them."}
	stops = metric{"readback_stops", "gauge", []string{"scope"},
		"Stops in force, by scope: all, tenant, destination, tool, several of these."}
	paused = metric{"readback_destination_paused", "gauge", []string{"destination"},
		"1 while every send to the destination is held."}
	visibility = metric{"readback_visibility_lag_seconds", "gauge", []string{"destination", "kind", "path", "part"},
		"Learned by all workers together: time after the send within which that part of the writes (0.5, 0.9, 0.99) was visible, by way of reading; any for all ways."}

	delivered = metric{"readback_telemetry_delivered_total", "counter", []string{"signal"},
		"Spans (traces), events and exports of metrics (metrics) that a receiver of OpenTelemetry has accepted."}
	lost = metric{"readback_telemetry_lost_total", "counter", []string{"signal", "cause"},
		"The same that no receiver got, by cause: failed (not delivered, or refused), dropped (the queue was full)."}
	unsealed = metric{"readback_audit_unsealed_seconds", "gauge", nil,
		"Longest wait of an event to be sealed in the audit log. Only the sealing process exports it; of several values use the smallest."}
	sealFailures = metric{"readback_audit_failures_total", "counter", nil,
		"Failed attempts of this process to seal events."}
	heads = metric{"readback_audit_heads_total", "counter", []string{"result"},
		"Signed heads of the audit log that were sent to the places that keep them, by result: kept, failed (will be retried), dropped (a newer one replaced it)."}
	headsWaiting = metric{"readback_audit_heads_waiting", "gauge", nil,
		"Signed heads that no configured place keeps yet."}
)
