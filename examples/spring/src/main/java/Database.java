import java.util.List;
import java.util.UUID;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What both programs ask of the database, by Spring's templates. An application has these as beans, over a pool. */
final class Database {
  record Message(UUID handle, String type, String body) {}

  static JdbcTemplate jdbc() {
    return new JdbcTemplate(new DriverManagerDataSource(System.getenv("JDBC_URL")));
  }

  static TransactionTemplate transactions(JdbcTemplate jdbc) {
    return new TransactionTemplate(new JdbcTransactionManager(jdbc.getDataSource()));
  }

  /** Waits five seconds for messages, outside of a transaction: a statement that waits in one keeps dead rows of the server. */
  static void await(JdbcTemplate jdbc, String queue) {
    jdbc.update("call parley.wait_for_message(?, 5000)", queue);
  }

  /** It has to be called in the transaction that handles the messages. */
  static List<Message> receive(JdbcTemplate jdbc, String queue, int top) {
    return jdbc.query(
        "select conversation_handle, message_type_name, parley.body_text(message_body)"
            + " from parley.receive(?, top => ?) order by queuing_order",
        (row, number) -> new Message(row.getObject(1, UUID.class), row.getString(2), row.getString(3)),
        queue,
        top);
  }

  private Database() {}
}
