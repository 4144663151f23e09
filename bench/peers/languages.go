package main

import (
	"encoding/json"
	"strings"
)

// inNode is Node, with the packages that a package-lock.json names.
var inNode = language{
	tool: "npm", howTo: "install Node with npm: there is no npm",
	lock: "package-lock.json", packages: "node_modules",
	fetch: [][]string{{"npm", "ci", "--silent", "--no-audit", "--no-fund"}},
	run:   []string{"node_modules/.bin/node", "worker.mjs"},
	versionOf: func(lock []byte, name string) string {
		var written struct {
			Packages map[string]struct{ Version string }
		}
		if json.Unmarshal(lock, &written) != nil {
			return ""
		}
		return written.Packages["node_modules/"+name].Version
	},
}

// inPython is Python, with the packages that a requirements.txt names, in an environment of its own.
var inPython = language{
	tool: "python3", howTo: "install Python 3.11 or newer with venv: there is no python3",
	lock: "requirements.txt", packages: "environment",
	fetch: [][]string{
		{"python3", "-m", "venv", "--clear", "environment"},
		{"environment/bin/pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--requirement", "requirements.txt"},
	},
	run: []string{"environment/bin/python", "worker.py"},
	versionOf: func(lock []byte, name string) string {
		for line := range strings.Lines(string(lock)) {
			for _, prefix := range []string{name + "==", name + "-pg=="} {
				if version, is := strings.CutPrefix(strings.TrimSpace(line), prefix); is {
					return version
				}
			}
		}
		return ""
	},
}
