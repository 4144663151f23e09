package io.github.parleybroker;

import java.nio.charset.StandardCharsets;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.OffsetDateTime;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A message of a conversation, with Service Broker's names. */
public record Message(
    int priority, long queuingOrder, UUID conversationGroupId, UUID conversationHandle, long messageSequenceNumber,
    String serviceName, String serviceContractName, String messageTypeName, byte[] body, OffsetDateTime messageEnqueueTime,
    String traceContext)
    implements Traced {
  static final String COLUMNS =
      "priority, queuing_order, conversation_group_id, conversation_handle, message_sequence_number, service_name,"
          + " service_contract_name, message_type_name, message_body, message_enqueue_time, trace_context";
  private static final String SYSTEM = "http://schemas.microsoft.com/SQL/ServiceBroker/";
  private static final Pattern CODE = Pattern.compile("<Code>\\s*(-?\\d+)\\s*</Code>");
  private static final Pattern DESCRIPTION = Pattern.compile("<Description>(.*?)</Description>", Pattern.DOTALL);

  static Message read(ResultSet row) throws SQLException {
    return new Message(
        row.getInt(1), row.getLong(2), row.getObject(3, UUID.class), row.getObject(4, UUID.class), row.getLong(5), row.getString(6),
        row.getString(7), row.getString(8), row.getBytes(9), row.getObject(10, OffsetDateTime.class), row.getString(11));
  }

  /** The body as text; an empty one when the message has none. */
  public String text() {
    return body == null ? "" : new String(body, StandardCharsets.UTF_8);
  }

  public boolean isEndDialog() {
    return messageTypeName.equals(SYSTEM + "EndDialog");
  }

  public boolean isError() {
    return messageTypeName.equals(SYSTEM + "Error");
  }

  public boolean isDialogTimer() {
    return messageTypeName.equals(SYSTEM + "DialogTimer");
  }

  /** Reads the body of an Error message: XML in UTF-16 with a byte-order mark, or in UTF-8. */
  public ConversationError error() {
    byte[] bytes = body == null ? new byte[0] : body;
    boolean isWide = bytes.length > 1 && (bytes[0] == -1 && bytes[1] == -2 || bytes[0] == -2 && bytes[1] == -1);
    String text = new String(bytes, isWide ? StandardCharsets.UTF_16 : StandardCharsets.UTF_8);
    Matcher code = CODE.matcher(text);
    Matcher description = DESCRIPTION.matcher(text);
    if (!code.find()) {
      throw new IllegalStateException("the body of an Error message has no code");
    }
    String found = description.find() ? description.group(1) : "";
    return new ConversationError(
        Integer.parseInt(code.group(1)),
        found.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&"));
  }
}
