package io.github.parleybroker;

import java.time.Duration;
import java.time.OffsetDateTime;

/** What may be left out of a call; each call takes the options that have a meaning for it. */
public final class Options {
  static final Options NONE = new Options();
  String key;
  int priority = 5;
  OffsetDateTime deliverAt;
  String traceContext;
  String deduplicationKey;
  String messageType = "DEFAULT";
  String contract = "DEFAULT";
  boolean encryption = true;
  Integer lifetime;

  public Options key(String value) {
    key = value;
    return this;
  }

  public Options priority(int value) {
    priority = value;
    return this;
  }

  public Options deliverAt(OffsetDateTime value) {
    deliverAt = value;
    return this;
  }

  public Options traceContext(String value) {
    traceContext = value;
    return this;
  }

  public Options deduplicationKey(String value) {
    deduplicationKey = value;
    return this;
  }

  public Options messageType(String value) {
    messageType = value;
    return this;
  }

  public Options contract(String value) {
    contract = value;
    return this;
  }

  public Options encryption(boolean value) {
    encryption = value;
    return this;
  }

  /** For how long a dialog lives, in whole seconds. */
  public Options lifetime(Duration value) {
    lifetime = Math.toIntExact(value.plusNanos(999_999_999).toSeconds());
    return this;
  }
}
