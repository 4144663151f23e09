package io.github.parleybroker;

import java.time.Duration;

/** Thrown by a handler, has the work wait for so long, up to 7 days, whatever the retry policy of the queue. */
public class RetryAfter extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final Duration delay;

  public RetryAfter(Duration delay, String reason) {
    super(reason);
    this.delay = delay;
  }

  public Duration delay() {
    return delay;
  }
}
