package mapping

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/parley-broker/parley/internal/flow/carried"
	"github.com/parley-broker/parley/internal/flow/fault"
)

// A Definition is a map as definitions have it.
type Definition struct {
	Application string  `json:"application"`
	Language    string  `json:"language"` // xslt, jq or sql
	Program     Program `json:"program"`
	Function    string  `json:"function"`  // of sql
	Source      string  `json:"source"`    // type of the messages that ports give it
	Target      string  `json:"target"`    // type of what it makes
	TimeoutS    int     `json:"timeout_s"` // of the processor
	MemoryMB    int     `json:"memory_mb"`
	OutputMB    int     `json:"output_mb"`
}

// A Program is a stylesheet or a program of jq, with the files that it names.
type Program struct {
	// File is the path, with slashes, from the folder of the file that defines the map.
	File string `json:"file"`
	// Documents are the texts of the program and of the files that it names, by their paths.
	Documents map[string]string `json:"documents,omitempty"`
}

// BytesMost bounds the text of a program with all the files that it names, in bytes.
const BytesMost = carried.BytesMost

var kind = carried.Kind{Name: "map", Give: `give program: {"file": "maps/order.xsl"}`, LeaveOut: "what the map does not need"}

// Defaults of settings, as the database has them.
const (
	defaultTimeoutS = 10
	defaultMemoryMB = 512
	defaultOutputMB = 256
)

// program is a program as workers get it.
type program struct {
	key   [keyBytes]byte
	files []file
}

// file is a text with its name. lines is how many lines the name's file has before it.
type file struct {
	name, text string
	lines      int
}

// Check says why a program cannot be used as it stands in a definition.
func (p *Program) Check() *fault.Fault {
	return carried.Check(kind, p.File, p.Documents)
}

// compiled makes a program of its files, the main one first. prepare gives the text of each as its language has it.
func (p *Program) compiled(prepare func(name, text string) (file, error)) (*program, error) {
	if f := p.Check(); f != nil {
		return nil, f
	}
	main := path.Clean(p.File)
	names := slices.Sorted(maps.Keys(p.Documents))
	names = append([]string{main}, slices.DeleteFunc(names, func(name string) bool { return name == main })...)
	made := &program{}
	hash := sha256.New()
	var length [8]byte
	for _, name := range names {
		f, err := prepare(name, p.Documents[name])
		if err != nil {
			return nil, fault.InFile(err, name)
		}
		made.files = append(made.files, f)
		for _, text := range []string{f.name, f.text} {
			binary.BigEndian.PutUint64(length[:], uint64(len(text)))
			hash.Write(length[:])
			hash.Write([]byte(text))
		}
	}
	hash.Sum(made.key[:0])
	return made, nil
}

// limits gives what a run may use. A large message may use more memory: its tree has some ten times its bytes.
func (d *Definition) limits(inputBytes int64) limits {
	memory := cmpOr(d.MemoryMB, defaultMemoryMB) << 20
	output := cmpOr(d.OutputMB, defaultOutputMB) << 20
	if inputBytes > memoryBytes {
		memory += int(min(inputBytes, largeBytes) * treeFactor)
	}
	seconds := uint32(cmpOr(d.TimeoutS, defaultTimeoutS))
	if inputBytes > memoryBytes {
		seconds *= uint32(1 + min(inputBytes, largeBytes)/secondBytes)
	}
	return limits{
		memory: uint64(memory), output: uint64(output),
		seconds: seconds, operations: uint64(seconds) * operationsPerSecond,
	}
}

const (
	largeBytes          = 256 << 20 // of inputs that get more memory and time because they are large
	treeFactor          = 24
	secondBytes         = 8 << 20 // so many bytes of a large input get the time of the map once more
	operationsPerSecond = 50_000_000
)

func cmpOr(value, otherwise int) int {
	if value <= 0 {
		return otherwise
	}
	return value
}

// readDefinitions reads {name: settings}; nil: none.
func readDefinitions(written json.RawMessage) (map[string]*Definition, error) {
	all := map[string]*Definition{}
	if len(written) == 0 {
		return all, nil
	}
	if err := json.Unmarshal(written, &all); err != nil {
		return nil, fmt.Errorf("read the maps: %w", err)
	}
	for name, d := range all {
		if d == nil {
			all[name] = &Definition{}
		}
	}
	return all, nil
}
