package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// constants are sentences of the documentation about figures that stand in the code, each with the line that states the same.
var constants = []struct{ page, sentence, file, line string }{
	{"guides/daemon", "lets readers finish for `--grace-time` (10 seconds)", "internal/daemon/verbs/serve.go", `"grace-time", 10*time.Second`},
	{"guides/daemon", "when it dies or hangs, after five seconds", "internal/daemon/term.go", "lease = 5 * time.Second"},
	{"guides/daemon", "after 100 milliseconds, twice as long each time, and 30 seconds at most", "internal/backoff/backoff.go", "Reader = Policy{First: 100 * time.Millisecond, Longest: 30 * time.Second}"},
	{"guides/daemon", "twice as long each time, and 30 seconds at most", "internal/backoff/backoff.go", "Reader = Policy{First: 100 * time.Millisecond, Longest: 30 * time.Second}"},
	{"guides/daemon", "when it changes, and each 30 seconds", "internal/broker/activation/failure.go", "logInterval = 30 * time.Second"},
	{"guides/daemon", "a poll every five seconds, all queues in one statement", "internal/notifier/demand.go", "SafetyInterval = 5 * time.Second"},
	{"guides/activation", "8 KiB of a line, 200 lines a second of each stream", "internal/broker/activation/program/line_log.go", "lineBytesMax = 8 << 10"},
	{"guides/activation", "8 KiB of a line, 200 lines a second of each stream", "internal/broker/activation/program/line_log.go", "linesPerSecondMax = 200"},
	{"guides/activation", "until they are received, or 30 seconds are over", "internal/broker/activation/event/event.go", "defaultTimeout = 30 * time.Second"},
	{"guides/dialogs", "A daemon uses up to 4 connections to a database to take messages out", "internal/broker/transport/transmitter/config.go", "defaultConnections = 4"},
	{"guides/dialogs", "up to 8 to bring them in", "internal/broker/transport/inbox/inbox.go", "defaultConnections = 8"},
	{"guides/dialogs", "closes them after a minute without work", "internal/broker/transport/durable/pool.go", "idleTime = time.Minute"},
	{"guides/dialogs", "holds some 4 MB in memory at most", "internal/broker/transport/transmitter/worker.go", "windowBytes = 4 << 20"},
	{"guides/dialogs", "a poll every five seconds, for all destinations together", "internal/notifier/demand.go", "SafetyInterval = 5 * time.Second"},
	{"guides/dialogs", "A body of more than 256 KiB travels in parts", "sql/parley/transport/take_runs.sql", "octet_length(t.body) > 262144"},
	{"guides/dialogs", "travels in parts of 1 MiB", "internal/broker/transport/transmitter/deliver.go", "fragmentBytes = 1 << 20"},
	{"guides/dialog-security", "certificates that expire within 30 days", "internal/broker/dialogsecurity/complaints.go", "expiryNotice = 30 * 24 * time.Hour"},
	{"reference/protocol", "nothing came or could be sent for 15 seconds", "internal/broker/transport/link/config.go", "setDefault(&c.DeadAfter, 15*time.Second)"},
	{"reference/protocol", "pings every 5 seconds (HTTP/2), the dialling end every 10", "internal/broker/transport/link/server.go", "config.DeadAfter / 3,"},
	{"reference/protocol", "pings every 5 seconds (HTTP/2), the dialling end every 10", "internal/broker/transport/link/dial.go", "pingLeast = 10 * time.Second"},
	{"reference/protocol", "a question is open for two minutes", "internal/broker/transport/link/dial.go", "2 * config.DeliverTimeout"},
	{"reference/protocol", "a question is open for two minutes", "internal/broker/transport/link/config.go", "setDefault(&c.DeliverTimeout, time.Minute)"},
	{"reference/protocol", "nobody uses the connection for 90 seconds", "internal/broker/transport/link/config.go", "setDefault(&c.IdleAfter, 90*time.Second)"},
	{"reference/protocol", "Parley gives 8 MiB to a peer", "internal/broker/transport/link/config.go", "setDefault(&c.Window, 8<<20)"},
	{"reference/protocol", "many share its 256 MiB", "internal/broker/transport/link/config.go", "setDefault(&c.Memory, 256<<20)"},
	{"reference/protocol", "names in its table | 4,096; 65,536; 16,384", "internal/broker/transport/wire/limits.go", "MaxRuns         = 4096 "},
	{"reference/protocol", "names in its table | 4,096; 65,536; 16,384", "internal/broker/transport/wire/limits.go", "MaxMessages     = 65536 "},
	{"reference/protocol", "names in its table | 4,096; 65,536; 16,384", "internal/broker/transport/wire/limits.go", "MaxNames        = 16384 "},
	{"reference/protocol", "| service, contract, message type | 256 characters", "internal/broker/transport/wire/limits.go", "MaxName         = 256 "},
	{"reference/protocol", "| description, text of a failure | 3,000 characters", "internal/broker/transport/wire/limits.go", "MaxText         = 3000 "},
	{"reference/protocol", "| trace context | 1,024 bytes", "internal/broker/transport/wire/limits.go", "MaxTraceContext = 1024 "},
	{"reference/protocol", "| security header | 512 bytes", "internal/store/transport/transmission.go", "SecurityMax = 512"},
	{"reference/protocol", "| payload of `HELLO`, of an answer | 1 MiB; 4 MiB", "internal/broker/transport/wire/limits.go", "LargestHello = 1 << 20"},
	{"reference/protocol", "| payload of `HELLO`, of an answer | 1 MiB; 4 MiB", "internal/broker/transport/wire/limits.go", "LargestAnswer = 4 << 20"},
	{"reference/protocol", "| brokers, features in a `HELLO` | 10,000; 64", "internal/broker/transport/wire/limits.go", "MaxBrokers      = 10000 "},
	{"reference/protocol", "| brokers, features in a `HELLO` | 10,000; 64", "internal/broker/transport/wire/limits.go", "MaxFeatures     = 64"},
	{"reference/protocol", "| hops, time to live | 255;", "internal/broker/transport/wire/limits.go", "MaxHops         = 255"},
}

// A figure that is changed in the code is to be changed on the page, too.
func TestFiguresOfTheDocumentationAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	for _, c := range constants {
		if !strings.Contains(words(page(t, c.page)), words(c.sentence)) {
			t.Errorf("docs/%s.md no longer says %q", c.page, c.sentence)
		}
		source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(c.file)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source), c.line) {
			t.Errorf("docs/%s.md says %q, but %s has no %q", c.page, c.sentence, c.file, c.line)
		}
	}
}
