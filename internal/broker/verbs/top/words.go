package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// count writes a number of messages with its thousands apart; ~ marks an estimate.
func count(n int64, isEstimated bool) string {
	digits := strconv.FormatInt(n, 10)
	var text strings.Builder
	if isEstimated {
		text.WriteByte('~')
	}
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			text.WriteByte(',')
		}
		text.WriteRune(digit)
	}
	return text.String()
}

// rate writes messages a second, or - when there is none.
func rate(perSecond *float64) string {
	switch {
	case perSecond == nil:
		return "-"
	case *perSecond > 0 && *perSecond < 10:
		return strconv.FormatFloat(*perSecond, 'f', 1, 64)
	}
	return count(int64(*perSecond+0.5), false)
}

// Age writes a time span in its two largest units.
func Age(seconds float64) string {
	span := time.Duration(max(0, seconds) * float64(time.Second))
	switch days := int(span.Hours()) / 24; {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, int(span.Hours())%24)
	case span >= time.Hour:
		return fmt.Sprintf("%dh%dm", int(span.Hours()), int(span.Minutes())%60)
	case span >= time.Minute:
		return fmt.Sprintf("%dm%ds", int(span.Minutes()), int(span.Seconds())%60)
	case span >= time.Second:
		return fmt.Sprintf("%ds", int(span.Seconds()))
	}
	return span.Round(time.Millisecond).String()
}

func oldest(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return Age(*seconds)
}

func orZero(number *float64) float64 {
	if number == nil {
		return 0
	}
	return *number
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// pids lists the first few process ids.
func pids(list []int32) string {
	const most = 3
	var texts []string
	for i, pid := range list {
		if i == most {
			texts = append(texts, fmt.Sprintf("and %d more", len(list)-most))
			break
		}
		texts = append(texts, strconv.Itoa(int(pid)))
	}
	return strings.Join(texts, " ")
}
