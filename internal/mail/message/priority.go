package message

import (
	"strconv"
	"strings"
)

// Priority is high, normal or low, or nothing where it was not read.
type Priority string

// MarshalJSON writes the number that the database has for a priority.
func (p Priority) MarshalJSON() ([]byte, error) {
	number := 1
	switch p {
	case "high":
		number = 0
	case "low":
		number = 2
	}
	return strconv.AppendInt(nil, int64(number), 10), nil
}

// PriorityOf reads how urgent a message says it is, in any of the fields that programs use.
func PriorityOf(h Header) Priority {
	switch value := firstWord(h.Value("Importance")); value {
	case "high", "low":
		return Priority(value)
	}
	switch firstWord(h.Value("Priority")) {
	case "urgent":
		return "high"
	case "non-urgent":
		return "low"
	}
	switch firstWord(h.Value("X-Priority")) {
	case "1", "2":
		return "high"
	case "4", "5":
		return "low"
	}
	return "normal"
}

func firstWord(value string) string {
	words := strings.Fields(strings.ToLower(value))
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
