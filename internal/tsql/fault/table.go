package fault

import (
	_ "embed" // the table of messages
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// messages has a row for each message: number, severity, state, reach, text; separated by tabs.
//
//go:embed messages.tsv
var messages string

type message struct {
	severity int
	state    int
	reach    Reach
	text     string
}

var reaches = map[string]Reach{"statement": Statement, "scope": Scope, "abort": Abort, "batch": Batch, "compile": Compile}

var table = sync.OnceValue(func() map[int]message {
	read, err := parse(messages)
	if err != nil {
		panic(err)
	}
	return read
})

func parse(rows string) (map[int]message, error) {
	read := map[int]message{}
	for i, row := range strings.Split(strings.TrimRight(rows, "\n"), "\n") {
		cells := strings.SplitN(row, "\t", 5)
		if len(cells) != 5 {
			return nil, fmt.Errorf("messages.tsv, row %d: %d cells, not 5", i+1, len(cells))
		}
		var numbers [3]int
		for c := range numbers {
			n, err := strconv.Atoi(cells[c])
			if err != nil {
				return nil, fmt.Errorf("messages.tsv, row %d: %w", i+1, err)
			}
			numbers[c] = n
		}
		reach, known := reaches[cells[3]]
		if _, twice := read[numbers[0]]; twice || !known {
			return nil, fmt.Errorf("messages.tsv, row %d: %d stands twice, or %q is no reach", i+1, numbers[0], cells[3])
		}
		read[numbers[0]] = message{severity: numbers[1], state: numbers[2], reach: reach, text: cells[4]}
	}
	return read, nil
}
