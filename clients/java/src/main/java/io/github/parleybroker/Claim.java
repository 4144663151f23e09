package io.github.parleybroker;

import java.util.List;
import java.util.UUID;

/** Messages that were claimed for long work, until their lease is over. */
public record Claim(String queue, UUID claim, List<TakenMessage> messages) {}
