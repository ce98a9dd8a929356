import type { Run, ToolResult } from "./tool.js";

/** What Readback.tool returns. */
// biome-ignore lint: a framework infers the arguments from its own schema.
export type WriteTool = (args: any, run?: Run) => Promise<ToolResult>;

/** What a wrapper replaces in the options of a framework's tool. A result of ours does not have the schema of the other one's, nor its text. */
export type Verified<T, Replaced> = Omit<T, "execute" | "outputSchema" | "toModelOutput" | keyof Replaced> & Replaced;

/** Reports whether a reviewer must decide before the write continues. */
export const waits = ({ status }: ToolResult): boolean => status === "held" || status === "review";
