package message_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/message"
)

func TestLinesAreMeasuredWhereverTheyAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("z", 999)
	for text, want := range map[string]message.Lines{
		"": {}, "a\r\nbcd\nb\r": {Longest: 3}, long[1:] + "\r\n" + long[1:]: {Longest: 998}, "a\n" + long: {Longest: 999}, long + "\r\na\u00e4": {Longest: 999, IsEightBit: true},
	} {
		for _, piece := range []int{1, 2, 500, 2000} {
			var lines message.Lines
			for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
				lines.Add([]byte(rest[:min(piece, len(rest))]))
			}
			if lines.Longest != want.Longest || lines.IsEightBit != want.IsEightBit || lines.AreTooLong() != (want.Longest > 998) {
				t.Errorf("%.20q in pieces of %d: %+v", text, piece, lines)
			}
		}
	}
}
