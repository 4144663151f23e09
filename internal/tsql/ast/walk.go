package ast

import "reflect"

// Walk calls visit for each node below and including root, parents first, in the order of their fields. Where visit
// returns false the children of the node are left out. Structs of the tree that are no pointers are visited as pointers.
func Walk(root any, visit func(node Node) bool) {
	walk(reflect.ValueOf(root), visit)
}

var nodeType = reflect.TypeFor[Node]()

func walk(value reflect.Value, visit func(node Node) bool) {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			return
		}
		if value.Kind() == reflect.Pointer && value.Type().Implements(nodeType) && !visit(value.Interface().(Node)) {
			return
		}
		walkFields(value.Elem(), visit)
	case reflect.Struct:
		if value.CanAddr() && value.Type().Implements(nodeType) && !isPlace(value.Type()) {
			if !visit(value.Addr().Interface().(Node)) {
				return
			}
		}
		walkFields(value, visit)
	case reflect.Slice:
		for i := range value.Len() {
			walk(value.Index(i), visit)
		}
	default:
	}
}

func walkFields(value reflect.Value, visit func(node Node) bool) {
	if value.Kind() != reflect.Struct {
		walk(value, visit)
		return
	}
	if isPlace(value.Type()) {
		return
	}
	for _, field := range value.Fields() {
		walk(field, visit)
	}
}

// isPlace says that a struct is embedded in nodes and none itself.
func isPlace(kind reflect.Type) bool {
	switch kind {
	case reflect.TypeFor[Place](), reflect.TypeFor[StatementAt](), reflect.TypeFor[ExpressionAt](),
		reflect.TypeFor[ConditionAt](), reflect.TypeFor[SourceAt]():
		return true
	default:
		return false
	}
}
