package peer;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.impl.DefaultCamelContext;

/**
 * A map in XSLT as a route of Camel, driven by one thread in the same process.
 *
 * Environment: PEER_STYLESHEET and PEER_DOCUMENT are files, PEER_RESULT is where the result of the document is written, PEER_WARM_UP_MS
 * is how long documents are mapped before it writes "ready". For each line with a number on its standard input it maps the document so
 * often and writes the nanoseconds that this took. It ends when its standard input does.
 */
public class Maps {
  public static void main(String[] args) throws Exception {
    var document = Files.readAllBytes(Path.of(System.getenv("PEER_DOCUMENT")));
    try (var camel = new DefaultCamelContext()) {
      camel.addRoutes(new RouteBuilder() {
        @Override
        public void configure() {
          from("direct:map").to("xslt:file:" + System.getenv("PEER_STYLESHEET") + "?output=bytes");
        }
      });
      camel.start();
      try (var route = camel.createProducerTemplate()) {
        Files.write(Path.of(System.getenv("PEER_RESULT")), map(route, document));
        var warm = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Long.parseLong(System.getenv("PEER_WARM_UP_MS")));
        while (System.nanoTime() < warm) {
          map(route, document);
        }
        System.out.println("ready");
        var in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
          var count = Integer.parseInt(line.strip());
          var begun = System.nanoTime();
          for (var i = 0; i < count; i++) {
            map(route, document);
          }
          System.out.println(System.nanoTime() - begun);
        }
      }
    }
    System.exit(0);
  }

  private static byte[] map(ProducerTemplate route, byte[] document) {
    return route.requestBody("direct:map", document, byte[].class);
  }
}
