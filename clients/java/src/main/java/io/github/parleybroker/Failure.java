package io.github.parleybroker;

import java.sql.SQLException;
import org.postgresql.util.PSQLException;

/** The SQLSTATE of a failure, if it has one, and its text as PostgreSQL takes it. */
record Failure(String state, String text) {
  static Failure of(Throwable failure) {
    if (failure == null) {
      return new Failure(null, null);
    }
    SQLException sql = null;
    // Spring and others wrap what the driver throws.
    for (Throwable cause = failure; cause != null && sql == null; cause = cause.getCause()) {
      sql = cause instanceof SQLException found ? found : null;
    }
    String state = sql != null && sql.getSQLState() != null && sql.getSQLState().matches("[0-9A-Z]{5}") ? sql.getSQLState() : null;
    String text = failure.getMessage();
    if (failure instanceof PSQLException refused && refused.getServerErrorMessage() != null) {
      // Its message has the context too.
      text = refused.getServerErrorMessage().getMessage();
    }
    return new Failure(state, (text == null ? failure.getClass().getName() : text).replace('\0', '?'));
  }
}
