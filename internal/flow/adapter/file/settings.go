package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/filename"
	"github.com/parley-broker/parley/internal/flow/adapter/folder"
)

// sendSettings are the settings of a port.
type sendSettings struct {
	Mode        string            `json:"mode"`
	Fsync       bool              `json:"fsync"`
	Permissions string            `json:"permissions"`
	Macros      map[string]string `json:"macros"`
}

// How a port writes a file.
const (
	create     = "create"
	overwrite  = "overwrite"
	appendMode = "append"
)

func sendDefaults() sendSettings { return sendSettings{Mode: create, Fsync: true, Permissions: "0640"} }

func (s sendSettings) check() []adapter.Problem {
	problems := adapter.OneOf("mode", s.Mode, create, overwrite, appendMode)
	if _, err := fileMode(s.Permissions); err != nil {
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "permissions"}, Message: fmt.Sprintf("%q are no permissions of a file", s.Permissions),
			Remedy: `Write them as chmod takes them, in quotes, such as "0640".`,
		})
	}
	return append(problems, filename.CheckOwn(s.Macros)...)
}

// place divides an address into its folder and what stands behind it.
func place(address string) (folder, last string, problems []adapter.Problem) {
	folder, last = path.Split(address)
	wrong := func(message, remedy string) (string, string, []adapter.Problem) {
		return "", "", []adapter.Problem{{Path: []string{"address"}, Message: message, Remedy: remedy}}
	}
	switch {
	case strings.ContainsRune(address, 0):
		return wrong("the address has a character 0", "Remove it.")
	case !strings.HasPrefix(address, "/"):
		return wrong(fmt.Sprintf("the address %q is no full path", address), "Begin with a slash: /data/orders/*.xml.")
	case last == "" || last == "." || last == "..":
		return wrong(fmt.Sprintf("the address %q names a folder alone", address), "Say behind it which files: /data/orders/*.xml.")
	}
	return path.Clean(folder), last, nil
}

// check gives what is wrong with the definition of a location or port.
func check(direction adapter.Direction, address string, settings json.RawMessage, secrets []string) []adapter.Problem {
	problems := adapter.OnlySecrets(secrets)
	if direction == adapter.Send {
		s := sendDefaults()
		problems = append(problems, adapter.CheckSettings(settings, &s)...)
		problems = append(problems, s.check()...)
		_, wrong := targetOf(address, s)
		return append(problems, wrong...)
	}
	s := folder.Defaults()
	problems = append(problems, adapter.CheckSettings(settings, &s)...)
	problems = append(problems, s.Check()...)
	_, mask, wrong := place(address)
	problems = append(problems, wrong...)
	return append(problems, folder.CheckMask(mask)...)
}

// target is where a port writes.
type target struct {
	filename.Template
	folder string
}

// targetOf reads the address of a port.
func targetOf(address string, s sendSettings) (target, []adapter.Problem) {
	folder, name, problems := place(address)
	wrong := func(message, remedy string) (target, []adapter.Problem) {
		return target{}, []adapter.Problem{{Path: []string{"address"}, Message: message, Remedy: remedy}}
	}
	switch {
	case problems != nil:
		return target{}, problems
	case strings.Contains(folder, "%"):
		return wrong("the folder of the address has a percent sign", "Macros stand in the name of the file alone.")
	case strings.HasPrefix(name, prefix):
		return wrong("names that begin with "+prefix+" are those of the adapter", "Let the name begin otherwise.")
	}
	template, problem := filename.Parse(name, s.Macros)
	if problem != nil {
		return wrong(problem.Message, problem.Remedy)
	}
	return target{template, folder}, nil
}

// asError gives problems as one error, nil for none.
func asError(problems []adapter.Problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy))
	}
	return errors.Join(errs...)
}
