package io.github.parleybroker;

import java.sql.SQLException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

/** An error of the broker: the message has the fact, the detail and the remedy; the SQLSTATE of class SB is its number. */
public class ParleyException extends SQLException {
  private static final long serialVersionUID = 1;
  private final int number;
  private final String detail;
  private final String hint;

  ParleyException(int number, String fact, String detail, String hint, SQLException cause) {
    super(
        Stream.of(fact + " (error " + number + ").", detail, hint).filter(part -> part != null).collect(Collectors.joining(" ")),
        cause.getSQLState(), number, cause);
    this.number = number;
    this.detail = detail;
    this.hint = hint;
  }

  /** Service Broker's number. */
  public int number() {
    return number;
  }

  public String detail() {
    return detail;
  }

  public String hint() {
    return hint;
  }

  /** Gives the exception for an error of the server; one that is not the broker's stays as it is. */
  public static SQLException translate(SQLException failure) {
    String state = failure.getSQLState();
    if (failure instanceof ParleyException || state == null || !(failure instanceof PSQLException refused)) {
      return failure;
    }
    ServerErrorMessage server = refused.getServerErrorMessage();
    String fact = server == null ? failure.getMessage() : server.getMessage();
    if (state.equals("3F000") && fact.contains("\"parley\"")) {
      String hint = "Connect to the database of the broker, or install one: parley install.";
      return new NoBroker(8442, "there is no broker in this database", fact, hint, failure);
    }
    if (!state.matches("SB[0-9A-Z]{3}")) {
      return failure;
    }
    int number = Integer.parseInt(state.substring(2), 36);
    String detail = server == null ? null : server.getDetail();
    String hint = server == null ? null : server.getHint();
    return switch (number) {
      case 8426 -> new ConversationNotFound(number, fact, detail, hint, failure);
      case 8427 -> new EndNotAllowed(number, fact, detail, hint, failure);
      case 8429 -> new SendNotAllowed(number, fact, detail, hint, failure);
      case 8436 -> new ConversationGroupNotFound(number, fact, detail, hint, failure);
      case 8458 -> new TimerNotAllowed(number, fact, detail, hint, failure);
      case 8459 -> new MessageTooLarge(number, fact, detail, hint, failure);
      case 9617 -> new QueueDisabled(number, fact, detail, hint, failure);
      case 10928 -> new QueueFull(number, fact, detail, hint, failure);
      case 229 -> new PermissionDenied(number, fact, detail, hint, failure);
      case 208 -> new QueueNotFound(number, fact, detail, hint, failure);
      case 8402 -> new WrongArgument(number, fact, detail, hint, failure);
      case 3716 -> new StillUsed(number, fact, detail, hint, failure);
      default -> new ParleyException(number, fact, detail, hint, failure);
    };
  }

  /** The handle is unknown, or its conversation has ended. */
  public static class ConversationNotFound extends ParleyException {
    private static final long serialVersionUID = 1;

    ConversationNotFound(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** This side has ended already. */
  public static class EndNotAllowed extends ParleyException {
    private static final long serialVersionUID = 1;

    EndNotAllowed(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** The state of this side allows no send. */
  public static class SendNotAllowed extends ParleyException {
    private static final long serialVersionUID = 1;

    SendNotAllowed(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** There is no such conversation group. */
  public static class ConversationGroupNotFound extends ParleyException {
    private static final long serialVersionUID = 1;

    ConversationGroupNotFound(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** The state of this side allows no timer. */
  public static class TimerNotAllowed extends ParleyException {
    private static final long serialVersionUID = 1;

    TimerNotAllowed(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** The body is longer than the broker takes. */
  public static class MessageTooLarge extends ParleyException {
    private static final long serialVersionUID = 1;

    MessageTooLarge(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** Nobody has installed the schema parley in this database. */
  public static class NoBroker extends ParleyException {
    private static final long serialVersionUID = 1;

    NoBroker(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** The queue is disabled. */
  public static class QueueDisabled extends ParleyException {
    private static final long serialVersionUID = 1;

    QueueDisabled(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** The quota of the queue is used up. */
  public static class QueueFull extends ParleyException {
    private static final long serialVersionUID = 1;

    QueueFull(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** The role may not do this. */
  public static class PermissionDenied extends ParleyException {
    private static final long serialVersionUID = 1;

    PermissionDenied(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** There is no such queue. */
  public static class QueueNotFound extends ParleyException {
    private static final long serialVersionUID = 1;

    QueueNotFound(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** An argument that cannot be, or a queue of the other kind. */
  public static class WrongArgument extends ParleyException {
    private static final long serialVersionUID = 1;

    WrongArgument(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }

  /** Somebody uses it, or a queue holds messages. */
  public static class StillUsed extends ParleyException {
    private static final long serialVersionUID = 1;

    StillUsed(int number, String fact, String detail, String hint, SQLException cause) {
      super(number, fact, detail, hint, cause);
    }
  }
}
