package receive

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
)

// The bytes taken together are those that reading line by line would pass on as they are; they end before the first line that is different,
// so that no byte is read for it again and again.
func TestPlainLinesEndBeforeTheFirstThatIsNot(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"a\r\n\r\nbc\r\n":          "a\r\n\r\nbc\r\n",
		"a\r\n.\r\n":               "a\r\n",
		"a\r\n..b\r\nc\r\n":        "a\r\n",
		".\r\n":                    "",
		"a\r\nb\n.\r\n":            "a\r\n",
		"a\r\n\nb\r\n":             "a\r\n",
		"a\r\nb\rc\r\nd\r\n":       "a\r\n",
		"a\r\nb\r\r\nd\r\n":        "a\r\n",
		"a\r\n123456\r\n":          "a\r\n123456\r\n",
		"a\r\n1234567\r\nb\r\n":    "a\r\n",
		"a\r\nis not all here yet": "a\r\n",
		"a\r\nb\r":                 "a\r\n",
	} {
		in := bufio.NewReader(strings.NewReader(data))
		_, _ = in.Peek(1)
		if got := string(plainLines(in, 8)); got != want {
			t.Errorf("of %q it takes %q, want %q", data, got, want)
		}
	}
}

// A line that is longer than the buffer ends where it ends, also when the buffer ends between its CR and LF; the final dot behind it ends the
// data. A CR before that is none of the end.
func TestLineEndsAtTheEdgeOfTheBuffer(t *testing.T) {
	t.Parallel()
	for before := 13; before < 70; before++ {
		for _, end := range []string{"\r\n", "\n", "\r\r\n", "\rx\n"} {
			data := strings.Repeat("x", before) + end + ".\r\nbehind\r\n.\r\nrest"
			isEnd := strings.HasSuffix(end, "\r\n")
			in := bufio.NewReaderSize(strings.NewReader(data), 16)
			var sink bytes.Buffer
			found, err := readData(in, &sink, Limits{TextLine: 12})
			if err != nil {
				t.Fatalf("%d bytes and %q: %v", before, end, err)
			}
			rest, _ := io.ReadAll(in)
			want := "behind\r\n.\r\nrest"
			if !isEnd {
				want = "rest"
			}
			if string(rest) != want || !found.isTooLong {
				t.Errorf("%d bytes and %q: left is %q, want %q", before, end, rest, want)
			}
		}
	}
}
