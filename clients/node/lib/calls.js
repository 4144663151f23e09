// The calls of the broker on a client of pg, in its transaction. Anything whose query(text, values) gives rows will do.
import { describe, translate } from './errors.js'
import { Message, TakenMessage, sent } from './messages.js'
import { contextFor } from './tracing.js'

/** Sends a statement and gives its rows; an error of the broker becomes one of its number. */
export async function run (client, text, values = []) {
  try {
    return (await client.query(text, values)).rows
  } catch (error) {
    throw translate(error)
  }
}

const value = async (client, text, values) => Object.values((await run(client, text, values))[0])[0]

/** The body as it travels: a text as UTF-8, bytes, or what is neither as JSON. */
function asBytes (body) {
  if (body === null || body === undefined) return null
  if (body instanceof Uint8Array) return Buffer.from(body)
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body), 'utf8')
}

function allAs (encode, bodies) {
  if (!Array.isArray(bodies)) throw new TypeError('a batch takes an array of bodies: give [body], or call put or send')
  return bodies.map(encode)
}

const asText = body => asBytes(body)?.toString('utf8') ?? null
const json = result => result === undefined || result === null ? null : JSON.stringify(result)
const interval = milliseconds => milliseconds === undefined || milliseconds === null ? null : `${milliseconds} milliseconds`
const sentColumns = 'is_duplicate, conversation_handle, message_id, delayed_id, sent_at'

/** Puts a message into a simple queue, and gives what came of it: its messageId, or its delayedId while it is not due. */
export async function put (client, queue, body, { key, priority = 5, deliverAt, traceContext, deduplicationKey } = {}) {
  const rows = await run(client, `select ${sentColumns} from parley.put(queue => $1::text, body => $2::bytea, key => $3::text,
    priority => $4::integer, deliver_at => $5::timestamptz, trace_context => $6::text, deduplication_key => $7::text)`,
  [queue, asBytes(body), key ?? null, priority, deliverAt ?? null, contextFor('put', queue, traceContext), deduplicationKey ?? null])
  return sent(rows[0])
}

/** Puts a message for each body, in their order. */
export async function putBatch (client, queue, bodies, { key, priority = 5, deliverAt, traceContext } = {}) {
  await run(client, `select parley.put_batch_binary(queue => $1::text, bodies => $2::bytea[], key => $3::text,
    priority => $4::integer, deliver_at => $5::timestamptz, trace_context => $6::text)`,
  [queue, allAs(asBytes, bodies), key ?? null, priority, deliverAt ?? null, contextFor('put', queue, traceContext)])
}

/** Puts a message for each body and says what came of each. */
export async function putEach (client, queue, bodies, { keys, deduplicationKeys, priority = 5, deliverAt, traceContext } = {}) {
  const rows = await run(client, `select ${sentColumns} from parley.put_each(queue => $1::text, bodies => $2::text[],
    keys => $3::text[], deduplication_keys => $4::text[], priority => $5::integer, deliver_at => $6::timestamptz,
    trace_context => $7::text)`,
  [queue, allAs(asText, bodies), keys ?? null, deduplicationKeys ?? null, priority, deliverAt ?? null,
    contextFor('put', queue, traceContext)])
  return rows.map(sent)
}

/** Puts a message unless one with the same unique key waits or is being worked on, and says which one is there. */
export async function putUnique (client, queue, body, uniqueKey, { key, priority = 5, deliverAt, traceContext } = {}) {
  const rows = await run(client, `select ${sentColumns} from parley.put_unique(queue => $1::text, body => $2::text,
    unique_key => $3::text, key => $4::text, priority => $5::integer, deliver_at => $6::timestamptz, trace_context => $7::text)`,
  [queue, asText(body), uniqueKey, key ?? null, priority, deliverAt ?? null, contextFor('put', queue, traceContext)])
  return sent(rows[0])
}

/** Puts a message for each body, and has the daemon put another one when all of them are done. Gives the batch's number. */
export async function putGroup (client, queue, bodies, thenQueue, thenBody, { keys, priority = 5, traceContext } = {}) {
  return Number(await value(client, `select parley.put_group(queue => $1::text, bodies => $2::text[], then_queue => $3::text,
    then_body => $4::text, keys => $5::text[], priority => $6::integer, trace_context => $7::text)`,
  [queue, allAs(asText, bodies), thenQueue, asText(thenBody), keys ?? null, priority, contextFor('put', queue, traceContext)]))
}

// What a worker calls says in the same statement that it is a reader, which pause_readers holds back.
const reads = asReader => asReader
  ? "(select $1::text as reads, set_config('parley.reader', 'on', true)) as x cross join lateral"
  : '(select $1::text as reads) as x cross join lateral'

/** Takes up to count messages of a simple queue, in this transaction; timeout, in milliseconds, waits for one. */
export async function take (client, queue, { count = 1, timeout = 0, asReader = false } = {}) {
  const rows = await run(client, `select ${TakenMessage.columns} from ${reads(asReader)}
    parley.take(queue => x.reads, count => $2::integer, timeout => $3::integer)`, [queue, count, timeout])
  return rows.map(row => new TakenMessage(row))
}

const retried = row => ({ retryAt: row.retry_at, isSetAside: row.is_set_aside })

/** Reports that the work on a message failed; it waits by the queue's policy or for delay. Call it after the rollback. */
export async function retry (client, queue, messageId, failure, { delay } = {}) {
  const [code, text] = describe(failure)
  return retried((await run(client, `select retry_at, is_set_aside from parley.retry(queue => $1::text, message_id => $2::bigint,
    error => $3::text, sqlstate => $4::text, delay => $5::interval)`, [queue, messageId, text, code, interval(delay)]))[0])
}

/** Sets a message aside at once, because another attempt would be in vain. Call it after the rollback. */
export function fail (client, queue, messageId, failure) {
  const [code, text] = describe(failure)
  return value(client, 'select parley.fail(queue => $1::text, message_id => $2::bigint, error => $3::text, sqlstate => $4::text)',
    [queue, messageId, text, code])
}

/** Withdraws a message that waits; with running, also one from under the worker that has claimed it. */
export function cancel (client, queue, messageId, { running = false } = {}) {
  return value(client, 'select parley.cancel(queue => $1::text, message_id => $2::bigint, running => $3::boolean)',
    [queue, messageId, running])
}

/** Says what came of a message, in the transaction that took it, where the queue keeps what is finished. */
export function done (client, queue, messageId, result) {
  return value(client, 'select parley.done(queue => $1::text, message_id => $2::bigint, result => $3::jsonb)',
    [queue, messageId, json(result)])
}

/** Claims messages for long work: commit, work, renew in time, then complete or giveBack. null when there is none. */
export async function claim (client, queue, { count = 1, lease = 60000 } = {}) {
  const rows = await run(client, `select claim, message_id, key, priority, body, enqueued_at, trace_context, attempt
    from ${reads(true)} parley.claim(queue => x.reads, count => $2::integer, lease => $3::interval)`,
  [queue, count, interval(lease)])
  return rows.length ? { queue, claim: rows[0].claim, messages: rows.map(row => new TakenMessage(row)) } : null
}

/** Renews a claim, and says whether to go on: not when it was cancelled, or others have the messages. */
export function renew (client, claimed, { lease = 60000, progress } = {}) {
  return value(client, `select parley.renew(queue => $1::text, claim => $2::uuid, lease => $3::interval, progress => $4::jsonb)`,
    [claimed.queue, claimed.claim, interval(lease), json(progress)])
}

/** Takes what was claimed, in the transaction of the results; when it gives false the claim was lost: roll back. */
export function complete (client, claimed, result) {
  return value(client, 'select parley.complete(queue => $1::text, claim => $2::uuid, result => $3::jsonb)',
    [claimed.queue, claimed.claim, json(result)])
}

/** Gives back what was claimed, because the work failed; it waits by the queue's policy or for delay, or is set aside. */
export async function giveBack (client, claimed, failure, { delay, isFinal = false } = {}) {
  const [code, text] = describe(failure)
  return retried((await run(client, `select retry_at, is_set_aside from parley.give_back(queue => $1::text, claim => $2::uuid,
    error => $3::text, sqlstate => $4::text, delay => $5::interval, is_final => $6::boolean)`,
  [claimed.queue, claimed.claim, text, code, interval(delay), isFinal]))[0])
}

/** Begins a dialog and gives the handle of its conversation; lifetime in seconds. */
export function beginDialog (client, fromService, toService, {
  contract = 'DEFAULT', lifetime, encryption = true, relatedConversation, relatedConversationGroup, deduplicationKey
} = {}) {
  return value(client, `select parley.begin_dialog(from_service => $1::text, to_service => $2::text, contract => $3::text,
    lifetime => coalesce($4::integer, 2147483647), encryption => $5::boolean, related_conversation => $6::uuid,
    related_conversation_group => $7::uuid, deduplication_key => $8::text)`,
  [fromService, toService, contract, lifetime ?? null, encryption, relatedConversation ?? null,
    relatedConversationGroup ?? null, deduplicationKey ?? null])
}

/** Sends a message on a conversation. Gives what came of it when it has a time or a deduplication key, else null. */
export async function send (client, handle, body, { messageType = 'DEFAULT', deliverAt, traceContext, deduplicationKey } = {}) {
  const rows = await run(client, `select ${sentColumns} from parley.send(conversation_handle => $1::uuid, message_type => $2::text,
    body => $3::bytea, trace_context => $4::text, deliver_at => $5::timestamptz, deduplication_key => $6::text)`,
  [handle, messageType, asBytes(body), contextFor('send', handle, traceContext), deliverAt ?? null, deduplicationKey ?? null])
  return sent(rows[0])
}

/** Sends a message for each body on one conversation, in their order. */
export async function sendBatch (client, handle, bodies, { messageType = 'DEFAULT', traceContext } = {}) {
  await run(client, `select parley.send_batch_binary(conversation_handle => $1::uuid, message_type => $2::text,
    bodies => $3::bytea[], trace_context => $4::text)`,
  [handle, messageType, allAs(asBytes, bodies), contextFor('send', handle, traceContext)])
}

/** Begins a dialog and sends its first message, in one call; lifetime in seconds. */
export function beginAndSend (client, fromService, toService, body, {
  messageType = 'DEFAULT', contract = 'DEFAULT', lifetime, encryption = true, deliverAt, deduplicationKey
} = {}) {
  return value(client, `select parley.begin_and_send(from_service => $1::text, to_service => $2::text, message_type => $3::text,
    body => $4::bytea, contract => $5::text, encryption => $6::boolean, lifetime => coalesce($7::integer, 2147483647),
    deliver_at => $8::timestamptz, deduplication_key => $9::text)`,
  [fromService, toService, messageType, asBytes(body), contract, encryption, lifetime ?? null, deliverAt ?? null,
    deduplicationKey ?? null])
}

/** Sends one message that needs no answer: begins a dialog, sends and ends it in one call. */
export function sendAndEnd (client, fromService, toService, body, {
  messageType = 'DEFAULT', contract = 'DEFAULT', encryption = true, deliverAt, deduplicationKey
} = {}) {
  return value(client, `select parley.send_and_end(from_service => $1::text, to_service => $2::text, message_type => $3::text,
    body => $4::bytea, contract => $5::text, encryption => $6::boolean, deliver_at => $7::timestamptz,
    deduplication_key => $8::text)`,
  [fromService, toService, messageType, asBytes(body), contract, encryption, deliverAt ?? null, deduplicationKey ?? null])
}

/** Receives messages of one conversation group, in this transaction; timeout, in milliseconds, waits for one. */
export async function receive (client, queue, { top, timeout = 0, asReader = false } = {}) {
  const rows = await run(client, `select ${Message.columns} from ${reads(asReader)}
    parley.receive(queue => x.reads, top => $2::integer, timeout => $3::integer) order by queuing_order`,
  [queue, top ?? null, timeout])
  return rows.map(row => new Message(row))
}

/** Takes the first message that came back on a conversation, and ends that; timeout, in milliseconds, waits for it. */
export async function receiveReply (client, handle, { timeout = 0 } = {}) {
  const rows = await run(client, `select ${Message.columns} from parley.receive_reply($1::uuid, timeout => $2::integer)`,
    [handle, timeout])
  return rows.length ? new Message(rows[0]) : null
}

/** Answers a message on its conversation and ends this side. */
export async function reply (client, message, body, { messageType = 'DEFAULT' } = {}) {
  await send(client, message.conversationHandle, body, { messageType })
  await endConversation(client, message.conversationHandle)
}

/** Ends this side of a conversation; with errorCode, above zero, the far side gets an Error message. */
export async function endConversation (client, handle, { errorCode, description = '' } = {}) {
  if (errorCode === undefined) await run(client, 'select parley.end_conversation($1::uuid)', [handle])
  else {
    await run(client, `select parley.end_conversation(conversation_handle => $1::uuid, error_code => $2::integer,
      description => $3::text)`, [handle, errorCode, description])
  }
}

/** Makes a DialogTimer message appear in this side's queue after so many seconds. */
export async function beginConversationTimer (client, handle, seconds) {
  await run(client, 'select parley.begin_conversation_timer($1::uuid, $2::integer)', [handle, seconds])
}

/** Reports that a transaction that had received from a conversation failed, and why. Call it after the rollback. */
export function recordFailure (client, handle, failure) {
  const [code, text] = describe(failure)
  return value(client, 'select parley.record_failure(conversation_handle => $1::uuid, sqlstate => $2::text, message => $3::text)',
    [handle, code, text])
}

/** Reports a failure and has the conversation wait, by the queue's policy or for delay. Call it after the rollback. */
export async function retryConversation (client, handle, failure, { delay } = {}) {
  const [code, text] = describe(failure)
  return retried((await run(client, `select retry_at, is_set_aside from parley.retry_conversation(conversation_handle => $1::uuid,
    error => $2::text, sqlstate => $3::text, delay => $4::interval)`, [handle, text, code, interval(delay)]))[0])
}

/** Sets a conversation aside at once. Call it after the rollback. */
export function failConversation (client, handle, failure) {
  const [code, text] = describe(failure)
  return value(client, `select parley.fail_conversation(conversation_handle => $1::uuid, error => $2::text, sqlstate => $3::text)`,
    [handle, text, code])
}
