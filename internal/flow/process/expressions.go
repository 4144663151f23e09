package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/parley-broker/parley/internal/flow/parts"
)

// Limits of expressions.
const (
	expressionMax  = 4096      // characters
	costLimit      = 1_000_000 // of the language: about 0.1 s
	interruptEvery = 1000      // elements of a comprehension between looks at the context
	stepsMax       = 5_000_000 // moves from part to part that paths make in one expression
)

// expression is one that was compiled.
type expression struct {
	names   *names
	program cel.Program
	result  *cel.Type
	place   string
	written string
	uses    []string // messages and variables
}

// expression compiles an expression whose value fits a type; nil where it does not. A number or a truth stands for itself.
func (c *compiler) expression(path []string, given any, n *names, wanted *cel.Type) *expression {
	written, is := given.(string)
	switch value := given.(type) {
	case json.Number:
		written = value.String()
	case bool:
		written = fmt.Sprint(value)
	default:
		if !is || strings.TrimSpace(written) == "" {
			c.problem(path, "Write an expression; a text within it in quotes of its own, such as \"'text'\".", "the expression is %s",
				describe(given))
			return nil
		}
	}
	checked, issues := n.env.Compile(written)
	if issues.Err() != nil {
		c.problem(path, "See the functions and names that expressions have; a text within one stands in quotes of its own.",
			"the expression %s: %s", shortened(written), issueText(issues))
		return nil
	}
	e := &expression{names: n, result: checked.OutputType(), place: c.placeOf(path), written: written}
	if !fits(e.result, wanted) {
		c.problem(path, "Convert it, such as by string(), int(), double(), duration() or timestamp().",
			"the expression %s gives %s and not %s", shortened(written), typeName(e.result), typeName(wanted))
		return nil
	}
	program, err := n.env.Program(checked, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(interruptEvery),
		cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		c.problem(path, "Write it otherwise.", "the expression %s: %v", shortened(written), err)
		return nil
	}
	e.program = program
	for _, reference := range checked.NativeRep().ReferenceMap() {
		if reference.Name != "" && n.has(reference.Name) && !slices.Contains(e.uses, reference.Name) {
			e.uses = append(e.uses, reference.Name)
		}
	}
	c.checkPaths(path, checked.NativeRep(), n)
	return e
}

// issueText is the first line of what is wrong with an expression.
func issueText(issues *cel.Issues) string {
	var texts []string
	for _, e := range issues.Errors() {
		texts = append(texts, fmt.Sprintf("%s (column %d)", e.Message, e.Location.Column()+1))
	}
	return strings.Join(texts, "; ")
}

// checkPaths reads the paths of an expression, so that a wrong one is found now.
func (c *compiler) checkPaths(path []string, of *ast.AST, n *names) {
	ast.PostOrderVisit(of.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || !e.AsCall().IsMemberFunction() || len(e.AsCall().Args()) == 0 {
			return
		}
		argument := e.AsCall().Args()[0]
		if argument.Kind() != ast.LiteralKind {
			return
		}
		literal, is := argument.AsLiteral().(types.String)
		if !is {
			return
		}
		switch name := e.AsCall().FunctionName(); {
		case slices.Contains(pathFunctions, name):
			c.path(path, string(literal), n)
		case name == "property":
			if _, isKnown := c.known.Properties[string(literal)]; !isKnown {
				c.problem(path, "Declare it in the property schema of its namespace.", "property %q is not declared", string(literal))
			}
		}
	}))
}

// path reads a path once for all of the program.
func (c *compiler) path(path []string, written string, n *names) *parts.Path {
	compiled, err := parts.Compile(written, n.namespaces)
	if err != nil {
		c.problem(path, "Write XPath 1.0, such as /Order/Line[2]/@sku; prefixes are those of namespaces.", "%v", err)
		return nil
	}
	c.program.paths[written] = compiled
	return compiled
}

func fits(given, wanted *cel.Type) bool {
	if wanted == nil || wanted.Kind() == types.DynKind || given.Kind() == types.DynKind || wanted.IsAssignableType(given) {
		return true
	}
	if wanted.Kind() == types.DoubleKind && given.Kind() == types.IntKind {
		return true
	}
	return wanted.Kind() == types.ListKind && given.Kind() == types.ListKind
}

func typeName(of *cel.Type) string {
	for name, typ := range valueTypes {
		if typ.Kind() == of.Kind() && name != "any" {
			return "a value of type " + name
		}
	}
	return of.String()
}

// Codes of the engine's own faults.
const (
	codeExpression  = "expression"
	codeCost        = "cost"
	codeTimeout     = "timeout"
	codeActivity    = "activity"
	codeQuery       = "query"
	codeTransform   = "transform"
	codeType        = "type"
	codeCorrelation = "correlation"
	codeLoop        = "loop"
	codeSize        = "size"
	codeVersion     = "version"
)

// scene gives an expression the values of its names, where a node stands.
type scene struct {
	r *run
	n *node
	e *expression
}

// ResolveName implements [cel.Activation].
func (s scene) ResolveName(name string) (any, bool) {
	switch name {
	case "now":
		return types.Timestamp{Time: s.r.world.Now()}, true
	case "new_id":
		return types.String(s.r.world.NewID()), true
	}
	if _, owner, isThere := s.e.names.message(name); isThere {
		message := s.n.frameOf(owner).message(name)
		if message == nil {
			return types.NewErr("message %s has no content yet", name), true
		}
		return &partValue{r: s.r, message: message}, true
	}
	if _, owner, isThere := s.e.names.variable(name); isThere {
		value, err := s.r.decodeValue(s.n.frameOf(owner).value(name))
		if err != nil {
			return types.WrapErr(err), true
		}
		return value, true
	}
	return nil, false
}

// Parent implements [cel.Activation].
func (scene) Parent() cel.Activation { return nil }

var errCostOfLanguage = regexp.MustCompile(`cost limit exceeded`)

// evaluate gives the value of an expression.
func (r *run) evaluate(n *node, e *expression) (ref.Val, *Fault) {
	r.steps, r.namespaces = stepsMax, e.names.namespaces
	value, _, err := e.program.ContextEval(r.ctx, scene{r, n, e})
	if err == nil {
		if failed, is := value.(*types.Err); is {
			err = failed
		}
	}
	if err == nil {
		return value, nil
	}
	if ctxErr := r.ctx.Err(); ctxErr != nil {
		return nil, r.broken(ctxErr)
	}
	return nil, r.expressionFault(e, err)
}

func (r *run) expressionFault(e *expression, err error) *Fault {
	if world, is := errors.AsType[*worldError](err); is {
		return r.failed(world.error, codeExpression, e.place)
	}
	if errors.Is(err, parts.ErrCost) || errCostOfLanguage.MatchString(err.Error()) {
		return &Fault{
			Code: codeCost, Path: e.place, Message: "the expression " + shortened(e.written) + " costs too much",
			Remedy: "write it with fewer elements and shorter paths, or promote what it reads",
		}
	}
	return &Fault{
		Code: codeExpression, Path: e.place, Message: fmt.Sprintf("the expression %s: %v", shortened(e.written), err),
		Remedy: "mend the message, or ask whether there is such a part by has(), or give text() or number() a second argument",
	}
}

func (r *run) truth(n *node, e *expression) (bool, *Fault) {
	value, fault := r.evaluate(n, e)
	if fault != nil {
		return false, fault
	}
	truth, is := value.(types.Bool)
	if !is {
		return false, r.expressionFault(e, fmt.Errorf("it gives a value of type %s and no truth", value.Type().TypeName()))
	}
	return bool(truth), nil
}
