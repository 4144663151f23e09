package io.github.parleybroker;

/** Somebody else has the messages by now, or they were cancelled: what was done with them has to be rolled back. */
public class ClaimLost extends RuntimeException {
  private static final long serialVersionUID = 1;

  public ClaimLost(String message) {
    super(message);
  }
}
