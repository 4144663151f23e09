package parser_test

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

func owner(o string) string { return when(o != "", "AUTHORIZATION ", name(o)) }

func brokerDefinition(s ast.Statement) string {
	switch n := s.(type) {
	case *ast.MessageType:
		return n.Verb + " MESSAGE TYPE " + parts(n.Name) + owner(n.Owner) + when(n.Validation != "", "VALIDATION = ", n.Validation) +
			when(!n.Collection.IsEmpty(), "WITH SCHEMA COLLECTION ", parts(n.Collection))
	case *ast.Contract:
		return "CREATE CONTRACT " + parts(n.Name) + owner(n.Owner) + parens(list(n.Messages, func(m *ast.ContractMessage) string {
			return name(m.Type) + " SENT BY " + m.SentBy
		}))
	case *ast.Queue:
		result := n.Verb + " QUEUE " + parts(n.Name) + word(n.Operation)
		if n.Verb == "ALTER" && n.Filegroup != "" {
			result += " " + name(n.Filegroup)
		}
		result += when(n.HasWith, "WITH ", list(n.Options, queueOption)) + withOptions(n.Parameters)
		if n.Verb == "CREATE" {
			result += when(n.Filegroup != "", "ON ", name(n.Filegroup))
		}
		return result
	case *ast.Service:
		result := n.Verb + " SERVICE " + parts(n.Name) + owner(n.Owner) + when(!n.Queue.IsEmpty(), "ON QUEUE ", parts(n.Queue))
		return result + when(len(n.Contracts) > 0, parens(list(n.Contracts, func(c *ast.ServiceContract) string {
			return when(c.Change != "", c.Change, " CONTRACT") + " " + name(c.Name)
		})))
	case *ast.Route:
		return n.Verb + " ROUTE " + parts(n.Name) + owner(n.Owner) + " WITH " + list(n.Options, option)
	case *ast.Binding:
		return n.Verb + " REMOTE SERVICE BINDING " + parts(n.Name) + owner(n.Owner) + with("TO SERVICE ", n.Service) + " WITH " + list(n.Options, option)
	case *ast.Priority:
		return n.Verb + " BROKER PRIORITY " + parts(n.Name) + " FOR CONVERSATION" + when(n.HasSet, "SET ", options(n.Options))
	case *ast.Endpoint:
		result := n.Verb + " ENDPOINT " + parts(n.Name) + owner(n.Owner) + " " + list(n.Options, option)
		result += when(n.Protocol != "", "AS ", n.Protocol, " ", options(n.Address))
		return result + when(n.Payload != "", "FOR ", n.Payload, when(n.Settings != nil, options(n.Settings)))
	case *ast.EventNotification:
		return "CREATE EVENT NOTIFICATION " + parts(n.Name) + " ON " + n.On + " " + parts(n.Queue) + when(n.FanIn, "WITH FAN_IN") + " FOR " +
			strings.Join(n.Events, ", ") + " TO SERVICE " + expression(n.Service) + ", " + expression(n.Instance)
	default:
		return ""
	}
}

func queueOption(o *ast.QueueOption) string {
	switch o.Name {
	case "ACTIVATION":
		return "ACTIVATION " + parens(list(o.Activation, func(a *ast.ActivationOption) string {
			switch a.Name {
			case "STATUS":
				return "STATUS =" + onOff(a.On)
			case "PROCEDURE_NAME":
				return "PROCEDURE_NAME = " + parts(a.Procedure)
			case "MAX_QUEUE_READERS":
				return fmt.Sprint("MAX_QUEUE_READERS = ", a.Readers)
			case "EXECUTE AS":
				if a.UserName != nil {
					return "EXECUTE AS " + expression(a.UserName)
				}
				return "EXECUTE AS " + a.As
			default:
				return a.Name
			}
		}))
	case "POISON_MESSAGE_HANDLING":
		return "POISON_MESSAGE_HANDLING (STATUS =" + onOff(o.On) + ")"
	default:
		return o.Name + " =" + onOff(o.On)
	}
}

func storage(all []*ast.Storage) string {
	result := ""
	for _, s := range all {
		result += " " + s.Kind + " " + name(s.Name) + when(s.Column != "", parens(name(s.Column)))
	}
	return result
}

func keyColumns(all []*ast.KeyColumn) string {
	if len(all) == 0 {
		return ""
	}
	return parens(list(all, func(k *ast.KeyColumn) string { return name(k.Name) + word(k.Direction) }))
}

func constraint(c *ast.Constraint) string {
	result := when(c.Name != "", "CONSTRAINT ", name(c.Name)) + " "
	switch c.Kind {
	case "PRIMARY KEY", "UNIQUE":
		result += c.Kind + word(c.Cluster) + keyColumns(c.Columns) + withOptions(c.Options) + with("WITH FILLFACTOR = ", c.OldFill) + storage(c.Storage) +
			when(c.NoEnforce, "NOT ENFORCED")
	case "FOREIGN KEY":
		result += when(c.HasForeign, "FOREIGN KEY ", keyColumns(c.Columns)) + " REFERENCES " + parts(c.References) + columns(c.ForeignColumns) +
			when(c.OnDelete != "", "ON DELETE ", c.OnDelete) + when(c.OnUpdate != "", "ON UPDATE ", c.OnUpdate) + when(c.NotForReplication, "NOT FOR REPLICATION")
	case "CHECK":
		result += "CHECK" + when(c.NotForReplication, "NOT FOR REPLICATION") + parens(condition(c.Check))
	case "DEFAULT":
		result += "DEFAULT " + expression(c.Default) + when(c.ForColumn != "", "FOR ", name(c.ForColumn)) + when(c.WithValues, "WITH VALUES")
	case "CONNECTION":
		result += "CONNECTION " + parens(list(c.Connections, func(e *ast.EdgeConnection) string { return parts(e.From) + " TO " + parts(e.To) })) +
			when(c.OnDelete != "", "ON DELETE ", c.OnDelete)
	}
	return result
}

func column(c *ast.ColumnDefinition) string {
	result := name(c.Name) + with("AS ", c.Computed) + when(c.HasType, dataType(c.Type))
	for _, clause := range c.Clauses {
		result += " "
		switch clause.Kind {
		case "COLLATE":
			result += "COLLATE " + name(clause.Name)
		case "IDENTITY":
			result += "IDENTITY"
			if clause.Seed != nil {
				result += parens(expression(clause.Seed) + ", " + expression(clause.Increment))
			}
		case "GENERATED":
			result += "GENERATED ALWAYS AS " + clause.Name
		case "MASKED", "ENCRYPTED":
			result += clause.Kind + " WITH " + options(clause.Options)
		case "CONSTRAINT":
			result += constraint(clause.Constraint)
		case "INDEX":
			result += indexInside(clause.Index)
		default:
			result += clause.Kind
		}
	}
	return result
}

func indexInside(i *ast.CreateIndex) string {
	return "INDEX " + name(i.Name) + when(i.Unique, "UNIQUE") + word(i.Cluster) + keyColumns(i.Columns) + indexTail(i)
}

func indexTail(i *ast.CreateIndex) string {
	result := when(len(i.Include) > 0, "INCLUDE ", columns(i.Include)) + where(i.Where)
	if i.Parens {
		result += " WITH " + options(i.Options)
	} else {
		result += when(len(i.Options) > 0, "WITH ", list(i.Options, option))
	}
	return result + storage(i.Storage)
}

func elements(t *ast.TableDefinition) string {
	var all []string
	c, k, i := 0, 0, 0
	for _, kind := range t.Order {
		switch kind {
		case 'c':
			all = append(all, column(t.Columns[c]))
			c++
		case 'k':
			all = append(all, constraint(t.Constraints[k]))
			k++
		case 'i':
			all = append(all, indexInside(t.Indexes[i]))
			i++
		case 'p':
			all = append(all, "PERIOD FOR SYSTEM_TIME "+columns(t.Period))
		}
	}
	return strings.Join(all, ", ")
}

func tableDefinition(t *ast.TableDefinition) string { return parens(elements(t)) }

func tableStatement(s ast.Statement) string {
	switch n := s.(type) {
	case *ast.CreateTable:
		result := "CREATE TABLE " + parts(n.Name)
		if n.AsFile {
			result += " AS FILETABLE"
		} else {
			result += tableDefinition(n.Definition) + when(n.AsKind != "", "AS ", n.AsKind)
		}
		return result + storage(n.Storage) + withOptions(n.Options)
	case *ast.AlterTable:
		return alterTable(n)
	case *ast.CreateIndex:
		return "CREATE" + when(n.Unique, "UNIQUE") + word(n.Cluster) + word(n.Kind) + " INDEX " + name(n.Name) + " ON " + parts(n.Table) + keyColumns(n.Columns) +
			using(n.Using) + indexTail(n)
	case *ast.AlterIndex:
		index := "ALL"
		if !n.All {
			index = name(n.Name)
		}
		result := "ALTER INDEX " + index + " ON " + parts(n.Table) + " " + n.Action + with("PARTITION = ", n.Partition)
		if n.Action == "SET" {
			return result + options(n.Options)
		}
		return result + withOptions(n.Options)
	case *ast.CreateStatistics:
		return "CREATE STATISTICS " + name(n.Name) + " ON " + parts(n.Table) + columns(n.Columns) + where(n.Where) +
			when(len(n.Options) > 0, "WITH ", list(n.Options, option))
	case *ast.UpdateStatistics:
		which := names(n.Names)
		if n.Parens {
			which = parens(which)
		}
		return "UPDATE STATISTICS " + parts(n.Table) + " " + which + when(len(n.Options) > 0, "WITH ", list(n.Options, option))
	default:
		return ""
	}
}

func using(words []string) string {
	if len(words) < 3 {
		return when(len(words) > 0, "USING ", strings.Join(words, " "))
	}
	return " USING XML INDEX " + name(words[2]) + " " + strings.Join(words[3:], " ")
}

func alterTable(n *ast.AlterTable) string {
	result := "ALTER TABLE " + parts(n.Name) + when(n.Check != "", "WITH ", n.Check) + " "
	switch n.Action {
	case "ADD":
		return result + "ADD " + elements(n.Added)
	case "ALTER COLUMN":
		if n.Change != "" {
			return result + "ALTER COLUMN " + name(n.Column.Name) + " " + n.Change + strings.TrimPrefix(column(n.Column), name(n.Column.Name)) + withOptions(n.Options)
		}
		return result + "ALTER COLUMN " + column(n.Column) + withOptions(n.Options)
	case "DROP":
		return result + "DROP " + list(n.Drops, func(d *ast.TableDrop) string {
			if d.Kind == "PERIOD" {
				return "PERIOD FOR SYSTEM_TIME"
			}
			return d.Kind + when(d.IfExists, "IF EXISTS") + " " + names(d.Names) + withOptions(d.Options)
		})
	case "SET":
		return result + "SET " + options(n.Options)
	case "SWITCH":
		result += "SWITCH" + with("PARTITION ", n.Source) + " TO " + parts(n.Target) + with("PARTITION ", n.Into)
	case "REBUILD":
		result += "REBUILD" + with("PARTITION = ", n.Source)
	default:
		result += n.Action + " "
		if n.All {
			result += "ALL"
		} else {
			result += names(n.Names)
		}
	}
	return result + when(n.HasWith, "WITH ", options(n.Options))
}

func parameters(all []*ast.Parameter) string {
	return list(all, func(p *ast.Parameter) string {
		return p.Name + when(p.HasAs, "AS") + " " + dataType(p.Type) + when(p.Varying, "VARYING") + word(p.Nullable) + with("= ", p.Default) +
			when(p.Output, "OUTPUT") + when(p.ReadOnly, "READONLY")
	})
}

func moduleOptions(all []*ast.ModuleOption) string {
	return when(len(all) > 0, "WITH ", list(all, func(o *ast.ModuleOption) string {
		if o.Words == "INLINE" {
			return "INLINE = " + expression(o.Value)
		}
		return o.Words + with("", o.Value)
	}))
}

func external(e *ast.External) string { return when(e != nil, "EXTERNAL NAME ", externalName(e)) }

func externalName(e *ast.External) string {
	if e == nil {
		return ""
	}
	return parts(e.Name)
}

func module(s ast.Statement) string {
	switch n := s.(type) {
	case *ast.Procedure:
		result := n.Verb + " PROCEDURE " + parts(n.Name) + when(n.Number != "", ";", n.Number) + " "
		if n.Parens {
			result += parens(parameters(n.Parameters))
		} else {
			result += parameters(n.Parameters)
		}
		result += moduleOptions(n.Options) + when(n.ForReplication, "FOR REPLICATION") + " AS " + external(n.External)
		if n.Atomic != nil {
			return result + "BEGIN ATOMIC WITH " + options(n.AtomicOptions) + statements(n.Atomic.Statements) + "END"
		}
		return result + statements(n.Body)
	case *ast.Function:
		result := n.Verb + " FUNCTION " + parts(n.Name) + parens(parameters(n.Parameters)) + " RETURNS "
		switch {
		case n.Variable != "":
			result += n.Variable + " TABLE " + tableDefinition(n.Table)
		case n.Table != nil:
			result += "TABLE " + tableDefinition(n.Table)
		case n.IsTable:
			result += "TABLE"
		default:
			result += dataType(n.Returns)
		}
		result += moduleOptions(n.Options) + when(len(n.Order) > 0, "ORDER ", keyColumns(n.Order)) + " AS " + external(n.External)
		if n.Body != nil {
			return result + statement(n.Body)
		}
		if n.Query != nil {
			inner := withClause(n.With) + query(n.Query)
			if n.QueryInParens {
				inner = parens(inner)
			}
			result += "RETURN " + inner
		}
		return result
	case *ast.View:
		return n.Verb + " VIEW " + parts(n.Name) + columns(n.Columns) + moduleOptions(n.Options) + " AS " + withClause(n.With) + query(n.Query) +
			when(n.CheckOption, "WITH CHECK OPTION")
	case *ast.Trigger:
		return n.Verb + " TRIGGER " + parts(n.Name) + " ON " + on(n.On, n.Table) + moduleOptions(n.Options) + " " + n.Timing + " " +
			strings.Join(n.Events, ", ") + when(n.WithAppend, "WITH APPEND") + when(n.NotForReplication, "NOT FOR REPLICATION") + " AS " +
			external(n.External) + statements(n.Body)
	case *ast.SwitchTrigger:
		verb, which := "DISABLE", "ALL"
		if n.Enable {
			verb = "ENABLE"
		}
		if !n.All {
			which = list(n.Names, parts)
		}
		return verb + " TRIGGER " + which + " ON " + on(n.On, n.Table)
	default:
		return ""
	}
}

func on(kind string, table ast.Name) string {
	if kind == "TABLE" {
		return parts(table)
	}
	return kind
}
