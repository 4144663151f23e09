package translator

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"

	"github.com/parley-broker/parley/internal/tsql/value"
)

// collation is the PostgreSQL collation of text: SQL Server's default. It stands in the schema of the first table.
const collation = `dbo."SQL_Latin1_General_CP1_CI_AS"`

// microseconds are the digits of a second that PostgreSQL keeps.
const microseconds = 6

// databaseType gives the type of PostgreSQL in which values of a type are kept.
func databaseType(t value.Type) string {
	switch t.Kind {
	case value.Bit:
		return "boolean"
	case value.TinyInt, value.SmallInt:
		return "smallint"
	case value.Int, value.Unknown:
		return "integer"
	case value.BigInt:
		return "bigint"
	case value.SmallMoney:
		return "numeric(10,4)"
	case value.Money:
		return "numeric(19,4)"
	case value.Decimal:
		return fmt.Sprintf("numeric(%d,%d)", t.Precision, t.Scale)
	case value.Real:
		return "real"
	case value.Float:
		return "double precision"
	case value.Date:
		return "date"
	case value.Time:
		return fmt.Sprintf("time(%d)", min(t.Scale, microseconds))
	case value.SmallDateTime:
		return "timestamp(0)"
	case value.DateTime:
		return "timestamp(3)"
	case value.DateTime2:
		return fmt.Sprintf("timestamp(%d)", min(t.Scale, microseconds))
	case value.DateTimeOffset:
		return fmt.Sprintf("timestamptz(%d)", min(t.Scale, microseconds))
	case value.UniqueIdentifier:
		return "uuid"
	case value.XML:
		return "xml"
	case value.Binary, value.VarBinary, value.RowVersion, value.Image:
		return "bytea"
	default:
		return "bpchar"
	}
}

// encode gives a value in PostgreSQL's text format; nil is NULL.
func encode(s *value.Settings, v value.Value) []byte {
	if v.IsNull() {
		return nil
	}
	switch k := v.Kind(); {
	case k == value.Bit:
		return strconv.AppendBool(nil, v.Bool())
	case k.IsInteger():
		return strconv.AppendInt(nil, v.Int64(), 10)
	case k.IsMoney():
		return []byte(apd.New(v.Int64(), -4).Text('f'))
	case k == value.Decimal:
		return []byte(v.Decimal().Text('f'))
	case k.IsApproximate():
		return strconv.AppendFloat(nil, v.Float64(), 'g', -1, 64)
	case k == value.UniqueIdentifier:
		uuid := v.UUID()
		return []byte(hex.EncodeToString(uuid[:]))
	case k.IsBinary():
		return []byte(`\x` + hex.EncodeToString([]byte(v.Raw())))
	case k.IsCharacter() || k == value.XML:
		return []byte(v.Raw())
	case k.IsTemporal():
		return []byte(encodeMoment(v))
	default:
		return []byte(s.Text(v))
	}
}

func encodeMoment(v value.Value) string {
	t := v.ShownMoment().Time()
	switch v.Kind() {
	case value.Date:
		return t.Format("2006-01-02")
	case value.Time:
		return t.Format("15:04:05.999999")
	case value.DateTimeOffset:
		return t.Format("2006-01-02 15:04:05.999999-07:00")
	default:
		return t.Format("2006-01-02 15:04:05.999999")
	}
}

// decode reads a value of a type from PostgreSQL's text format; nil is NULL.
func decode(t value.Type, text []byte) (value.Value, error) {
	if text == nil {
		return value.Null(t), nil
	}
	s := string(text)
	switch k := t.Kind; {
	case k == value.Bit:
		return value.NewBit(s == "t"), nil
	case k == value.Unknown:
		return value.Null(t), nil
	case k.IsInteger():
		n, err := strconv.ParseInt(s, 10, 64)
		return value.Integer(k, n), err
	case k.IsMoney(), k == value.Decimal:
		d, _, err := apd.NewFromString(s)
		if err != nil {
			return value.Value{}, fmt.Errorf("the number %q: %w", s, err)
		}
		return decimalOf(t, d)
	case k.IsApproximate():
		f, err := strconv.ParseFloat(s, 64)
		if k == value.Real {
			return value.NewReal(float32(f)), err
		}
		return value.NewFloat(f), err
	case k == value.UniqueIdentifier:
		bytes, _ := value.ParseIdentifier(s)
		return value.NewIdentifier(bytes), nil
	case k.IsBinary():
		bytes, err := hex.DecodeString(strings.TrimPrefix(s, `\x`))
		return value.BytesOf(t, string(bytes)), err
	case k.IsTemporal():
		return decodeMoment(t, s)
	default:
		return value.TextOf(t, s), nil
	}
}

// decimalOf gives a number of a type's scale.
func decimalOf(t value.Type, d *apd.Decimal) (value.Value, error) {
	scale := int32(t.Scale)
	if t.Kind.IsMoney() {
		scale = 4
	}
	context := apd.BaseContext.WithPrecision(2 * value.MaxPrecision)
	if _, err := context.Quantize(d, d, -scale); err != nil {
		return value.Value{}, fmt.Errorf("the number %s: %w", d, err)
	}
	if !t.Kind.IsMoney() {
		return value.NewDecimal(t, d), nil
	}
	d.Exponent = 0
	n, err := d.Int64()
	return value.NewMoney(t.Kind, n), err
}

func decodeMoment(t value.Type, text string) (value.Value, error) {
	layout := "2006-01-02 15:04:05.999999"
	switch t.Kind {
	case value.Date:
		layout = "2006-01-02"
	case value.Time:
		layout = "15:04:05.999999"
	case value.DateTimeOffset:
		layout = "2006-01-02 15:04:05.999999-07"
		if strings.Count(text, ":") == 3 {
			layout = "2006-01-02 15:04:05.999999-07:00"
		}
	default:
	}
	read, err := time.Parse(layout, text)
	if err != nil {
		return value.Value{}, fmt.Errorf("the time %q: %w", text, err)
	}
	moment := value.MomentOf(read)
	if t.Kind == value.Time {
		moment.Days = 0 // a time alone is read in the year 0, before all dates
	}
	v, _ := value.NewTemporal(t, moment)
	return v, nil
}

// quote writes a name of PostgreSQL.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteAll writes names of PostgreSQL with commas between them.
func quoteAll(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	return strings.Join(quoted, ", ")
}
