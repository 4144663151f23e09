package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// screen shows what a terminal shows after some output: lines of text, in which the cursor goes up and clears.
func screen(t *testing.T, output string) []string {
	t.Helper()
	lines := []string{""}
	for len(output) > 0 {
		switch {
		case strings.HasPrefix(output, "\x1b["):
			end := strings.IndexAny(output, "AJ")
			if output[end] == 'A' {
				up := 0
				for _, digit := range output[2:end] {
					up = up*10 + int(digit-'0')
				}
				lines = lines[:len(lines)-up]
			} else {
				lines[len(lines)-1] = ""
			}
			output = output[end+1:]
		case output[0] == '\n':
			lines = append(lines, "")
			output = output[1:]
		case output[0] == '\r':
			output = output[1:]
		default:
			lines[len(lines)-1] += output[:1]
			output = output[1:]
		}
	}
	return lines
}

func TestTerminalDrawsOverItselfAndKeepsNotices(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := Show(&out, true)
	o.Notice("ready")
	o.Progress(Progress{Phase: 0, Elapsed: time.Second, Duration: 8 * time.Second, Sent: 2000, Received: 1900, ReceivedPerSecond: 1900})
	o.Progress(Progress{Phase: 1, Elapsed: 3 * time.Second, Duration: 8 * time.Second, Sent: 12345, Received: 12300, ReceivedPerSecond: 950})
	o.Notice("killed")
	o.Progress(Progress{Phase: 1, Elapsed: 4 * time.Second, Duration: 8 * time.Second, Sent: 13456, Received: 13400, ReceivedPerSecond: 1000})
	want := []string{
		"ready",
		"killed",
		"  100 B  ██████████████████████████████  1,900/s received at best",
		"   1 KB  ████████████████··············  1,000/s received now",
		"   4 KB  ······························  ",
		"   8 KB  ······························  ",
		"  13,456 sent, 13,400 received, 56 under way; 4 of about 8 s",
		"",
	}
	if got := screen(t, out.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the terminal shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLinesHaveNoControlCharacters(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := Show(&out, false)
	o.Notice("ready")
	o.Progress(Progress{PayloadBytes: 4096, Elapsed: time.Second, Sent: 2000, Received: 1900, SentPerSecond: 1999.6, ReceivedPerSecond: 1900})
	want := "ready\n  1.0 s   4 KB  2,000 sent, 1,900 received  (2,000/s, 1,900/s)\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 12345: "12,345", 123456: "123,456", 1234567: "1,234,567", -5: "-5", -1234: "-1,234", -123456: "-123,456"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is written %q, want %q", n, got, want)
		}
	}
}

func TestVerdictNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	bad := Result{
		Findings:      Findings{Lost: 1, Duplicated: 2, OutOfOrder: 3, Corrupted: 4, NeverSent: 5},
		ReadersKilled: 0,
		LeftBehind:    Leftovers{Conversations: 6, ConversationGroups: 7, Messages: 8, Undelivered: 9},
	}
	want := "Failed: 1 lost, 2 duplicated, 3 out of order, 4 corrupted, 5 received though never sent, 6 conversations still open, " +
		"7 conversation groups left, 8 messages left in queues, 9 not delivered, 0 readers killed instead of one."
	if got := bad.Verdict(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
