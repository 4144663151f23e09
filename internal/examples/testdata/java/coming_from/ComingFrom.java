import io.github.parleybroker.Final;
import io.github.parleybroker.Options;
import io.github.parleybroker.Parley;
import io.github.parleybroker.RetryAfter;
import io.github.parleybroker.SimpleConsumer;
import io.github.parleybroker.TakenMessage;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import org.postgresql.ds.PGSimpleDataSource;

/** The calls in Java on the page for those who come from other queues, as they stand there. */
class ComingFrom {
  public static void main(String[] arguments) throws SQLException {
    var database = new PGSimpleDataSource();
    database.setUrl(System.getenv("JDBC_URL"));
    try (var connection = database.getConnection()) {
      puts(connection);
      takeSome(connection);
      decide(connection);
      claimOne(connection);
      Parley.put(connection, "jobs", "busy");
      Parley.put(connection, "jobs", "missing");
      Parley.put(connection, "jobs", "the last one", new Options().priority(1));
    }
    SimpleConsumer.Handler resize = (connection, messages) -> {
      var text = messages.get(0).text();
      try (var insert = connection.prepareStatement("insert into resized (picture) values (?)")) {
        insert.setString(1, text);
        insert.executeUpdate();
      }
      switch (text) {
        case "the last one" -> new Thread(() -> System.exit(0)).start();
        case "busy" -> throw new RetryAfter(Duration.ofMinutes(1), "busy");
        case "missing" -> throw new Final("no such picture");
        default -> { }
      }
    };
    new SimpleConsumer(database, "jobs", resize).readers(4).run();
  }

  private static void puts(Connection connection) throws SQLException {
    var tomorrow = OffsetDateTime.now().plusDays(1);
    Parley.put(connection, "jobs", "{\"n\": 1}");
    require(Parley.put(connection, "jobs", "x", new Options().deliverAt(tomorrow)).delayedId() != null);
    Parley.put(connection, "jobs", "x", new Options().key("user 7").priority(10));
    Parley.putBatch(connection, "jobs", List.of("a", "b"), new Options());
    for (var isDuplicate : List.of(false, true)) {
      require(Parley.putUnique(connection, "jobs", "x", "index", new Options()).isDuplicate() == isDuplicate);
      require(Parley.put(connection, "jobs", "x", new Options().deduplicationKey("call 17")).isDuplicate() == isDuplicate);
    }
    var bodies = List.of("a", "b");
    require(Parley.putGroup(connection, "jobs", bodies, "jobs", "done", new Options()) > 0);
  }

  private static void takeSome(Connection connection) throws SQLException {
    connection.setAutoCommit(false);
    // Those of one priority come together, the higher ones first.
    for (var texts : List.of(List.of("x"), List.of("{\"n\": 1}", "a"))) {
      var messages = Parley.take(connection, "jobs", 2);
      require(messages.stream().map(TakenMessage::text).toList().equals(texts));
      for (var message : messages) {
        var messageId = message.messageId();
        require(Parley.done(connection, "jobs", messageId, "{\"bytes\": 7}"));
      }
      connection.commit();
    }
    connection.setAutoCommit(true);
  }

  private static void decide(Connection connection) throws SQLException {
    var waiting = new ArrayList<Long>();
    try (var rows = connection.createStatement().executeQuery("select message_id from parley.peek_messages('jobs')")) {
      while (rows.next()) {
        waiting.add(rows.getLong(1));
      }
    }
    var failure = new IllegalStateException("no answer");
    var minute = Duration.ofMinutes(1);
    long messageId = waiting.get(0);
    require(Parley.retry(connection, "jobs", messageId, failure, minute).retryAt() != null);
    messageId = waiting.get(1);
    require(Parley.fail(connection, "jobs", messageId, failure));
    messageId = waiting.get(2);
    require(Parley.cancel(connection, "jobs", messageId, true));
  }

  private static void claimOne(Connection connection) throws SQLException {
    var claimed = Parley.claim(connection, "jobs", 1, Duration.ofSeconds(30));
    require(Parley.renew(connection, claimed, Duration.ofSeconds(30), "{\"done\": 7}"));
    require(Parley.complete(connection, claimed, null));
  }

  private static void require(boolean isSo) {
    if (!isSo) {
      throw new IllegalStateException("a call did not do what the page says");
    }
  }
}
