package io.github.parleybroker;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;

/** Wake-ups of the readers of a worker: by notifications, and once each poll interval; each wakes one reader. */
final class WakeUps {
  // For so many seconds beyond a poll interval senders are asked to notify. It costs them throughput, so it is short.
  private static final int ASKED_BEYOND = 3;
  // So long at most the listener looks away from a stop.
  private static final long LONGEST_WAIT_MS = 1000;
  private final Worker<?> worker;
  private final Semaphore next = new Semaphore(0);
  private final AtomicInteger sleepers = new AtomicInteger();
  private volatile boolean isListening;
  private volatile String payload;
  private long askedUntil;

  WakeUps(Worker<?> worker) {
    this.worker = worker;
  }

  /** Wakes one reader, or the next one that sleeps. */
  synchronized void wake() {
    if (next.availablePermits() == 0) {
      next.release();
    }
  }

  void wakeOthers() {
    if (sleepers.get() > 0) {
      wake();
    }
  }

  void wakeAll() {
    next.release(sleepers.get() + 1);
  }

  /**
   * Sleeps until the next wake-up; the listener gives one each poll interval. A stop wakes the readers that count as asleep,
   * and a reader that falls asleep later sees it here.
   */
  void await() throws InterruptedException {
    sleepers.incrementAndGet();
    try {
      if (worker.isStopping()) {
        return;
      }
      next.tryAcquire(2 * worker.pollInterval.toMillis(), TimeUnit.MILLISECONDS);
    } finally {
      sleepers.decrementAndGet();
    }
  }

  /** Asks senders to notify unless they do. True when they did not: then the queue has to be read once more. */
  synchronized boolean ask(Connection connection) throws SQLException {
    long now = System.currentTimeMillis();
    if (!isListening || askedUntil > now + worker.pollInterval.toMillis()) {
      return false;
    }
    boolean wasAsked = askedUntil > now;
    int seconds = (int) worker.pollInterval.toSeconds() + 1 + ASKED_BEYOND;
    String found = Parley.run(connection, "select parley.listen_for_messages(?::text, ?::integer)", row -> row.getString(1),
        worker.queue, seconds).get(0);
    boolean isKnown = found.equals(payload);
    payload = found;
    askedUntil = now + seconds * 1000L;
    return !(wasAsked && isKnown);
  }

  private synchronized void listening(boolean is) {
    isListening = is;
    askedUntil = 0;
  }

  /** Wakes readers until the worker stops. */
  void listen() {
    boolean isPossible = true;
    int failures = 0;
    while (!worker.isStopping()) {
      try {
        isPossible = isPossible && listenOnce();
        failures = 0;
      } catch (SQLException failure) {
        if (++failures == 1) {
          worker.logger.log(System.Logger.Level.WARNING, "not notified of messages for now; polling: " + failure.getMessage());
        }
      }
      worker.pause(worker.pollInterval.toMillis() * Math.min(Math.max(failures, 1), 10));
      wake();
    }
  }

  /** Wakes readers for as long as the connection lasts; false when no notification can come. */
  private boolean listenOnce() throws SQLException {
    try (Connection connection = (worker.listenDataSource == null ? worker.dataSource : worker.listenDataSource).getConnection()) {
      connection.setAutoCommit(true);
      PGConnection driver = connection.unwrap(PGConnection.class);
      driver.setPrepareThreshold(0);
      int pid = Parley.run(connection, "select pg_backend_pid()", row -> row.getInt(1)).get(0);
      // Through a pooler each transaction may have another session, and notifications go to none of the clients.
      if (worker.listenDataSource == null && pid != driver.getBackendPID()) {
        worker.logger.log(System.Logger.Level.INFO, "connected through a pooler: polling; give listenDataSource to be notified");
        return false;
      }
      try (Statement statement = connection.createStatement()) {
        statement.execute("set idle_session_timeout = 0");
        statement.execute("listen parley");
      }
      listening(true);
      wake(); // a reader has to ask
      long polled = System.nanoTime();
      while (!worker.isStopping()) {
        long left = worker.pollInterval.toMillis() - (System.nanoTime() - polled) / 1_000_000;
        if (left <= 0) {
          wake();
          polled = System.nanoTime();
          continue;
        }
        PGNotification[] notes = driver.getNotifications((int) Math.min(left, LONGEST_WAIT_MS));
        if (notes == null) {
          continue;
        }
        for (PGNotification note : notes) {
          if (note.getParameter().equals(payload)) {
            wake();
          }
        }
      }
    } finally {
      listening(false);
    }
    return true;
  }
}
