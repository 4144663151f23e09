package receive

import (
	"bufio"
	"strings"
	"testing"
)

// What is taken together is what reading line by line would pass on as it is; it ends before the first line that is different, so that no byte
// is read for it again and again.
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
