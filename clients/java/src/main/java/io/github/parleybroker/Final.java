package io.github.parleybroker;

/** Thrown by a handler, sets the work aside at once: another attempt would be in vain. */
public class Final extends RuntimeException {
  private static final long serialVersionUID = 1;

  public Final(String message) {
    super(message);
  }
}
