package peer;

import io.netty.channel.ChannelHandler;
import io.netty.handler.codec.LengthFieldPrepender;
import io.netty.handler.codec.bytes.ByteArrayDecoder;
import io.netty.handler.codec.bytes.ByteArrayEncoder;
import java.nio.file.Path;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.jms.JmsComponent;
import org.apache.camel.component.netty.ChannelHandlerFactories;
import org.apache.camel.component.netty.ChannelHandlerFactory;
import org.apache.camel.component.netty.DefaultChannelHandlerFactory;
import org.apache.camel.impl.DefaultCamelContext;
import org.springframework.jms.connection.CachingConnectionFactory;

/**
 * One hop through Camel: a route that answers by TCP when Artemis has a message in its journal, and one that takes messages out,
 * each in a session with its acknowledged delivery by TCP. Artemis runs in the same process, with a journal that is synchronized
 * for each persistent message.
 *
 * Environment: PEER_LISTEN and PEER_TARGET are host:port, PEER_DIRECTORY is where the journal lies, PEER_WORKERS the number of
 * consumers. It writes "ready" when it listens, and ends when its standard input does.
 */
public class Main {
  private static final int LONGEST = 1 << 20;

  static ChannelHandlerFactory lengthDecoder() {
    return ChannelHandlerFactories.newLengthFieldBasedFrameDecoder(LONGEST, 0, 4, 0, 4);
  }

  /** A handler of netty that every channel gets anew. */
  static DefaultChannelHandlerFactory each(java.util.function.Supplier<ChannelHandler> make) {
    return new DefaultChannelHandlerFactory() {
      @Override
      public ChannelHandler newChannelHandler() {
        return make.get();
      }
    };
  }

  public static void main(String[] args) throws Exception {
    var directory = Path.of(System.getenv("PEER_DIRECTORY"));
    var workers = Integer.parseInt(System.getenv().getOrDefault("PEER_WORKERS", "8"));
    var configuration = new ConfigurationImpl()
        .setPersistenceEnabled(true)
        .setSecurityEnabled(false)
        .setJournalType(JournalType.NIO)
        .setJournalDirectory(directory.resolve("journal").toString())
        .setBindingsDirectory(directory.resolve("bindings").toString())
        .setLargeMessagesDirectory(directory.resolve("large").toString())
        .setPagingDirectory(directory.resolve("paging").toString())
        .addAcceptorConfiguration("inside", "vm://0");
    var broker = new EmbeddedActiveMQ().setConfiguration(configuration);
    broker.start();
    var connections = new ActiveMQConnectionFactory("vm://0");
    connections.setBlockOnDurableSend(true);
    var cached = new CachingConnectionFactory(connections);
    cached.setSessionCacheSize(workers * 4 + 200);

    try (var camel = new DefaultCamelContext()) {
      camel.addComponent("jms", JmsComponent.jmsComponentAutoAcknowledge(cached));
      camel.getRegistry().bind("lengths", lengthDecoder());
      camel.getRegistry().bind("prepend", each(() -> new LengthFieldPrepender(4)));
      camel.getRegistry().bind("toBytes", each(ByteArrayDecoder::new));
      camel.getRegistry().bind("fromBytes", each(ByteArrayEncoder::new));
      var frames = "&decoders=#lengths,#toBytes&encoders=#prepend,#fromBytes";
      camel.addRoutes(new RouteBuilder() {
        @Override
        public void configure() {
          from("netty:tcp://" + System.getenv("PEER_LISTEN") + "?sync=true&usingExecutorService=true" + frames)
              .to(org.apache.camel.ExchangePattern.InOnly, "jms:queue:hop?deliveryPersistent=true&jmsMessageType=Bytes")
              .setBody(constant(new byte[] {'+'}));
          from("jms:queue:hop?transacted=true&cacheLevelName=CACHE_CONSUMER&concurrentConsumers=" + workers)
              .to("netty:tcp://" + System.getenv("PEER_TARGET")
                  + "?sync=true&requestTimeout=30000&producerPoolMaxTotal=" + workers + frames);
        }
      });
      camel.getShutdownStrategy().setTimeout(2);
      camel.start();
      System.out.println("ready");
      while (System.in.read() >= 0) {}
      camel.stop();
    } finally {
      broker.stop();
    }
    System.exit(0);
  }
}
