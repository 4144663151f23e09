package io.github.parleybroker;

import java.time.OffsetDateTime;

/** What came of a failure that was reported; both are null when the message is gone or in the hands of others. */
public record Retried(OffsetDateTime retryAt, Boolean isSetAside) {}
