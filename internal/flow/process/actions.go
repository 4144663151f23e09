package process

import (
	"time"

	"github.com/parley-broker/parley/internal/flow/match"
	"github.com/parley-broker/parley/internal/flow/parts"
)

// collectedMost bounds how many messages or elements a shape goes through.
const collectedMost = 100_000

type setReference struct {
	reference
	properties []string
}

type variableReference struct {
	reference
	typ string
}

type assignment struct {
	to    variableReference
	value *expression
}

// partAssignment puts a value at a path; without one what is there is removed.
type partAssignment struct {
	path  *parts.Path
	value *expression
}

type messagePart struct {
	message reference
	typ     string
	partAssignment
}

// length is an interval, or an expression that gives one.
type length struct {
	interval   time.Duration
	expression *expression
}

// structure is a value whose texts are expressions.
type structure struct {
	expression *expression
	isList     bool
	elements   []*structure
	members    map[string]*structure
}

type result struct {
	to     variableReference
	theirs string
}

type catchBlock struct {
	code, as string
	block    *shape
}

// The actions of the shapes.
type (
	sequence struct{}

	receive struct {
		message            reference
		typ                string
		isActivating       bool
		must               []match.Predicate
		filter             [][]match.Predicate
		initialise, follow []setReference
	}

	send struct {
		message            reference
		port, sendPort     string
		answers            *reference // the request that it answers
		initialise, follow []setReference
		properties         map[string]*expression
	}

	construct struct {
		message    reference
		typ        string
		from       *reference
		template   *template
		value      *structure
		set        []partAssignment
		properties map[string]*expression
	}

	transform struct {
		name       string
		from       []reference
		to         reference
		typ        string
		properties map[string]*expression
	}

	set struct {
		variables []assignment
		parts     []messagePart
	}

	decide struct {
		conditions   []*expression // of each branch; none of the last one
		hasOtherwise bool
	}

	while struct{ condition *expression }

	forEach struct {
		item     string
		list     *expression
		parallel int
	}

	parallel struct{}
	listen   struct{}

	delay struct {
		length *length
		until  *expression
	}

	scope struct {
		isAtomic     bool
		timeout      *length
		body         *shape
		catches      []catchBlock
		compensation *shape
	}

	compensate struct {
		isAll  bool
		scopes []int
	}

	throw struct {
		isAgain bool
		code    string
		message *template
	}

	terminate struct{ reason *template }
	suspend   struct{ reason *template }

	call struct {
		name       string
		parameters map[string]*expression
		body       *shape
		results    []result
	}

	start struct {
		name       string
		parameters map[string]*expression
	}

	aggregate struct {
		receive   *receive
		into      variableReference
		count     int
		after     *length
		condition *expression
	}

	activity struct {
		name, queue string
		input       *structure
		result      *variableReference
		timeout     *length
		attempts    int
	}

	query struct {
		sql       string
		arguments []*expression
		rows      *variableReference
	}
)

// handles reports whether a scope catches a code.
func (a *scope) handles(code string) bool { return a.handlerOf(code) != nil }

func (a *scope) handlerOf(code string) *catchBlock {
	for i := range a.catches {
		if a.catches[i].code == "" || a.catches[i].code == code {
			return &a.catches[i]
		}
	}
	return nil
}
