package broker

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A column is one of RECEIVE.
type column struct {
	name string
	kind value.Type
	// sql reads it from a row of parley.receive; it is the name itself where empty.
	sql string
	// stored gives its value as a column of a table keeps it; the name itself where empty.
	stored string
	// isOfGo says that only decode gives its value.
	isOfGo bool
}

// inUTF16 gives the body of an Error message in UTF-16 behind its mark, as decode does.
const inUTF16 = `(select '\xfffe'::bytea || coalesce(string_agg(case when u.code < 65536
  then set_byte(set_byte('\x0000'::bytea, 0, u.code & 255), 1, u.code >> 8)
  else set_byte(set_byte(set_byte(set_byte('\x00000000'::bytea, 0, u.high & 255), 1, u.high >> 8), 2, u.low & 255), 3, u.low >> 8)
end, ''::bytea order by u.place), ''::bytea)
from (select s.place, ascii(s.letter) as code, 55296 + ((ascii(s.letter) - 65536) >> 10) as high,
  56320 + ((ascii(s.letter) - 65536) & 1023) as low
from regexp_split_to_table(convert_from(message_body, 'UTF8'), '') with ordinality as s (letter, place)) as u)`

// messageColumns are the columns of RECEIVE in the order of RECEIVE *.
var messageColumns = []column{
	{name: "status", kind: value.Of(value.TinyInt)},
	{name: "priority", kind: value.Of(value.TinyInt)},
	{name: "queuing_order", kind: value.Of(value.BigInt)},
	{name: "conversation_group_id", kind: value.Of(value.UniqueIdentifier)},
	{name: "conversation_handle", kind: value.Of(value.UniqueIdentifier)},
	{name: "message_sequence_number", kind: value.Of(value.BigInt)},
	{name: "service_name", kind: value.Sized(value.NVarChar, 256)},
	{name: "service_id", kind: value.Of(value.Int)},
	{name: "service_contract_name", kind: value.Sized(value.NVarChar, 128)},
	{name: "service_contract_id", kind: value.Of(value.Int)},
	{name: "message_type_name", kind: value.Sized(value.NVarChar, 128)},
	{name: "message_type_id", kind: value.Of(value.Int)},
	{name: "validation", kind: value.Sized(value.NChar, 2)},
	// The Error message of the broker is text in UTF-8 there, and in UTF-16 behind its mark here; e marks it.
	{
		name: "message_body", kind: value.Sized(value.VarBinary, value.Max),
		sql:    "case message_type_id when 1 then 'e' || message_body::text else message_body::text end",
		stored: "case message_type_id when 1 then " + inUTF16 + " else message_body end",
	},
	{
		name: "message_enqueue_time", kind: value.Of(value.DateTime), sql: "(extract(epoch from message_enqueue_time) * 1000000)::bigint",
		isOfGo: true, // it is a time in the zone of the runner
	},
}

// columnAt gives the place of a column by its name in any case, -1 where there is none.
func columnAt(name string) int {
	for i, c := range messageColumns {
		if strings.EqualFold(c.name, name) {
			return i
		}
	}
	return -1
}

// kept gives its value for a column of a table.
func (c column) kept() string {
	if c.stored != "" {
		return c.stored
	}
	return c.name
}

func (c column) text() string {
	if c.sql != "" {
		return c.sql
	}
	return c.name
}

// decode gives the value of a column of a row.
func (c column) decode(frame *expression.Frame, text []byte) value.Value {
	switch {
	case text == nil:
		return value.Null(c.kind)
	case c.kind.Kind == value.DateTime:
		micros, _ := strconv.ParseInt(string(text), 10, 64)
		v, ok := value.NewTemporal(c.kind, value.MomentOf(time.UnixMicro(micros).In(frame.Context.Now.Location())))
		if !ok {
			return value.Null(c.kind)
		}
		return v
	case c.name == "message_body" && text[0] == 'e':
		return value.BytesOf(c.kind, utf16Bytes(decoded(c.kind, text[1:]).Raw()))
	}
	return decoded(c.kind, text)
}

// utf16Bytes gives text that is UTF-8 as UTF-16 from the low byte on, behind its mark.
func utf16Bytes(text string) string {
	units := utf16.Encode([]rune("\uFEFF" + text))
	bytes := make([]byte, 0, 2*len(units))
	for _, u := range units {
		bytes = append(bytes, byte(u), byte(u>>8))
	}
	return string(bytes)
}
