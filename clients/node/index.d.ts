import type { Client, ClientBase } from 'pg'

/** Anything that sends a statement: a client of pg, or PGlite. */
export interface Queryable { query (text: string, values?: unknown[]): Promise<{ rows: any[] }> }

/** A text, bytes, nothing, or else a value that goes as JSON. */
export type Body = string | Uint8Array | null | undefined | object

export interface TakenMessage {
  readonly messageId: string
  readonly key: string | null
  readonly priority: number
  readonly body: Buffer | null
  readonly enqueuedAt: Date
  readonly traceContext: string | null
  /** Which attempt this is, 1 at first. */
  readonly attempt: number
  readonly text: string
  json (): any
}

export interface Message {
  readonly priority: number
  readonly queuingOrder: string
  readonly conversationGroupId: string
  readonly conversationHandle: string
  readonly messageSequenceNumber: string
  readonly serviceName: string
  readonly serviceContractName: string
  readonly messageTypeName: string
  readonly body: Buffer | null
  readonly messageEnqueueTime: Date
  readonly traceContext: string | null
  readonly isEndDialog: boolean
  readonly isError: boolean
  readonly isDialogTimer: boolean
  readonly text: string
  json (): any
  /** The content of an Error message. */
  error (): ConversationError
}

export interface SentMessage {
  readonly isDuplicate: boolean
  readonly conversationHandle: string | null
  readonly messageId: string | null
  readonly delayedId: string | null
  /** Of a duplicate, when the first was sent. */
  readonly sentAt: Date | null
}

/** Both are null when the message is gone or in the hands of others. */
export interface Retried { readonly retryAt: Date | null, readonly isSetAside: boolean | null }

export interface Claim { readonly queue: string, readonly claim: string, readonly messages: TakenMessage[] }

export interface PutOptions { key?: string, priority?: number, deliverAt?: Date, traceContext?: string }

export function put (client: Queryable, queue: string, body: Body, options?: PutOptions & { deduplicationKey?: string }): Promise<SentMessage>
export function putBatch (client: Queryable, queue: string, bodies: Body[], options?: PutOptions): Promise<void>
export function putEach (client: Queryable, queue: string, bodies: Body[], options?: Omit<PutOptions, 'key'> & {
  keys?: (string | null)[], deduplicationKeys?: (string | null)[]
}): Promise<SentMessage[]>
export function putGroup (client: Queryable, queue: string, bodies: Body[], thenQueue: string, thenBody: Body,
  options?: { keys?: Array<string | null>, priority?: number, traceContext?: string }): Promise<number>
export function putUnique (client: Queryable, queue: string, body: Body, uniqueKey: string, options?: PutOptions): Promise<SentMessage>
export function take (client: Queryable, queue: string, options?: { count?: number, timeout?: number, asReader?: boolean }): Promise<TakenMessage[]>
export function retry (client: Queryable, queue: string, messageId: string, failure?: unknown, options?: { delay?: number | null }): Promise<Retried>
export function fail (client: Queryable, queue: string, messageId: string, failure?: unknown): Promise<boolean>
export function cancel (client: Queryable, queue: string, messageId: string, options?: { running?: boolean }): Promise<boolean>
export function done (client: Queryable, queue: string, messageId: string, result?: unknown): Promise<boolean>
export function claim (client: Queryable, queue: string, options?: { count?: number, lease?: number }): Promise<Claim | null>
export function renew (client: Queryable, claimed: Claim, options?: { lease?: number, progress?: unknown }): Promise<boolean>
export function complete (client: Queryable, claimed: Claim, result?: unknown): Promise<boolean>
export function giveBack (client: Queryable, claimed: Claim, failure?: unknown,
  options?: { delay?: number | null, isFinal?: boolean }): Promise<Retried>

export interface DialogOptions { contract?: string, encryption?: boolean, deduplicationKey?: string }

export function beginDialog (client: Queryable, fromService: string, toService: string, options?: DialogOptions & {
  lifetime?: number, relatedConversation?: string, relatedConversationGroup?: string
}): Promise<string>
export function send (client: Queryable, handle: string, body: Body, options?: {
  messageType?: string, deliverAt?: Date, traceContext?: string, deduplicationKey?: string
}): Promise<SentMessage | null>
export function sendBatch (client: Queryable, handle: string, bodies: Body[], options?: { messageType?: string, traceContext?: string }): Promise<void>
export function beginAndSend (client: Queryable, fromService: string, toService: string, body: Body, options?: DialogOptions & {
  messageType?: string, lifetime?: number, deliverAt?: Date
}): Promise<string>
export function sendAndEnd (client: Queryable, fromService: string, toService: string, body: Body, options?: DialogOptions & {
  messageType?: string, deliverAt?: Date
}): Promise<string>
export function receive (client: Queryable, queue: string, options?: { top?: number, timeout?: number, asReader?: boolean }): Promise<Message[]>
export function receiveReply (client: Queryable, handle: string, options?: { timeout?: number }): Promise<Message | null>
export function reply (client: Queryable, message: Message, body: Body, options?: { messageType?: string }): Promise<void>
/** timeout in milliseconds. The client must not be in a transaction. */
export function request (client: ClientBase, fromService: string, toService: string, body: Body, options: {
  timeout: number, messageType?: string, contract?: string
}): Promise<Message>
export function endConversation (client: Queryable, handle: string, options?: { errorCode?: number, description?: string }): Promise<void>
export function beginConversationTimer (client: Queryable, handle: string, seconds: number): Promise<void>
export function recordFailure (client: Queryable, handle: string, failure: unknown): Promise<boolean>
export function retryConversation (client: Queryable, handle: string, failure?: unknown, options?: { delay?: number | null }): Promise<Retried>
export function failConversation (client: Queryable, handle: string, failure?: unknown): Promise<boolean>

/** Gives the trace context that a message is to carry, as W3C Trace Context writes it. */
export type Tracer = (target: string) => string | null | undefined
export function traceSends (tracer: Tracer | null): void
export function tracePuts (tracer: Tracer | null): void
export function carriedTraceContext (): string | null

/** One call of a handler, for metrics. */
export interface Turn { queue: string, messages: number, milliseconds: number, error: unknown }

/** Times are in milliseconds. */
export interface WorkerSettings {
  queue: string
  /** DATABASE_URL when it is left out. */
  connectionString?: string
  /** So many handlers at once: 1. */
  readers?: number
  /** After so long a handler is rolled back; it cannot be interrupted, but finds no connection any more. 0: never. */
  handlerTimeout?: number
  /** So long may running handlers go on after a stop: 30000. */
  graceTime?: number
  /** So long between two reads of a queue of which nothing is notified: 1000. */
  pollInterval?: number
  /** Where to listen when connectionString leads through a pooler; without it the worker polls there. */
  listenConnectionString?: string
  logger?: Pick<Console, 'info' | 'warn' | 'error'>
  observer?: (turn: Turn) => void
}

declare class Worker {
  /** Works until stop is called, or SIGTERM or SIGINT comes. */
  run (): Promise<void>
  stop (): void
}

export class SimpleConsumer extends Worker {
  constructor (settings: WorkerSettings & { count?: number, handler: (client: Client, messages: TakenMessage[]) => unknown })
}

export class Consumer extends Worker {
  constructor (settings: WorkerSettings & {
    top?: number, handleSystemMessages?: boolean, handler: (client: Client, messages: Message[]) => unknown
  })
}

export interface Work {
  readonly messages: TakenMessage[]
  readonly isLost: boolean
  readonly isComplete: boolean
  /** Shows those who wait how far the work is. Throws ClaimLost when it has to break off. */
  progress (value: unknown): void
  /** Throws ClaimLost when the work has to break off. */
  require (): void
  /** A transaction for the results, at whose end the messages are taken. */
  transaction (work: (client: Client) => unknown, result?: unknown): Promise<void>
}

export class ClaimConsumer extends Worker {
  constructor (settings: WorkerSettings & { count?: number, lease?: number, handler: (work: Work) => unknown })
}

export class ParleyError extends Error {
  readonly number: number
  readonly fact: string
  readonly detail?: string
  readonly hint?: string
  readonly code: string
}
export class ConversationNotFound extends ParleyError {}
export class EndNotAllowed extends ParleyError {}
export class SendNotAllowed extends ParleyError {}
export class ConversationGroupNotFound extends ParleyError {}
export class TimerNotAllowed extends ParleyError {}
export class MessageTooLarge extends ParleyError {}
export class NoBroker extends ParleyError {}
export class QueueDisabled extends ParleyError {}
export class QueueFull extends ParleyError {}
export class PermissionDenied extends ParleyError {}
export class QueueNotFound extends ParleyError {}
export class WrongArgument extends ParleyError {}
export class StillUsed extends ParleyError {}
export class ConversationError extends Error { readonly errorCode: number; readonly description: string }
export class NoReply extends Error {}
export class RequestTimeout extends Error {}
export class ClaimLost extends Error {}
export class BrokerUnusable extends Error {}
export class HandlersCutOff extends Error {}
export class HandlerTimeout extends Error {}
export class RetryAfter extends Error { constructor (delay: number, reason?: unknown); readonly delay: number }
export class Final extends Error {}
