// Parley: simple queues and conversations in PostgreSQL. The calls take a client of pg and are part of its transaction;
// Consumer, SimpleConsumer and ClaimConsumer are workers.
export {
  ParleyError, ConversationNotFound, EndNotAllowed, SendNotAllowed, ConversationGroupNotFound, TimerNotAllowed, MessageTooLarge,
  NoBroker, QueueDisabled, QueueFull, PermissionDenied, QueueNotFound, WrongArgument, StillUsed, ConversationError, NoReply,
  RequestTimeout, ClaimLost, BrokerUnusable, HandlersCutOff, HandlerTimeout, RetryAfter, Final
} from './lib/errors.js'
export {
  put, putBatch, putEach, putGroup, putUnique, take, retry, fail, cancel, done, claim, renew, complete, giveBack, beginDialog,
  send, sendBatch, beginAndSend, sendAndEnd, receive, receiveReply, reply, endConversation, beginConversationTimer,
  recordFailure, retryConversation, failConversation
} from './lib/calls.js'
export { request } from './lib/request.js'
export { traceSends, tracePuts, carriedTraceContext } from './lib/tracing.js'
export { SimpleConsumer, Consumer } from './lib/workers.js'
export { ClaimConsumer } from './lib/claims.js'
