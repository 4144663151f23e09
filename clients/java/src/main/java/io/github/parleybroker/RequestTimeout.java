package io.github.parleybroker;

/** No reply came in time. The target receives an Error message with code 408. */
public class RequestTimeout extends RuntimeException {
  private static final long serialVersionUID = 1;

  public RequestTimeout(String message) {
    super(message);
  }
}
