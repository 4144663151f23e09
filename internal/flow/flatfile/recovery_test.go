package flatfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/flatfile"
	"github.com/parley-broker/parley/internal/flow/interchange"
)

const (
	taggedOrder = `<xs:element name="Order"><b:recordInfo tag_name="PO" child_delimiter_type="hex" child_delimiter="0x0A" child_order="postfix"/>
<xs:complexType><xs:sequence>
<xs:element name="Head"><b:recordInfo child_delimiter_type="char" child_delimiter=","/><xs:complexType><xs:sequence>
<xs:element name="Id" type="xs:int"/><xs:element name="Name" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
<xs:element name="Note" type="xs:string"/></xs:sequence></xs:complexType></xs:element>`
	lines = `<xs:element name="File"><b:recordInfo child_delimiter_type="hex" child_delimiter="0x0D 0x0A" child_order="postfix"/>
<xs:complexType><xs:sequence><xs:element name="Line" maxOccurs="unbounded"><b:recordInfo child_delimiter_type="char" child_delimiter=";"/>
<xs:complexType><xs:sequence><xs:element name="Id" type="xs:int"/><xs:element name="Name" type="xs:string"/><xs:element name="Day" type="xs:date"/></xs:sequence></xs:complexType></xs:element>
</xs:sequence></xs:complexType></xs:element>`
	trailer = `<xs:element name="Trailer"><b:recordInfo child_delimiter_type="hex" child_delimiter="0x0D 0x0A"/>
<xs:complexType><xs:sequence><xs:element name="Count" type="xs:int"/></xs:sequence></xs:complexType></xs:element>`
	header = `<xs:element name="Header"><b:recordInfo child_delimiter_type="hex" child_delimiter="0x0D 0x0A" child_order="postfix"/>
<xs:complexType><xs:sequence><xs:element name="Source" type="xs:string"/></xs:sequence></xs:complexType></xs:element>`
)

func TestGoodMessagesGoOnAndABadOneComesWithItsBytesAndItsPlace(t *testing.T) {
	t.Parallel()
	s := compiled(t, taggedOrder, flatfile.Settings{})
	file := "PO1,Ann\nfirst\nXX2,Bob\nsecond\nPO3,Cid\nthird\nPO4\nfourth\nPO5,Eve\nfifth\n"
	c, summary, err := disassembled(t, s, file, flatfile.ReadSettings{Recover: interchange.Messages})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range c.messages {
		names = append(names, strings.Split(strings.Split(m, "<Name>")[1], "<")[0])
	}
	if fmt.Sprint(names) != "[Ann Cid Eve]" || summary.Messages != 3 || summary.Bad != 2 {
		t.Errorf("the good messages are %v; %+v", names, summary)
	}
	if len(c.bad) != 2 {
		t.Fatalf("the bad ones are %v", c.bad)
	}
	for i, want := range []string{"XX2,Bob\nsecond\n", "PO4\nfourth\n"} {
		bad := c.bad[i]
		if string(bad.Raw) != want || file[bad.From:bad.To] != want {
			t.Errorf("bad part %d is %q, of bytes %d to %d, and not %q", i, bad.Raw, bad.From, bad.To, want)
		}
	}
	if f := c.bad[1].Fault; f.Place.Line != 7 || f.Place.Column != 4 || f.Record != "Order/Head" || f.Field != "Name" || !strings.Contains(f.Expected, `delimiter ","`) {
		t.Errorf("the second bad part is reported as %+v", f)
	}
	if _, _, err := disassembled(t, s, file, flatfile.ReadSettings{}); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("without a recovery the file ends with %v", err)
	}
}

func TestABadRecordIsLeftOutOfItsMessageWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	s := compiled(t, lines, flatfile.Settings{})
	settings := flatfile.ReadSettings{Recover: interchange.Records, Validate: true, Trailer: compiled(t, trailer, flatfile.Settings{})}
	file := "1;Ann;2026-11-28\r\nnonsense\r\n2;Bob;2026-02-30\r\n3;Cid;2026-11-28\r\n3\r\n"
	c, summary, err := disassembled(t, s, file, settings)
	if err != nil {
		t.Fatal(err)
	}
	want := "<File><Line><Id>1</Id><Name>Ann</Name><Day>2026-11-28</Day></Line><Line><Id>3</Id><Name>Cid</Name><Day>2026-11-28</Day></Line></File>"
	if len(c.messages) != 1 || plain(c.messages[0]) != want || summary.Bad != 2 {
		t.Errorf("the messages are %q, %d bad", c.messages, summary.Bad)
	}
	if len(c.bad) != 2 || string(c.bad[0].Raw) != "nonsense\r\n" || string(c.bad[1].Raw) != "2;Bob;2026-02-30\r\n" {
		t.Fatalf("the bad records are %+v", c.bad)
	}
	if f := c.bad[1].Fault; f.Place.Line != 3 || f.Place.Column != 7 || f.Field != "Day" || !strings.Contains(f.Message, "no xs:date") {
		t.Errorf("the date is reported as %+v", f)
	}
	if plain(string(summary.Trailer)) != "<Trailer><Count>3</Count></Trailer>" {
		t.Errorf("the trailer is %s", summary.Trailer)
	}
}

// A message is complete when its last record has all it needs and what follows is no part of it, also where a list stands within that record.
func TestAMessageThatEndsWithAListIsWholeAtItsDelimiter(t *testing.T) {
	t.Parallel()
	s := compiled(t, `<xs:element name="Order"><b:recordInfo tag_name="PO" child_delimiter_type="hex" child_delimiter="0x0A" child_order="postfix"/>
<xs:complexType><xs:sequence><xs:element name="Id" type="xs:string"/><xs:element name="Items"><b:recordInfo tag_name="ITEMS" child_delimiter_type="char" child_delimiter=","/>
<xs:complexType><xs:sequence><xs:element name="Item" type="xs:string" maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element></xs:sequence></xs:complexType></xs:element>`, flatfile.Settings{})
	c, _, err := disassembled(t, s, "PO1\nITEMS,a,b\n{bad} 2\nITEMS,c\nPO3\nITEMS,d\n", flatfile.ReadSettings{Recover: interchange.Messages})
	if err != nil || len(c.messages) != 2 || len(c.bad) != 1 || string(c.bad[0].Raw) != "{bad} 2\nITEMS,c\n" {
		t.Errorf("good %q, bad %+v, %v", c.messages, c.bad, err)
	}
}

// A message with a bad record and no recovery of records is bad as a whole: it does not go on without the record, nor in two halves.
func TestAMessageIsNeverCutAtABadRecord(t *testing.T) {
	t.Parallel()
	s := compiled(t, lines, flatfile.Settings{})
	file := "1;Ann;2026-11-28\r\n" + "2;Bob\r\n" + strings.Repeat("3;Cid;2026-11-28\r\n", 5000)
	for _, recovery := range []interchange.Recovery{interchange.Nothing, interchange.Messages} {
		c, summary, err := disassembled(t, s, file, flatfile.ReadSettings{Recover: recovery})
		if len(c.messages) != 0 || summary.Messages != 0 {
			t.Errorf("%q: %d messages went on", recovery, len(c.messages))
		}
		if recovery == interchange.Nothing {
			if f, ok := fault.Of(err); !ok || f.Place.Line != 2 || f.Field != "Day" {
				t.Errorf("the file ends with %v", err)
			}
			continue
		}
		if err != nil || len(c.bad) != 1 || c.bad[0].To != int64(len(file)) || !strings.Contains(c.bad[0].Fault.Remedy, "nothing behind this place can be read") {
			t.Errorf("the bad parts are %+v, %v", c.bad, err)
		}
	}
}

func TestHeaderMessagesAndATrailerWithoutATagAreToldApart(t *testing.T) {
	t.Parallel()
	one := strings.Replace(lines, ` maxOccurs="unbounded"`, "", 1)
	s := compiled(t, one, flatfile.Settings{})
	settings := flatfile.ReadSettings{Header: compiled(t, header, flatfile.Settings{}), Trailer: compiled(t, trailer, flatfile.Settings{})}
	c, summary, err := disassembled(t, s, "Northwind\r\n1;A;2026-11-28\r\n2;B;2026-11-28\r\n42", settings)
	if err != nil || len(c.messages) != 2 || c.types[0] != "urn:x#File" {
		t.Fatalf("messages %q of types %q, %v", c.messages, c.types, err)
	}
	if plain(string(summary.Header)) != "<Header><Source>Northwind</Source></Header>" || plain(string(summary.Trailer)) != "<Trailer><Count>42</Count></Trailer>" {
		t.Errorf("header %s, trailer %s", summary.Header, summary.Trailer)
	}
	if _, _, err := disassembled(t, s, "Northwind\r\n1;A;2026-11-28\r\n", settings); err == nil || !strings.Contains(err.Error(), "without its trailer") {
		t.Errorf("a file without its trailer ends with %v", err)
	}
}

func TestAnInfixRootIsBrokenUpOnlyWhereTheSchemaSaysSo(t *testing.T) {
	t.Parallel()
	infix := strings.Replace(strings.Replace(lines, ` maxOccurs="unbounded"`, "", 1), "postfix", "infix", 1)
	file := "1;A;2026-11-28\r\n2;B;2026-11-28\r\n"
	if _, _, err := disassembled(t, compiled(t, infix, flatfile.Settings{}), file, flatfile.ReadSettings{}); err == nil || !strings.Contains(err.Error(), "the end of message") {
		t.Errorf("without the annotation the file ends with %v", err)
	}
	broken := compiled(t, `<b:schemaInfo allow_message_breakup_of_infix_root="true"/>`+infix, flatfile.Settings{})
	c, _, err := disassembled(t, broken, file, flatfile.ReadSettings{})
	if err != nil || len(c.messages) != 2 {
		t.Errorf("with it there are %d messages, %v", len(c.messages), err)
	}
	out, err := assembled(t, broken, flatfile.WriteSettings{}, c.messages...)
	if err != nil || out+"\r\n" != file {
		t.Errorf("they are written as %q, %v", out, err)
	}
}

// The start tag of a message is written with its first record: where that one is bad, it is written with the next.
func TestARecordWithABadValueIsLeftOutWhereverItStands(t *testing.T) {
	t.Parallel()
	s := compiled(t, lines, flatfile.Settings{})
	good, bad := "1;a;2026-11-28\r\n", "x;b;2026-11-28\r\n"
	for _, file := range []string{bad + good + good, good + bad + good, good + good + bad, bad + bad + good} {
		settings := flatfile.ReadSettings{Recover: interchange.Records, Validate: true}
		c, summary, err := disassembled(t, s, file, settings)
		if err != nil || summary.Messages != 1 || len(c.bad) != strings.Count(file, bad) {
			t.Errorf("%q: %+v, %v", file, summary, err)
			continue
		}
		for _, b := range c.bad {
			if string(b.Raw) != bad {
				t.Errorf("%q: the bad record is %q", file, b.Raw)
			}
		}
		whole, _, err := disassembled(t, s, strings.ReplaceAll(file, bad, ""), settings)
		if err != nil || c.messages[0] != whole.messages[0] {
			t.Errorf("%q is\n%s\nand not\n%s, %v", file, c.messages[0], whole.messages[0], err)
		}
	}
}

// A record that was bad, of a message that cannot be completed either, would be mended and sent twice if both were reported.
func TestARecordOfAMessageThatIsBadAsAWholeIsNotReportedBesides(t *testing.T) {
	t.Parallel()
	s := compiled(t, `<xs:element name="File"><b:recordInfo child_delimiter_type="hex" child_delimiter="0x0D 0x0A" child_order="postfix"/>
<xs:complexType><xs:sequence><xs:element name="Line" maxOccurs="unbounded"><b:recordInfo tag_name="L" child_delimiter_type="char" child_delimiter=","/>
<xs:complexType><xs:sequence><xs:element name="Name" type="xs:string"/><xs:element name="Amount" type="xs:int"/></xs:sequence></xs:complexType></xs:element>
<xs:element name="Total"><b:recordInfo structure="positional"/><xs:complexType><xs:sequence>
<xs:element name="Count" type="xs:int"><b:fieldInfo pos_length="4" justification="right"/></xs:element></xs:sequence></xs:complexType></xs:element>
</xs:sequence></xs:complexType></xs:element>`, flatfile.Settings{})
	const file = "Lbear,1\nLcat,2\n   2\n" // its CRs were lost
	c, summary, err := disassembled(t, s, file, flatfile.ReadSettings{Recover: interchange.Records, Validate: true})
	if err != nil || len(c.messages) != 0 || len(c.bad) != 1 || summary.Bad != 1 {
		t.Fatalf("%d messages, %d bad parts, %v: %+v", len(c.messages), len(c.bad), err, c.bad)
	}
	if string(c.bad[0].Raw) != file {
		t.Errorf("the bad part is %q", c.bad[0].Raw)
	}
}
