package mapping

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// faultOf makes a fault of an answer that is none of success.
func (p *program) faultOf(a answer, l limits) *fault.Fault {
	fields := append(strings.Split(a.fields, "\x00"), make([]string, 6)...)
	f := &fault.Fault{Message: tidy(fields[5]), File: fields[0], Node: fields[3]}
	f.Place.Line, _ = strconv.ParseInt(fields[1], 10, 64)
	inputLine, _ := strconv.ParseInt(fields[4], 10, 64)
	if f.File == "" && a.status != statusDocument {
		f.File = p.files[0].name
	}
	for _, one := range p.files {
		if one.name == f.File && f.Place.Line > 0 {
			f.Place.Line += int64(one.lines)
		}
	}
	if fields[2] != "" {
		f.Message = fields[2] + ": " + f.Message
	}
	switch a.status {
	case statusDocument:
		f.File = ""
		f.Message = "the document cannot be read by the map: " + f.Message
		if inputLine > 0 {
			f.Message += fmt.Sprintf(" (line %d of the document)", inputLine)
		}
		f.Remedy = "mend the document"
	case statusOutput:
		f.Message = fmt.Sprintf("the map makes more than %d bytes", l.output)
		f.Remedy = "raise output_mb of the map, or have it make less"
	case statusOperations:
		f.Message = fmt.Sprintf("the map does more than %d operations", l.operations)
		f.Remedy = "raise timeout_s of the map, or have it do less"
	case statusStopped:
		f.Message = "the map has stopped: " + f.Message
		f.Remedy = "mend the message as the map says"
	default:
		f.Remedy = "correct the map, or the message"
	}
	if f.Node != "" && inputLine > 0 && a.status != statusDocument {
		f.Node += fmt.Sprintf(" (line %d)", inputLine)
	}
	return f
}

// tidy makes one line of a text of libxslt.
func tidy(text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), "; ")
}

// faultOfDeath is the fault of a message of which a worker has died.
func (p *program) faultOfDeath(d *died, l limits) *fault.Fault {
	f := &fault.Fault{File: p.files[0].name, Err: d}
	switch {
	case d.isOfMemory(l.memory):
		f.Message = fmt.Sprintf("the map needs more than %d MB of memory for the message", l.memory>>20)
		f.Remedy = "raise memory_mb of the map, or have it take less"
	case d.isOfTime():
		f.Message = fmt.Sprintf("the map needs more than %d seconds of the processor for the message", l.seconds)
		f.Remedy = "raise timeout_s of the map, or have it do less"
	default:
		f.Message = d.Error()
		f.Remedy = "keep the message: it harms the program that transforms it, and nothing else"
	}
	return f
}
