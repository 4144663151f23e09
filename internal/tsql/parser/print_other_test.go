package parser_test

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

func class(c string) string { return when(c != "", c, "::") }

func other(s ast.Statement) string {
	switch n := s.(type) {
	case *ast.CreateType:
		result := "CREATE TYPE " + parts(n.Name)
		switch {
		case n.Table != nil:
			return result + " AS TABLE " + tableDefinition(n.Table) + withOptions(n.Options)
		case n.External != nil:
			return result + external(n.External)
		default:
			return result + " FROM " + dataType(n.Base) + word(n.Nullable)
		}
	case *ast.CreateSchema:
		result := "CREATE SCHEMA " + when(n.Name != "", name(n.Name)) + owner(n.Owner)
		for _, e := range n.Elements {
			result += " " + statement(e)
		}
		return result
	case *ast.AlterSchema:
		return "ALTER SCHEMA " + name(n.Name) + " TRANSFER " + class(n.Class) + parts(n.Object)
	case *ast.Sequence:
		result := n.Verb + " SEQUENCE " + parts(n.Name) + when(n.HasType, "AS ", dataType(n.Type))
		for _, o := range n.Options {
			result += " " + option(o)
		}
		return result
	case *ast.Synonym:
		return "CREATE SYNONYM " + parts(n.Name) + " FOR " + parts(n.For)
	case *ast.Database:
		result := "CREATE DATABASE " + name(n.Name) + when(n.Containment != "", "CONTAINMENT = ", n.Containment) + when(n.HasOn, "ON ", list(n.Files, file)) +
			when(len(n.Log) > 0, "LOG ON ", list(n.Log, file)) + when(n.Collation != "", "COLLATE ", name(n.Collation)) +
			when(n.SnapshotOf != "", "AS SNAPSHOT OF ", name(n.SnapshotOf)) + when(!n.CopyOf.IsEmpty(), "AS COPY OF ", parts(n.CopyOf)) +
			when(n.For != "", "FOR ", n.For)
		return result + when(len(n.Options) > 0, "WITH ", list(n.Options, option))
	case *ast.AlterDatabase:
		return alterDatabase(n)
	case *ast.Drop:
		result := "DROP " + n.Kind + when(n.IfExists, "IF EXISTS") + " " + list(n.Names, parts)
		if len(n.Names) > 0 && len(n.Indexes) > 0 {
			result += ", "
		}
		result += list(n.Indexes, func(i *ast.DroppedIndex) string {
			return name(i.Name) + " ON " + parts(i.Table) + withOptions(i.Options)
		})
		return result + when(n.On != "", "ON ", n.On, " ", parts(n.OnName)) + word(n.Words)
	case *ast.Foreign:
		return strings.Join(n.Tokens, " ")
	default:
		return securityStatement(s)
	}
}

func file(f *ast.File) string {
	group := ""
	switch f.Filegroup {
	case "":
	case "PRIMARY":
		group = "PRIMARY "
	default:
		group = "FILEGROUP " + name(f.Filegroup) + word(f.Words) + " "
	}
	return group + options(f.Options)
}

func alterDatabase(n *ast.AlterDatabase) string {
	result := "ALTER DATABASE "
	if n.Current {
		result += "CURRENT"
	} else {
		result += name(n.Name)
	}
	result += " " + n.Action
	switch n.Action {
	case "SET":
		return result + " " + list(n.Options, option) + when(n.Termination != "", "WITH ", n.Termination) + with("", n.After) + when(n.HasSeconds, "SECONDS")
	case "COLLATE":
		return result + " " + name(n.NewName)
	case "MODIFY NAME":
		return result + " = " + name(n.NewName)
	default:
		return result + " " + strings.Join(n.Rest, " ")
	}
}

func securityStatement(s ast.Statement) string {
	switch n := s.(type) {
	case *ast.Permission:
		result := n.Verb + when(n.OptionFor, "GRANT OPTION FOR") + " " + list(n.Permissions, func(p *ast.PermissionItem) string {
			return p.Name + columns(p.Columns)
		})
		if !n.On.IsEmpty() {
			result += " ON " + class(n.Class) + parts(n.On) + columns(n.OnColumns)
		}
		if n.HasFrom {
			result += " FROM "
		} else {
			result += " TO "
		}
		return result + names(n.Principals) + when(n.GrantOption, "WITH GRANT OPTION") + when(n.Cascade, "CASCADE") + when(n.As != "", "AS ", name(n.As))
	case *ast.Authorization:
		result := "ALTER AUTHORIZATION ON " + class(n.Class) + parts(n.On) + " TO "
		if n.IsSchemaOwner {
			return result + "SCHEMA OWNER"
		}
		return result + name(n.Owner)
	case *ast.Principal:
		result := n.Verb + " " + n.Kind + " " + name(n.Name) + owner(n.Owner)
		if n.From != "" {
			link := " FROM "
			if n.FromFor {
				link = " FOR "
			}
			result += link + n.From + when(n.Source != "", name(n.Source))
		}
		return result + when(n.Without, "WITHOUT LOGIN") + when(n.Change != "", n.Change, when(n.Member != "", name(n.Member))) +
			when(len(n.Options) > 0, "WITH ", list(n.Options, option))
	case *ast.Certificate:
		result := n.Verb + " CERTIFICATE " + name(n.Name) + owner(n.Owner)
		switch n.From {
		case "":
		case "ASSEMBLY":
			result += " FROM ASSEMBLY " + expression(n.Source)
		default:
			result += " FROM " + n.From + " = " + expression(n.Source)
		}
		result += when(n.Removes != "", "REMOVE ", n.Removes) + with("ENCRYPTION BY PASSWORD = ", n.Encryption)
		var all []string
		if n.PrivateKey != nil {
			all = append(all, "PRIVATE KEY "+options(n.PrivateKey))
		}
		for _, o := range n.Options {
			all = append(all, option(o))
		}
		return result + when(len(all) > 0, "WITH ", strings.Join(all, ", ")) + when(n.ActiveFor != "", "ACTIVE FOR BEGIN_DIALOG = ", n.ActiveFor)
	case *ast.Key:
		result := n.Verb + " " + n.Kind + when(n.Name != "", name(n.Name))
		for _, o := range n.Clauses {
			result += " " + option(o)
		}
		return result
	case *ast.BackupCertificate:
		return "BACKUP CERTIFICATE " + name(n.Name) + " TO FILE = " + expression(n.File) + when(n.PrivateKey != nil, "WITH PRIVATE KEY ", options(n.PrivateKey)) +
			when(len(n.Options) > 0, "WITH ", list(n.Options, option))
	case *ast.Signature:
		link := " TO "
		if n.Verb == "DROP" {
			link = " FROM "
		}
		return n.Verb + when(n.Counter, "COUNTER") + " SIGNATURE" + link + class(n.Class) + parts(n.Module) + " BY " + list(n.Keys, func(k *ast.Option) string {
			return k.Name + with("", k.Value) + when(len(k.List) > 0, "WITH ", list(k.List, option))
		})
	default:
		return ""
	}
}
