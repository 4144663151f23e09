package io.github.parleybroker;

import java.time.Duration;

/** One call of a handler, for metrics; error is null when it succeeded. */
public record Turn(String queue, int messages, Duration time, Throwable error) {}
