package interpreter

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A program is a batch or the body of a module, compiled.
type program struct {
	name         string // of the module, empty for a batch
	instructions []instruction
	regions      []region
	variables    []value.Type // by slot
	parameters   []parameter  // their slots come first, in this order
	text         string       // of sp_executesql, with its parameters, as error 8178 shows it
}

// The results of an instruction that are no number of another.
const (
	next  = -1 // go on with the one that follows
	ended = -2 // leave the program
)

// none of the regions.
const outside = -1

// An instruction is a statement, or a part of one that jumps.
type instruction struct {
	line  int
	try   int // the region in whose TRY it stands, or outside
	catch int // the region in whose CATCH it stands, or outside
	// isQuiet says that statements may wait over it, joins that they go out with its own.
	isQuiet, joins bool
	setsNoExec     bool // it runs under SET NOEXEC ON too
	run            func(ctx context.Context, a *activation) (jump int, err *fault.Error)
}

// A region is a TRY with its CATCH.
type region struct {
	start      int // the first instruction of CATCH
	outerCatch int // the region in whose CATCH the whole stands
}

type parameter struct {
	name     string
	isOutput bool
	initial  *expression.Expression // nil without a default
}

// A label is the number of an instruction that is not known yet when a jump to it is compiled.
type label struct {
	at         int
	isPlaced   bool
	try, catch int
}

// A compiler makes a program.
type compiler struct {
	session    *Session
	program    *program
	slots      map[string]int
	try        int
	catch      int
	breaks     []*label
	continues  []*label
	labels     map[string]*label
	gotos      []jump
	isModule   bool
	resultType value.Type                      // of the scalar function that is compiled
	tables     map[string]*ast.TableDefinition // of table variables by their lower name
	readOnly   map[string]bool                 // table variables that are parameters
	reached    context.Context                 //nolint:containedctx // of the statement that is compiled when it is reached
}

// A jump is a GOTO, to be checked when all labels are known.
type jump struct {
	name       string
	line       int
	try, catch int
}

// compile makes a program of statements. The error refuses the whole batch or module.
func (s *Session) compile(name string, parameters []*ast.Parameter, statements []ast.Statement) (*program, *fault.Error) {
	c := &compiler{
		session: s, program: &program{name: name}, slots: map[string]int{}, try: outside, catch: outside,
		labels: map[string]*label{}, isModule: name != "", tables: map[string]*ast.TableDefinition{},
	}
	if err := c.declareParameters(parameters); err != nil {
		return nil, err.At(1, name)
	}
	c.makeTables(parameters)
	if err := c.statements(statements); err != nil {
		return nil, err.At(1, name)
	}
	if err := c.checkGotos(); err != nil {
		return nil, err.At(1, name)
	}
	return c.program, nil
}

func (c *compiler) declareParameters(parameters []*ast.Parameter) *fault.Error {
	for _, p := range parameters {
		t, table, err := c.typeOf(p.Type)
		switch {
		case err != nil:
			return err
		case table != nil && !p.ReadOnly:
			return fault.New(352, p.Name).At(p.Line, "")
		case table == nil && p.ReadOnly:
			return fault.New(346, p.Name).At(p.Line, "")
		case table != nil:
			c.declareTable(p, table)
		}
		if err := c.declare(p.Name, t); err != nil {
			return err.At(p.Line, "")
		}
		described := parameter{name: p.Name, isOutput: p.Output}
		if p.Default != nil {
			described.initial, err = expression.CompileAs(spelled(p.Default), t, c)
			if err != nil {
				return err
			}
		}
		c.program.parameters = append(c.program.parameters, described)
	}
	return nil
}

// declare gives a variable its slot; error 134 where there is one of its name.
func (c *compiler) declare(name string, t value.Type) *fault.Error {
	key := strings.ToLower(name)
	if _, twice := c.slots[key]; twice {
		return fault.New(134, name)
	}
	c.slots[key] = len(c.program.variables)
	c.program.variables = append(c.program.variables, t)
	return nil
}

// Variable, Function, External and ExternalCondition make the compiler the scope of its expressions.
func (c *compiler) Variable(name string) (slot int, t value.Type, known bool) {
	slot, known = c.slots[strings.ToLower(name)]
	if !known {
		return 0, value.Type{}, false
	}
	return slot, c.program.variables[slot], true
}

// Function gives a function of the session, or of the Translator.
func (c *compiler) Function(name string) (*function.Function, bool) {
	if f, known := c.session.function(name); known {
		return f, true
	}
	return c.session.translator.Function(name)
}

// External leaves an expression with tables to the Translator.
func (c *compiler) External(node ast.Expression) (*expression.Expression, *fault.Error) {
	return c.session.translator.Expression(c.context(), node, c)
}

// ExternalCondition leaves a condition with tables to the Translator.
func (c *compiler) ExternalCondition(node ast.Condition) (*expression.Condition, *fault.Error) {
	return c.session.translator.Condition(c.context(), node, c)
}

// Table gives a table variable.
func (c *compiler) Table(name string) (slot int, definition *ast.TableDefinition, known bool) {
	key := strings.ToLower(name)
	definition, known = c.tables[key]
	return c.slots[key], definition, known
}

// context is that of the statement which is reached, or one of the compilation of the batch, which asks no database.
func (c *compiler) context() context.Context {
	if c.reached != nil {
		return c.reached
	}
	return context.Background()
}

// emit appends an instruction.
func (c *compiler) emit(node ast.Node, run func(ctx context.Context, a *activation) (int, *fault.Error)) {
	c.program.instructions = append(c.program.instructions, instruction{line: node.At().Line, try: c.try, catch: c.catch, run: run})
}

// simply appends an instruction that does not jump.
func (c *compiler) simply(node ast.Node, run func(ctx context.Context, a *activation) *fault.Error) {
	c.emit(node, func(ctx context.Context, a *activation) (int, *fault.Error) { return next, run(ctx, a) })
}

func (c *compiler) place(l *label) {
	l.at, l.isPlaced, l.try, l.catch = len(c.program.instructions), true, c.try, c.catch
}

func (c *compiler) jumpTo(node ast.Node, l *label) {
	c.emit(node, func(context.Context, *activation) (int, *fault.Error) { return l.at, nil })
	c.quiet()
}

func (c *compiler) statements(statements []ast.Statement) *fault.Error {
	for _, s := range statements {
		if err := c.statement(s); err != nil {
			return err.At(s.At().Line, "")
		}
	}
	return nil
}

// checkGotos gives errors 133 and 1026: a label must exist, and must not stand in a TRY or CATCH in which GOTO does not.
func (c *compiler) checkGotos() *fault.Error {
	for _, j := range c.gotos {
		l := c.labels[strings.ToLower(j.name)]
		if !l.isPlaced {
			return fault.New(133, j.name).At(j.line, "")
		}
		if l.try != outside && l.try != j.try || l.catch != outside && l.catch != j.catch {
			return fault.New(1026).At(j.line, "")
		}
	}
	return nil
}

// labelOf gives the label of a name, placed or not.
func (c *compiler) labelOf(name string) *label {
	key := strings.ToLower(name)
	if c.labels[key] == nil {
		c.labels[key] = &label{}
	}
	return c.labels[key]
}
