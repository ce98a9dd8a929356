import { Webhook, WebhookVerificationError } from "standardwebhooks";
import type { Outcome } from "./outcome.js";

export { WebhookVerificationError as BadSignature };

/** A message of readback. docs/reference/http.md lists the types, and the members of data. */
export interface Message {
  type: string;
  timestamp: string;
  data: { write?: string; status?: Outcome["status"]; [member: string]: unknown };
}

/**
 * Checks the signature and the time of a message, and returns it. body is as it was received, not parsed.
 * Several secrets: the message is signed with one of them. Throws BadSignature.
 * A message may come twice: keep the ids in webhook-id.
 */
export function verifyWebhook(body: string | Uint8Array, headers: Headers | Record<string, string | string[] | undefined>, secret: string | readonly string[]): Message {
  const plain: Record<string, string> = {};
  for (const [name, value] of headers instanceof Headers ? headers : Object.entries(headers)) plain[name.toLowerCase()] = String(value);
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const secrets = typeof secret === "string" ? [secret] : secret;
  let bad: unknown = new WebhookVerificationError("no secret");
  for (const each of secrets) {
    try {
      return new Webhook(each).verify(text, plain) as Message;
    } catch (error) {
      bad = error;
    }
  }
  throw bad;
}
