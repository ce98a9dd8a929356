// The one function of the optional peer that is used: the package is built without it.
declare module "@langchain/langgraph" {
  export function interrupt(value: unknown): unknown;
}
