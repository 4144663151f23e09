package broker

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// send compiles SEND to one conversation or to many. The body is the value as varbinary(max): nvarchar as UTF-16, varchar in its code
// page, xml with its mark.
func (c *compiler) send(node *ast.Send) (*statement, *fault.Error) {
	called := &call{verb: "SEND"}
	if len(node.Handles) == 1 {
		if err := c.handle(called, "conversation_handle", node.Handles[0]); err != nil {
			return nil, err
		}
	} else {
		handles, err := c.handles(node.Handles)
		if err != nil {
			return nil, err
		}
		called.statement = "SEND to several"
		called.with("conversation_handles", "uuid[]", handles)
	}
	if node.HasType {
		messageType, err := c.named(node.MessageType)
		if err != nil {
			return nil, err
		}
		called.with("message_type", "text", messageType)
	} else {
		called.fixed("message_type", "'DEFAULT'")
	}
	if node.Body == nil {
		return c.doLater(called.fixed("body", "null::bytea")), nil
	}
	body, err := c.body(node.Body)
	if err != nil {
		return nil, err
	}
	return c.doLater(called.with("body", "bytea", body)), nil
}

// handles gives the array of several handles.
func (c *compiler) handles(nodes []ast.Expression) (parameter, *fault.Error) {
	parts := make([]parameter, len(nodes))
	for i, node := range nodes {
		p, err := c.expression(node, handleType)
		if err != nil {
			return nil, err
		}
		parts[i] = p
	}
	return func(frame *expression.Frame) ([]byte, *fault.Error) {
		texts := make([]string, len(parts))
		for i, p := range parts {
			v, err := p(frame)
			if err != nil {
				return nil, err
			}
			texts[i] = "NULL"
			if v != nil {
				texts[i] = string(v)
			}
		}
		return []byte("{" + strings.Join(texts, ",") + "}"), nil
	}, nil
}

// body gives the bytes of a message. A body that is written and NULL is error 8433.
func (c *compiler) body(node ast.Expression) (parameter, *fault.Error) {
	e, err := expression.Compile(node, c.scope)
	if err != nil {
		return nil, err
	}
	if e.Type.Kind != value.Unknown {
		if err := value.CheckCastable(e.Type.Kind, value.VarBinary); err != nil {
			return nil, err
		}
	}
	return func(frame *expression.Frame) ([]byte, *fault.Error) {
		v, err := e.Evaluate(frame)
		switch {
		case err != nil:
			return nil, err
		case v.IsNull():
			return nil, fault.New(8433)
		}
		bytes, err := frame.Context.Settings.Cast(v, unboundedBytes)
		if err != nil {
			return nil, err
		}
		return bytea(bytes.Raw()), nil
	}, nil
}
