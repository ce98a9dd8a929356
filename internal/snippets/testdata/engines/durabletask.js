// A stub of Durable Task with the semantics of its documentation (Durable Functions: "Task hubs", "Error
// handling", "External events"): an orchestrator is a generator that replays its history; an activity
// runs at least once, and again only by a retry policy; an error that leaves the orchestrator fails it.
import { event, place, raise, run, step, timer } from "./runtime.js";

const asTask = (promise) => {
  const task = { isComplete: false, then: (...then) => promise.then(...then), cancel() {} };
  promise.then(() => { task.isComplete = true; }, () => {});
  return task;
};

// An event is for the oldest wait for its name, also if nothing awaits that wait any more.
const context = (instanceId, waits = {}) => ({
  instanceId,
  callActivity: (activity, input) => asTask(step(place(), () => activity({}, input), 1, () => true)),
  createTimer: (seconds) => asTask(timer(place(), seconds)),
  waitForExternalEvent(name) {
    const before = waits[name] ?? 0;
    waits[name] = before + 1;
    return asTask(event((e) => e.instanceId === instanceId && e.name === name, before));
  },
});

export const whenAny = (tasks) => Promise.race(tasks);

const client = { raiseOrchestrationEvent: async (instanceId, name) => { raise({ instanceId, name }); } };

export const drive = (page, instanceId, order) => run(async () => {
  const orchestration = page.chargeOrder(context(instanceId), order);
  for (let sent; ;) {
    const { done, value } = await orchestration.next(sent);
    if (done) return value;
    sent = await value;
  }
});

export const settle = (page, data) => page.settled(client, data);
