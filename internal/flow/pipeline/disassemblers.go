package pipeline

import (
	"cmp"
	"fmt"

	"github.com/parley-broker/parley/internal/flow/interchange"
	"github.com/parley-broker/parley/internal/flow/text"
)

// Content types of messages.
const (
	xmlType  = "application/xml"
	jsonType = "application/json"
	csvType  = "text/csv"
	flatType = "text/plain"
)

const charsetMeaning = "Charset of the body, before that which the source says. A byte-order mark and an XML declaration come before both."

func disassemblers() []Component {
	recoverable := setting("recoverable", Boolean, "false", "Whether good messages go on where others are bad, which are suspended singly.")
	return []Component{
		{
			Name: "xml-disassembler", Direction: directionReceive, Stages: []string{stageDisassemble}, make: makeXMLDisassembler,
			Meaning: "Takes messages of XML out of their envelopes, or takes a document as one message, and types and promotes them.",
			Settings: []Setting{
				setting("envelopes", MessageTypes, "null", "Message types of envelopes; without it all whose schema describes one."),
				setting("documents", MessageTypes, "[]", "Message types that are taken; none: all."),
				setting("allow_unrecognized", Boolean, "false", "Whether messages of other types than documents go on too."),
				setting("validate", Boolean, "false", "Whether messages are held against the XML schema of their type."),
				recoverable,
				setting("charset", CharsetName, "null", charsetMeaning),
			},
		},
		{
			Name: "flat-file-disassembler", Direction: directionReceive, Stages: []string{stageDisassemble}, make: makeFlatDisassembler,
			Meaning: "Reads a flat file by the annotated schema of a message type into messages of XML.",
			Settings: []Setting{
				setting("document", MessageType, "null",
					"Message type of the messages, whose schema has annotations. It or envelope has to be given."),
				setting("envelope", MessageType, "null",
					"Message type of the whole file, whose schema says by body_xpath in which of its elements the messages are."),
				setting("header", MessageType, "null",
					"Message type of what stands before the messages, which get the properties that it promotes."),
				setting("trailer", MessageType, "null", "Message type of what stands behind the messages."),
				setting("preserve_header", Boolean, "false", "Whether messages get the header as the property "+HeaderProperty+"."),
				recoverable,
				setting("recover_records", Boolean, "false", "Whether in a message good records go on where others are bad."),
				setting("validate", Boolean, "false", "Whether values are held against their types and restrictions."),
				setting("newline", Choice, `"schema"`, "Line ends: as the schema has them, or any of CR, LF and CR LF.", "schema", "any"),
				setting("require_final_delimiter", Boolean, "false", "Whether a file whose last delimiter is missing is refused as cut off."),
				setting("charset", CharsetName, "null",
					"Charset of the file, before the code page of its schema. A byte-order mark is before both."),
			},
		},
		{
			Name: "csv-disassembler", Direction: directionReceive, Stages: []string{stageDisassemble}, make: makeCSVDisassembler,
			Meaning: "Reads CSV with a header line into messages of XML or JSON.",
			Settings: []Setting{
				setting("delimiter", Character, `","`, "The character between values."),
				setting("comment", Character, "null", "Lines that begin with it are passed over."),
				setting("as", Choice, `"xml"`, "Form of the messages.", "xml", "json"),
				setting("split", Boolean, "false", "Whether each line is a message."),
				setting("root", Text, `"Rows"`, "Name of the root element, and of the message type."),
				setting("row", Text, `"Row"`, "Name of the element of a line."),
				setting("namespace", Text, "null", "Namespace of the root element, and of the message type."),
				setting("type", MessageType, "null", "Message type of messages in JSON."),
				setting("columns", Texts, "null", "Columns that the header line has to name, in any order and beside others."),
				recoverable,
				setting("charset", CharsetName, "null", charsetMeaning),
			},
		},
		{
			Name: "json-disassembler", Direction: directionReceive, Stages: []string{stageDisassemble}, make: makeJSONDisassembler,
			Meaning: "Takes JSON apart, holds it against the JSON Schema of its message type, types and promotes it.",
			Settings: []Setting{
				setting("type", MessageType, "null", "Message type of the messages; without it that which the source says, or none."),
				setting("split", Boolean, "false", "Whether each member of an array is a message. Documents behind each other always are."),
				setting("path", Text, "null", "JSON Pointer to the array whose members are messages, such as /orders."),
				setting("validate", Boolean, "true", "Whether messages are held against the JSON Schema of their type, if it has one."),
				setting("assert_format", Boolean, "false", "Whether format is a rule of the schema, and not only a note."),
				setting("max_bytes", Integer, "16777216", "Most bytes of a message."),
				recoverable,
				setting("charset", CharsetName, "null", charsetMeaning),
			},
		},
	}
}

// recovery is the one that the setting asks for.
func recovery(isRecoverable bool) interchange.Recovery {
	if isRecoverable {
		return interchange.Messages
	}
	return interchange.Nothing
}

// charsetOf is that of the setting, or that of the source.
func (r *running) charsetOf(setting string) string {
	if r.isPart {
		return cmp.Or(r.source.Charset, text.UTF8.Name) // a part was decoded, and an operator writes UTF-8
	}
	if setting == "" {
		return r.source.Charset
	}
	if r.source.Charset != "" {
		said, err := text.Lookup(r.source.Charset)
		if taken, _ := text.Lookup(setting); err != nil || said.Name != taken.Name {
			r.write(WarningProperty, fmt.Sprintf("the source says charset %s, the setting %s, which was taken", r.source.Charset, setting))
		}
	}
	return setting
}
