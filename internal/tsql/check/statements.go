package check

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

// control has control flow, errors, variables, cursors and EXECUTE.
func (v *visitor) control(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.Block:
		v.use(n, "BEGIN ... END")
	case *ast.If:
		v.use(n, "IF")
	case *ast.While:
		v.use(n, "WHILE")
	case *ast.Break:
		v.use(n, "BREAK")
	case *ast.Continue:
		v.use(n, "CONTINUE")
	case *ast.Goto:
		v.use(n, "GOTO")
	case *ast.Label:
		v.use(n, "label")
	case *ast.Return:
		v.use(n, "RETURN")
	case *ast.TryCatch:
		v.use(n, "TRY ... CATCH")
	case *ast.Throw:
		v.use(n, "THROW")
	case *ast.RaiseError:
		v.raiseError(n)
	case *ast.Print:
		v.use(n, "PRINT")
	case *ast.Pause:
		v.use(n, "WAITFOR "+n.Kind)
	case *ast.Execute:
		v.execute(n)
	default:
		return v.variable(node)
	}
	return true
}

func (v *visitor) raiseError(n *ast.RaiseError) {
	if n.Severity == nil {
		v.use(n, "RAISERROR without parentheses")
		return
	}
	v.use(n, "RAISERROR")
	for _, option := range n.Options {
		v.when(option == "LOG", n, "RAISERROR WITH LOG")
	}
}

func (v *visitor) variable(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.VariableDeclaration:
		switch {
		case n.Table != nil:
			v.use(n, "DECLARE table variable")
		case n.Cursor:
			v.use(n, "DECLARE cursor variable")
		default:
			v.use(n, "DECLARE variable")
		}
	case *ast.SetVariable:
		switch {
		case n.Property != "":
			v.use(n, "SET variable.property")
		case n.Cursor != nil:
			v.use(n, "SET cursor variable")
		case n.Method == nil:
			v.use(n, "SET variable")
		}
	case *ast.AssignedColumn:
		v.use(n, "SELECT variable = value")
	case *ast.DeclareCursor:
		v.use(n, "DECLARE CURSOR")
	case *ast.OpenCursor:
		v.use(n, "OPEN")
	case *ast.Fetch:
		v.use(n, "FETCH")
	case *ast.CloseCursor:
		v.use(n, "CLOSE")
	case *ast.Deallocate:
		v.use(n, "DEALLOCATE")
	default:
		return false
	}
	return true
}

func (v *visitor) execute(n *ast.Execute) {
	for _, option := range n.Options {
		if option == "RECOMPILE" {
			v.use(n, "WITH RECOMPILE")
		} else {
			v.use(n, "WITH RESULT SETS")
		}
	}
	v.when(len(n.ResultSets) > 0, n, "WITH RESULT SETS")
	v.when(n.Server != "", n, "EXECUTE AT linked server")
	v.when(n.AsKind != "", n, "EXECUTE text AS user")
	v.when(n.Number != "", n, "procedure;number")
	switch {
	case n.Text != nil:
		v.use(n, "EXECUTE text")
		if n.Server == "" {
			v.text(n.Text)
		}
	case n.Variable != "":
		v.use(n, "procedure called through a variable")
	default:
		v.procedure(n)
	}
}

// procedure adds the call of a procedure: those of the system are in the table, others are the user's.
func (v *visitor) procedure(n *ast.Execute) {
	v.when(n.Procedure.Server() != "", n, "name with a server")
	name := n.Procedure.Object()
	upper := strings.ToUpper(name)
	isSystem := strings.HasPrefix(upper, "SP_") || strings.HasPrefix(upper, "XP_") || strings.EqualFold(n.Procedure.Schema(), "sys")
	switch {
	case upper == "SP_EXECUTESQL":
		v.use(n, "sp_executesql")
		if len(n.Arguments) > 0 {
			v.text(n.Arguments[0].Value)
		}
	case isSystem && !v.defined[upper]:
		v.use(n, "procedure "+name)
	case strings.HasPrefix(name, "#"):
		v.use(n, "EXECUTE #procedure")
	default:
		v.use(n, "EXECUTE procedure")
	}
}

// session has settings, transactions and whose rights count.
func (v *visitor) session(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.SetOptions:
		for _, option := range n.Options {
			v.use(n, "SET "+strings.Fields(option)[0])
		}
	case *ast.SetValue:
		v.use(n, "SET "+n.Option)
	case *ast.SetStatistics:
		v.use(n, "SET STATISTICS")
	case *ast.SetIdentityInsert:
		v.use(n, "SET IDENTITY_INSERT")
	case *ast.SetIsolation:
		v.use(n, "SET TRANSACTION ISOLATION LEVEL")
	case *ast.BeginTransaction:
		if n.Distributed {
			v.use(n, "BEGIN DISTRIBUTED TRANSACTION")
			return true
		}
		v.use(n, "BEGIN TRANSACTION")
		v.when(n.HasMark, n, "BEGIN TRANSACTION WITH MARK")
	case *ast.Commit:
		v.use(n, "COMMIT")
		v.when(len(n.Options) > 0, n, "COMMIT WITH (DELAYED_DURABILITY)")
	case *ast.Rollback:
		v.use(n, "ROLLBACK")
	case *ast.SaveTransaction:
		v.use(n, "SAVE TRANSACTION")
	case *ast.Use:
		v.use(n, "USE")
	case *ast.ExecuteAs:
		v.use(n, "EXECUTE AS")
		v.when(n.NoRevert, n, "EXECUTE AS WITH NO REVERT")
		v.when(n.CookieFor != "", n, "EXECUTE AS WITH COOKIE")
	case *ast.Revert:
		v.use(n, "REVERT")
		v.when(n.Cookie != "", n, "REVERT WITH COOKIE")
	case *ast.Reconfigure:
		v.use(n, "RECONFIGURE")
	case *ast.Kill:
		v.use(n, "KILL")
	default:
		return false
	}
	return true
}

// conversation has the statements of Service Broker.
func (v *visitor) conversation(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.BeginDialog:
		v.use(n, "BEGIN DIALOG")
	case *ast.BeginTimer:
		v.use(n, "BEGIN CONVERSATION TIMER")
	case *ast.Send:
		v.use(n, "SEND")
	case *ast.Receive:
		v.use(n, "RECEIVE")
	case *ast.GetGroup:
		v.use(n, "GET CONVERSATION GROUP")
	case *ast.WaitFor:
		if _, is := n.Statement.(*ast.Receive); is {
			v.use(n, "WAITFOR (RECEIVE)")
		} else {
			v.use(n, "WAITFOR (GET CONVERSATION GROUP)")
		}
	case *ast.EndConversation:
		v.use(n, "END CONVERSATION")
	case *ast.MoveConversation:
		v.use(n, "MOVE CONVERSATION")
	default:
		return false
	}
	return true
}

// brokerObject has the objects of Service Broker.
func (v *visitor) brokerObject(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.MessageType:
		v.use(n, n.Verb+" MESSAGE TYPE")
		v.when(n.Validation == "VALID_XML", n, "VALIDATION = VALID_XML")
	case *ast.Contract:
		v.use(n, "CREATE CONTRACT")
	case *ast.Queue:
		if n.Operation != "" {
			v.use(n, "ALTER QUEUE "+n.Operation)
			return true
		}
		v.use(n, n.Verb+" QUEUE")
		v.when(n.Filegroup != "", n, "queue ON filegroup")
	case *ast.Service:
		v.use(n, n.Verb+" SERVICE")
	case *ast.Route:
		v.use(n, n.Verb+" ROUTE")
	case *ast.Binding:
		v.use(n, n.Verb+" REMOTE SERVICE BINDING")
	case *ast.Priority:
		v.use(n, n.Verb+" BROKER PRIORITY")
	case *ast.Endpoint:
		v.when(n.Protocol == "HTTP", n, "ENDPOINT AS HTTP")
		if n.Payload != "" && n.Payload != "SERVICE_BROKER" {
			v.use(n, "ENDPOINT FOR "+n.Payload)
			return true
		}
		v.use(n, n.Verb+" ENDPOINT")
	case *ast.EventNotification:
		v.use(n, "CREATE EVENT NOTIFICATION ON "+n.On)
	default:
		return false
	}
	return true
}
