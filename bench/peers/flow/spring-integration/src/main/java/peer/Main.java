package peer;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.io.ClassPathResource;
import org.springframework.integration.channel.QueueChannel;
import org.springframework.integration.config.EnableIntegration;
import org.springframework.integration.dsl.IntegrationFlow;
import org.springframework.integration.dsl.Pollers;
import org.springframework.integration.ip.dsl.Tcp;
import org.springframework.integration.ip.tcp.serializer.ByteArrayLengthHeaderSerializer;
import org.springframework.integration.jdbc.store.JdbcChannelMessageStore;
import org.springframework.integration.jdbc.store.channel.PostgresChannelMessageStoreQueryProvider;
import org.springframework.integration.store.MessageGroupQueue;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.jdbc.datasource.init.ResourceDatabasePopulator;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;

/**
 * One hop through Spring Integration: a TCP gateway that answers when a message is in a JDBC channel of PostgreSQL, and pollers
 * that take messages out of it, each in a transaction with its acknowledged delivery by TCP.
 *
 * Environment: PEER_LISTEN and PEER_TARGET are host:port, PEER_JDBC, PEER_USER and PEER_PASSWORD the database, PEER_WORKERS the
 * number of pollers. It writes "ready" when it listens, and ends when its standard input does.
 */
@Configuration
@EnableIntegration
@EnableTransactionManagement
public class Main {
  static final String GROUP = "hop";

  static String[] address(String name) {
    return System.getenv(name).split(":");
  }

  static int workers() {
    return Integer.parseInt(System.getenv().getOrDefault("PEER_WORKERS", "8"));
  }

  @Bean(destroyMethod = "close")
  HikariDataSource dataSource() {
    var config = new HikariConfig();
    config.setJdbcUrl(System.getenv("PEER_JDBC"));
    config.setUsername(System.getenv("PEER_USER"));
    config.setPassword(System.getenv().getOrDefault("PEER_PASSWORD", ""));
    config.setMaximumPoolSize(workers() * 2 + 2);
    return new HikariDataSource(config);
  }

  @Bean
  PlatformTransactionManager transactionManager(DataSource dataSource) {
    return new DataSourceTransactionManager(dataSource);
  }

  @Bean
  JdbcChannelMessageStore store(DataSource dataSource) {
    new ResourceDatabasePopulator(new ClassPathResource("org/springframework/integration/jdbc/schema-postgresql.sql"))
        .execute(dataSource);
    var store = new JdbcChannelMessageStore(dataSource);
    store.setChannelMessageStoreQueryProvider(new PostgresChannelMessageStoreQueryProvider());
    return store;
  }

  @Bean
  QueueChannel hop(JdbcChannelMessageStore store) {
    return new QueueChannel(new MessageGroupQueue(store, GROUP));
  }

  static ByteArrayLengthHeaderSerializer frames() {
    var frames = new ByteArrayLengthHeaderSerializer();
    frames.setMaxMessageSize(1 << 20);
    return frames;
  }

  @Bean
  IntegrationFlow in(QueueChannel hop) {
    var at = address("PEER_LISTEN");
    var server = Tcp.netServer(Integer.parseInt(at[1])).localAddress(at[0]).backlog(1024).serializer(frames()).deserializer(frames());
    return IntegrationFlow.from(Tcp.inboundGateway(server))
        .handle(byte[].class, (body, headers) -> {
          hop.send(org.springframework.messaging.support.MessageBuilder.withPayload(body).build());
          return new byte[] {'+'};
        })
        .get();
  }

  @Bean
  IntegrationFlow out(QueueChannel hop) {
    var at = address("PEER_TARGET");
    // A poll that finds no thread is left out: the trigger comes again a millisecond later.
    var pool = new ThreadPoolExecutor(
        workers(), workers(), 0, TimeUnit.SECONDS, new SynchronousQueue<>(), new ThreadPoolExecutor.DiscardPolicy());
    var client = Tcp.netClient(at[0], Integer.parseInt(at[1])).serializer(frames()).deserializer(frames()).singleUseConnections(false);
    var cached = new org.springframework.integration.ip.tcp.connection.CachingClientConnectionFactory(client.getObject(), workers());
    return IntegrationFlow.from(hop)
        .handle(Tcp.outboundGateway(cached).remoteTimeout(30_000L),
            e -> e.poller(Pollers.fixedDelay(1).taskExecutor(pool).maxMessagesPerPoll(100).receiveTimeout(0).transactional()))
        .handle(byte[].class, (answer, headers) -> null)
        .get();
  }

  public static void main(String[] args) throws Exception {
    try (var context = new AnnotationConfigApplicationContext(Main.class)) {
      System.out.println("ready");
      while (System.in.read() >= 0) {}
    }
    System.exit(0);
  }
}
