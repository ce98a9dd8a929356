// Package engine contains the only control flow: it takes an intent through its lifecycle.
//
// [Engine.Do] records an intent, sends it once, reads the destination back, and returns a
// verified [Outcome]. The same loop continues a write that a dead process left: it starts from
// the state in the ledger. [Engine.Work] does so for all due writes. [Engine.Resolve] carries
// out a reviewer's decision.
//
// Package verify establishes what is true, package policies decides what to do, and the engine
// acts. It knows destinations and ledgers only as interfaces. It cannot see effects made
// outside it.
package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/readback-go/readback/connectors"
	"github.com/readback-go/readback/lag"
	"github.com/readback-go/readback/ledger"
	"github.com/readback-go/readback/policies"
	"github.com/readback-go/readback/redact"
)

// Engine carries out intents. It is safe for concurrent use. Create one with [New] and end it
// with [Engine.Close].
type Engine struct {
	ledger   ledger.Ledger
	reg      *connectors.Registry
	opts     Options
	ctx      context.Context // ends with Close: stops waiting, not sending
	stop     context.CancelFunc
	wg       sync.WaitGroup
	callers  atomic.Int64 // calls in progress
	left     atomic.Int64 // writes with a call in progress that their callers left to a worker
	workers  atomic.Int64 // workers of this engine
	queues   queues
	paths    paths
	readers  readers
	wakes    wakes
	rules    atomic.Pointer[[]policies.RiskRule]
	mu       sync.Mutex
	inFlight map[ledger.ID]*inFlight
	closed   bool
	tracer   *tracer // nil: not traced
	clock    *Clock
	restores restores
}

// Options configures an Engine. The zero value is valid.
type Options struct {
	// Policies are consulted in order. Default: [policies.Standard].
	Policies []policies.Policy
	// Budget is how many sends of one write may reach a destination over its lifetime. Default:
	// [policies.DefaultBudget].
	Budget int
	// Risks raise the risk classes of writes, and define how a held write is approved. Default:
	// none.
	Risks []policies.RiskRule
	// Window is how long an idempotency key blocks other writes. Default:
	// 24 hours; negative: for ever.
	Window time.Duration
	// Owner names this engine in leases and events. Default: host, process and
	// a random part.
	Owner string
	// Patience is the longest pause that a goroutine waits out. Longer pauses wait in the
	// ledger. Default 2 s.
	Patience time.Duration
	// Slack is how much longer a lease lasts than a send, a read and a pause: the longest stall
	// of a process and its disk to tolerate. A dead process's write is taken over when its
	// lease has ended. Default 15 s.
	Slack time.Duration
	// Guards decide whether a send may be made now. Default: always.
	Guards Guards
	// Lag predicts when a read is likely to succeed. Default: what this engine has learned itself,
	// in memory. [lag.New] on the ledger shares what all workers learn.
	Lag Lag
	// Verify defines which writes are read when. Default: every write at once.
	Verify []policies.Verification
	// Observer is called with what the engine does, as it happens and concurrently, and must not
	// block. Its panics are ignored. Default: none.
	Observer func(Activity)
	// MaxInFlight bounds the concurrent writes of this engine's callers; more are refused with
	// [ledger.ErrFull]. A write whose caller has left it to a worker of this engine does not
	// count; as many again of those may have a call in progress. Default 10,000.
	MaxInFlight int
	// MaxQueued bounds the writes of one tenant that wait for one destination. Above it
	// [Engine.Do] and [Engine.Enqueue] refuse new writes with [ledger.ErrFull]. Default
	// 100,000.
	MaxQueued int
	// OneShot says that the process ends after its calls, as a command does. The end of a
	// caller's wait then cuts off nothing that precedes the first send, because no other
	// process may send soon. Default false: the write is recorded when its caller stops
	// waiting, and made in the background.
	OneShot bool
	// MaxQueuedBytes bounds the intents of one tenant's unsettled writes, to all destinations.
	// Above it [Engine.Do] and [Engine.Enqueue] refuse new writes with [ledger.ErrFull], except
	// those to [OwnDestinations]. Default 256 MiB. With math.MaxInt64, and MaxQueued
	// math.MaxInt, nothing is counted.
	MaxQueuedBytes int64
	// Recheck is the shortest time after the last send to a recheck that is needed because a
	// send could arrive late. Default 10 min.
	Recheck time.Duration
	// Logger receives messages for operators. Default: none.
	Logger *slog.Logger
	// Clock is shared by engines of this process on one ledger that take each other's place: what
	// one has counted since a send, the next need not count again. Default: one of its own.
	Clock *Clock
	// Vault seals sensitive values for the ledger. Default none: an intent that marks fields as
	// sensitive is refused, as is one for a destination that marks some.
	Vault *redact.Vault
	// Tracer records spans. Its span processor must queue and never block, like the batch
	// processor of OpenTelemetry's SDK. Its panics are ignored. Default: no spans; the caller's
	// trace is still propagated.
	Tracer trace.TracerProvider
	// Events receives the verdicts as gen_ai.evaluation.result events, in addition to the
	// spans. It needs a Tracer. Default: none.
	Events log.LoggerProvider
	// TraceContent puts requests and results into spans, and reasons into events, without
	// sensitive values. Default false: only names, numbers and fixed words of this program.
	TraceContent bool
}

// ErrClosed is returned by an engine after Close.
var ErrClosed = errors.New("the engine is closed")

// New creates an engine on a ledger and the registered destinations; opts may be nil.
func New(l ledger.Ledger, reg *connectors.Registry, opts *Options) *Engine {
	e := &Engine{ledger: l, reg: reg, inFlight: make(map[ledger.ID]*inFlight)}
	if opts != nil {
		e.opts = *opts
	}
	if e.opts.Policies == nil {
		e.opts.Policies = policies.Standard()
	}
	if e.opts.Budget <= 0 {
		e.opts.Budget = policies.DefaultBudget
	}
	if e.opts.Window == 0 {
		e.opts.Window = defaultWindow
	}
	e.opts.Window = max(e.opts.Window, 0)
	if e.opts.Owner == "" || e.opts.Owner == ledger.Dispatched {
		e.opts.Owner = newOwner()
	}
	if e.opts.Patience <= 0 {
		e.opts.Patience = defaultPatience
	}
	if e.opts.Slack <= 0 {
		e.opts.Slack = defaultSlack
	}
	if e.opts.MaxInFlight <= 0 {
		e.opts.MaxInFlight = defaultInFlight
	}
	if e.opts.MaxQueued <= 0 {
		e.opts.MaxQueued = defaultQueued
	}
	if e.opts.MaxQueuedBytes <= 0 {
		e.opts.MaxQueuedBytes = defaultQueuedBytes
	}
	if e.opts.Recheck <= 0 {
		e.opts.Recheck = recheckFloor
	}
	if e.opts.Logger == nil {
		e.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if e.opts.Lag == nil {
		e.opts.Lag = lag.New(nil, nil)
	}
	e.keeps(l)
	e.SetRisks(e.opts.Risks)
	if e.clock = e.opts.Clock; e.clock == nil {
		e.clock = new(Clock)
	}
	e.tracer = newTracer(e.opts)
	e.ctx, e.stop = context.WithCancel(context.Background())
	running.add(e.opts.Owner, 1)
	return e
}

// SetRisks replaces the risk rules for every write handled from then on. A held write stays
// held. An approved write is not held again. An unapproved write that waits to be sent is held
// if the new rules require it. The slice is copied. Other engines on the same ledger have their
// own rules.
func (e *Engine) SetRisks(rules []policies.RiskRule) {
	rules = slices.Clone(rules)
	e.rules.Store(&rules)
}

// risks returns the rules in force. They are replaced as a whole and never changed.
func (e *Engine) risks() []policies.RiskRule { return *e.rules.Load() }

// Close waits for the sends and reads in progress and hands everything else back to the ledger.
// It does not close the ledger.
func (e *Engine) Close() {
	e.mu.Lock()
	again := e.closed
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.wg.Wait()
	if !again {
		running.add(e.opts.Owner, -1)
	}
}

// owners counts the engines of this process that are not closed, or still have calls in progress, by
// their names in leases.
type owners struct {
	mu sync.Mutex
	of map[string]int
}

var running = owners{of: make(map[string]int)}

func (o *owners) add(name string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of[name] += n; o.of[name] == 0 {
		delete(o.of, name)
	}
}

func (o *owners) has(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.of[name] > 0
}

// Guards decides whether a call of a destination may be made now. It is asked before each send is
// announced. A sent write is read back whatever blocks the next send. The pre-state is read under
// the leave of its send.
type Guards interface {
	// Enter asks for one send of the write. A nil hold permits it. The caller must then call
	// leave exactly once, with the fate of the send, or with [connectors.FateNotSent] when it
	// was not made. Otherwise the write is put back. Enter may wait a moment if that avoids
	// putting the write back.
	Enter(ctx context.Context, rec ledger.Record) (leave func(Sent), hold *Hold)
	// EnterRead asks for one read that no send's leave covers. A nil hold permits it, and the
	// caller must then call leave exactly once, with the fate of the read. Otherwise it is not
	// made now: the maximum of concurrent calls is reached, or the destination asked for a pause.
	// It may wait a moment. The record is that of the write, or has only its tenant and
	// destination. A read after a send has priority over all others.
	EnterRead(ctx context.Context, rec ledger.Record) (leave func(Sent), hold *Hold)
	// ReadHeld returns why no read after a send may be made now, nil where it may: the
	// credentials of reads are refused, and one read at a time checks whether they still are.
	ReadHeld(rec ledger.Record) *Hold
	// Stopped returns why no send of the write may leave now, nil when it may. It is asked
	// immediately before a send whose guards were asked longer ago, since the announcement can
	// take long: an operator's stop takes effect up to the last moment.
	Stopped(ctx context.Context, rec ledger.Record) *Hold
	// Paused names the destinations whose sends would all be held now, so that their queued
	// writes need not be claimed.
	Paused() []string
	// Observe is called with what the engine does: reads show whether a destination accepts
	// credentials, and what became of a send of unknown fate.
	Observe(Activity)
}

// Unguarded permits everything. Guards that decide about some calls only embed it.
type Unguarded struct{}

// Enter implements [Guards].
func (Unguarded) Enter(context.Context, ledger.Record) (leave func(Sent), hold *Hold) {
	return func(Sent) {}, nil
}

// EnterRead implements [Guards].
func (Unguarded) EnterRead(context.Context, ledger.Record) (leave func(Sent), hold *Hold) {
	return func(Sent) {}, nil
}

// ReadHeld implements [Guards].
func (Unguarded) ReadHeld(ledger.Record) *Hold { return nil }

// Stopped implements [Guards].
func (Unguarded) Stopped(context.Context, ledger.Record) *Hold { return nil }

// Paused implements [Guards].
func (Unguarded) Paused() []string { return nil }

// Observe implements [Guards].
func (Unguarded) Observe(Activity) {}

// Hold says why a send is not made now.
type Hold struct {
	Rule   string        // "stopped", "rate", "breaker", "login", "busy"
	Reason string        // a sentence for an operator
	For    time.Duration // ask again after; at least 0
}

// Sent is the fate of a call that a guard permitted: of a send, or of a read, which is answered,
// throttled, refused for its login, or else unknown.
type Sent struct {
	Fate       connectors.Fate
	Code       string        // without the write's sensitive values: guards keep it for others
	RetryAfter time.Duration // the destination's retry-after, 0 when none
	Took       time.Duration
	// Unread says that no read of it follows soon: the destination cannot be read, or a batch
	// reads it.
	Unread bool
}

// Lag knows how long after a send its effect becomes visible.
type Lag interface {
	// Next returns how long to pause before the next read, made the given time after the send,
	// is likely to succeed. It returns false when it knows nothing, and the standard pace
	// applies. Reads is how many reads were made since the send.
	Next(path lag.Key, since time.Duration, reads int) (time.Duration, bool)
	// Seen records that an effect was first seen the given time after the send and, if there
	// was an earlier read, was not there yet missed after it. A missed of 0 means that the
	// first read showed it.
	Seen(path lag.Key, missed, seen time.Duration)
}

const (
	// defaultWindow is how long an idempotency key blocks other writes: the shortest window
	// that the large payment APIs promise for theirs.
	defaultWindow = 24 * time.Hour
	// defaultPatience is the longest pause that a goroutine waits out. Most reads succeed
	// within it; longer waits should survive a restart.
	defaultPatience = 2 * time.Second
	// defaultSlack is added to the time that a send and a read may take: for
	// commits, scheduling and clocks that run at different speeds.
	defaultSlack = 15 * time.Second
	// ledgerTimeout bounds one ledger call after its caller has left.
	ledgerTimeout = 30 * time.Second
	// wakeTries bounds the attempts to make a saga due while its document changes.
	wakeTries = 20
	// maxEvidence bounds the evidence of one read in the ledger. Records of SaaS APIs have a
	// few KiB; a page of them fits.
	maxEvidence = 256 << 10
	// lateCreates bounds how many writes of one record are searched for a create that may still
	// arrive. A queue rarely has two that need a recheck.
	lateCreates = 1000
	// lateCreateRetry is when that search is retried after a ledger failure.
	lateCreateRetry = 5 * time.Second
	// maxName bounds the destination's names of a record: ids, URLs, versions. The longest URLs
	// that proxies accept have 8 KiB.
	maxName = 8 << 10
	// reviewFirst and reviewMost bound the pause between reads of a write in review: a later
	// read may settle it. After reviewEnd only the reviewer does.
	reviewFirst = time.Minute
	reviewMost  = time.Hour
	reviewEnd   = 72 * time.Hour
	// undoingMost is the pause between checks of an undo that is open for longer than
	// reviewEnd: its write ends with it, however late a reviewer decides.
	undoingMost = 24 * time.Hour
	// recheckFloor is the shortest time to a needed recheck where the destination declares no
	// horizon.
	recheckFloor = 10 * time.Minute
	// unworkableFirst and unworkableMost bound the pause before a write that this process
	// cannot work on is retried: its destination may have been registered meanwhile.
	unworkableFirst = time.Minute
	unworkableMost  = 10 * time.Minute
	// childFirst and childMost bound the pause between checks of a compensating write that is
	// not settled yet.
	childFirst = time.Second
	childMost  = time.Minute
	// supersededPages bounds, in pages of 200, how far back a recheck searches for a later
	// write of ours about the same record before it raises an alarm.
	supersededPages = 10
	// wakeGap is how long a queued caller waits after a wake-up before it asks: many wait, and
	// each wake-up is meant for one.
	wakeGap = 100 * time.Millisecond
	// deepQueue and deepSearch bound how often, and how far, a queued caller searches for the
	// head of its queue beyond the write before it: every few seconds, for the case that no
	// worker runs and the callers that enqueued the others have left.
	deepQueue  = 8
	deepSearch = 100
	// queuedAsk is when a caller may ask again about a queued write.
	queuedAsk = 5 * time.Second
	// defaultInFlight bounds callers: each costs a goroutine and some KiB.
	defaultInFlight = 10_000
	// defaultQueued bounds the writes that wait for one destination: three hours' worth at ten
	// writes a second. Beyond that, callers should get a refusal.
	defaultQueued = 100_000
	// defaultQueuedBytes bounds the intents of one tenant's open writes: with usual intents of
	// a few KiB, as many writes as may wait.
	defaultQueuedBytes = 256 << 20
	// statsFresh is how old the count of waiting writes may be. statsShare is the least pause
	// between counts, as a multiple of the time that one took: counting must not become the
	// ledger's main work.
	statsFresh = time.Second
	statsShare = 20
	// batchSteps is how many read times a batch has within its time limit.
	batchSteps = 4
	// lagFloor is the shortest pause between reads, whatever lag is known.
	lagFloor = 5 * time.Millisecond
	// maintainEvery and pruneEvery are how often one of all workers checks the outbox, and
	// prunes; maintainEvery is also how often one worker of each machine searches for writes of
	// ended processes. pruneStep is how much it prunes at a time, and prunePause the pause
	// after each step, to keep the load negligible.
	maintainEvery = 5 * time.Second
	pruneEvery    = time.Minute
	pruneStep     = 500
	prunePause    = time.Second
	// defaultOutbox bounds the outbox. outboxEmptied is the percentage below which it accepts
	// entries again.
	defaultOutbox = 100_000
	outboxEmptied = 80
	// dispatchedFor is how long a write that was handed over to another scheduler may wait there
	// before it is handed over again: longer than a scheduler usually takes, and no longer than a
	// write should wait that it has lost.
	dispatchedFor = 30 * time.Second
	// workGrace is the time that supervisors give an ending process.
	workGrace = 30 * time.Second
	// workedGap is the longest pause before a write that was due a moment ago is queried again:
	// long enough to cause no load where its due time does not change.
	workedGap = 10 * time.Millisecond
	// workIdle is the pause of a worker without due writes.
	workIdle = 250 * time.Millisecond
	// workFailed is a worker's pause after the ledger failed.
	workFailed = 5 * time.Second
	// defaultWorkers is how many writes one worker makes at once: they wait for the network,
	// not for the processor, and reads made together share one call.
	defaultWorkers = 64
	// guardFresh is how old a guard's permission may be when the send is announced: with a
	// guard that polls every half a second, a stop takes effect within one.
	guardFresh = 250 * time.Millisecond
	// holdFloor is the shortest time for which a held write is put back, so that a guard that
	// names no time does not keep the ledger busy.
	holdFloor = 50 * time.Millisecond
	// holdShare and holdMost bound the extra time for a write that must be read before each
	// try.
	holdShare = 20
	holdMost  = 5 * time.Minute
	// fenceFresh is how long after its announcement a send is made without asking the ledger
	// again: less than any lease, more than a commit takes.
	fenceFresh = time.Second
	// fenceTimeout bounds that query. If it fails, the send is not made.
	fenceTimeout = 5 * time.Second
	// yieldTries is how often releasing an operation is retried when its write changed owners
	// meanwhile: a worker takes one up every few seconds at most.
	yieldTries = 5
	// mostReads bounds how long a read of an effect of others waits for lagging reads: a caller
	// waits for the response and can ask again.
	mostReads = 10 * time.Second
	// readAgainAfter is when a destination that could not be read may be asked again.
	readAgainAfter = 15 * time.Second
	// unrecordedTime bounds the query whether a write is in a ledger that failed to record it:
	// a caller waits for the answer.
	unrecordedTime = 2 * time.Second
	// maxKeyShown bounds a business key inside a sentence, in bytes. Longer keys are shown with
	// the intent.
	maxKeyShown = 200
	// maxMismatches is how many mismatches an outcome lists. maxSentence is how many characters
	// its sentences and a refusal may have, maxShownValue a value of a mismatch, and
	// maxShownText a path or a code: a model reads them all. The ledger has more.
	maxMismatches = 100
	maxSentence   = 4000
	maxShownValue = 1000
	maxShownText  = 500
	// maxTraceparent bounds a traceparent: version 00 has 55 bytes, and later versions may
	// append a little.
	maxTraceparent = 256
	// maxAttribute bounds a name in a span: tools group spans by it.
	maxAttribute = 256
	// inheritAtOnce is how many open writes are searched at once for those of an ended process:
	// the most that a listing has.
	inheritAtOnce = 1000

	// maxContent bounds requests and results in a span: receivers cut or refuse attributes of
	// more than some tens of KiB.
	maxContent = 16 << 10
	// maxWord bounds a code or a request id that a destination names. maxAnswer bounds, in
	// bytes, the part of its response that is kept.
	maxWord   = 200
	maxAnswer = 2 << 10

	// maxReason bounds a sentence kept in the ledger: a destination's error text can be a page
	// of HTML.
	maxReason = 500
)

// newFollowPace returns the pace at which a write of another process is queried.
func newFollowPace() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond), backoff.WithMultiplier(1.6),
		backoff.WithMaxInterval(500*time.Millisecond), backoff.WithMaxElapsedTime(0))
}

// newOwner names this engine: host, process, and a unique part that ends with the scope of the
// process number.
func newOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d/%s%s", host, os.Getpid(), rand.Text()[:8], processes())
}

// processes identifies the scope in which process numbers are unique: this boot of this
// machine, in this container. It is "" where that cannot be known, as on systems other than
// Linux.
var processes = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return fmt.Sprintf("@%.4x", sha256.Sum256([]byte(string(boot)+space)))
})

// gone returns the owner if it is known not to work on a write any more: its process has ended, its
// engine in this process is closed, or it is no process. Otherwise it returns "". A process number
// that another process reused counts as running.
func gone(owner string) string {
	if owner == ledger.Dispatched {
		return ledger.Dispatched
	}
	parts := strings.Split(owner, "/")
	if len(parts) != 3 || processes() == "" || !strings.HasSuffix(parts[2], processes()) {
		return ""
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid <= 0 {
		return ""
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return ""
	}
	err = p.Signal(syscall.Signal(0))
	if errors.Is(err, os.ErrProcessDone) || pid == os.Getpid() && !running.has(owner) {
		return owner
	}
	return ""
}
