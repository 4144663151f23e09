//go:build unix

package receive_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkReceive receives messages of 25 KB over one connection, with nothing behind the server. Its figure is the processor time of the
// process, the client's share included.
func BenchmarkReceive(b *testing.B) {
	connector := internet()
	connector.Limits.MessagesPerMinute, connector.Limits.ConnectionTimeout = 0, time.Hour
	f := start(b, nil, connector)
	c := f.greeted()
	data := "Subject: x\r\nFrom: a@example.net\r\n\r\n" + strings.Repeat(strings.Repeat("x", 74)+"\r\n", 25_000/76) + ".\r\n"
	b.SetBytes(int64(len(data)))
	began := processorTime(b)
	for b.Loop() {
		c.send("MAIL FROM:<ann@example.net>\r\nRCPT TO:<bob@example.com>\r\nDATA\r\n")
		for _, begin := range []string{"250", "250", "354"} {
			c.expect(begin)
		}
		c.send(data)
		c.expect("250 2.6.0")
	}
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N)/1e3, "cpu-us/message")
	if got := len(f.store.all()); got < b.N {
		b.Errorf("%d messages were taken", got)
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
