package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// How a location finds that a file is complete.
const (
	stable  = "stable"  // its size and times stand still
	marker  = "marker"  // another file says so
	renamed = "renamed" // it gets its name when it is
)

// Which file of a location comes first.
const (
	byName = "name"
	byTime = "time"
)

// Things that are done with an empty file.
const (
	suspendEmpty = "suspend"
	passEmpty    = "pass"
	removeEmpty  = "remove"
)

// receiveSettings are the settings of a location.
type receiveSettings struct {
	PollInterval adapter.Duration `json:"poll_interval"`
	Ready        string           `json:"ready"`
	StableFor    adapter.Duration `json:"stable_for"`
	MarkerSuffix string           `json:"marker_suffix"`
	Empty        string           `json:"empty"`
	Order        string           `json:"order"`
	Subfolders   bool             `json:"subfolders"`
	IgnoreCase   bool             `json:"ignore_case"`
	MoveTo       string           `json:"move_to"`
	BatchCount   int              `json:"batch_count"`
	BatchBytes   int64            `json:"batch_bytes"`
}

func receiveDefaults() receiveSettings {
	return receiveSettings{
		PollInterval: adapter.Duration(time.Second), Ready: stable, StableFor: adapter.Duration(time.Second), MarkerSuffix: ".done",
		Empty: suspendEmpty, Order: byName, BatchCount: 20, BatchBytes: 100 << 10,
	}
}

// shortest is the shortest interval between two looks.
const shortest = adapter.Duration(10 * time.Millisecond)

func (s receiveSettings) check() []adapter.Problem {
	problems := adapter.NotBelow("poll_interval", s.PollInterval, shortest)
	problems = append(problems, adapter.NotBelow("stable_for", s.StableFor, shortest)...)
	problems = append(problems, adapter.OneOf("ready", s.Ready, stable, marker, renamed)...)
	problems = append(problems, adapter.OneOf("empty", s.Empty, suspendEmpty, passEmpty, removeEmpty)...)
	problems = append(problems, adapter.OneOf("order", s.Order, byName, byTime)...)
	problems = append(problems, adapter.Between("batch_count", int64(s.BatchCount), 1, 1000)...)
	problems = append(problems, adapter.Between("batch_bytes", s.BatchBytes, 1, 64<<20)...)
	if s.Ready == marker && (s.MarkerSuffix == "" || strings.ContainsAny(s.MarkerSuffix, `/\`+"\x00")) {
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "marker_suffix"}, Message: "the suffix of marker files is empty, or has a separator",
			Remedy: "Write an ending such as .done.",
		})
	}
	if s.MoveTo != "" && !filepath.IsAbs(s.MoveTo) && !filepath.IsLocal(s.MoveTo) {
		problems = append(problems, adapter.Problem{
			Path: []string{"settings", "move_to"}, Message: fmt.Sprintf("the folder %q leads out of the folder of the location", s.MoveTo),
			Remedy: "Write the full path of a folder, or the name of one in the folder of the location.",
		})
	}
	return problems
}

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
	for name, property := range s.Macros {
		if _, isOurs := macros[name]; isOurs || strings.Contains(name, "%") || name == "" || property == "" {
			problems = append(problems, adapter.Problem{
				Path: []string{"settings", "macros", name}, Message: fmt.Sprintf("the macro %q cannot be made of the property %q", name, property),
				Remedy: "Give it a name that no macro of the adapter has, without a percent sign, and the name of a property.",
			})
		}
	}
	return problems
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
	s := receiveDefaults()
	problems = append(problems, adapter.CheckSettings(settings, &s)...)
	problems = append(problems, s.check()...)
	_, mask, wrong := place(address)
	problems = append(problems, wrong...)
	if _, err := path.Match(mask, ""); err != nil {
		problems = append(problems, adapter.Problem{
			Path: []string{"address"}, Message: fmt.Sprintf("the mask %q cannot be read", mask),
			Remedy: `Write * for any characters, ? for one, [a-z] for one of some, and \ before one that stands for itself.`,
		})
	}
	return problems
}

// asError gives problems as one error, nil for none.
func asError(problems []adapter.Problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s: %s. %s", strings.Join(p.Path, "."), p.Message, p.Remedy))
	}
	return errors.Join(errs...)
}
