package io.github.parleybroker;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.postgresql.PGConnection;

/**
 * What all workers have in common. Each reader keeps a connection of the data source for as long as it runs. Failures while
 * it runs are logged and tried again. Readers are woken by notifications, and where none can come, because the connections
 * lead through a pooler, they read the queue once each poll interval.
 */
public abstract class Worker<W extends Worker<W>> {
  private static final int SCHEMA_VERSION = 1;
  private static final int DISABLED_POLLS = 5;
  private static final long FIRST_PAUSE_MS = 100;
  private static final long LONGEST_PAUSE_MS = 10_000;

  final DataSource dataSource;
  final String queue;
  final WakeUps wakeUps;
  int readers = 1;
  Duration handlerTimeout;
  Duration graceTime = Duration.ofSeconds(30);
  Duration pollInterval = Duration.ofSeconds(1);
  DataSource listenDataSource;
  Logger logger = System.getLogger("parley");
  Consumer<Turn> observer = turn -> {};
  private final CountDownLatch stopping = new CountDownLatch(1);
  private final Set<Connection> busy = ConcurrentHashMap.newKeySet();
  private volatile boolean isCutOff;
  private final ScheduledExecutorService timers = Executors.newSingleThreadScheduledExecutor(Worker::daemon);

  Worker(DataSource dataSource, String queue) {
    if (dataSource == null || queue == null || queue.isEmpty()) {
      throw new IllegalArgumentException("the worker needs a data source and the name of its queue");
    }
    this.dataSource = dataSource;
    this.queue = queue;
    this.wakeUps = new WakeUps(this);
  }

  abstract W self();

  /** Does one transaction, and says whether there was anything to do. */
  abstract boolean workOnce(Connection connection) throws Exception;

  static Thread daemon(Runnable work) {
    Thread thread = new Thread(work, "parley");
    thread.setDaemon(true);
    return thread;
  }

  /** So many handlers at once: 1. */
  public W readers(int value) {
    if (value < 1) {
      throw new IllegalArgumentException("readers must be at least 1");
    }
    readers = value;
    return self();
  }

  /** After so long a handler is rolled back, and the statement that it waits for is cancelled. */
  public W handlerTimeout(Duration value) {
    handlerTimeout = value;
    return self();
  }

  /** So long may running handlers go on after a stop: 30 seconds. */
  public W graceTime(Duration value) {
    graceTime = value;
    return self();
  }

  /** So long between two reads of a queue of which nothing is notified: 1 second. */
  public W pollInterval(Duration value) {
    if (value.isNegative() || value.isZero()) {
      throw new IllegalArgumentException("pollInterval must be above zero");
    }
    pollInterval = value;
    return self();
  }

  /** Where to listen when the data source leads through a pooler; without it the worker polls there. */
  public W listenDataSource(DataSource value) {
    listenDataSource = value;
    return self();
  }

  public W logger(Logger value) {
    logger = value;
    return self();
  }

  /** Is called after each call of the handler. */
  public W observer(Consumer<Turn> value) {
    observer = value;
    return self();
  }

  boolean isStopping() {
    return stopping.getCount() == 0;
  }

  void pause(long milliseconds) {
    try {
      stopping.await(milliseconds, TimeUnit.MILLISECONDS);
    } catch (InterruptedException interrupted) {
      stop();
    }
  }

  /** Has run take nothing more and return when running handlers have finished, after graceTime at the latest. */
  public void stop() {
    stopping.countDown();
    wakeUps.wakeAll();
  }

  /**
   * Works until stop is called, the thread is interrupted, or the process is asked to end.
   *
   * @throws BrokerUnusable for a schema that does not fit or a copy of a database
   * @throws HandlersCutOff when handlers did not finish in time
   */
  public void run() {
    attach();
    Thread ending = new Thread(() -> {
      stop();
      awaitEnd();
    });
    Runtime.getRuntime().addShutdownHook(ending);
    List<Thread> threads = new ArrayList<>();
    try {
      daemon(wakeUps::listen).start();
      for (int i = 0; i < readers; i++) {
        Thread reader = daemon(this::read);
        threads.add(reader);
        reader.start();
      }
      stopping.await();
      finish(threads);
    } catch (InterruptedException interrupted) {
      stop();
      Thread.currentThread().interrupt();
    } finally {
      timers.shutdownNow();
      ended.countDown();
      try {
        Runtime.getRuntime().removeShutdownHook(ending);
      } catch (IllegalStateException isEnding) {
        // The process is ending: that is why.
      }
    }
  }

  private final CountDownLatch ended = new CountDownLatch(1);

  private void awaitEnd() {
    try {
      ended.await(graceTime.toMillis() + 5000, TimeUnit.MILLISECONDS);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void finish(List<Thread> threads) throws InterruptedException {
    long end = System.nanoTime() + graceTime.toNanos();
    for (Thread thread : threads) {
      thread.join(Math.max(1, (end - System.nanoTime()) / 1_000_000));
    }
    long left = threads.stream().filter(Thread::isAlive).count();
    if (left == 0) {
      return;
    }
    isCutOff = true;
    for (Connection connection : busy) {
      cancel(connection);
    }
    for (Thread thread : threads) {
      thread.join(1000);
    }
    throw new HandlersCutOff("queue " + queue + ": " + left + " handlers did not finish within " + graceTime.toMillis()
        + " ms; their work is rolled back at the latest when this process ends");
  }

  private static void cancel(Connection connection) {
    try {
      connection.unwrap(PGConnection.class).cancelQuery();
    } catch (SQLException gone) {
      // Then there is nothing to cancel.
    }
  }

  Connection connect() throws SQLException {
    Connection connection = dataSource.getConnection();
    try {
      connection.setAutoCommit(true);
      connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
      // A pooler may give the next transaction another session.
      connection.unwrap(PGConnection.class).setPrepareThreshold(0);
      return connection;
    } catch (SQLException failure) {
      connection.close();
      throw failure;
    }
  }

  /** That the database cannot be reached just now is no reason to refuse: readers try again by themselves. */
  private void attach() {
    try (Connection connection = connect()) {
      Parley.run(connection,
          "select schema_version, oldest_client_version, broker_state, coalesce(advice, '') from parley.attach_broker()",
          row -> {
            if (row.getInt(1) < SCHEMA_VERSION) {
              throw new BrokerUnusable("the schema parley is older than this package: run parley upgrade");
            } else if (row.getInt(2) > SCHEMA_VERSION) {
              throw new BrokerUnusable("the schema parley is newer than this package: use a newer one");
            } else if (row.getString(3).equals("ELSEWHERE")) {
              throw new BrokerUnusable("the broker is not where it was enabled last. " + row.getString(4));
            }
            return null;
          });
    } catch (SQLException failure) {
      if (failure instanceof ParleyException || failure.getSQLState() != null && failure.getSQLState().startsWith("42")) {
        throw new BrokerUnusable(failure.getMessage());
      }
      logger.log(Level.WARNING, "queue " + queue + ": the database is away: " + failure.getMessage());
    }
  }

  /** The life of one reader. */
  private void read() {
    Connection connection = null;
    int failures = 0;
    while (!isStopping()) {
      try {
        if (connection == null || connection.isClosed()) {
          connection = connect();
        }
        if (workOnce(connection)) {
          failures = 0;
        } else if (!wakeUps.ask(connection)) {
          failures = 0;
          wakeUps.await();
        }
      } catch (Exception failure) {
        failures++;
        if (failure instanceof HandlerFailed handler) {
          report(connection, handler);
        }
        pause(judge(failure, failures));
      }
    }
    close(connection);
  }

  static void close(Connection connection) {
    try {
      if (connection != null) {
        connection.close();
      }
    } catch (SQLException gone) {
      // It is closed.
    }
  }

  /** A failure that is not reported is still counted, without its reason. */
  private void report(Connection connection, HandlerFailed failure) {
    try (Connection other = connection == null || connection.isClosed() ? connect() : null) {
      Connection reporting = other == null ? connection : other;
      transaction(reporting, () -> {
        failure.report.to(reporting);
        return null;
      });
    } catch (Exception refusal) {
      logger.log(Level.WARNING, "the failure could not be reported to the broker: " + refusal.getMessage());
    }
  }

  private long judge(Exception failure, int failures) {
    long longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << Math.min(failures - 1, 10));
    long pause = ThreadLocalRandom.current().nextLong(longest / 2, longest + 1);
    if (failure instanceof HandlerFailed) {
      logger.log(Level.WARNING, "queue " + queue + ": the handler failed with " + failure.getMessage()
          + ", which are in the queue again", failure.getCause());
    } else if (failure instanceof ParleyException.QueueDisabled) {
      pause = DISABLED_POLLS * pollInterval.toMillis();
      logger.log(Level.ERROR, "queue " + queue + " is disabled; trying again in " + pause + " ms: " + failure.getMessage());
    } else {
      logger.log(Level.ERROR, "queue " + queue + ": nothing could be received; trying again in " + pause + " ms: " + failure.getMessage());
    }
    return pause;
  }

  /** Does work in a transaction of a connection that is in none, and commits. */
  static <T> T transaction(Connection connection, Callable<T> work) throws Exception {
    connection.setAutoCommit(false);
    try {
      T result = work.call();
      connection.commit(); // pgjdbc refuses to commit where a statement has failed
      return result;
    } catch (Throwable failure) {
      if (!connection.isClosed()) {
        connection.rollback();
      }
      throw failure;
    } finally {
      if (!connection.isClosed()) {
        connection.setAutoCommit(true);
      }
    }
  }

  /** Calls the handler, within its time, and observes it; connection is null when no transaction is open. */
  <T> T call(Connection connection, List<? extends Traced> messages, Callable<T> work) throws Exception {
    long began = System.nanoTime();
    Throwable failure = null;
    AtomicBoolean isLate = new AtomicBoolean();
    ScheduledFuture<?> timer = handlerTimeout == null ? null : timers.schedule(() -> {
      isLate.set(true);
      if (connection != null) {
        cancel(connection);
      }
    }, handlerTimeout.toMillis(), TimeUnit.MILLISECONDS);
    if (connection != null) {
      busy.add(connection);
    }
    try {
      T result;
      try {
        result = Traced.handling(messages, work);
      } finally {
        if (timer != null) {
          timer.cancel(false);
        }
        if (isLate.get()) {
          throw new HandlerTimeout("the handler took longer than its time-out of " + handlerTimeout.toMillis() + " ms and was rolled back");
        }
      }
      if (isCutOff) {
        throw new HandlersCutOff("the worker stopped");
      }
      return result;
    } catch (Throwable thrown) {
      failure = thrown;
      throw thrown;
    } finally {
      if (connection != null) {
        busy.remove(connection);
      }
      try {
        observer.accept(new Turn(queue, messages.size(), Duration.ofNanos(System.nanoTime() - began), failure));
      } catch (RuntimeException ofTheObserver) {
        logger.log(Level.ERROR, "queue " + queue + ": the observer failed", ofTheObserver);
      }
    }
  }

  /** A failure to handle messages, as opposed to one of the broker or of the connection. */
  static final class HandlerFailed extends Exception {
    private static final long serialVersionUID = 1;

    /** Says to the broker what failed. */
    interface Report {
      void to(Connection connection) throws SQLException;
    }

    final transient Report report;

    HandlerFailed(String subject, Throwable cause, Report report) {
      super(subject, cause);
      this.report = report;
    }
  }
}
