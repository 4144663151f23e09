package io.github.parleybroker;

import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.function.UnaryOperator;

/** The calls of the broker on a connection, in its transaction. Bodies are text, bytes, or JSON that the program writes. */
public final class Parley {
  private static final int REPLY_WAIT_MS = 500;
  private static final int REQUEST_GIVEN_UP = 408;
  private static final Duration LIFETIME_BEYOND = Duration.ofSeconds(5);
  private static volatile UnaryOperator<String> sendTracer;
  private static volatile UnaryOperator<String> putTracer;

  private Parley() {}

  /** Reads one row. */
  interface Reader<T> {
    T read(ResultSet row) throws SQLException;
  }

  /** Sends a statement and reads its rows; an error of the broker becomes the exception of its number. */
  static <T> List<T> run(Connection connection, String sql, Reader<T> reader, Object... parameters) throws SQLException {
    List<T> found = new ArrayList<>();
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      for (int i = 0; i < parameters.length; i++) {
        if (parameters[i] == null) {
          statement.setNull(i + 1, Types.OTHER);
        } else {
          statement.setObject(i + 1, parameters[i]);
        }
      }
      if (statement.execute()) {
        try (ResultSet rows = statement.getResultSet()) {
          while (rows.next()) {
            found.add(reader.read(rows));
          }
        }
      }
      return found;
    } catch (SQLException failure) {
      throw ParleyException.translate(failure);
    }
  }

  private static <T> T first(List<T> found) {
    return found.isEmpty() ? null : found.get(0);
  }

  private static byte[] bytes(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  private static Array array(Connection connection, String type, Object[] values) throws SQLException {
    return values == null ? null : connection.createArrayOf(type, values);
  }

  private static String interval(Duration duration) {
    return duration == null ? null : duration.toMillis() + " milliseconds";
  }

  /** Sets the tracer of all sends of this process; it gets the conversation handle. Null sets none. */
  public static void traceSends(UnaryOperator<String> tracer) {
    sendTracer = tracer;
  }

  /** Sets the tracer of all puts of this process; it gets the name of the queue. Null sets none. */
  public static void tracePuts(UnaryOperator<String> tracer) {
    putTracer = tracer;
  }

  public static SentMessage put(Connection connection, String queue, String body) throws SQLException {
    return put(connection, queue, bytes(body), Options.NONE);
  }

  public static SentMessage put(Connection connection, String queue, String body, Options options) throws SQLException {
    return put(connection, queue, bytes(body), options);
  }

  /** Puts a message into a simple queue, and gives what came of it: its messageId, or its delayedId while it is not due. */
  public static SentMessage put(Connection connection, String queue, byte[] body, Options o) throws SQLException {
    return first(run(connection,
        "select " + SentMessage.COLUMNS + " from parley.put(queue => ?::text, body => ?::bytea, key => ?::text,"
            + " priority => ?::integer, deliver_at => ?::timestamptz, trace_context => ?::text, deduplication_key => ?::text)",
        SentMessage::read, queue, body, o.key, o.priority, o.deliverAt, Traced.contextFor(putTracer, queue, o.traceContext),
        o.deduplicationKey));
  }

  /** Puts a message for each text, in their order. */
  public static void putBatch(Connection connection, String queue, List<String> bodies, Options o) throws SQLException {
    run(connection,
        "select parley.put_batch(queue => ?::text, bodies => ?::text[], key => ?::text, priority => ?::integer,"
            + " deliver_at => ?::timestamptz, trace_context => ?::text)",
        row -> null, queue, array(connection, "text", bodies.toArray()), o.key, o.priority, o.deliverAt,
        Traced.contextFor(putTracer, queue, o.traceContext));
  }

  /** Puts a message for each text and says what came of each; deduplicationKeys has a key, or null, for each, or is null. */
  public static List<SentMessage> putEach(
      Connection connection, String queue, List<String> bodies, List<String> deduplicationKeys, Options o) throws SQLException {
    return run(connection,
        "select " + SentMessage.COLUMNS + " from parley.put_each(queue => ?::text, bodies => ?::text[],"
            + " deduplication_keys => ?::text[], priority => ?::integer, deliver_at => ?::timestamptz, trace_context => ?::text)",
        SentMessage::read, queue, array(connection, "text", bodies.toArray()),
        array(connection, "text", deduplicationKeys == null ? null : deduplicationKeys.toArray()), o.priority, o.deliverAt,
        Traced.contextFor(putTracer, queue, o.traceContext));
  }

  /** Puts a message unless one with the same unique key waits or is being worked on, and says which one is there. */
  public static SentMessage putUnique(Connection connection, String queue, String body, String uniqueKey, Options o)
      throws SQLException {
    return first(run(connection,
        "select " + SentMessage.COLUMNS + " from parley.put_unique(queue => ?::text, body => ?::text, unique_key => ?::text,"
            + " key => ?::text, priority => ?::integer, deliver_at => ?::timestamptz, trace_context => ?::text)",
        SentMessage::read, queue, body, uniqueKey, o.key, o.priority, o.deliverAt,
        Traced.contextFor(putTracer, queue, o.traceContext)));
  }

  /** Puts a message for each text, and has the daemon put another one when all are done. Gives the number of the batch. */
  public static long putGroup(
      Connection connection, String queue, List<String> bodies, String thenQueue, String thenBody, Options o)
      throws SQLException {
    return first(run(connection,
        "select parley.put_group(queue => ?::text, bodies => ?::text[], then_queue => ?::text, then_body => ?::text,"
            + " priority => ?::integer, trace_context => ?::text)",
        row -> row.getLong(1), queue, array(connection, "text", bodies.toArray()), thenQueue, thenBody, o.priority,
        Traced.contextFor(putTracer, queue, o.traceContext)));
  }

  /** Takes up to count messages of a simple queue, in this transaction. */
  public static List<TakenMessage> take(Connection connection, String queue, int count) throws SQLException {
    return run(connection, "select " + TakenMessage.COLUMNS + " from parley.take(queue => ?::text, count => ?::integer)",
        TakenMessage::read, queue, count);
  }

  // A worker says in the same statement that it is a reader, which pause_readers holds back.
  private static final String READS =
      "(select ?::text as reads, set_config('parley.reader', 'on', true)) as x cross join lateral ";

  static List<TakenMessage> takeAsReader(Connection connection, String queue, int count) throws SQLException {
    return run(connection,
        "select " + TakenMessage.COLUMNS + " from " + READS + "parley.take(queue => x.reads, count => ?::integer)",
        TakenMessage::read, queue, count);
  }

  static List<Message> receiveAsReader(Connection connection, String queue, int top) throws SQLException {
    return run(connection,
        "select " + Message.COLUMNS + " from " + READS
            + "parley.receive(queue => x.reads, top => ?::integer) order by queuing_order",
        Message::read, queue, top);
  }

  private static Retried retried(ResultSet row) throws SQLException {
    return new Retried(row.getObject(1, OffsetDateTime.class), row.getObject(2, Boolean.class));
  }

  /** Reports that the work on a message failed; it waits by the queue's policy or for delay. Call it after the rollback. */
  public static Retried retry(Connection connection, String queue, long messageId, Throwable failure, Duration delay)
      throws SQLException {
    Failure f = Failure.of(failure);
    return first(run(connection,
        "select retry_at, is_set_aside from parley.retry(queue => ?::text, message_id => ?::bigint, error => ?::text,"
            + " sqlstate => ?::text, delay => ?::interval)",
        Parley::retried, queue, messageId, f.text(), f.state(), interval(delay)));
  }

  /** Sets a message aside at once, because another attempt would be in vain. Call it after the rollback. */
  public static boolean fail(Connection connection, String queue, long messageId, Throwable failure) throws SQLException {
    Failure f = Failure.of(failure);
    return first(run(connection,
        "select parley.fail(queue => ?::text, message_id => ?::bigint, error => ?::text, sqlstate => ?::text)",
        row -> row.getBoolean(1), queue, messageId, f.text(), f.state()));
  }

  /** Withdraws a message that waits; with running, also one from under the worker that has claimed it. */
  public static boolean cancel(Connection connection, String queue, long messageId, boolean running) throws SQLException {
    return first(run(connection,
        "select parley.cancel(queue => ?::text, message_id => ?::bigint, running => ?::boolean)",
        row -> row.getBoolean(1), queue, messageId, running));
  }

  /** Says what came of a message, as JSON, in the transaction that took it, where the queue keeps what is finished. */
  public static boolean done(Connection connection, String queue, long messageId, String result) throws SQLException {
    return first(run(connection,
        "select parley.done(queue => ?::text, message_id => ?::bigint, result => ?::jsonb)",
        row -> row.getBoolean(1), queue, messageId, result));
  }

  /** Claims messages for long work: commit, work, renew in time, then complete or giveBack. Null when there is none. */
  public static Claim claim(Connection connection, String queue, int count, Duration lease) throws SQLException {
    UUID[] claim = new UUID[1];
    List<TakenMessage> messages = run(connection,
        "select claim, message_id, key, priority, body, enqueued_at, trace_context, attempt from " + READS
            + "parley.claim(queue => x.reads, count => ?::integer, lease => ?::interval)",
        row -> {
          claim[0] = row.getObject("claim", UUID.class);
          return TakenMessage.read(row);
        },
        queue, count, interval(lease));
    return messages.isEmpty() ? null : new Claim(queue, claim[0], messages);
  }

  /** Renews a claim, and says whether to go on; progress is JSON, or null for as it was. */
  public static boolean renew(Connection connection, Claim claim, Duration lease, String progress) throws SQLException {
    return first(run(connection,
        "select parley.renew(queue => ?::text, claim => ?::uuid, lease => ?::interval, progress => ?::jsonb)",
        row -> row.getBoolean(1), claim.queue(), claim.claim(), interval(lease), progress));
  }

  /** Takes what was claimed, in the transaction of the results, which are JSON; false when it was lost: roll back. */
  public static boolean complete(Connection connection, Claim claim, String result) throws SQLException {
    return first(run(connection,
        "select parley.complete(queue => ?::text, claim => ?::uuid, result => ?::jsonb)",
        row -> row.getBoolean(1), claim.queue(), claim.claim(), result));
  }

  /** Gives back what was claimed, because the work failed; it waits by the queue's policy or for delay. */
  public static Retried giveBack(Connection connection, Claim claim, Throwable failure, Duration delay) throws SQLException {
    Failure f = Failure.of(failure);
    return first(run(connection,
        "select retry_at, is_set_aside from parley.give_back(queue => ?::text, claim => ?::uuid, error => ?::text,"
            + " sqlstate => ?::text, delay => ?::interval, is_final => ?::boolean)",
        Parley::retried, claim.queue(), claim.claim(), f.text(), f.state(), interval(delay), failure instanceof Final));
  }

  /** Begins a dialog and gives the handle of its conversation. */
  public static UUID beginDialog(Connection connection, String fromService, String toService, Options o) throws SQLException {
    return first(run(connection,
        "select parley.begin_dialog(from_service => ?::text, to_service => ?::text, contract => ?::text,"
            + " lifetime => coalesce(?::integer, 2147483647), encryption => ?::boolean, deduplication_key => ?::text)",
        row -> row.getObject(1, UUID.class), fromService, toService, o.contract, o.lifetime, o.encryption, o.deduplicationKey));
  }

  public static SentMessage send(Connection connection, UUID handle, String body) throws SQLException {
    return send(connection, handle, bytes(body), Options.NONE);
  }

  /** Sends a message on a conversation. Gives what came of it when it has a time or a deduplication key, else null. */
  public static SentMessage send(Connection connection, UUID handle, byte[] body, Options o) throws SQLException {
    return first(run(connection,
        "select " + SentMessage.COLUMNS + " from parley.send(conversation_handle => ?::uuid, message_type => ?::text,"
            + " body => ?::bytea, trace_context => ?::text, deliver_at => ?::timestamptz, deduplication_key => ?::text)",
        SentMessage::read, handle, o.messageType, body, Traced.contextFor(sendTracer, handle.toString(), o.traceContext),
        o.deliverAt, o.deduplicationKey));
  }

  /** Sends a message for each text on one conversation, in their order. */
  public static void sendBatch(Connection connection, UUID handle, List<String> bodies, Options o) throws SQLException {
    run(connection,
        "select parley.send_batch(conversation_handle => ?::uuid, message_type => ?::text, bodies => ?::text[],"
            + " trace_context => ?::text)",
        row -> null, handle, o.messageType, array(connection, "text", bodies.toArray()),
        Traced.contextFor(sendTracer, handle.toString(), o.traceContext));
  }

  /** Begins a dialog and sends its first message, in one call. */
  public static UUID beginAndSend(Connection connection, String fromService, String toService, String body, Options o)
      throws SQLException {
    return first(run(connection,
        "select parley.begin_and_send(from_service => ?::text, to_service => ?::text, message_type => ?::text,"
            + " body => ?::bytea, contract => ?::text, encryption => ?::boolean,"
            + " lifetime => coalesce(?::integer, 2147483647), deliver_at => ?::timestamptz, deduplication_key => ?::text)",
        row -> row.getObject(1, UUID.class), fromService, toService, o.messageType, bytes(body), o.contract, o.encryption,
        o.lifetime, o.deliverAt, o.deduplicationKey));
  }

  /** Sends one message that needs no answer: begins a dialog, sends and ends it in one call. */
  public static UUID sendAndEnd(Connection connection, String fromService, String toService, String body, Options o)
      throws SQLException {
    return first(run(connection,
        "select parley.send_and_end(from_service => ?::text, to_service => ?::text, message_type => ?::text,"
            + " body => ?::bytea, contract => ?::text, encryption => ?::boolean, deliver_at => ?::timestamptz,"
            + " deduplication_key => ?::text)",
        row -> row.getObject(1, UUID.class), fromService, toService, o.messageType, bytes(body), o.contract, o.encryption,
        o.deliverAt, o.deduplicationKey));
  }

  /** Receives messages of one conversation group, in this transaction. */
  public static List<Message> receive(Connection connection, String queue, int top) throws SQLException {
    return run(connection,
        "select " + Message.COLUMNS + " from parley.receive(queue => ?::text, top => ?::integer) order by queuing_order",
        Message::read, queue, top);
  }

  /** Takes the first message that came back on a conversation, and ends that; null when none comes within the time-out. */
  public static Message receiveReply(Connection connection, UUID handle, Duration timeout) throws SQLException {
    return first(run(connection,
        "select " + Message.COLUMNS + " from parley.receive_reply(?::uuid, timeout => ?::integer)",
        Message::read, handle, (int) timeout.toMillis()));
  }

  /** Answers a message on its conversation and ends this side. */
  public static void reply(Connection connection, Message message, String body) throws SQLException {
    send(connection, message.conversationHandle(), body);
    endConversation(connection, message.conversationHandle());
  }

  /** Ends this side of a conversation. */
  public static void endConversation(Connection connection, UUID handle) throws SQLException {
    run(connection, "select parley.end_conversation(?::uuid)", row -> null, handle);
  }

  /** Ends this side of a conversation, and the far side gets an Error message with a code above zero. */
  public static void endConversation(Connection connection, UUID handle, int errorCode, String description)
      throws SQLException {
    run(connection,
        "select parley.end_conversation(conversation_handle => ?::uuid, error_code => ?::integer, description => ?::text)",
        row -> null, handle, errorCode, description);
  }

  /** Reports that a transaction that had received from a conversation failed, and why. Call it after the rollback. */
  public static boolean recordFailure(Connection connection, UUID handle, Throwable failure) throws SQLException {
    Failure f = Failure.of(failure);
    return first(run(connection,
        "select parley.record_failure(conversation_handle => ?::uuid, sqlstate => ?::text, message => ?::text)",
        row -> row.getBoolean(1), handle, f.state(), f.text()));
  }

  /** Reports a failure and has the conversation wait, by the queue's policy or for delay. Call it after the rollback. */
  public static Retried retryConversation(Connection connection, UUID handle, Throwable failure, Duration delay)
      throws SQLException {
    Failure f = Failure.of(failure);
    return first(run(connection,
        "select retry_at, is_set_aside from parley.retry_conversation(conversation_handle => ?::uuid, error => ?::text,"
            + " sqlstate => ?::text, delay => ?::interval)",
        Parley::retried, handle, f.text(), f.state(), interval(delay)));
  }

  /** Sets a conversation aside at once. Call it after the rollback. */
  public static boolean failConversation(Connection connection, UUID handle, Throwable failure) throws SQLException {
    Failure f = Failure.of(failure);
    return first(run(connection,
        "select parley.fail_conversation(conversation_handle => ?::uuid, error => ?::text, sqlstate => ?::text)",
        row -> row.getBoolean(1), handle, f.text(), f.state()));
  }

  /**
   * Begins a dialog, sends, commits, waits for the reply, takes it and ends the conversation. The connection must be in
   * auto-commit: a request has to be committed before it can be answered.
   *
   * @throws ConversationError when an Error came back
   * @throws NoReply when the other side ended without a reply
   * @throws RequestTimeout when none came in time
   */
  public static Message request(
      Connection connection, String fromService, String toService, String body, Duration timeout, Options options)
      throws SQLException {
    if (!connection.getAutoCommit()) {
      throw new IllegalStateException("a request has to be committed before it can be answered: call setAutoCommit(true)");
    }
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("the time-out of a request must be positive");
    }
    long end = System.nanoTime() + timeout.toNanos();
    Options limited = new Options().messageType(options.messageType).contract(options.contract)
        .encryption(options.encryption).lifetime(timeout.plus(LIFETIME_BEYOND));
    UUID handle = beginAndSend(connection, fromService, toService, body, limited);
    for (long wait = 1; wait > 0;) {
      wait = Math.max(0, Math.min(REPLY_WAIT_MS, (end - System.nanoTime()) / 1_000_000));
      Message found = receiveReply(connection, handle, Duration.ofMillis(wait));
      if (found == null || found.isDialogTimer()) {
        continue;
      }
      if (found.isError()) {
        throw found.error();
      }
      if (found.isEndDialog()) {
        throw new NoReply("conversation " + handle + ": the other side has ended it without a reply");
      }
      return found;
    }
    try {
      endConversation(connection, handle, REQUEST_GIVEN_UP, "The request was given up: nobody waits for the reply any more.");
    } catch (ParleyException.ConversationNotFound over) {
      // Its lifetime is over, and somebody has ended it.
    }
    throw new RequestTimeout("request from " + fromService + " to " + toService + ": no reply within " + timeout.toMillis()
        + " ms on conversation " + handle + ". Give it more time, or see whether the target's readers run: parley diagnose.");
  }
}
