package postgresql

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

const (
	// rowsMax and rowBytesMax bound the rows that one statement gives: they are in memory until they are published.
	rowsMax     = 10_000
	rowBytesMax = 64 << 20
)

// row is a row as PostgreSQL writes its values; nil stands for null.
type row [][]byte

// rowSet is the result of a statement.
type rowSet struct {
	columns []pgconn.FieldDescription
	rows    []row
}

// query runs a statement.
func query(ctx context.Context, tx pgx.Tx, statement string, parameters [][]byte) (*rowSet, error) {
	reader := tx.Conn().PgConn().ExecParams(ctx, statement, parameters, nil, nil, nil)
	set := &rowSet{}
	bytesRead := 0
	for reader.NextRow() {
		if set.columns == nil {
			set.columns = append(set.columns, reader.FieldDescriptions()...)
		}
		values := reader.Values()
		kept := make(row, len(values))
		for i, value := range values {
			kept[i] = bytes.Clone(value)
			bytesRead += len(value)
		}
		set.rows = append(set.rows, kept)
		if len(set.rows) > rowsMax || bytesRead > rowBytesMax {
			_, err := reader.Close()
			return nil, errors.Join(fmt.Errorf("the statement gives more than %d rows, or %d bytes: bound it, such as by limit $1",
				rowsMax, rowBytesMax), err)
		}
	}
	if _, err := reader.Close(); err != nil {
		return nil, err
	}
	return set, nil
}

// column gives the index of a column.
func (s *rowSet) column(name string) (int, error) {
	for i, column := range s.columns {
		if column.Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("the statement gives no column %q", name)
}

// names of types of PostgreSQL.
const (
	oidBool, oidBytea              = pgtype.BoolOID, pgtype.ByteaOID
	oidJSON, oidJSONB, oidXML      = pgtype.JSONOID, pgtype.JSONBOID, pgtype.XMLOID
	applicationJSON, applicationX  = "application/json", "application/xml"
	applicationBytes, textPlainUTF = "application/octet-stream", "text/plain"
)

// jsonOf writes a value as JSON: numbers and booleans as such, JSON as it is, arrays as arrays, and all else as text.
func jsonOf(oid uint32, value []byte) ([]byte, error) {
	if value == nil {
		return []byte("null"), nil
	}
	switch oid {
	case oidBool:
		return strconv.AppendBool(nil, string(value) == "t"), nil
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.Float4OID, pgtype.Float8OID, pgtype.OIDOID:
		if json.Valid(value) { // NaN and Infinity are texts
			return value, nil
		}
	case oidJSON, oidJSONB:
		return value, nil
	}
	if element, ok := elements[oid]; ok {
		return jsonOfArray(element, value)
	}
	return json.Marshal(string(value))
}

// elements has the types of the elements of arrays.
var elements = map[uint32]uint32{
	pgtype.BoolArrayOID: pgtype.BoolOID, pgtype.Int2ArrayOID: pgtype.Int2OID, pgtype.Int4ArrayOID: pgtype.Int4OID,
	pgtype.Int8ArrayOID: pgtype.Int8OID, pgtype.NumericArrayOID: pgtype.NumericOID, pgtype.Float4ArrayOID: pgtype.Float4OID,
	pgtype.Float8ArrayOID: pgtype.Float8OID, pgtype.TextArrayOID: pgtype.TextOID, pgtype.VarcharArrayOID: pgtype.VarcharOID,
	pgtype.BPCharArrayOID: pgtype.BPCharOID, pgtype.UUIDArrayOID: pgtype.UUIDOID, pgtype.DateArrayOID: pgtype.DateOID,
	pgtype.TimestampArrayOID: pgtype.TimestampOID, pgtype.TimestamptzArrayOID: pgtype.TimestamptzOID,
	pgtype.JSONBArrayOID: pgtype.JSONBOID,
}

// jsonOfArray writes an array of one dimension; one of several stays a text.
func jsonOfArray(element uint32, value []byte) ([]byte, error) {
	var items pgtype.Array[pgtype.Text]
	if err := pgtype.NewMap().Scan(pgtype.TextArrayOID, pgtype.TextFormatCode, value, &items); err != nil || len(items.Dims) > 1 {
		return json.Marshal(string(value))
	}
	var b bytes.Buffer
	b.WriteByte('[')
	for i, item := range items.Elements {
		if i > 0 {
			b.WriteByte(',')
		}
		var text []byte
		if item.Valid {
			text = []byte(item.String)
		}
		written, err := jsonOf(element, text)
		if err != nil {
			return nil, err
		}
		b.Write(written)
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

// bodyOf gives a value as a body, and its media type.
func bodyOf(oid uint32, value []byte) (body []byte, contentType, charset string, err error) {
	switch oid {
	case oidBytea:
		if len(value) < 2 {
			return []byte{}, applicationBytes, "", nil
		}
		body = make([]byte, hex.DecodedLen(len(value)-2))
		if _, err := hex.Decode(body, value[2:]); err != nil {
			return nil, "", "", fmt.Errorf("read bytes: %w", err)
		}
		return body, applicationBytes, "", nil
	case oidJSON, oidJSONB:
		return value, applicationJSON, "utf-8", nil
	case oidXML:
		return value, applicationX, "utf-8", nil
	}
	return append([]byte{}, value...), textPlainUTF, "utf-8", nil
}

// scalar gives a value as one of a property; nil for null.
func scalar(oid uint32, value []byte) any {
	switch {
	case value == nil:
		return nil
	case oid == oidBool:
		return string(value) == "t"
	case oid == pgtype.Int2OID || oid == pgtype.Int4OID || oid == pgtype.Int8OID || oid == pgtype.NumericOID:
		if json.Valid(value) {
			return json.Number(value)
		}
	}
	return string(value)
}
