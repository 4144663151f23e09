package flatfile_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/interchange"
)

// A generated schema with a document of it.
type generated struct {
	t        *rapid.T
	names    int
	wraps    bool
	alphabet string
}

func (g *generated) name(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

func (g *generated) value(most int) string {
	return strings.TrimSpace(rapid.StringOfN(rapid.RuneFrom([]rune(g.alphabet)), 0, most, -1).Draw(g.t, "value"))
}

func xmlText(value string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#xD;", "\n", "&#xA;").Replace(value)
}

func element(name, value string) string {
	if value == "" {
		return "<" + name + "/>"
	}
	return "<" + name + ">" + xmlText(value) + "</" + name + ">"
}

// field gives the declaration of a field of a delimited record, and its element.
func (g *generated) field(optional bool) (declaration, document string) {
	name := g.name("f")
	info := ""
	if rapid.Bool().Draw(g.t, "wraps") {
		g.wraps = true
		info = `<b:fieldInfo wrap_char_type="char" wrap_char="'"/>`
	} else if rapid.IntRange(0, 4).Draw(g.t, "pads") == 0 {
		info = fmt.Sprintf(`<b:fieldInfo min_length_with_pad="%d" pad_char_type="char" pad_char="*" justification="%s"/>`,
			rapid.IntRange(1, 6).Draw(g.t, "least"), rapid.SampledFrom([]string{"left", "right"}).Draw(g.t, "side"))
	}
	least := ""
	if optional {
		least = ` minOccurs="0"`
	}
	return fmt.Sprintf(`<xs:element name="%s" type="xs:string"%s>%s</xs:element>`, name, least, info), element(name, g.value(6))
}

// record gives the declaration of a record and a function that draws its element.
func (g *generated) record(tag string) (declaration string, draw func() string) {
	name := g.name("r")
	if rapid.IntRange(0, 3).Draw(g.t, "positional") == 0 {
		return g.positional(name, tag)
	}
	order := rapid.SampledFrom([]string{"infix", "prefix", "postfix", ""}).Draw(g.t, "order")
	delimiter := rapid.SampledFrom([]string{",", ";", "||", "#"}).Draw(g.t, "delimiter")
	info := fmt.Sprintf(`<b:recordInfo child_delimiter_type="char" child_delimiter="%s"`, delimiter)
	if order != "" {
		info += ` child_order="` + order + `"`
	}
	if tag != "" {
		info += ` tag_name="` + tag + `"`
	}
	if rapid.Bool().Draw(g.t, "escapes") {
		info += ` escape_char_type="char" escape_char="\"`
	}
	count := rapid.IntRange(1, 4).Draw(g.t, "fields")
	optional := rapid.IntRange(0, 1).Draw(g.t, "optional at the end")
	var fields, values []string
	for i := range count {
		declaration, value := g.field(i >= count-optional && count > 1)
		fields, values = append(fields, declaration), append(values, value)
	}
	declaration = fmt.Sprintf(`%s/><xs:complexType><xs:sequence>%s</xs:sequence></xs:complexType></xs:element>`, info, strings.Join(fields, ""))
	return `<xs:element name="` + name + `"%s>` + declaration, func() string {
		return "<" + name + ">" + strings.Join(values, "") + "</" + name + ">"
	}
}

func (g *generated) positional(name, tag string) (declaration string, draw func() string) {
	info, document := `<b:recordInfo structure="positional"`, ""
	fields := ""
	offset := 0
	if tag != "" {
		info += ` tag_name="` + tag + `" tag_offset="0"`
		offset = len(tag)
	}
	for range rapid.IntRange(1, 3).Draw(g.t, "positions") {
		field := g.name("p")
		length := rapid.IntRange(1, 6).Draw(g.t, "length")
		fields += fmt.Sprintf(`<xs:element name="%s" type="xs:string"><b:fieldInfo pos_offset="%d" pos_length="%d" justification="%s"/></xs:element>`,
			field, offset, length, rapid.SampledFrom([]string{"left", "right"}).Draw(g.t, "side"))
		offset = rapid.IntRange(0, 2).Draw(g.t, "offset")
		document += element(field, g.value(length))
	}
	return `<xs:element name="` + name + `"%s>` + info + "/><xs:complexType><xs:sequence>" + fields + "</xs:sequence></xs:complexType></xs:element>",
		func() string { return "<" + name + ">" + document + "</" + name + ">" }
}

// A file that is assembled is disassembled to the same: for schemas and documents at random, whatever characters the values have. A document that
// could not be read again is refused when it is written.
func TestWhatIsAssembledIsDisassembledToTheSame(t *testing.T) {
	t.Parallel()
	written := 0
	rapid.Check(t, func(r *rapid.T) {
		g := &generated{t: r, alphabet: "abAB 1é€'\\*"}
		if rapid.Bool().Draw(r, "hostile values") {
			g.alphabet += ",;|#\n\r&<T"
		}
		parts, document := "", ""
		for i := range rapid.IntRange(1, 4).Draw(r, "parts") {
			tag := ""
			if rapid.Bool().Draw(r, "tagged") {
				tag = fmt.Sprintf("T%d", i)
			}
			declaration, draw := g.record(tag)
			least, most := 1, 1
			if rapid.Bool().Draw(r, "repeats") && tag != "" {
				least, most = 0, 3
			}
			parts += fmt.Sprintf(declaration, fmt.Sprintf(` minOccurs="%d" maxOccurs="%d"`, least, most))
			for range rapid.IntRange(least, most).Draw(r, "times") {
				document += draw()
			}
		}
		order := rapid.SampledFrom([]string{"infix", "postfix"}).Draw(r, "order of the root")
		mode := rapid.SampledFrom([]string{"speed", "complexity"}).Draw(r, "mode")
		root := `<b:schemaInfo parser_optimization="` + mode + `"/><xs:element name="Root"><b:recordInfo child_delimiter_type="hex" child_delimiter="0x0D 0x0A" child_order="` + order +
			`"/><xs:complexType><xs:sequence>` + parts + `</xs:sequence></xs:complexType></xs:element>`
		s := compiled(t, root, flatfile.Settings{})
		whole := named("<Root>" + document + "</Root>")
		file, err := assembled(t, s, flatfile.WriteSettings{}, whole)
		if err != nil {
			if f, ok := fault.Of(err); !ok || f.Remedy == "" {
				r.Fatalf("%s is refused as %v", whole, err)
			}
			return
		}
		if file == "" || order == "infix" && strings.Trim(file, "\r\n") == "" || strings.ContainsAny(file, "*") && strings.Contains(root, "pad_char") {
			return // an empty file holds no message, and pad characters at the end of a value are not kept
		}
		c, _, err := disassembled(t, s, file, flatfile.ReadSettings{})
		if err != nil {
			r.Fatalf("%s\n%s\nis written as %q, which cannot be read: %v", root, whole, file, err)
		}
		if len(c.messages) != 1 || c.messages[0] != whole {
			r.Fatalf("%s\n%s\nis written as %q, and read as\n%s", root, whole, file, strings.Join(c.messages, "\n"))
		}
		written++
	})
	if written < 20 {
		t.Errorf("only %d documents were written", written)
	}
}

// fuzzed are schemas of each kind.
var fuzzed = []string{
	taggedOrder, lines,
	strings.Replace(lines, "postfix", "infix", 1),
	`<xs:element name="Row"><b:recordInfo child_delimiter_type="char" child_delimiter="," escape_char_type="char" escape_char="\"/><xs:complexType><xs:sequence>
<xs:element name="A" type="xs:string"><b:fieldInfo wrap_char_type="char" wrap_char="'"/></xs:element><xs:element name="B" type="xs:string" minOccurs="0"/></xs:sequence></xs:complexType></xs:element>`,
	`<xs:element name="P"><b:recordInfo child_delimiter_type="hex" child_delimiter="0x0A" child_order="postfix"/><xs:complexType><xs:sequence>
<xs:element name="L" maxOccurs="unbounded"><b:recordInfo structure="positional"/><xs:complexType><xs:sequence><xs:element name="X" type="xs:string"><b:fieldInfo pos_length="3"/></xs:element>
<xs:element name="Y" type="xs:string"><b:fieldInfo pos_offset="1" pos_length="2" justification="right"/></xs:element></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>`,
}

// Reading ends, whatever a file holds; a message that could be read and can be written is read again as the same.
func FuzzFilesAreReadWrittenAndReadAgain(f *testing.F) {
	var schemas []*flatfile.Schema
	for _, element := range fuzzed {
		schemas = append(schemas, compiled(f, element, flatfile.Settings{}))
	}
	for _, seed := range []string{"PO1,a\nb\n", "1;2;3\r\n4;5;6\r\n", "'a,b',c", "abc de\nabcdef\n", "\\,,", "PO\n\n", ""} {
		for i := range schemas {
			f.Add(seed, byte(i))
		}
	}
	f.Fuzz(func(t *testing.T, file string, which byte) {
		s := schemas[int(which)%len(schemas)]
		for _, recovery := range []interchange.Recovery{interchange.Nothing, interchange.Messages, interchange.Records} {
			c, summary, err := disassembled(t, s, file, flatfile.ReadSettings{Recover: recovery})
			if err != nil {
				if f, ok := fault.Of(err); !ok || f.Remedy == "" || f.Place.Byte > int64(len(file)) {
					t.Fatalf("%q ends with %#v", file, err)
				}
				continue
			}
			if int(summary.Messages) != len(c.messages) || int(summary.Bad) != len(c.bad) {
				t.Fatalf("the summary is %+v of %d messages", summary, len(c.messages))
			}
			last := int64(0)
			for _, bad := range c.bad {
				if bad.To < last || bad.To < bad.From || bad.To > int64(len(file)) {
					t.Fatalf("%q: a bad part is bytes %d to %d", file, bad.From, bad.To)
				}
				last = bad.To
			}
			for _, m := range c.messages {
				again, err := assembled(t, s, flatfile.WriteSettings{}, m)
				if err != nil || again == "" {
					continue
				}
				second, _, err := disassembled(t, s, again, flatfile.ReadSettings{})
				if err != nil || len(second.messages) != 1 || second.messages[0] != m {
					t.Fatalf("%q gives\n%s\nwhich is written as %q and read as\n%q, %v", file, m, again, second.messages, err)
				}
			}
		}
	})
}
