// Package check says of a batch of T-SQL, without running it, which constructs it uses, and what Parley does with each.
//
// The table constructs.tsv is the one list of what there is. A construct that is not in it is refused as unknown.
package check

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed constructs.tsv
var constructs string

// State tells apart constructs that run, those that inform, those that come later and those that are refused.
type State string

// The states of constructs.
const (
	Runs    State = "runs"    // as in SQL Server
	Informs State = "informs" // taken, without effect but one line of information
	Later   State = "later"   // understood, but nothing runs it yet
	Refused State = "refused" // not there, with a reason
)

// Construct is a row of the table.
type Construct struct {
	Family string
	Name   string
	State  State
	Reason string // empty where the construct runs
}

// unknown is the reason for a construct outside the table.
const unknown = "Parley does not know it"

// All gives the table in its order. The caller leaves it as it is.
var All = sync.OnceValue(func() (all []Construct) {
	for line := range strings.Lines(constructs) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		row := Construct{Family: fields[0], Name: fields[1], State: State(fields[2])}
		if len(fields) > 3 {
			row.Reason = fields[3]
		}
		all = append(all, row)
	}
	return all
})

var byName = sync.OnceValue(func() map[string]Construct {
	index := map[string]Construct{}
	for _, row := range All() {
		index[strings.ToUpper(row.Name)] = row
	}
	return index
})

// Find gives the row of a construct. One that is not in the table is refused.
func Find(name string) Construct {
	if row, found := byName()[strings.ToUpper(name)]; found {
		return row
	}
	return Construct{Name: name, State: Refused, Reason: unknown}
}
