package schema

import (
	"cmp"
	"slices"
)

// differencesBetween compares two descriptions of a schema. An object that only one of them has is reported once,
// not property by property.
func differencesBetween(installed, defined []property) []Difference {
	here, there := byObject(installed), byObject(defined)
	var differences []Difference
	for object, properties := range there {
		if _, ok := here[object]; !ok {
			differences = append(differences, Difference{Kind: object.kind, Object: object.name, Problem: Missing})
			continue
		}
		differences = append(differences, differentProperties(object, here[object], properties)...)
	}
	for object := range here {
		if _, ok := there[object]; !ok {
			differences = append(differences, Difference{Kind: object.kind, Object: object.name, Problem: Unexpected})
		}
	}
	slices.SortFunc(differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Property, b.Property))
	})
	return differences
}

// object names the owner of properties.
type object struct {
	kind, name string
}

func byObject(properties []property) map[object]map[string]string {
	objects := map[object]map[string]string{}
	for _, p := range properties {
		of := object{p.kind, p.object}
		if objects[of] == nil {
			objects[of] = map[string]string{}
		}
		objects[of][p.name] = p.value
	}
	return objects
}

func differentProperties(of object, installed, defined map[string]string) []Difference {
	names := map[string]bool{}
	for name := range installed {
		names[name] = true
	}
	for name := range defined {
		names[name] = true
	}
	var differences []Difference
	for name := range names {
		if installed[name] != defined[name] {
			differences = append(differences, Difference{
				Kind: of.kind, Object: of.name, Problem: Different, Property: name,
				Installed: installed[name], Defined: defined[name],
			})
		}
	}
	return differences
}
