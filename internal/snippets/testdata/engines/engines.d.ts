// What the recipes of docs/guide/engines.md use of the engines' packages. Their signatures are those of
// inngest 4.24.0, @trigger.dev/sdk 4.8.3, workflow 4.8.9 and @microsoft/durabletask-js 0.4.0; the recipes
// compile with those too.
declare module "inngest" {
  interface Tools {
    run<T>(id: string, body: () => Promise<T>): Promise<T>;
    sleep(id: string, time: string): Promise<void>;
    waitForEvent(id: string, options: { event: string; if?: string; timeout: string }): Promise<{ data: any } | null>;
  }
  export class NonRetriableError extends Error {}
  export class Inngest {
    constructor(options: { id: string });
    createFunction<T>(options: { id: string; triggers: { event: string } },
      handler: (context: { event: { data: any }; runId: string; step: Tools }) => Promise<T>): unknown;
    send(event: { name: string; data: object }): Promise<unknown>;
  }
}
declare module "@trigger.dev/sdk" {
  export class AbortTaskRunError extends Error {}
  interface Token { id: string }
  export function task<P, T>(options: { id: string; run: (payload: P, options: { ctx: { run: { id: string } } }) => Promise<T> }): unknown;
  export const wait: {
    for(time: { seconds: number }): Promise<void>;
    createToken(options: { idempotencyKey?: string; idempotencyKeyTTL?: string; timeout?: string }): Promise<Token>;
    forToken(token: Token): Promise<{ ok: boolean }>;
    completeToken(token: Token, data: unknown): Promise<unknown>;
  };
}
declare module "workflow" {
  export class FatalError extends Error {}
  export function createHook<T = any>(options: { token: string }): { then: Promise<T>["then"] };
  export function getWorkflowMetadata(): { workflowRunId: string };
  export function sleep(time: string | number): Promise<void>;
}
declare module "workflow/api" {
  export function resumeHook(token: string, payload: unknown): Promise<unknown>;
}
declare module "workflow/errors" {
  export class HookNotFoundError extends Error { static is(e: unknown): boolean }
}
declare module "@microsoft/durabletask-js" {
  export interface Task<T> { readonly isComplete: boolean; readonly result?: T }
  export interface ActivityContext { readonly orchestrationId: string }
  export interface OrchestrationContext {
    readonly instanceId: string;
    callActivity<I, O>(activity: (context: ActivityContext, input: I) => O | Promise<O>, input: I): Task<O>;
    createTimer(seconds: number): Task<void> & { cancel(): void };
    waitForExternalEvent(name: string): Task<any>;
  }
  export interface TaskHubGrpcClient { raiseOrchestrationEvent(instance: string, name: string, data?: unknown): Promise<void> }
  export function whenAny(tasks: Task<any>[]): Task<unknown>;
}
