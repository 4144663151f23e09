import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.UUID;

/** Sends one body of each kind: which call takes which value. */
public class Bodies {
  public static void main(String[] arguments) throws SQLException {
    try (Connection connection = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
      connection.setAutoCommit(false);
      UUID handle = Shop.value(connection, "select parley.begin_dialog('shop', 'warehouse')", UUID.class);
      send(connection, "send", handle, "chair");
      send(connection, "send", handle, new byte[] {0x00, (byte) 0xff});
      // The driver gives a String the type text, so that JSON needs a cast.
      Shop.call(connection, "select parley.send(?, ?, ?::jsonb)", handle, "DEFAULT", "{\"seats\": [1, 2]}");
      Shop.call(connection, "select parley.send(?, ?, ?::jsonb)", handle, "DEFAULT", "[1, 2]");
      send(connection, "send_batch", handle, connection.createArrayOf("text", new String[] {"a", "b"}));
      send(connection, "send_batch_binary", handle, connection.createArrayOf("bytea", new byte[][] {{0x00}, {(byte) 0xff}}));
      send(connection, "send_batch", handle, connection.createArrayOf("text", new String[] {"{\"a\": 1}", "[2]"}));
      connection.commit();
    }
  }

  private static void send(Connection connection, String call, UUID handle, Object body) throws SQLException {
    Shop.call(connection, "select parley." + call + "(?, ?, ?)", handle, "DEFAULT", body);
  }
}
