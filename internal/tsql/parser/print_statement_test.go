package parser_test

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

func statements(all []ast.Statement) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString(statement(s))
		if _, isLabel := s.(*ast.Label); !isLabel {
			b.WriteString(";")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func statement(s ast.Statement) string {
	for _, write := range []func(ast.Statement) string{control, data, session, brokerStatement, brokerDefinition, tableStatement, module, other} {
		if printed := write(s); printed != "" {
			return printed
		}
	}
	panic(fmt.Sprintf("no text for %T", s))
}

func control(s ast.Statement) string {
	switch n := s.(type) {
	case *ast.Block:
		return "BEGIN " + statements(n.Statements) + "END"
	case *ast.If:
		result := "IF " + condition(n.Condition) + " " + statement(n.Then)
		if n.Else != nil {
			result += " ELSE " + statement(n.Else)
		}
		return result
	case *ast.While:
		return "WHILE " + condition(n.Condition) + " " + statement(n.Body)
	case *ast.Break:
		return "BREAK"
	case *ast.Continue:
		return "CONTINUE"
	case *ast.Goto:
		return "GOTO " + name(n.Label)
	case *ast.Label:
		return n.Name + ":"
	case *ast.Return:
		return "RETURN" + with("", n.Value)
	case *ast.TryCatch:
		return "BEGIN TRY " + statements(n.Try) + "END TRY BEGIN CATCH " + statements(n.Catch) + "END CATCH"
	case *ast.Throw:
		if n.Number == nil {
			return "THROW"
		}
		return "THROW " + expression(n.Number) + ", " + expression(n.Message) + ", " + expression(n.State)
	case *ast.RaiseError:
		if n.Severity == nil {
			return "RAISERROR " + expression(n.Message) + " " + expressions(n.Arguments) + raised(n)
		}
		all := append([]ast.Expression{n.Message, n.Severity, n.State}, n.Arguments...)
		return "RAISERROR (" + expressions(all) + ")" + raised(n)
	case *ast.Print:
		return "PRINT " + expression(n.Value)
	case *ast.Pause:
		return "WAITFOR " + n.Kind + " " + expression(n.Value)
	default:
		return ""
	}
}

func raised(n *ast.RaiseError) string {
	return when(len(n.Options) > 0, "WITH ", strings.Join(n.Options, ", "))
}

func argument(a *ast.Argument) string {
	return when(a.Name != "", a.Name, " = ") + with("", a.Value) + when(a.IsOutput, "OUTPUT")
}

func execute(n *ast.Execute) string {
	result := ""
	if n.HasWord {
		result = "EXECUTE "
	}
	if n.Result != "" {
		result += n.Result + " = "
	}
	switch {
	case n.Text != nil:
		result += "(" + expression(n.Text)
		for _, a := range n.Arguments {
			result += ", " + argument(a)
		}
		result += ")" + when(n.AsKind != "", "AS ", n.AsKind, " =") + with("", n.AsName)
		result += when(n.Server != "", "AT ", when(n.AtSource, "DATA_SOURCE "), name(n.Server))
	default:
		result += n.Variable + parts(n.Procedure) + when(n.Number != "", ";", n.Number) + " " + list(n.Arguments, argument)
	}
	var extra []string
	extra = append(extra, n.Options...)
	if len(n.ResultSets) > 0 {
		extra = append(extra, "RESULT SETS "+parens(list(n.ResultSets, func(r *ast.ResultSet) string {
			if r.As != "" {
				return "AS " + r.As + " " + parts(r.Object)
			}
			return parens(list(r.Columns, column))
		})))
	}
	return result + when(len(extra) > 0, "WITH ", strings.Join(extra, ", "))
}

func target(t ast.Target) string {
	result := t.Variable + parts(t.Name)
	if t.Rowset != nil {
		result = source(t.Rowset)
	}
	return result + tableHints(t.Hints, t.BareHints)
}

func outputs(all []*ast.Output) string {
	result := ""
	for _, o := range all {
		result += " OUTPUT " + list(o.Items, resultColumn) + when(o.HasInto, "INTO ", o.Variable, parts(o.Into), columns(o.Columns))
	}
	return result
}

func setClauses(all []*ast.SetClause) string {
	return list(all, func(c *ast.SetClause) string {
		switch {
		case c.Method != nil:
			return expression(c.Method)
		case c.Variable != "" && !c.Column.IsEmpty():
			return c.Variable + " = " + parts(c.Column) + " " + c.Operator + " " + expression(c.Value)
		case c.Variable != "":
			return c.Variable + " " + c.Operator + " " + expression(c.Value)
		default:
			return parts(c.Column) + " " + c.Operator + " " + expression(c.Value)
		}
	})
}

// insertColumns writes names of columns; $IDENTITY and its relatives have no brackets.
func insertColumns(all []ast.Name) string {
	if len(all) == 0 {
		return ""
	}
	return parens(list(all, func(n ast.Name) string {
		if strings.HasPrefix(n.Parts[0], "$") {
			return n.Parts[0]
		}
		return parts(n)
	}))
}

func data(s ast.Statement) string {
	switch n := s.(type) {
	case *ast.Select:
		return withClause(n.With) + query(n.Query) + queryHints(n.Options)
	case *ast.Insert:
		result := withClause(n.With) + "INSERT" + top(n.Top) + when(n.HasInto, "INTO") + " " + target(n.Target) + insertColumns(n.Columns) + outputs(n.Output) + " "
		switch {
		case n.IsDefault:
			result += "DEFAULT VALUES"
		case n.Query != nil:
			result += query(n.Query)
		case n.Execute != nil:
			result += execute(n.Execute)
		default:
			result += rows(n.Rows)
		}
		return result + queryHints(n.Options)
	case *ast.Update:
		return withClause(n.With) + "UPDATE" + top(n.Top) + " " + target(n.Target) + " SET " + setClauses(n.Set) + outputs(n.Output) +
			from(n.From) + where(n.Where) + queryHints(n.Options)
	case *ast.Delete:
		return withClause(n.With) + "DELETE" + top(n.Top) + when(n.HasFrom, "FROM") + " " + target(n.Target) + outputs(n.Output) +
			from(n.From) + where(n.Where) + queryHints(n.Options)
	case *ast.Merge:
		return merge(n)
	case *ast.Truncate:
		return "TRUNCATE TABLE " + parts(n.Table)
	case *ast.CheckIdentity:
		option := when(n.NoReseed, ", NORESEED")
		if n.Value != nil {
			option = ", RESEED, " + expression(n.Value)
		}
		return "DBCC CHECKIDENT (" + named(n.Table) + option + ")" + when(n.IsQuiet, " WITH NO_INFOMSGS")
	case *ast.Execute:
		return execute(n)
	case *ast.Declare:
		return "DECLARE " + list(n.Variables, func(v *ast.VariableDeclaration) string {
			switch {
			case v.Cursor:
				return v.Name + " CURSOR"
			case v.Table != nil:
				return v.Name + " TABLE " + tableDefinition(v.Table)
			default:
				return v.Name + " " + dataType(v.Type) + with("= ", v.Value)
			}
		})
	case *ast.SetVariable:
		switch {
		case n.Method != nil:
			return "SET " + expression(n.Method)
		case n.Cursor != nil:
			return "SET " + n.Variable + " " + n.Operator + " " + cursorDefinition(n.Cursor)
		case n.Property != "":
			return "SET " + n.Variable + "." + name(n.Property) + " " + n.Operator + " " + expression(n.Value)
		default:
			return "SET " + n.Variable + " " + n.Operator + " " + expression(n.Value)
		}
	case *ast.DeclareCursor:
		return "DECLARE " + name(n.Name) + " " + strings.Join(n.Before, " ") + " " + cursorDefinition(n.Cursor)
	case *ast.OpenCursor:
		return "OPEN " + cursor(n.Cursor)
	case *ast.CloseCursor:
		return "CLOSE " + cursor(n.Cursor)
	case *ast.Deallocate:
		return "DEALLOCATE " + cursor(n.Cursor)
	case *ast.Fetch:
		return "FETCH" + word(n.Direction) + with("", n.Count) + when(n.HasFrom, "FROM") + " " + cursor(n.Cursor) +
			when(len(n.Into) > 0, "INTO ", strings.Join(n.Into, ", "))
	default:
		return ""
	}
}

func merge(n *ast.Merge) string {
	result := withClause(n.With) + "MERGE" + top(n.Top) + " INTO " + target(n.Target) + when(n.Alias != "", "AS ", name(n.Alias)) +
		" USING " + source(n.Using) + " ON " + condition(n.On)
	for _, w := range n.Whens {
		result += " WHEN " + w.Kind
		if w.Condition != nil {
			result += " AND " + condition(w.Condition)
		}
		result += " THEN " + w.Action
		switch {
		case w.Action == "UPDATE":
			result += " SET " + setClauses(w.Set)
		case w.IsDefault:
			result += insertColumns(w.Columns) + " DEFAULT VALUES"
		case w.Action == "INSERT":
			result += insertColumns(w.Columns) + " VALUES " + parens(expressions(w.Values))
		}
	}
	return result + outputs(n.Output) + queryHints(n.Options)
}

func cursorDefinition(c *ast.CursorDefinition) string {
	return "CURSOR " + strings.Join(c.Options, " ") + " FOR " + withClause(c.With) + query(c.Query) + queryHints(c.Hints) +
		when(c.ReadOnly, "FOR READ ONLY") + when(c.ForUpdate, "FOR UPDATE", when(len(c.Columns) > 0, "OF ", names(c.Columns)))
}

func onOff(on bool) string {
	if on {
		return " ON"
	}
	return " OFF"
}

func transaction(t ast.TransactionName) string {
	if t.Variable != "" {
		return " " + t.Variable
	}
	return when(t.Name != "", name(t.Name))
}

func session(s ast.Statement) string {
	switch n := s.(type) {
	case *ast.SetOptions:
		return "SET " + strings.Join(n.Options, ", ") + onOff(n.On)
	case *ast.SetValue:
		return "SET " + n.Option + with("", n.Value)
	case *ast.SetStatistics:
		return "SET STATISTICS " + strings.Join(n.Kinds, ", ") + onOff(n.On)
	case *ast.SetIdentityInsert:
		return "SET IDENTITY_INSERT " + parts(n.Table) + onOff(n.On)
	case *ast.SetIsolation:
		return "SET TRANSACTION ISOLATION LEVEL " + n.Level
	case *ast.BeginTransaction:
		return "BEGIN" + when(n.Distributed, "DISTRIBUTED") + " TRANSACTION" + transaction(n.Name) + when(n.HasMark, "WITH MARK") + with("", n.Mark)
	case *ast.Commit:
		if n.Work {
			return "COMMIT WORK" + withOptions(n.Options)
		}
		return "COMMIT TRANSACTION" + transaction(n.Name) + withOptions(n.Options)
	case *ast.Rollback:
		if n.Work {
			return "ROLLBACK WORK"
		}
		return "ROLLBACK TRANSACTION" + transaction(n.Name)
	case *ast.SaveTransaction:
		return "SAVE TRANSACTION" + transaction(n.Name)
	case *ast.Use:
		return "USE " + name(n.Database)
	case *ast.ExecuteAs:
		return "EXECUTE AS " + n.Kind + with("= ", n.Name) + when(n.NoRevert, "WITH NO REVERT") + when(n.CookieFor != "", "WITH COOKIE INTO ", n.CookieFor)
	case *ast.Revert:
		return "REVERT" + when(n.Cookie != "", "WITH COOKIE = ", n.Cookie)
	case *ast.Reconfigure:
		return "RECONFIGURE" + when(n.Override, "WITH OVERRIDE")
	case *ast.Kill:
		return "KILL " + expression(n.Session) + when(n.StatusOnly, "WITH STATUSONLY")
	default:
		return ""
	}
}

func brokerStatement(s ast.Statement) string {
	switch n := s.(type) {
	case *ast.BeginDialog:
		result := "BEGIN DIALOG" + when(n.HasConversation, "CONVERSATION") + " " + n.Handle + " FROM SERVICE " + named(n.From) + " TO SERVICE " + named(n.To)
		if n.Instance != nil {
			result += ", " + expression(n.Instance)
		}
		if n.Contract.Variable != "" || !n.Contract.Name.IsEmpty() {
			result += " ON CONTRACT " + named(n.Contract)
		}
		return result + when(len(n.Options) > 0, "WITH ", list(n.Options, func(o string) string {
			switch o {
			case "LIFETIME":
				return "LIFETIME = " + expression(n.Lifetime)
			case "ENCRYPTION":
				return "ENCRYPTION = " + n.Encryption
			default:
				return n.RelatedKind + " = " + expression(n.Related)
			}
		}))
	case *ast.BeginTimer:
		return "BEGIN CONVERSATION TIMER (" + expression(n.Handle) + ") TIMEOUT = " + expression(n.Timeout)
	case *ast.Send:
		handles := expressions(n.Handles)
		if n.Parens {
			handles = parens(handles)
		}
		return "SEND ON CONVERSATION " + handles + when(n.HasType, "MESSAGE TYPE ", named(n.MessageType)) + when(n.HasBody, "(", with("", n.Body), ")")
	case *ast.Receive:
		return "RECEIVE" + top(n.Top) + " " + items(n.Items) + " FROM " + parts(n.Queue) + when(n.Into != "", "INTO ", n.Into) + where(n.Where)
	case *ast.GetGroup:
		return "GET CONVERSATION GROUP " + n.Variable + " FROM " + parts(n.Queue)
	case *ast.WaitFor:
		return "WAITFOR (" + statement(n.Statement) + ")" + with(", TIMEOUT ", n.Timeout)
	case *ast.EndConversation:
		return "END CONVERSATION " + expression(n.Handle) + with("WITH ERROR = ", n.Code) + with("DESCRIPTION = ", n.Description) + when(n.Cleanup, "WITH CLEANUP")
	case *ast.MoveConversation:
		return "MOVE CONVERSATION " + expression(n.Handle) + " TO " + expression(n.Group)
	default:
		return ""
	}
}
