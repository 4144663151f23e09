package mapping

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// Namespaces of stylesheets.
const (
	spaceXSL        = "http://www.w3.org/1999/XSL/Transform"
	spaceMSXSL      = "urn:schemas-microsoft-com:xslt"
	spaceUserCSharp = "http://schemas.microsoft.com/BizTalk/2003/userCSharp"
	spaceAssembly   = "http://schemas.microsoft.com/BizTalk/2003/ScriptNS"
)

// functoids are the functions of standard functoids that the worker provides.
var functoids = strings.Fields(`LogicalEq LogicalNe LogicalGt LogicalGte LogicalLt LogicalLte LogicalNot LogicalExistence LogicalAnd
	LogicalOr LogicalIsString LogicalIsNumeric IsNumeric LogicalIsDate IsDate ValToBool StringFind StringLeft StringRight StringSubstring
	StringSize StringConcat StringUpperCase StringLowerCase StringTrimLeft StringTrimRight ConvertAsc ConvertChr ConvertHex ConvertOct
	MathAdd MathSubtract MathMultiply MathDivide MathMax MathMin MathAbs MathInt MathMod MathRound MathSqrt MathSin MathCos MathTan
	MathArcTan MathATan MathExp MathExp10 MathLog MathLog10 MathLogn MathPow InitCumulativeSum AddToCumulativeSum GetCumulativeSum
	InitCumulativeAvg AddToCumulativeAvg GetCumulativeAvg InitCumulativeMin AddToCumulativeMin GetCumulativeMin InitCumulativeMax
	AddToCumulativeMax GetCumulativeMax InitCumulativeConcat AddToCumulativeConcat GetCumulativeConcat DateCurrentDate DateCurrentTime
	DateCurrentDateTime DateAddDays`)

// compiledMap finds the stylesheet in the C# that BizTalk has compiled of a map.
var compiledMap = regexp.MustCompile(`(?s)\bconst\s+string\s+_str(?:Map|XSLT)\s*=\s*@"((?:[^"]|"")*)"`)

// declaration finds the declaration of XML, whose encoding is that of the file, and not of the text.
var declaration = regexp.MustCompile(`^\s*<\?xml\s[^>]*\?>`)

// isCSharp says that a file is a compiled map of BizTalk, .btm.cs.
func isCSharp(name string) bool { return strings.EqualFold(path.Ext(name), ".cs") }

// prepareStylesheet gives the stylesheet of a file: of a compiled map that in its C#.
func prepareStylesheet(name, text string) (file, error) {
	f := file{name: name, text: strings.TrimPrefix(text, "\uFEFF")}
	if isCSharp(name) {
		at := compiledMap.FindStringSubmatchIndex(f.text)
		if at == nil {
			return f, &fault.Fault{
				Message: "the file has no constant _strMap, in which BizTalk puts the stylesheet of a compiled map",
				Remedy:  "give the .btm.cs of the map, or the .xsl that Validate Map writes",
			}
		}
		f.lines = strings.Count(f.text[:at[2]], "\n")
		f.text = strings.ReplaceAll(f.text[at[2]:at[3]], `""`, `"`)
	}
	if found := declaration.FindString(f.text); found != "" {
		// It says utf-16 of a text that is in UTF-8 by now. Its lines count.
		f.text = strings.Repeat("\n", strings.Count(found, "\n")) + f.text[len(found):]
	}
	return f, nil
}

// called finds calls of functions with a prefix in expressions.
var called = regexp.MustCompile(`([A-Za-z_][\w.-]*):([A-Za-z_][\w.-]*)\s*\(`)

// method finds the definitions of methods in C#.
var method = regexp.MustCompile(`(?m)^[ \t]*(?:public|private|internal|protected)[ \t]+(?:static[ \t]+)?[\w.<>\[\]]+[ \t]+(\w+)[ \t]*\(`)

// A stylesheetScan is what is found in a stylesheet without compiling it.
type stylesheetScan struct {
	names   []string       // of the files that it includes, imports and reads
	scripts map[string]int // lines of methods, by name
	calls   []call
	prefix  map[string]string // what namespaces are called
}

type call struct {
	space, name, prefix string
	line                int
}

// documentOf finds the names of files that are read by a name that is written in the stylesheet.
var documentOf = regexp.MustCompile(`\bdocument\(\s*(?:'([^']*)'|"([^"]*)")`)

// scan reads a stylesheet.
func (f file) scan() *stylesheetScan {
	s := &stylesheetScan{scripts: map[string]int{}, prefix: map[string]string{}}
	decoder := xml.NewDecoder(strings.NewReader(f.text))
	decoder.Strict = true
	decoder.Entity = xml.HTMLEntity
	decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	inScript := 0
	for {
		line, _ := decoder.InputPos()
		token, err := decoder.Token()
		if err != nil {
			// It is the end, or libxml2 says what is not well-formed: this reader knows no entities of a document type.
			return s
		}
		switch t := token.(type) {
		case xml.StartElement:
			s.element(t, line+f.lines)
			if t.Name.Space == spaceMSXSL && t.Name.Local == "script" || inScript > 0 {
				inScript++
			}
		case xml.EndElement:
			inScript = max(inScript-1, 0)
		case xml.CharData:
			if inScript > 0 {
				s.methods(t, line+f.lines)
			}
		}
	}
}

// methods takes the methods that a script defines.
func (s *stylesheetScan) methods(script []byte, line int) {
	for _, at := range method.FindAllSubmatchIndex(script, -1) {
		name := string(script[at[2]:at[3]])
		if _, isKnown := s.scripts[name]; !isKnown {
			s.scripts[name] = line + bytes.Count(script[:at[2]], []byte("\n"))
		}
	}
}

// element takes what an element names and calls.
func (s *stylesheetScan) element(e xml.StartElement, line int) {
	for _, a := range e.Attr {
		if a.Name.Space == "xmlns" {
			s.prefix[a.Name.Local] = a.Value
		}
	}
	for _, a := range e.Attr {
		if e.Name.Space == spaceXSL && (e.Name.Local == "include" || e.Name.Local == "import") && a.Name.Local == "href" {
			s.names = append(s.names, a.Value)
		}
		for _, found := range documentOf.FindAllStringSubmatch(a.Value, -1) {
			if name := found[1] + found[2]; name != "" {
				s.names = append(s.names, name)
			}
		}
		for _, found := range called.FindAllStringSubmatch(a.Value, -1) {
			s.calls = append(s.calls, call{s.prefix[found[1]], found[2], found[1], line})
		}
	}
}

// foreign gives the first function that a stylesheet calls and that is C# of its own, or of an assembly.
func (s *stylesheetScan) foreign() *fault.Fault {
	for _, c := range s.calls {
		isScript := c.space == spaceUserCSharp || c.space != "" && strings.HasPrefix(c.space, "http://schemas.microsoft.com/BizTalk/2003/user")
		if !isScript && strings.HasPrefix(c.space, spaceAssembly) {
			return &fault.Fault{
				Message: fmt.Sprintf("the map calls %s:%s, a function of an assembly of .NET, which is not here", c.prefix, c.name),
				Remedy:  "have an activity or a map in SQL do what it does", Place: fault.Place{Line: int64(c.line)},
			}
		}
		_, isOfScript := s.scripts[c.name]
		if isScript && c.space == spaceUserCSharp && slices.Contains(functoids, c.name) || !isScript && !isOfScript {
			continue
		}
		if !isScript && (c.space == spaceXSL || strings.HasPrefix(c.space, "http://exslt.org/")) {
			continue
		}
		line := c.line
		if defined, is := s.scripts[c.name]; is {
			line = defined
		}
		return &fault.Fault{
			Message: fmt.Sprintf("the map calls %s:%s, which is code of its own, and no standard functoid", c.prefix, c.name),
			Remedy:  "write it as a template of XSLT, or have an activity or a map in SQL do what it does",
			Place:   fault.Place{Line: int64(line)},
		}
	}
	return nil
}

// compileStylesheet makes a program of stylesheets, or says what of them cannot be.
func compileStylesheet(p *Program) (*program, error) {
	made, err := p.compiled(prepareStylesheet)
	if err != nil {
		return nil, err
	}
	for _, f := range made.files {
		if foreign := f.scan().foreign(); foreign != nil {
			foreign.File = f.name
			return nil, foreign
		}
		if unknown := f.unknown(); unknown != nil {
			return nil, unknown
		}
	}
	return made, nil
}
