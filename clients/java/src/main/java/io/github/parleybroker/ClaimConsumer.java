package io.github.parleybroker;

import java.lang.System.Logger.Level;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;

/**
 * Claims messages of a simple queue for long work and calls the handler while no transaction is open; a heartbeat renews the
 * claim. When the handler returns without Work.transaction the messages are taken then. An exception gives them back.
 */
public final class ClaimConsumer extends Worker<ClaimConsumer> {
  private static final int BEATS_PER_LEASE = 3;

  /** Does the work. */
  public interface Handler {
    void handle(Work work) throws Exception;
  }

  private final Handler handler;
  private final Set<Work> held = ConcurrentHashMap.newKeySet();
  private int count = 1;
  private Duration lease = Duration.ofMinutes(1);
  private Connection heart;

  public ClaimConsumer(DataSource dataSource, String queue, Handler handler) {
    super(dataSource, queue);
    this.handler = handler;
  }

  @Override
  ClaimConsumer self() {
    return this;
  }

  /** So many messages in one call, at most: 1. */
  public ClaimConsumer count(int value) {
    count = value;
    return this;
  }

  /** For so long the messages are out of reach when this process dies: 1 minute. */
  public ClaimConsumer lease(Duration value) {
    lease = value;
    return this;
  }

  @Override
  public void run() {
    ScheduledExecutorService beating = Executors.newSingleThreadScheduledExecutor(Worker::daemon);
    long interval = Math.max(1, lease.toMillis() / BEATS_PER_LEASE);
    beating.scheduleWithFixedDelay(this::beat, interval, interval, TimeUnit.MILLISECONDS);
    try {
      super.run();
    } finally {
      // The last beat ends before its connection is closed.
      beating.execute(() -> close(heart));
      beating.shutdown();
    }
  }

  @Override
  boolean workOnce(Connection connection) throws Exception {
    Claim claim = Parley.claim(connection, queue, count, lease);
    if (claim == null) {
      return false;
    }
    wakeUps.wakeOthers();
    Connection[] other = new Connection[1];
    Work work = new Work(claim, () -> {
      // The server may have been started again while nothing was asked of it.
      if (!connection.isClosed() && connection.isValid(5)) {
        return connection;
      }
      other[0] = connect();
      return other[0];
    });
    held.add(work);
    try {
      call(null, claim.messages(), () -> {
        handler.handle(work);
        return null;
      });
      if (!work.isComplete()) {
        work.transaction(results -> {});
      }
    } catch (Exception failure) {
      if (work.isComplete()) {
        logger.log(Level.ERROR, "queue " + queue + ": the handler failed after its work was complete", failure);
      } else if (failure instanceof ClaimLost) {
        logger.log(Level.WARNING, "queue " + queue + ": " + failure.getMessage());
      } else {
        throw failed(claim, failure);
      }
    } finally {
      held.remove(work);
      close(other[0]);
    }
    return true;
  }

  private HandlerFailed failed(Claim claim, Exception failure) {
    return new HandlerFailed("messages " + claim.messages().stream().map(TakenMessage::messageId).toList(), failure, reporting ->
        Parley.giveBack(reporting, claim, failure, failure instanceof RetryAfter later ? later.delay() : null));
  }

  /** Renews all claims, and lets their handlers know which are lost. */
  private void beat() {
    try {
      if (heart == null || heart.isClosed()) {
        heart = connect();
      }
      for (Work work : held) {
        work.beat(heart, lease);
      }
    } catch (SQLException failure) {
      logger.log(Level.WARNING, "queue " + queue + ": a claim could not be renewed: " + failure.getMessage());
      close(heart);
    }
  }
}
