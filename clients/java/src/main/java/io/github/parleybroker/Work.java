package io.github.parleybroker;

import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;

/** Claimed messages in the hands of a handler. */
public final class Work {
  /** Writes results in the transaction of the connection. */
  public interface Results {
    void write(Connection connection) throws Exception;
  }

  /** Gives a connection that is in no transaction. */
  interface Connections {
    Connection get() throws SQLException;
  }

  private final Claim claim;
  private final Connections connections;
  private volatile String progress;
  private volatile boolean isLost;
  private volatile boolean isComplete;

  Work(Claim claim, Connections connections) {
    this.claim = claim;
    this.connections = connections;
  }

  public List<TakenMessage> messages() {
    return claim.messages();
  }

  /** Whether others have the messages by now, or they were cancelled: then break off. */
  public boolean isLost() {
    return isLost;
  }

  public boolean isComplete() {
    return isComplete;
  }

  /** Shows those who wait how far the work is, as JSON. Throws ClaimLost when it has to break off. */
  public void progress(String json) {
    require();
    progress = json;
  }

  /** Throws ClaimLost when the work has to break off. */
  public void require() {
    if (isLost) {
      throw new ClaimLost("claim " + claim.claim() + " of queue " + claim.queue() + " was lost or cancelled: break off");
    }
  }

  public void transaction(Results results) throws Exception {
    transaction(results, null);
  }

  /** A transaction for the results, at whose end the messages are taken; result is JSON. Throws ClaimLost, and rolls back. */
  public void transaction(Results results, String result) throws Exception {
    Connection connection = connections.get();
    Worker.transaction(connection, () -> {
      results.write(connection);
      if (!Parley.complete(connection, claim, result)) {
        isLost = true;
        require();
      }
      return null;
    });
    isComplete = true;
  }

  void beat(Connection connection, Duration lease) throws SQLException {
    if (!Parley.renew(connection, claim, lease, progress) && !isComplete) {
      isLost = true;
    }
  }
}
