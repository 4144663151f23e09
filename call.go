package parley

import (
	"fmt"
	"strings"
	"time"
)

// call is the call of a function of the schema, each of whose arguments is named and may be left out.
type call struct {
	function  string
	names     []string
	arguments []any
}

func (c *call) give(name, kind string, value any) {
	c.arguments = append(c.arguments, value)
	c.names = append(c.names, fmt.Sprintf("%s => $%d::%s", name, len(c.arguments), kind))
}

// give gives an argument unless it is nil.
func give[T any](c *call, name, kind string, value *T) {
	if value != nil {
		c.give(name, kind, *value)
	}
}

func giveMilliseconds(c *call, name string, value *time.Duration) {
	if value != nil {
		c.give(name, "integer", milliseconds(*value))
	}
}

func (c *call) statement() string {
	return "select parley." + c.function + "(" + strings.Join(c.names, ", ") + ")"
}
