import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.UUID;

/** The shop takes five orders and waits until the warehouse has packed them. */
public class Shop {
  public static void main(String[] arguments) throws SQLException {
    try (Connection connection = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
      connection.setAutoCommit(false);
      for (int i = 0; i < 5; i++) {
        place(connection);
      }
      while (value(connection, "select exists (select from orders where not is_packed)", Boolean.class)) {
        collect(connection);
      }
    }
  }

  /** The order and its message are committed together, or neither is. */
  private static void place(Connection connection) throws SQLException {
    UUID handle = value(connection, "select parley.begin_dialog('shop', 'warehouse')", UUID.class);
    Integer order =
        value(connection, "insert into orders (conversation_handle) values (?) returning order_id", Integer.class, handle);
    call(connection, "select parley.send(?, ?, ?)", handle, "DEFAULT", order.toString());
    connection.commit();
  }

  private static void collect(Connection connection) throws SQLException {
    connection.commit();
    await(connection, "shop_queue");
    try (PreparedStatement statement =
            connection.prepareStatement("select * from parley.receive('shop_queue')");
        ResultSet messages = statement.executeQuery()) {
      while (messages.next()) {
        UUID handle = messages.getObject("conversation_handle", UUID.class);
        if (messages.getString("message_type_name").equals("DEFAULT")) {
          call(connection, "update orders set is_packed = true where conversation_handle = ?", handle);
        }
        call(connection, "select parley.end_conversation(?)", handle);
      }
    }
    connection.commit();
  }

  static <T> T value(Connection connection, String statement, Class<T> type, Object... parameters)
      throws SQLException {
    try (PreparedStatement prepared = connection.prepareStatement(statement)) {
      for (int i = 0; i < parameters.length; i++) {
        prepared.setObject(i + 1, parameters[i]);
      }
      try (ResultSet rows = prepared.executeQuery()) {
        rows.next();
        return rows.getObject(1, type);
      }
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
