package layering

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// openToTests are the packages that every test may import.
var openToTests = []string{
	"parley", "flow", "schema", "operate", "parleytest", "internal/fixture", "internal/sqltest", "internal/logtest",
	"internal/mail/mailtest", "internal/postgres/postgrestest",
}

func TestPackagesImportOnlyWhatTheArchitectureAllows(t *testing.T) {
	t.Parallel()
	layers := byName(t, layersFile)
	for _, f := range goFiles(t) {
		layer, known := layerOf(layers, f.pkg)
		if !known {
			continue // TestEachPackageHasItsPlaceInTheArchitecture reports it
		}
		for _, imported := range f.imports {
			name := ours(imported)
			switch {
			case name == "" || layer.all || slices.Contains(layer.allowed, name):
			case f.isTest() && (name == f.pkg || slices.Contains(openToTests, name) || slices.Contains(layer.tests, name)):
			default:
				t.Errorf("%s imports %s, which %s does not allow to %s", f.path, name, layersFile, f.pkg)
			}
		}
	}
}

func TestEachPackageHasItsPlaceInTheArchitecture(t *testing.T) {
	t.Parallel()
	layers := byName(t, layersFile)
	present := map[string]bool{}
	for _, f := range goFiles(t) {
		present[f.pkg] = true
	}
	for _, pkg := range slices.Sorted(maps.Keys(present)) {
		if _, known := layerOf(layers, pkg); !known {
			t.Errorf("package %s is not in %s: say what it may import", pkg, layersFile)
		}
	}
	for _, layer := range layers {
		for _, name := range slices.Concat(layer.allowed, layer.tests, []string{layer.name}) {
			if !isFolder(t, strings.TrimSuffix(name, allBelow)) {
				t.Errorf("%s names package %s, which does not exist", layersFile, name)
			}
		}
	}
}

// allBelow ends the name of an entry that is for every package below a folder.
const allBelow = "/..."

// layerOf finds the entry of a package: its own, or that of the folder it stands below.
func layerOf(layers map[string]row, pkg string) (row, bool) {
	layer, known := layers[pkg]
	for folder := path.Dir(pkg); !known && folder != "."; folder = path.Dir(folder) {
		layer, known = layers[folder+allBelow]
	}
	return layer, known
}

// Entries stand from the bottom of the house to its top, and each may import only packages that stand above it in the
// file. So a cycle of layers cannot be written down.
func TestTheArchitecturePointsDownward(t *testing.T) {
	t.Parallel()
	below := []string{}
	for _, layer := range entries(t, layersFile) {
		for _, name := range slices.Concat(layer.allowed, layer.tests) {
			if !slices.Contains(below, name) {
				t.Errorf("%s allows %s to import %s, which is not below it", layersFile, layer.name, name)
			}
		}
		below = append(below, layer.name)
	}
}

func TestModulesOfOthersAreImportedOnlyWhereTheArchitectureSays(t *testing.T) {
	t.Parallel()
	modules := byName(t, modulesFile)
	used := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, imported := range f.imports {
			if isStandard(imported) || ours(imported) != "" {
				continue
			}
			module, known := moduleOf(modules, imported)
			used[module.name] = true
			switch {
			case !known:
				t.Errorf("%s imports %s, a module without an entry in %s: the default answer to a new dependency is no", f.path, imported, modulesFile)
			case slices.Contains(module.allowed, f.pkg), f.isTest() && module.mayTest():
			default:
				t.Errorf("%s imports %s, which %s does not allow to %s", f.path, imported, modulesFile, f.pkg)
			}
		}
	}
	for name := range modules {
		if !used[name] {
			t.Errorf("%s names module %s, which nothing imports", modulesFile, name)
		}
	}
}

// mayTest tells whether any test may use the module: its entry says so, or names a package.
func (r row) mayTest() bool { return slices.Contains(r.allowed, "tests") }

// moduleOf finds the module that an import path belongs to: the longest that begins it.
func moduleOf(modules map[string]row, imported string) (found row, ok bool) {
	for name, module := range modules {
		if (imported == name || strings.HasPrefix(imported, name+"/")) && len(name) > len(found.name) {
			found, ok = module, true
		}
	}
	return found, ok
}
