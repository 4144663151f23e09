import java.sql.SQLException;
import java.util.UUID;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.TransactionException;
import org.springframework.transaction.support.TransactionTemplate;

/** The warehouse packs each order that the shop sends. It may be stopped, or killed, at any time. */
public class Warehouse {
  private static final String SYSTEM = "http://schemas.microsoft.com/SQL/ServiceBroker/";

  private final JdbcTemplate jdbc = Database.jdbc();
  private final TransactionTemplate transactions = Database.transactions(jdbc);
  private UUID current;
  private int top = 10;

  public static void main(String[] arguments) throws InterruptedException {
    Warehouse warehouse = new Warehouse();
    System.out.println("reading");
    while (true) {
      try {
        warehouse.read();
      } catch (DataAccessException | TransactionException failure) {
        System.err.println("the database is away: " + failure.getMessage());
        Thread.sleep(1000);
      }
    }
  }

  /** Receives and handles in one transaction: what fails, or is killed, is received again. */
  private void read() {
    current = null;
    try {
      transactions.executeWithoutResult(
          status -> {
            for (Database.Message message : Database.receive(jdbc, "warehouse_queue", top)) {
              current = message.handle();
              handle(message);
            }
          });
      if (current == null) {
        Database.await(jdbc, "warehouse_queue");
      }
      top = 10;
    } catch (RuntimeException failure) {
      if (current == null) {
        throw failure;
      }
      String state = NestedExceptionUtils.getMostSpecificCause(failure) instanceof SQLException cause ? cause.getSQLState() : null;
      String text = NestedExceptionUtils.getMostSpecificCause(failure).getMessage();
      System.err.println(current + ": " + text);
      // In a transaction of its own: a message that keeps failing is set aside, and this says why.
      transactions.executeWithoutResult(
          status ->
              jdbc.query(
                  "select parley.record_failure(?, ?, ?)", row -> {}, current, state, text));
      // One at a time: what stands in front of it is done, and it alone fails the next time.
      top = 1;
    }
  }

  private void handle(Database.Message message) {
    if (message.type().equals(SYSTEM + "EndDialog") || message.type().equals(SYSTEM + "Error")) {
      jdbc.query("select parley.end_conversation(?)", row -> {}, message.handle());
      return;
    }
    jdbc.update("insert into parcels (order_id) values (?)", Integer.valueOf(message.body()));
    jdbc.query("select parley.send(?, ?, ?)", row -> {}, message.handle(), "DEFAULT", message.body());
  }
}
