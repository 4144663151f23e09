package flatfile

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A dateFormat is a datetime_format: how a date or a time stands in the flat file.
type dateFormat struct {
	flat, xml string // layouts of package time
}

// dateParts has the parts of formats of .NET, the longer of those that begin alike first.
var dateParts = []struct{ net, layout string }{
	{"yyyy", "2006"},
	{"yy", "06"},
	{"MMMM", "January"},
	{"MMM", "Jan"},
	{"MM", "01"},
	{"M", "1"},
	{"dddd", "Monday"},
	{"ddd", "Mon"},
	{"dd", "02"},
	{"d", "2"},
	{"HH", "15"},
	{"hh", "03"},
	{"h", "3"},
	{"mm", "04"},
	{"m", "4"},
	{"ss", "05"},
	{"s", "5"},
	{"tt", "PM"},
	{"zzz", "-07:00"},
}

func newDateFormat(written, base string) (*dateFormat, error) {
	xml := map[string]string{"date": "2006-01-02", "time": "15:04:05.999999999", "dateTime": "2006-01-02T15:04:05.999999999"}[base]
	if xml == "" {
		return nil, fmt.Errorf("type xs:%s is no date or time", base)
	}
	var layout strings.Builder
	rest := written
next:
	for rest != "" {
		for _, p := range dateParts {
			if strings.HasPrefix(rest, p.net) {
				layout.WriteString(p.layout)
				rest = rest[len(p.net):]
				continue next
			}
		}
		switch c := rest[0]; {
		case c == 'f':
			n := len(rest) - len(strings.TrimLeft(rest, "f"))
			if text := layout.String(); !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, ",") {
				return nil, errors.New("fractions of a second follow a point or a comma")
			}
			layout.WriteString(strings.Repeat("0", n))
			rest = rest[n:]
		case c >= 'a' && c <= 'z' && c != 'T', c >= 'A' && c <= 'Z' && c != 'T' && c != 'Z', c >= '0' && c <= '9':
			return nil, fmt.Errorf("%q is not known", c)
		default:
			layout.WriteByte(c)
			rest = rest[1:]
		}
	}
	if strings.Contains(written, "zzz") && base != "date" {
		xml += "Z07:00"
	}
	return &dateFormat{flat: layout.String(), xml: xml}, nil
}

// toXML gives the value as XML Schema writes it, and false where it is not of the format.
func (f *dateFormat) toXML(value string) (string, bool) {
	at, err := time.Parse(f.flat, strings.TrimSpace(value))
	if err != nil {
		return "", false
	}
	return at.Format(f.xml), true
}

// toFlat gives a value of XML as the flat file writes it.
func (f *dateFormat) toFlat(value string) (string, bool) {
	value = strings.TrimSpace(value)
	for _, layout := range []string{f.xml, f.xml + "Z07:00"} {
		if at, err := time.Parse(layout, value); err == nil {
			return at.Format(f.flat), true
		}
	}
	return "", false
}
