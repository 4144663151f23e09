package ast_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/ast"
)

// Each node is visited once, parents before their children, in the order of the text.
func TestWalkVisitsEachNodeOnce(t *testing.T) {
	t.Parallel()
	tree := &ast.Batch{Statements: []ast.Statement{
		&ast.If{
			Condition: &ast.Comparison{Operator: "=", Left: &ast.Variable{Name: "@a"}, Right: &ast.Literal{Kind: ast.Integer, Text: "1"}},
			Then:      &ast.Print{Value: &ast.Literal{Kind: ast.String, Text: "one"}},
		},
		&ast.Send{Handles: []ast.Expression{&ast.Variable{Name: "@h"}}, MessageType: ast.Named{Name: ast.Name{Parts: []string{"m"}}}},
	}}
	var kinds []string
	ast.Walk(tree, func(node ast.Node) bool {
		kinds = append(kinds, fmt.Sprintf("%T", node)[len("*ast."):])
		return true
	})
	want := []string{"Batch", "If", "Comparison", "Variable", "Literal", "Print", "Literal", "Send", "Variable", "Named", "Name"}
	if !slices.Equal(kinds, want) {
		t.Fatalf("visited %q, want %q", kinds, want)
	}
}

// A node whose visit returns false keeps its children to itself.
func TestWalkLeavesChildrenOut(t *testing.T) {
	t.Parallel()
	visited := 0
	ast.Walk(&ast.Print{Value: &ast.Variable{Name: "@a"}}, func(ast.Node) bool {
		visited++
		return false
	})
	if visited != 1 {
		t.Fatalf("visited %d nodes, want 1", visited)
	}
}
