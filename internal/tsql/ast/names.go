package ast

import "strings"

// Name is an identifier with up to three qualifiers: server.database.schema.object. A part left out between two dots is
// empty. Page: language-elements/transact-sql-syntax-conventions-transact-sql.
type Name struct {
	Place
	Parts []string
}

// Last returns the part from the right that has this number, counted from 0, or an empty text.
func (n Name) Last(number int) string {
	if at := len(n.Parts) - 1 - number; at >= 0 {
		return n.Parts[at]
	}
	return ""
}

// Object is the last part.
func (n Name) Object() string { return n.Last(0) }

// Schema is the part before the object, empty where the batch does not say it.
func (n Name) Schema() string { return n.Last(1) }

// Database is the part before the schema, empty where the batch does not say it.
func (n Name) Database() string { return n.Last(2) }

// Server is the part before the database, empty where the batch does not say it.
func (n Name) Server() string { return n.Last(3) }

// IsEmpty says that the batch names nothing here.
func (n Name) IsEmpty() bool { return len(n.Parts) == 0 }

// String joins the parts by dots, without quotes: for messages, not for SQL.
func (n Name) String() string { return strings.Join(n.Parts, ".") }

// Bracketed writes a part of a name in brackets, so that it may hold any character.
func Bracketed(part string) string { return "[" + strings.ReplaceAll(part, "]", "]]") + "]" }

// Named is a name that is written or held by a variable: one of both is set. A string stands for a name where
// IsString is true, as in TO SERVICE 'name'.
type Named struct {
	Place
	Name     Name
	Variable string // with its @
	IsString bool
	National bool // the string has the prefix N
}

// DataType is a type with its arguments. Page: data-types/data-types-transact-sql.
type DataType struct {
	Place
	Name       Name   // of several words, such as "double precision", in one part
	Arguments  []int  // length, or precision and scale
	Max        bool   // (max)
	Facet      string // DOCUMENT or CONTENT of xml, or empty
	Collection Name   // the schema collection of xml
}

// Option is one setting of a list: NAME, NAME = value, NAME value, or NAME (settings).
type Option struct {
	Place
	Name   string     // in upper case, words joined by a blank
	Equals bool       // a sign of equality stands before the value
	Value  Expression // nil where the option has none; a word such as ON is a Keyword
	Unit   string     // behind a number: KB, MB, GB, TB, %, MINUTES and others, in upper case
	Parens bool       // settings in parentheses follow, perhaps none
	List   []*Option  // the settings in parentheses
}

// Keyword is a word in the place of a value: ON, OFF, SELF, NONE, DEFAULT. Several words are joined by a blank.
type Keyword struct {
	ExpressionAt
	Word string // in upper case
}

// FindOption returns the first option of this name, or nil.
func FindOption(options []*Option, name string) *Option {
	for _, option := range options {
		if option.Name == name {
			return option
		}
	}
	return nil
}
