package io.github.parleybroker;

import java.lang.System.Logger.Level;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import javax.sql.DataSource;

/**
 * Receives from a queue of conversations and calls the handler in that transaction. The messages are of one conversation group,
 * at most top of them. An exception rolls back, and they come again, one in each call, so that those in front of a bad one are
 * handled and it fails alone. EndDialog and Error messages end this side after the handler has seen the others.
 */
public final class Consumer extends Worker<Consumer> {
  /** Works on messages in the transaction of the connection, which it neither commits nor rolls back. */
  public interface Handler {
    void handle(Connection connection, List<Message> messages) throws Exception;
  }

  private final Handler handler;
  private final AtomicInteger singles = new AtomicInteger(); // so many messages are received alone, after a failure
  private int top = 100;
  private boolean handleSystemMessages;

  public Consumer(DataSource dataSource, String queue, Handler handler) {
    super(dataSource, queue);
    this.handler = handler;
  }

  @Override
  Consumer self() {
    return this;
  }

  /** So many messages in one call, at most: 100. */
  public Consumer top(int value) {
    top = value;
    return this;
  }

  /** Gives EndDialog and Error messages to the handler, which then ends conversations itself. */
  public Consumer handleSystemMessages(boolean value) {
    handleSystemMessages = value;
    return this;
  }

  @Override
  boolean workOnce(Connection connection) throws Exception {
    List<Message> messages = new ArrayList<>();
    try {
      transaction(connection, () -> {
        messages.addAll(Parley.receiveAsReader(connection, queue, singles.get() > 0 ? 1 : top));
        if (!messages.isEmpty()) {
          wakeUps.wakeOthers();
          handle(connection, messages);
        }
        return null;
      });
    } catch (Exception failure) {
      if (messages.isEmpty() || connection.isClosed()) {
        throw failure;
      }
      singles.accumulateAndGet(messages.size(), Math::max);
      Set<UUID> handles = new LinkedHashSet<>(messages.stream().map(Message::conversationHandle).toList());
      throw new HandlerFailed("conversation group " + messages.get(0).conversationGroupId(), failure, reporting -> {
        for (UUID handle : handles) {
          if (failure instanceof Final) {
            Parley.failConversation(reporting, handle, failure);
          } else if (failure instanceof RetryAfter later) {
            Parley.retryConversation(reporting, handle, failure, later.delay());
          } else {
            Parley.recordFailure(reporting, handle, failure);
          }
        }
      });
    }
    singles.updateAndGet(left -> Math.max(0, left - messages.size()));
    return !messages.isEmpty();
  }

  private void handle(Connection connection, List<Message> messages) throws Exception {
    List<Message> others = new ArrayList<>();
    Set<UUID> ended = new LinkedHashSet<>();
    for (Message message : messages) {
      if (handleSystemMessages || !message.isEndDialog() && !message.isError()) {
        others.add(message);
        continue;
      }
      if (message.isError()) {
        logger.log(Level.WARNING, "service " + message.serviceName() + ", conversation " + message.conversationHandle() + ": " + error(message));
      }
      ended.add(message.conversationHandle());
    }
    if (!others.isEmpty()) {
      call(connection, others, () -> {
        handler.handle(connection, others);
        return null;
      });
    }
    for (UUID handle : ended) {
      endUnlessEnded(connection, handle);
    }
  }

  private static String error(Message message) {
    try {
      return message.error().getMessage();
    } catch (IllegalStateException unreadable) {
      return unreadable.getMessage();
    }
  }

  /** The handler may have ended it already. */
  private static void endUnlessEnded(Connection connection, UUID handle) throws SQLException {
    Savepoint savepoint = connection.setSavepoint();
    try {
      Parley.endConversation(connection, handle);
    } catch (ParleyException.ConversationNotFound | ParleyException.EndNotAllowed isOver) {
      connection.rollback(savepoint);
    }
  }
}
