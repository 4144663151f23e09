package value

import (
	"testing"

	"pgregory.net/rapid"
)

// Bytes of any kind are text in both encodings, and come back as they were: conversions of bodies lose nothing.
func TestBytesSurviveAsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "bytes"))
		if got := EncodeCodePage(DecodeCodePage(bytes)); got != bytes {
			t.Fatalf("%x came back from varchar as %x", bytes, got)
		}
		got, want := EncodeUTF16(DecodeUTF16(bytes)), bytes
		if len(want)%2 == 1 {
			want += "\x00"
		}
		if got != want {
			t.Fatalf("%x came back from nvarchar as %x", want, got)
		}
		if units := UnitsOf(DecodeUTF16(bytes)); units != len(want)/2 {
			t.Fatalf("%x has %d units", bytes, units)
		}
	})
}

func TestTextIsCutByUnits(t *testing.T) {
	t.Parallel()
	const text = "aé€😀b"
	for from := range 8 {
		for units := range 8 {
			all := UTF16(text)
			want := FromUTF16(all[min(from, len(all)):min(from+units, len(all))])
			if got := CutUnits(text, from, units); got != want {
				t.Errorf("%d units from %d: %q, not %q", units, from, got, want)
			}
		}
	}
}

func TestCharactersOutsideTheCodePageLoseTheirAccentOrBecomeAQuestionMark(t *testing.T) {
	t.Parallel()
	if got := NewVarChar("aā€中😀").Raw(); got != "aa€???" {
		t.Errorf("%q", got)
	}
}
