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
		"Sends, by what became of them: answered, unknown, refused, throttled, not_sent."}
	sendSeconds = metric{"readback_send_duration_seconds", "histogram", []string{"destination", "kind"},
		"How long sends took."}
	reads = metric{"readback_reads_total", "counter", []string{"destination", "kind", "verdict"},
		"Reads of destinations, by verdict."}
	readSeconds = metric{"readback_read_duration_seconds", "histogram", []string{"destination", "kind"},
		"How long reads took."}
	ended = metric{"readback_writes_ended_total", "counter", []string{"destination", "kind", "status"},
		"Writes that were settled, by their outcome; that went to a reviewer (review); or whose read back is postponed on purpose (unverified)."}
	lifeSeconds = metric{"readback_write_duration_seconds", "histogram", []string{"destination", "kind", "status"},
		"From the reservation of a write to its end, on the ledger's clock."}
	writeReads = metric{"readback_write_reads", "histogram", []string{"destination", "kind"},
		"Reads that verified writes took."}
	writeSends = metric{"readback_write_sends", "histogram", []string{"destination", "kind"},
		"Sends that writes took until they ended."}
	shownSeconds = metric{"readback_write_shown_seconds", "histogram", []string{"destination", "kind"},
		"From a send that was answered to the read that first showed its effect."}
	prevented = metric{"readback_duplicates_prevented_total", "counter", []string{"destination", "kind", "by"},
		"Second effects that did not come about, by what prevented them: replay (a call was answered instead of sent again), read (a read found the effect of a send of unknown fate)."}
	held = metric{"readback_holds_total", "counter", []string{"destination", "kind", "rule"},
		"Sends that a guard did not let pass, by rule: rate, breaker, login, busy, stopped."}
	failed = metric{"readback_failures_total", "counter", []string{"destination", "kind", "cause"},
		"Failures of the ledger or of the work on a write, by cause: fenced, ledger_unavailable, ledger_corrupt, clock, other."}
	replays = metric{"readback_replays_total", "counter", []string{"destination", "kind"},
		"Calls for a write that was requested before. They got its outcome, and none of them was sent."}
	reloads = metric{"readback_reloads_total", "counter", []string{"result"},
		"How often a running server read a changed configuration, by result: taken, refused. Nothing of a refused one is in force."}
	limited = metric{"readback_limited_requests_total", "counter", []string{"limit"},
		"Requests that were refused with 429 because their token, their tenant or the server had reached a limit, by limit: rate, requests, streams, bodies."}

	statsUp = metric{"readback_survey_up", "gauge", nil,
		"1 when the ledger could be counted for this scrape. When it is 0 what is counted below is missing."}
	queued = metric{"readback_queue_writes", "gauge", []string{"destination", "state"},
		"Open writes of all tenants, by state; in state settled those that owe a recheck."}
	queueDue = metric{"readback_queue_due_writes", "gauge", []string{"destination", "state"},
		"Open writes that are due and that no worker has leased."}
	queueLeased = metric{"readback_queue_leased_writes", "gauge", []string{"destination", "state"},
		"Open writes that a worker has leased."}
	queueOrphaned = metric{"readback_queue_orphaned_writes", "gauge", []string{"destination", "state"},
		"Open writes whose lease has ended."}
	queueWaiting = metric{"readback_queue_behind_writes", "gauge", []string{"destination", "state"},
		"Open writes that wait for an earlier write of the same record."}
	queueOldest = metric{"readback_queue_oldest_due_age_seconds", "gauge", []string{"destination", "state"},
		"For how long the oldest due write has been due; 0 when none is."}
	queueAge = metric{"readback_queue_oldest_age_seconds", "gauge", []string{"destination", "state"},
		"How long ago the oldest open write was reserved."}
	outbox = metric{"readback_outbox_entries", "gauge", nil,
		"Writes that were enqueued in transactions of their callers and are not in the ledger proper yet, without refused ones."}
	outboxOldest = metric{"readback_outbox_oldest_age_seconds", "gauge", nil,
		"How long ago the oldest of them was enqueued; 0 when there is none."}
	outboxRefused = metric{"readback_outbox_refused_entries", "gauge", nil,
		"Entries of the outbox that can never be taken in, counted up to 100. An operator must check them."}
	damaged = metric{"readback_damaged_writes", "gauge", nil,
		"Writes whose rows cannot be read, counted up to 100. An operator must check them."}

	breaker = metric{"readback_breaker_state", "gauge", []string{"destination", "state"},
		"1 for the state in which the circuit breaker of a destination is: closed, half-open, open."}
	loginRefused = metric{"readback_login_refused_seconds", "gauge", []string{"destination"},
		"For how long the destination has refused the login, by the ledger's clock; 0 while it does not. Its writes wait: readback_queue_writes counts them."}
	stops = metric{"readback_stops", "gauge", []string{"scope"},
		"Stops that are in force, by what they name: all, tenant, destination, tool, several of these."}
	paused = metric{"readback_destination_paused", "gauge", []string{"destination"},
		"1 while no send to the destination would be let pass."}
	visibility = metric{"readback_visibility_lag_seconds", "gauge", []string{"destination", "kind", "path", "part"},
		"Learned by all workers together: within how long after the send that part of the writes (0.5, 0.9, 0.99) was visible, by way of reading; any for all ways."}

	delivered = metric{"readback_telemetry_delivered_total", "counter", []string{"signal"},
		"Spans (traces), events and exports of metrics (metrics) that a receiver of OpenTelemetry has taken."}
	lost = metric{"readback_telemetry_lost_total", "counter", []string{"signal", "cause"},
		"The same that no receiver got, by cause: failed (could not be delivered, or was refused), dropped (the queue was full)."}
	unsealed = metric{"readback_audit_unsealed_seconds", "gauge", nil,
		"For how long something waits to be sealed in the audit log at the most. Only of the process that seals; the smallest counts."}
	sealFailures = metric{"readback_audit_failures_total", "counter", nil,
		"How often this process could not seal what was there to be sealed."}
	heads = metric{"readback_audit_heads_total", "counter", []string{"result"},
		"Signed heads of the audit log that were handed to where they are kept, by result: kept, failed (it is tried again), dropped (a newer one came first)."}
	headsWaiting = metric{"readback_audit_heads_waiting", "gauge", nil,
		"Signed heads that are not kept yet where they are to be kept."}
)
