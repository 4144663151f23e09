package demo

import (
	"fmt"
	"strconv"
)

// thousands writes a count with its digits in groups of three.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	head := len(digits) % 3
	text := digits[:head]
	for i := head; i < len(digits); i += 3 {
		if text != "" && text != "-" {
			text += ","
		}
		text += digits[i : i+3]
	}
	return text
}

// bytesText writes a payload size as the paper does.
func bytesText(n int) string {
	if n >= 1024 && n%1024 == 0 {
		return fmt.Sprintf("%d KB", n/1024)
	}
	return fmt.Sprintf("%d B", n)
}

// rate writes messages per second without more digits than it is worth.
func rate(perSecond float64) string { return thousands(int64(perSecond + 0.5)) }

// noun is the singular for one and the plural for any other count.
func noun(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// counted writes a count and what is counted.
func counted(n int64, one, many string) string { return thousands(n) + " " + noun(n, one, many) }

// allOf names all messages of a run at the beginning of a sentence.
func allOf(n int64) string {
	if n == 1 {
		return "The one message"
	}
	return "All " + thousands(n) + " messages"
}
