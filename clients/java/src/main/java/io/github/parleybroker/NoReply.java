package io.github.parleybroker;

/** The other side has ended the conversation without a reply. */
public class NoReply extends RuntimeException {
  private static final long serialVersionUID = 1;

  public NoReply(String message) {
    super(message);
  }
}
