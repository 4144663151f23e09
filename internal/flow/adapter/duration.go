package adapter

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a setting such as "5 seconds", "250 milliseconds" or "1 hour": a number and a unit, as in the other settings of
// definitions.
type Duration time.Duration

// units are those that a duration may have, in the singular.
var units = map[string]time.Duration{
	"millisecond": time.Millisecond, "second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
}

// UnmarshalJSON reads a number and a unit, separated by a blank.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var written string
	if err := json.Unmarshal(data, &written); err != nil {
		return fmt.Errorf("a duration is written as a text such as \"5 seconds\": %w", err)
	}
	number, unit, _ := strings.Cut(strings.TrimSpace(written), " ")
	value, err := strconv.ParseFloat(number, 64)
	length, known := units[strings.TrimSuffix(strings.TrimSpace(unit), "s")]
	if err != nil || !known || value < 0 || value*float64(length) > float64(100*365*24*time.Hour) {
		return fmt.Errorf("%q is no duration; write a number and milliseconds, seconds, minutes, hours or days, such as \"5 seconds\"", written)
	}
	*d = Duration(value * float64(length))
	return nil
}

// String gives a duration as it is written: the longest unit in which it is a whole number.
func (d Duration) String() string {
	for _, unit := range []string{"day", "hour", "minute", "second", "millisecond"} {
		length := Duration(units[unit])
		if d%length != 0 || d == 0 && unit != "second" {
			continue
		}
		if d == length {
			return "1 " + unit
		}
		return fmt.Sprintf("%d %ss", d/length, unit)
	}
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64) + " milliseconds"
}
