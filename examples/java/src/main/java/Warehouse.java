import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.postgresql.util.PSQLException;

/** The warehouse packs each order that the shop sends. It may be stopped, or killed, at any time. */
public class Warehouse {
  private static final String SYSTEM = "http://schemas.microsoft.com/SQL/ServiceBroker/";

  record Message(UUID handle, String type, String body) {}

  public static void main(String[] arguments) throws InterruptedException {
    while (true) {
      try (Connection connection = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
        connection.setAutoCommit(false);
        System.out.println("reading");
        for (int top = 10; ; ) {
          top = receive(connection, top);
        }
      } catch (SQLException failure) {
        System.err.println("the database is away: " + failure.getMessage());
        Thread.sleep(1000);
      }
    }
  }

  /** Receives and handles in one transaction: what fails, or is killed, is received again. Gives how many to take next. */
  private static int receive(Connection connection, int top) throws SQLException {
    UUID current = null;
    try {
      List<Message> messages = messages(connection, top);
      for (Message message : messages) {
        current = message.handle();
        handle(connection, message);
      }
      connection.commit();
      if (messages.isEmpty()) {
        current = null;
        await(connection, "warehouse_queue");
      }
      return 10;
    } catch (SQLException | RuntimeException failure) {
      connection.rollback();
      if (current == null) {
        throw failure;
      }
      String state = failure instanceof SQLException e ? e.getSQLState() : null;
      String text = failure.getMessage();
      if (failure instanceof PSQLException refusal && refusal.getServerErrorMessage() != null) {
        // getMessage has the detail, the hint and the context too.
        text = refusal.getServerErrorMessage().getMessage();
      }
      System.err.println(current + ": " + text + " (" + state + ")");
      // In a transaction of its own: a message that keeps failing is set aside, and this says why.
      call(connection, "select parley.record_failure(?, ?, ?)", current, state, text);
      connection.commit();
      // One at a time: what stands in front of it is done, and it alone fails the next time.
      return 1;
    }
  }

  /** Waits outside of a transaction: a statement that waits in one keeps dead rows of the server from being removed. */
  static void await(Connection connection, String queue) throws SQLException {
    connection.setAutoCommit(true);
    try {
      call(connection, "call parley.wait_for_message(?, 5000)", queue);
    } finally {
      connection.setAutoCommit(false);
    }
  }

  private static List<Message> messages(Connection connection, int top) throws SQLException {
    List<Message> messages = new ArrayList<>();
    String receive =
        "select conversation_handle, message_type_name, parley.body_text(message_body)"
            + " from parley.receive('warehouse_queue', top => ?) order by queuing_order";
    try (PreparedStatement statement = connection.prepareStatement(receive)) {
      statement.setInt(1, top);
      ResultSet rows = statement.executeQuery();
      while (rows.next()) {
        messages.add(new Message(rows.getObject(1, UUID.class), rows.getString(2), rows.getString(3)));
      }
    }
    return messages;
  }

  private static void handle(Connection connection, Message message) throws SQLException {
    if (message.type().equals(SYSTEM + "EndDialog") || message.type().equals(SYSTEM + "Error")) {
      call(connection, "select parley.end_conversation(?)", message.handle());
      return;
    }
    call(connection, "insert into parcels (order_id) values (?)", Integer.valueOf(message.body()));
    call(connection, "select parley.send(?, ?, ?)", message.handle(), "DEFAULT", message.body());
  }

  /** Calls execute: executeUpdate refuses a SELECT, also one that gives nothing. */
  static void call(Connection connection, String statement, Object... parameters) throws SQLException {
    try (PreparedStatement prepared = connection.prepareStatement(statement)) {
      for (int i = 0; i < parameters.length; i++) {
        prepared.setObject(i + 1, parameters[i]);
      }
      prepared.execute();
    }
  }
}
