package function

import (
	"crypto/md5" //nolint:gosec // HASHBYTES has it
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // HASHBYTES has it
	"crypto/sha256"
	"crypto/sha512"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// systems are functions of identifiers, messages, digests and of the types of values.
var systems = []Function{
	{Name: "NEWID", IsVolatile: true, Result: always(value.Of(value.UniqueIdentifier)), Call: newIdentifier},
	{Name: "NEWSEQUENTIALID", IsVolatile: true, Result: always(value.Of(value.UniqueIdentifier)), Call: newIdentifier},
	{
		Name: "FORMATMESSAGE", Parameters: "a?aaaaaaaaaaaaaaaaaaaa", TakesNull: true,
		Result: always(value.Sized(value.NVarChar, 2048)), Call: formatMessage,
	},
	{Name: "HASHBYTES", Parameters: "tx", Result: always(value.Sized(value.VarBinary, value.MaxBytes)), Call: hashBytes},
	{Name: "SQL_VARIANT_PROPERTY", Parameters: "at", Result: always(value.Of(value.Variant)), Call: variantProperty},
	{
		Name: "CRYPT_GEN_RANDOM", Parameters: "i", IsVolatile: true,
		Result: always(value.Sized(value.VarBinary, value.MaxBytes)), Call: randomBytes,
	},
	{Name: "GREATEST", Parameters: "a*", TakesNull: true, Result: highestOf, Call: extreme(1)},
	{Name: "LEAST", Parameters: "a*", TakesNull: true, Result: highestOf, Call: extreme(-1)},
}

func newIdentifier(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	var uuid [16]byte
	_, _ = rand.Read(uuid[:])
	uuid[6] = uuid[6]&0x0F | 0x40
	uuid[8] = uuid[8]&0x3F | 0x80
	return value.IdentifierOfUUID(uuid), nil
}

func randomBytes(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	n := a[0].Int64()
	if n < 1 || n > value.MaxBytes {
		return value.Null(result), nil
	}
	bytes := make([]byte, n)
	_, _ = rand.Read(bytes)
	return value.BytesOf(result, string(bytes)), nil
}

// lastSystemMessage is the last number of messages that FORMATMESSAGE does not give.
const lastSystemMessage = 13000

// formatMessage fills a text, or a message by its number.
func formatMessage(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	if a[0].IsNull() {
		return value.Null(result), nil
	}
	text := a[0].Raw()
	if a[0].Kind().IsInteger() {
		found, _, known := fault.Text(int(a[0].Int64()))
		if !known || a[0].Int64() <= lastSystemMessage {
			return value.Null(result), nil
		}
		text = found
	}
	return value.TextOf(result, fault.Format(text, Substitutes(a[1:])...)), nil
}

// Substitutes gives values as FORMATMESSAGE and RAISERROR print them: whole numbers, texts, and nil for NULL.
func Substitutes(values []value.Value) []any {
	filled := make([]any, len(values))
	for i, v := range values {
		switch v = v.Inside(); {
		case v.IsNull():
		case v.Kind().IsInteger() || v.Kind() == value.Bit:
			filled[i] = v.Int64()
		default:
			filled[i] = value.Defaults().Text(v)
		}
	}
	return filled
}

func hashBytes(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	bytes, _ := value.BytesIn(a[1])
	data := []byte(bytes)
	var sum []byte
	switch strings.ToUpper(a[0].Raw()) {
	case "MD5":
		digest := md5.Sum(data) //nolint:gosec // HASHBYTES has it
		sum = digest[:]
	case "SHA", "SHA1":
		digest := sha1.Sum(data) //nolint:gosec // HASHBYTES has it
		sum = digest[:]
	case "SHA2_256":
		digest := sha256.Sum256(data)
		sum = digest[:]
	case "SHA2_512":
		digest := sha512.Sum512(data)
		sum = digest[:]
	default:
		return value.Null(result), nil
	}
	return value.BytesOf(result, string(sum)), nil
}

func variantProperty(_ *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
	v := a[0].Inside()
	t := v.Type()
	var property value.Value
	switch strings.ToLower(a[1].Raw()) {
	case "basetype":
		property = value.NewNVarChar(strings.TrimSuffix(t.Kind.String(), "(max)"))
	case "precision":
		property = value.NewInt(precisionOf(t))
	case "scale":
		property = value.NewInt(scaleOf(t))
	case "maxlength":
		property = value.NewInt(lengthOf(v))
	case "totalbytes":
		property = value.NewInt(StoredBytes(v) + 2)
	case "collation":
		if !t.Kind.IsCharacter() {
			return value.Null(result), nil
		}
		property = value.NewNVarChar(value.Collation)
	default:
		return value.Null(result), nil
	}
	return value.NewVariant(property), nil
}

var precisions = map[value.Kind]int{
	value.Bit: 1, value.TinyInt: 3, value.SmallInt: 5, value.Int: 10, value.BigInt: 19, value.SmallMoney: 10, value.Money: 19,
	value.Real: 24, value.Float: 53, value.SmallDateTime: 16, value.DateTime: 23, value.Date: 10,
}

func precisionOf(t value.Type) int {
	switch t.Kind {
	case value.Decimal:
		return int(t.Precision)
	case value.Time, value.DateTime2, value.DateTimeOffset:
		return value.DisplayWidth(t)
	default:
		return precisions[t.Kind]
	}
}

func scaleOf(t value.Type) int {
	switch {
	case t.Kind.IsMoney():
		return 4
	case t.Kind == value.DateTime:
		return 3
	}
	return int(t.Scale)
}

func lengthOf(v value.Value) int {
	switch t := v.Type(); {
	case t.Kind.IsUnicode():
		return 2 * int(t.Length)
	case t.Kind.IsCharacter() || t.Kind.IsBinary():
		return int(t.Length)
	}
	return StoredBytes(v)
}

func highestOf(arguments []Argument) (value.Type, *fault.Error) {
	t := arguments[0].Type
	for _, a := range arguments[1:] {
		higher, err := value.Higher(t, a.Type)
		if err != nil {
			return value.Type{}, err
		}
		t = higher
	}
	return t, nil
}

// extreme gives the greatest or the least argument that is not NULL.
func extreme(direction int) func(*Context, value.Type, []value.Value) (value.Value, *fault.Error) {
	return func(c *Context, result value.Type, a []value.Value) (value.Value, *fault.Error) {
		best := value.Null(result)
		for _, v := range a {
			if v.IsNull() {
				continue
			}
			v, err := c.Settings.Assign(v, result)
			if err != nil {
				return value.Value{}, err
			}
			if best.IsNull() {
				best = v
				continue
			}
			order, err := c.Settings.Compare(v, best)
			if err != nil {
				return value.Value{}, err
			}
			if order*direction > 0 {
				best = v
			}
		}
		return best, nil
	}
}
