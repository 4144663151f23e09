package io.github.parleybroker;

/** A worker cannot work with this database: its schema does not fit, or the broker is elsewhere. */
public class BrokerUnusable extends RuntimeException {
  private static final long serialVersionUID = 1;

  public BrokerUnusable(String message) {
    super(message);
  }
}
