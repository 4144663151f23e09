package io.github.parleybroker;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.UnaryOperator;

/** A message that carries the trace context of its sender. */
interface Traced {
  ThreadLocal<String> CARRIED = new ThreadLocal<>();

  String traceContext();

  /** Has what is sent meanwhile carry the trace context of these messages, if they have the same one. */
  static <T> T handling(List<? extends Traced> messages, Callable<T> work) throws Exception {
    String first = messages.get(0).traceContext();
    CARRIED.set(messages.stream().allMatch(message -> java.util.Objects.equals(first, message.traceContext())) ? first : null);
    try {
      return work.call();
    } finally {
      CARRIED.remove();
    }
  }

  /** A message carries what was given, what the tracer says, or what is being handled. */
  static String contextFor(UnaryOperator<String> tracer, String target, String given) {
    return given != null ? given : tracer != null ? tracer.apply(target) : CARRIED.get();
  }
}
