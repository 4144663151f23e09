import java.util.UUID;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.support.TransactionTemplate;

/** The shop takes five orders and waits until the warehouse has packed them. */
public class Shop {
  private final JdbcTemplate jdbc = Database.jdbc();
  private final TransactionTemplate transactions = Database.transactions(jdbc);

  public static void main(String[] arguments) {
    Shop shop = new Shop();
    for (int i = 0; i < 5; i++) {
      shop.place();
    }
    while (shop.jdbc.queryForObject("select exists (select from orders where not is_packed)", Boolean.class)) {
      Database.await(shop.jdbc, "shop_queue");
      shop.transactions.executeWithoutResult(status -> shop.collect());
    }
  }

  /** The order and its message are committed together, or neither is. */
  private void place() {
    transactions.executeWithoutResult(
        status -> {
          UUID handle = jdbc.queryForObject("select parley.begin_dialog('shop', 'warehouse')", UUID.class);
          Integer order =
              jdbc.queryForObject(
                  "insert into orders (conversation_handle) values (?) returning order_id", Integer.class, handle);
          jdbc.query("select parley.send(?, ?, ?)", row -> {}, handle, "DEFAULT", order.toString());
        });
  }

  private void collect() {
    for (Database.Message message : Database.receive(jdbc, "shop_queue", 10)) {
      if (message.type().equals("DEFAULT")) {
        jdbc.update("update orders set is_packed = true where conversation_handle = ?", message.handle());
      }
      jdbc.query("select parley.end_conversation(?)", row -> {}, message.handle());
    }
  }
}
