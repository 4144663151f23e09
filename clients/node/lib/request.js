// Ask, and wait for the answer.
import { beginDialog, endConversation, receiveReply, send } from './calls.js'
import { ConversationNotFound, NoReply, RequestTimeout } from './errors.js'
import { transaction } from './transaction.js'

// For so many milliseconds one statement waits for a reply: while it runs the server removes no dead row.
const replyWait = 500
const requestGivenUp = 408
// For so many seconds longer than its time-out the dialog of a request lives when nobody ends it, as after a crash.
const lifetimeBeyond = 5

/**
 * Begins a dialog, sends, commits, waits for the reply, takes it and ends the conversation; timeout in milliseconds. The
 * client must not be in a transaction, since a request has to be committed before it can be answered.
 * Throws ConversationError, NoReply or RequestTimeout.
 */
export async function request (client, fromService, toService, body, { timeout, messageType = 'DEFAULT', contract = 'DEFAULT' }) {
  if (!(timeout > 0)) throw new RangeError('the time-out of a request must be positive: give milliseconds')
  const end = Date.now() + timeout
  const handle = await transaction(client, async () => {
    const lifetime = Math.ceil(timeout / 1000) + lifetimeBeyond
    const begun = await beginDialog(client, fromService, toService, { contract, lifetime })
    await send(client, begun, body, { messageType })
    return begun
  })
  for (let wait = 1; wait > 0;) {
    wait = Math.max(0, Math.min(replyWait, end - Date.now()))
    const found = await transaction(client, () => receiveReply(client, handle, { timeout: wait }))
    if (!found || found.isDialogTimer) continue
    if (found.isError) throw found.error()
    if (found.isEndDialog) throw new NoReply(`conversation ${handle}: the other side has ended it without a reply`)
    return found
  }
  try {
    const description = 'The request was given up: nobody waits for the reply any more.'
    await transaction(client, () => endConversation(client, handle, { errorCode: requestGivenUp, description }))
  } catch (error) {
    if (!(error instanceof ConversationNotFound)) throw error // its lifetime is over, and somebody has ended it
  }
  throw new RequestTimeout(`request from ${fromService} to ${toService}: no reply within ${timeout} ms on conversation ${handle}.` +
    " Give it more time, or see whether the target's readers run: parley diagnose.")
}
