package io.github.parleybroker;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.UUID;

/** What came of a message: where it is, or, of a duplicate, where the first one is. */
public record SentMessage(boolean isDuplicate, UUID conversationHandle, Long messageId, Long delayedId) {
  static final String COLUMNS = "is_duplicate, conversation_handle, message_id, delayed_id";

  static SentMessage read(ResultSet row) throws SQLException {
    boolean isDuplicate = row.getBoolean(1);
    return row.wasNull()
        ? null
        : new SentMessage(
            isDuplicate, row.getObject(2, UUID.class), row.getObject(3, Long.class), row.getObject(4, Long.class));
  }
}
