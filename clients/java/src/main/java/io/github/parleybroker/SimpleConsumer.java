package io.github.parleybroker;

import java.sql.Connection;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import javax.sql.DataSource;

/**
 * Takes from a simple queue and calls the handler in the transaction that took the messages. An exception rolls back, and the
 * messages come again, each in a call of its own; each waits by the retry policy of the queue, or as RetryAfter and Final say.
 */
public final class SimpleConsumer extends Worker<SimpleConsumer> {
  /** Works on messages in the transaction of the connection, which it neither commits nor rolls back. */
  public interface Handler {
    void handle(Connection connection, List<TakenMessage> messages) throws Exception;
  }

  private final Handler handler;
  private int count = 1;

  public SimpleConsumer(DataSource dataSource, String queue, Handler handler) {
    super(dataSource, queue);
    this.handler = handler;
  }

  @Override
  SimpleConsumer self() {
    return this;
  }

  /** So many messages in one call, at most: 1. */
  public SimpleConsumer count(int value) {
    count = value;
    return this;
  }

  @Override
  boolean workOnce(Connection connection) throws Exception {
    List<TakenMessage> messages = new ArrayList<>();
    try {
      return transaction(connection, () -> {
        messages.addAll(Parley.takeAsReader(connection, queue, count));
        if (!messages.isEmpty()) {
          wakeUps.wakeOthers();
          call(connection, messages, () -> {
            handler.handle(connection, messages);
            return null;
          });
        }
        return !messages.isEmpty();
      });
    } catch (Exception failure) {
      // When the connection is lost that is not the message's fault, and the broker counts it.
      if (messages.isEmpty() || connection.isClosed()) {
        throw failure;
      }
      long first = messages.get(0).messageId();
      throw new HandlerFailed("messages " + messages.stream().map(TakenMessage::messageId).toList(), failure, reporting -> {
        // Of several messages nobody knows which was bad: none is reported, and each comes alone after that.
        if (messages.size() == 1 && failure instanceof Final) {
          Parley.fail(reporting, queue, first, failure);
        } else if (messages.size() == 1) {
          Duration delay = failure instanceof RetryAfter later ? later.delay() : null;
          Parley.retry(reporting, queue, first, failure, delay);
        }
      });
    }
  }
}
