package process

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// intervalUnits are those of intervals of definitions, in the singular.
var intervalUnits = map[string]time.Duration{
	"millisecond": time.Millisecond, "second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	"week": 7 * 24 * time.Hour,
}

// intervalMax is longer than any process waits.
const intervalMax = 100 * 365 * 24 * time.Hour

// beginsInterval finds a text that is meant as an interval: a number and a word follow one another in no expression.
var beginsInterval = regexp.MustCompile(`^\s*[0-9.]+\s*[A-Za-z]+\s*$`)

// readInterval reads an interval such as "1 hour 30 minutes"; false where a text is none.
func readInterval(written string) (time.Duration, bool) {
	words := strings.Fields(written)
	if len(words) == 0 || len(words)%2 != 0 {
		return 0, false
	}
	total := 0.0
	for i := 0; i < len(words); i += 2 {
		count, err := strconv.ParseFloat(words[i], 64)
		unit, isKnown := intervalUnits[strings.TrimSuffix(words[i+1], "s")]
		if err != nil || !isKnown || count < 0 || math.IsNaN(count) {
			return 0, false
		}
		total += count * float64(unit)
	}
	if total > float64(intervalMax) {
		return 0, false
	}
	return time.Duration(total), true
}
