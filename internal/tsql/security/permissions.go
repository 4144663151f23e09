package security

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/calls"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// brokerClasses are the classes of objects of the broker before ::, with the broker's word for each.
var brokerClasses = map[string]string{
	"SERVICE": "service", "CONTRACT": "contract", "MESSAGE TYPE": "message type", "ROUTE": "route",
	"REMOTE SERVICE BINDING": "remote service binding", "CERTIFICATE": "certificate",
}

// openCatalog says why a right to see definitions has no effect.
const openCatalog = "the catalog of PostgreSQL is open to every role"

// permission compiles GRANT, REVOKE and DENY, which is a REVOKE that is refused where the right would stay.
func (t *Translator) permission(node *ast.Permission) (interpreter.Statement, *fault.Error) {
	if node.Verb == "DENY" {
		if err := refusesDenial(node); err != nil {
			return nil, err
		}
	}
	if node.As != "" && !strings.EqualFold(node.As, "dbo") {
		return nil, refused(node.Verb+" AS "+node.As, "the role that is logged in grants")
	}
	s := statement{run: func(ctx context.Context, _ *expression.Frame, sink session.Sink) *fault.Error {
		if node.Class == "ENDPOINT" {
			return inform(sink, node.Verb+" ON ENDPOINT", ofPeers)
		}
		for _, principal := range node.Principals {
			role, err := t.roleOf(ctx, principal)
			if err != nil {
				return err
			}
			for _, item := range node.Permissions {
				g := &grant{node: node, item: item, role: role, sink: sink, denies: node.Verb == "DENY"}
				if err := t.granted(ctx, g); err != nil {
					return err
				}
			}
		}
		if node.Verb != "DENY" {
			return nil
		}
		if bad := sink.Message(&fault.Error{State: 1, Message: "DENY acts as REVOKE: " + keepsNone + "."}); bad != nil {
			return connection.Fault(bad, "")
		}
		return nil
	}}
	if node.Verb == "DENY" {
		return &denial{s}, nil
	}
	return &s, nil
}

// A grant is one right of one role that is given or taken back.
type grant struct {
	node *ast.Permission
	item *ast.PermissionItem
	role string
	sink session.Sink
	// denies says that nobody may have the right by the role afterwards.
	denies bool
}

func (g *grant) right() string { return g.item.Name }

// isView reports whether the right is one to see definitions or a state.
func (g *grant) isView() bool { return strings.HasPrefix(g.right(), "VIEW ") }

// informs says that a right to see definitions has no effect.
func (g *grant) informs() *fault.Error { return inform(g.sink, g.node.Verb+" "+g.right(), openCatalog) }

// columns are those to which the right is restricted; none for the whole object.
func (g *grant) columns() []string {
	if len(g.item.Columns) > 0 {
		return g.item.Columns
	}
	return g.node.OnColumns
}

// granted grants or revokes one right of one role.
func (t *Translator) granted(ctx context.Context, g *grant) *fault.Error {
	class, isBroker := brokerClasses[g.node.Class]
	switch {
	case isBroker:
		return t.ofBroker(ctx, g, class, g.node.On.Object())
	case g.node.On.IsEmpty(), g.node.Class == "DATABASE":
		return t.ofDatabase(ctx, g)
	case g.node.Class == "SCHEMA":
		return t.ofSchema(ctx, g)
	case g.node.Class == "TYPE":
		return t.ofType(ctx, g)
	case g.node.Class != "" && g.node.Class != "OBJECT":
		return refused(g.node.Verb+" ON "+g.node.Class+"::", "grant the right on each object")
	}
	return t.ofObject(ctx, g)
}

// ofBroker calls the broker, which asks whether the role that is logged in may grant. PUBLIC is the broker's word for all.
func (t *Translator) ofBroker(ctx context.Context, g *grant, class, object string) *fault.Error {
	switch {
	case g.node.OptionFor:
		return refused("REVOKE GRANT OPTION FOR", "revoke the right and grant it anew")
	case len(g.columns()) > 0:
		return refused(g.node.Verb+" on columns", "rights on objects of the broker are those on the whole object")
	}
	role := g.role
	if role == everyone {
		role = "PUBLIC"
	}
	shown := object
	if class == "queue" { // its name comes as [dbo].[name]
		shown = strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(object, "[dbo].["), "]"), "]]", "]")
	}
	if err := t.needsCascade(ctx, g, grantsOnBroker, shown, g.right(), class); err != nil {
		return err
	}
	arguments := []string{"permission => $1", "class => $2", "object => $3", "grantee => $4"}
	if g.node.Verb == "GRANT" && g.node.GrantOption {
		arguments = append(arguments, "with_grant_option => true")
	}
	verb := g.node.Verb
	if g.denies {
		verb = "REVOKE"
	}
	if _, err := t.ask(ctx, "select "+calls.Text(verb, arguments...), g.right(), class, object, role); err != nil {
		return connection.Fault(err, g.node.Verb)
	}
	return t.denied(ctx, g, heldByBroker, class, shown, g.right())
}
