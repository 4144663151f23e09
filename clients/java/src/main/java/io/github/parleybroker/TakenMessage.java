package io.github.parleybroker;

import java.nio.charset.StandardCharsets;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;

/** A message of a simple queue; attempt is which one this is, 1 at first. */
public record TakenMessage(
    long messageId, String key, int priority, byte[] body, OffsetDateTime enqueuedAt, String traceContext, int attempt)
    implements Traced {
  static final String COLUMNS = "message_id, key, priority, body, enqueued_at, trace_context, coalesce(attempt, 1) as attempt";

  static TakenMessage read(ResultSet row) throws SQLException {
    return new TakenMessage(
        row.getLong("message_id"), row.getString("key"), row.getInt("priority"), row.getBytes("body"),
        row.getObject("enqueued_at", OffsetDateTime.class), row.getString("trace_context"), row.getInt("attempt"));
  }

  /** The body as text; an empty one when the message has none. */
  public String text() {
    return body == null ? "" : new String(body, StandardCharsets.UTF_8);
  }
}
