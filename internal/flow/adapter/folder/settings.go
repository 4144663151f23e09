// Package folder takes the files of a folder in, wherever the folder is: each once, when it is complete, in their order, and removes them
// when their messages are published.
package folder

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// How a location finds that a file is complete.
const (
	Stable  = "stable"  // its size and times stand still
	Marker  = "marker"  // another file says so
	Renamed = "renamed" // it gets its name when it is
)

// Which file of a location comes first.
const (
	ByName = "name"
	ByTime = "time"
)

// Things that are done with an empty file.
const (
	SuspendEmpty = "suspend"
	PassEmpty    = "pass"
	RemoveEmpty  = "remove"
)

// Settings are those of a location.
type Settings struct {
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

// Defaults gives the settings of a location that says nothing else.
func Defaults() Settings {
	return Settings{
		PollInterval: adapter.Duration(time.Second), Ready: Stable, StableFor: adapter.Duration(time.Second), MarkerSuffix: ".done",
		Empty: SuspendEmpty, Order: ByName, BatchCount: 20, BatchBytes: 100 << 10,
	}
}

// shortest is the shortest interval between two looks.
const shortest = adapter.Duration(10 * time.Millisecond)

// Check gives what is wrong with settings.
func (s Settings) Check() []adapter.Problem {
	problems := adapter.NotBelow("poll_interval", s.PollInterval, shortest)
	problems = append(problems, adapter.NotBelow("stable_for", s.StableFor, shortest)...)
	problems = append(problems, adapter.OneOf("ready", s.Ready, Stable, Marker, Renamed)...)
	problems = append(problems, adapter.OneOf("empty", s.Empty, SuspendEmpty, PassEmpty, RemoveEmpty)...)
	problems = append(problems, adapter.OneOf("order", s.Order, ByName, ByTime)...)
	problems = append(problems, adapter.Between("batch_count", int64(s.BatchCount), 1, 1000)...)
	problems = append(problems, adapter.Between("batch_bytes", s.BatchBytes, 1, 64<<20)...)
	if s.Ready == Marker && (s.MarkerSuffix == "" || strings.ContainsAny(s.MarkerSuffix, `/\`+"\x00")) {
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

// CheckMask gives what is wrong with a mask.
func CheckMask(mask string) []adapter.Problem {
	if _, err := path.Match(mask, ""); err != nil {
		return []adapter.Problem{{
			Path: []string{"address"}, Message: fmt.Sprintf("the mask %q cannot be read", mask),
			Remedy: `Write * for any characters, ? for one, [a-z] for one of some, and \ before one that stands for itself.`,
		}}
	}
	return nil
}
