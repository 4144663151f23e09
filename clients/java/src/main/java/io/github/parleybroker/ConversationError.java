package io.github.parleybroker;

/** The conversation ended with an error: the code of the far side, or the negative of a number of the broker. */
public class ConversationError extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final int code;
  private final String description;

  public ConversationError(int code, String description) {
    super("the conversation ended with error " + code + ": " + description);
    this.code = code;
    this.description = description;
  }

  public int code() {
    return code;
  }

  public String description() {
    return description;
  }
}
