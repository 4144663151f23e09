package io.github.parleybroker;

/** The handler took longer than its time-out and was rolled back. */
public class HandlerTimeout extends RuntimeException {
  private static final long serialVersionUID = 1;

  public HandlerTimeout(String message) {
    super(message);
  }
}
