// Trace contexts: what a worker sends while it handles a message carries the trace context of that message.
import { AsyncLocalStorage } from 'node:async_hooks'

const carried = new AsyncLocalStorage()
const tracers = { send: null, put: null }

/** Sets the tracer of all sends of this process; it gets the conversation handle. null sets none. */
export function traceSends (tracer) { tracers.send = tracer }

/** Sets the tracer of all puts of this process; it gets the name of the queue. null sets none. */
export function tracePuts (tracer) { tracers.put = tracer }

/** The trace context of the messages that are being handled, if they have the same one. */
export function carriedTraceContext () { return carried.getStore() ?? null }

/** What a message carries: what was given, what the tracer says, or what is being handled. */
export function contextFor (action, target, given) {
  if (given !== undefined && given !== null) return given
  return (tracers[action] ? tracers[action](target) : carried.getStore()) ?? null
}

/** Has what is sent meanwhile carry the trace context of these messages, if they have the same one. */
export function handling (messages, work) {
  const contexts = new Set(messages.map(message => message.traceContext || null))
  return carried.run(contexts.size === 1 ? [...contexts][0] : null, work)
}
