package io.github.parleybroker;

/** Handlers did not finish within the time of grace, and their work is rolled back. */
public class HandlersCutOff extends RuntimeException {
  private static final long serialVersionUID = 1;

  public HandlersCutOff(String message) {
    super(message);
  }
}
