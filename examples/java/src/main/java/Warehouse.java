import io.github.parleybroker.Consumer;
import io.github.parleybroker.Message;
import io.github.parleybroker.Parley;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import org.postgresql.ds.PGSimpleDataSource;

/** The warehouse packs each order that the shop sends. It may be stopped, or killed, at any time. */
public class Warehouse {
  public static void main(String[] arguments) {
    PGSimpleDataSource database = new PGSimpleDataSource();
    database.setUrl(System.getenv("JDBC_URL"));
    new Consumer(database, "warehouse_queue", Warehouse::pack).top(10).run();
  }

  private static void pack(Connection connection, List<Message> orders) throws SQLException {
    for (Message order : orders) {
      Shop.call(connection, "insert into parcels (order_id) values (?)", Integer.valueOf(order.text()));
      Parley.send(connection, order.conversationHandle(), order.text());
    }
  }
}
