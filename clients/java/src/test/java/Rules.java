import io.github.parleybroker.ClaimConsumer;
import io.github.parleybroker.Consumer;
import io.github.parleybroker.ConversationError;
import io.github.parleybroker.BrokerUnusable;
import io.github.parleybroker.Final;
import io.github.parleybroker.HandlersCutOff;
import io.github.parleybroker.Options;
import io.github.parleybroker.Parley;
import io.github.parleybroker.ParleyException;
import io.github.parleybroker.RequestTimeout;
import io.github.parleybroker.SimpleConsumer;
import io.github.parleybroker.Turn;
import io.github.parleybroker.Worker;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.postgresql.ds.PGSimpleDataSource;

/** The rules of the package, against a real server: java Rules.java with PARLEY_TEST_JDBC, a database with the schema. */
class Rules {
  /** A test waits so long for what must come. It is no measure of speed. */
  static final Duration PATIENCE = Duration.ofMinutes(2);
  static final String TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  static final PGSimpleDataSource database = new PGSimpleDataSource();
  static Connection db;

  public static void main(String[] arguments) throws Exception {
    database.setUrl(System.getenv("PARLEY_TEST_JDBC"));
    db = database.getConnection();
    for (String queue : List.of("jobs", "fails", "long", "stops", "late", "idle")) {
      execute("select parley.create_queue('" + queue + "', kind => 'SIMPLE',"
          + " retry => '{\"first\": \"10 ms\", \"longest\": \"10 ms\", \"attempts\": 3}')");
      execute("select parley.keep_finished('" + queue + "', '1 hour')");
    }
    for (String name : List.of("shop", "warehouse")) {
      execute("select parley.create_queue('" + name + "_queue')");
      execute("select parley.create_service('" + name + "', '" + name + "_queue', array['DEFAULT'])");
    }
    execute("create table done (job text)");
    simpleQueues();
    conversations();
    requests();
    errors();
    aWorkerWakesForEachMessage();
    aBadMessageIsSetAsideAlone();
    aConversationIsHandledAndEnded();
    longWorkIsHeldAndCancelled();
    aStopLetsHandlersFinish();
    aStopWakesEachReader();
    aHandlerThatTakesTooLongIsRolledBack();
    System.exit(0);
  }

  static void simpleQueues() throws Exception {
    var put = Parley.put(db, "jobs", "chair");
    Parley.put(db, "jobs", new byte[] {0, -1}, new Options().key("k").traceContext(TRACE));
    Parley.putBatch(db, "jobs", List.of("a", "b"), new Options());
    var taken = Parley.take(db, "jobs", 10);
    equal(taken.get(0).text() + taken.get(2).text() + taken.get(3).text(), "chairab");
    equal(taken.get(0).messageId(), put.messageId());
    equal(taken.get(1).body()[1] + taken.get(1).key() + taken.get(1).traceContext(), -1 + "k" + TRACE);
    var sent = Parley.putEach(db, "jobs", List.of("c", "d"), List.of("one", "two"), new Options());
    equal(Parley.put(db, "jobs", "c", new Options().deduplicationKey("one")).messageId(), sent.get(0).messageId());
    equal(Parley.putUnique(db, "jobs", "e", "only", new Options()).isDuplicate(), false);
    equal(Parley.putUnique(db, "jobs", "e", "only", new Options()).isDuplicate(), true);
    execute("select parley.create_queue('books', kind => 'SIMPLE')");
    equal(Parley.putGroup(db, "books", List.of("g"), "books", "after g", new Options()) > 0, true);
    equal(Parley.cancel(db, "jobs", sent.get(0).messageId(), false), true);
    equal(Parley.fail(db, "jobs", sent.get(1).messageId(), new IllegalStateException("never")), true);
    equal(value("select error from parley.set_aside_messages where queue_name = 'jobs'"), "never");
    var claim = Parley.claim(db, "jobs", 1, Duration.ofSeconds(30));
    equal(claim.messages().get(0).text(), "e");
    equal(Parley.renew(db, claim, Duration.ofSeconds(30), "{\"pages\": 3}"), true);
    equal(Parley.complete(db, claim, "{\"pages\": 9}"), true);
    equal(Parley.complete(db, claim, null), false);
    Parley.put(db, "jobs", "f");
    var other = Parley.claim(db, "jobs", 1, Duration.ofSeconds(30));
    equal(Parley.giveBack(db, other, new SQLException("busy", "08006"), Duration.ofHours(1)).isSetAside(), false);
    equal(value("select sqlstate from parley.failing_messages"), "08006");
  }

  static void conversations() throws Exception {
    var handle = Parley.beginDialog(db, "shop", "warehouse", new Options().lifetime(Duration.ofMinutes(1)));
    Parley.send(db, handle, "first");
    Parley.sendBatch(db, handle, List.of("second", "third"), new Options().traceContext(TRACE));
    var messages = Parley.receive(db, "warehouse_queue", 10);
    equal(messages.stream().map(message -> message.text()).toList(), List.of("first", "second", "third"));
    equal(messages.get(1).traceContext(), TRACE);
    Parley.reply(db, messages.get(0), "packed");
    equal(Parley.receive(db, "shop_queue", 10).get(1).isEndDialog(), true);
    Parley.endConversation(db, handle);
    Parley.sendAndEnd(db, "shop", "warehouse", "no answer", new Options());
    equal(Parley.receive(db, "warehouse_queue", 10).get(0).text(), "no answer");
  }

  static void requests() throws Exception {
    var answering = start(() -> {
      try (Connection target = database.getConnection()) {
        for (int n = 0; n < 2; n++) {
          var messages = Parley.receive(target, "warehouse_queue", 1);
          for (; messages.isEmpty(); messages = Parley.receive(target, "warehouse_queue", 1)) {
            Thread.sleep(10);
          }
          if (messages.get(0).text().equals("refuse")) {
            Parley.endConversation(target, messages.get(0).conversationHandle(), 3, "sold <out> & gone");
          } else {
            Parley.reply(target, messages.get(0), "PACKED");
          }
        }
      }
      return null;
    });
    equal(Parley.request(db, "shop", "warehouse", "chair", PATIENCE, new Options()).text(), "PACKED");
    var refused = thrown(ConversationError.class, () ->
        Parley.request(db, "shop", "warehouse", "refuse", PATIENCE, new Options()));
    equal(refused.code() + refused.description(), "3sold <out> & gone");
    answering.get();
    thrown(RequestTimeout.class, () -> Parley.request(db, "shop", "warehouse", "x", Duration.ofMillis(50), new Options()));
    var left = Parley.receive(db, "warehouse_queue", 10);
    equal(left.get(left.size() - 1).error().code(), 408);
    for (var message : left) {
      if (message.isError()) {
        Parley.endConversation(db, message.conversationHandle());
      }
    }
  }

  static void errors() throws Exception {
    var refusal = thrown(ParleyException.QueueNotFound.class, () -> Parley.put(db, "job", "a"));
    equal(refusal.number() + refusal.getSQLState(), "208SB05S");
    equal(refusal.hint().contains("parley.service_queues") && refusal.getMessage().contains(refusal.hint()), true);
    thrown(ParleyException.WrongArgument.class, () -> Parley.take(db, "shop_queue", 1));
    equal(thrown(ParleyException.class, () -> Parley.beginDialog(db, "nobody", "shop", new Options())).number(), 8423);
    var elsewhere = new PGSimpleDataSource();
    elsewhere.setUrl(System.getenv("PARLEY_TEST_JDBC").replaceFirst("/[^/?]*\\?", "/template1?"));
    thrown(BrokerUnusable.class, () -> {
      new SimpleConsumer(elsewhere, "jobs", (connection, messages) -> {}).run();
      return null;
    });
  }

  static void aWorkerWakesForEachMessage() throws Exception {
    List<Turn> turns = new CopyOnWriteArrayList<>();
    var worker = new SimpleConsumer(database, "jobs", (connection, messages) -> {
      if (messages.get(0).text().equals("carries")) {
        Parley.put(connection, "jobs", "carried");
      }
      write(connection, messages.get(0).text() + " " + messages.get(0).traceContext());
    }).readers(2).pollInterval(Duration.ofHours(1)).observer(turns::add);
    working(worker, () -> {
      // Whoever puts from then on notifies.
      until("select parley._p_is_listening(object_id) from parley.service_queues where name = 'jobs'", "t");
      Parley.put(db, "jobs", "one");
      until("select count(*) from done where job like 'one %'", "1");
      Parley.put(db, "jobs", "carries", new Options().traceContext(TRACE));
      until("select count(*) from done where job = 'carried " + TRACE + "'", "1");
    });
    equal(turns.get(0).messages() + turns.get(0).queue() + turns.get(0).error(), "1jobsnull");
  }

  static void aBadMessageIsSetAsideAlone() throws Exception {
    Parley.putBatch(db, "fails", List.of("a", "bad", "b", "final"), new Options());
    var worker = new SimpleConsumer(database, "fails", (connection, messages) -> {
      for (var message : messages) {
        switch (message.text()) {
          case "bad" -> connection.createStatement().execute("select 1 / 0");
          case "final" -> throw new Final("never");
          default -> write(connection, "fails " + message.text());
        }
      }
    }).count(10).pollInterval(Duration.ofMillis(100));
    working(worker, () -> {
      until("select count(*) from done where job like 'fails %'", "2");
      until("select string_agg(error, ',' order by error) from parley.set_aside_messages where queue_name = 'fails'",
          "division by zero,never");
    });
  }

  static void aConversationIsHandledAndEnded() throws Exception {
    var bad = Parley.beginDialog(db, "shop", "warehouse", new Options());
    Parley.sendBatch(db, bad, List.of("1", "2", "bad", "3"), new Options());
    var good = Parley.beginAndSend(db, "shop", "warehouse", "4", new Options());
    var worker = new Consumer(database, "warehouse_queue", (connection, messages) -> {
      for (var message : messages) {
        if (message.text().equals("bad")) {
          throw new IllegalStateException("cannot be packed");
        }
        write(connection, "packs " + message.text());
      }
    }).pollInterval(Duration.ofMillis(100));
    working(worker, () -> {
      until("select count(*) from done where job like 'packs %'", "3");
      until("select max(error) from parley.poison_conversations", "cannot be packed");
      Parley.endConversation(db, good);
      until("select count(*) from parley.conversation_endpoints where conversation_handle = '" + good + "' and state <> 'CD'", "0");
    });
  }

  static void longWorkIsHeldAndCancelled() throws Exception {
    AtomicBoolean wasCancelled = new AtomicBoolean();
    CountDownLatch began = new CountDownLatch(1);
    // A machine may be so slow that a heartbeat comes too late: then the message comes again.
    execute("select parley.alter_queue('long', retry => '{\"first\": \"10 ms\", \"attempts\": 1000}')");
    Parley.putBatch(db, "long", List.of("slow", "returned", "bad"), new Options());
    var worker = new ClaimConsumer(database, "long", work -> {
      switch (work.messages().get(0).text()) {
        case "slow" -> {
          Thread.sleep(1200); // longer than the lease
          work.transaction(connection -> write(connection, "long slow"), "{\"pages\": 1}");
        }
        case "bad" -> throw new Final("not to be done");
        case "cancelled" -> {
          began.countDown();
          for (long end = System.nanoTime() + PATIENCE.toNanos(); !work.isLost() && System.nanoTime() < end;) {
            Thread.sleep(10);
          }
          wasCancelled.set(work.isLost());
          work.progress("{}"); // throws
        }
        default -> { }
      }
    }).lease(Duration.ofMillis(900)).readers(2).pollInterval(Duration.ofMillis(100));
    working(worker, () -> {
      until("select count(*) from parley.finished_messages where queue_name = 'long'", "2");
      until("select error from parley.set_aside_messages where queue_name = 'long'", "not to be done");
      var sent = Parley.putEach(db, "long", List.of("cancelled"), null, new Options());
      equal(began.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), true);
      equal(Parley.cancel(db, "long", sent.get(0).messageId(), true), true);
      for (long end = System.nanoTime() + PATIENCE.toNanos(); !wasCancelled.get() && System.nanoTime() < end;) {
        Thread.sleep(10);
      }
    });
    equal(wasCancelled.get(), true);
    equal(value("select count(*) from done where job = 'long slow'"), "1");
  }

  static void aStopLetsHandlersFinish() throws Exception {
    for (Duration grace : List.of(PATIENCE, Duration.ofMillis(100))) {
      CountDownLatch began = new CountDownLatch(1);
      CountDownLatch released = new CountDownLatch(1);
      Parley.put(db, "stops", "a");
      var worker = new SimpleConsumer(database, "stops", (connection, messages) -> {
        began.countDown();
        equal(released.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), true);
        write(connection, "stops a");
      }).graceTime(grace);
      var running = start(() -> {
        worker.run();
        return null;
      });
      equal(began.await(PATIENCE.toSeconds(), TimeUnit.SECONDS), true);
      worker.stop();
      if (grace.equals(PATIENCE)) {
        released.countDown();
        running.get();
      } else {
        equal(thrown(java.util.concurrent.ExecutionException.class, running::get).getCause().getClass(), HandlersCutOff.class);
        released.countDown();
      }
      equal(value("select count(*) from done where job = 'stops a'"), "1");
    }
  }

  /** Also one that is about to sleep: nothing else would wake it before the poll interval. */
  static void aStopWakesEachReader() throws Exception {
    for (int round = 0; round < 40; round++) {
      var worker = new SimpleConsumer(database, "idle", (connection, messages) -> {}).readers(4).pollInterval(Duration.ofHours(1));
      var running = start(() -> {
        worker.run();
        return null;
      });
      Thread.sleep(round);
      worker.stop();
      running.get();
    }
    String sessions = "select count(*) from pg_stat_activity where datname = current_database() and backend_type = 'client backend'";
    until(sessions, "1");
    var claims = new ClaimConsumer(database, "idle", work -> {}).lease(Duration.ofMillis(300)).pollInterval(Duration.ofHours(1));
    working(claims, () -> until(sessions, "4")); // a reader, a listener, a heartbeat, and ours
    until(sessions, "1");
  }

  static void aHandlerThatTakesTooLongIsRolledBack() throws Exception {
    Parley.put(db, "late", "a");
    var worker = new SimpleConsumer(database, "late", (connection, messages) -> {
      write(connection, "late a");
      connection.createStatement().execute("select pg_sleep(20)");
    }).handlerTimeout(Duration.ofMillis(200)).pollInterval(Duration.ofMillis(100));
    working(worker, () -> until(
        "select error like '%longer than its time-out%' from parley.set_aside_messages where queue_name = 'late'", "t"));
    equal(value("select count(*) from done where job = 'late a'"), "0");
  }

  interface Happens {
    void happen() throws Exception;
  }

  /** Runs a worker until what is to happen has happened. */
  static void working(Worker<?> worker, Happens happens) throws Exception {
    var running = start(() -> {
      worker.run();
      return null;
    });
    try {
      happens.happen();
    } finally {
      worker.stop();
    }
    running.get();
  }

  static FutureTask<Void> start(Callable<Void> work) {
    var task = new FutureTask<>(work);
    Thread thread = new Thread(task);
    thread.setDaemon(true);
    thread.start();
    return task;
  }

  static void until(String query, String answer) throws Exception {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!answer.equals(value(query))) {
      if (System.nanoTime() > end) {
        throw new AssertionError(query + " gives " + value(query) + ", not " + answer);
      }
      Thread.sleep(10);
    }
  }

  static String value(String query) throws SQLException {
    try (var statement = db.createStatement(); var rows = statement.executeQuery(query)) {
      return rows.next() ? rows.getString(1) : null;
    }
  }

  static void write(Connection connection, String job) throws SQLException {
    try (var insert = connection.prepareStatement("insert into done values (?)")) {
      insert.setString(1, job);
      insert.executeUpdate();
    }
  }

  static void execute(String statement) throws SQLException {
    try (var prepared = db.createStatement()) {
      prepared.execute(statement);
    }
  }

  static void equal(Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }

  static <T extends Throwable> T thrown(Class<T> kind, Callable<?> work) {
    try {
      work.call();
    } catch (Throwable failure) {
      if (kind.isInstance(failure)) {
        return kind.cast(failure);
      }
      throw new AssertionError("got another failure than " + kind, failure);
    }
    throw new AssertionError("nothing was thrown, want " + kind);
  }
}
