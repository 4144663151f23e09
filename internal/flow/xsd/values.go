package xsd

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// integers has the built-in integer types with their bounds, empty where there is none.
var integers = map[string][2]string{
	"integer": {}, "long": {"-9223372036854775808", "9223372036854775807"}, "int": {"-2147483648", "2147483647"},
	"short": {"-32768", "32767"}, "byte": {"-128", "127"}, "nonNegativeInteger": {"0", ""}, "positiveInteger": {"1", ""},
	"nonPositiveInteger": {"", "0"}, "negativeInteger": {"", "-1"}, "unsignedLong": {"0", "18446744073709551615"},
	"unsignedInt": {"0", "4294967295"}, "unsignedShort": {"0", "65535"}, "unsignedByte": {"0", "255"},
}

// lexical has the forms of the built-in types that a pattern describes, which are compiled when they are first needed: most commands of the
// program need none.
var lexical = map[string]func() *regexp.Regexp{
	"boolean":      compiled(`^(?:true|false|0|1)$`),
	"decimal":      compiled(`^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$`),
	"float":        compiled(`^(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|-?INF|NaN)$`),
	"date":         compiled(`^(-?\d{4,}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)?$`),
	"time":         compiled(`^(\d\d:\d\d:\d\d(?:\.\d+)?)(Z|[+-]\d\d:\d\d)?$`),
	"dateTime":     compiled(`^(-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)(Z|[+-]\d\d:\d\d)?$`),
	"gYear":        compiled(`^-?\d{4,}(?:Z|[+-]\d\d:\d\d)?$`),
	"gYearMonth":   compiled(`^-?\d{4,}-(?:0[1-9]|1[0-2])(?:Z|[+-]\d\d:\d\d)?$`),
	"gMonth":       compiled(`^--(?:0[1-9]|1[0-2])(?:Z|[+-]\d\d:\d\d)?$`),
	"gMonthDay":    compiled(`^--(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:Z|[+-]\d\d:\d\d)?$`),
	"gDay":         compiled(`^---(?:0[1-9]|[12]\d|3[01])(?:Z|[+-]\d\d:\d\d)?$`),
	"duration":     compiled(`^-?P(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?$`),
	"hexBinary":    compiled(`^(?:[0-9a-fA-F]{2})*$`),
	"base64Binary": compiled(`^(?:[A-Za-z0-9+/]\s*){0,}(?:=\s*){0,2}$`),
	"NMTOKEN":      compiled(`^[\pL\pN._:\-\x{B7}\pM]+$`),
	"NCName":       compiled(`^[\pL_][\pL\pN._\-\x{B7}\pM]*$`),
	"Name":         compiled(`^[\pL_:][\pL\pN._:\-\x{B7}\pM]*$`),
	"QName":        compiled(`^[\pL_][\pL\pN._\-\x{B7}\pM]*(?::[\pL_][\pL\pN._\-\x{B7}\pM]*)?$`),
	"language":     compiled(`^[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*$`),
}

func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

var sameForm = map[string]string{"double": "float", "ID": "NCName", "IDREF": "NCName", "ENTITY": "NCName", "NOTATION": "QName"}

var free = []string{
	"string", "normalizedString", "token", "anyURI", "NMTOKENS", "IDREFS", "ENTITIES",
	"anySimpleType", "anyType", "anyAtomicType",
}

func isBuiltIn(local string) bool {
	_, isInteger := integers[local]
	return isInteger || lexical[local] != nil || sameForm[local] != "" || slices.Contains(free, local)
}

// Check says why a value is none of the type, or gives an empty text.
func (t *SimpleType) Check(value string) string {
	if t == nil {
		return ""
	}
	if t.Base != "string" && t.Base != "normalizedString" {
		value = strings.Join(strings.Fields(value), " ")
	}
	if len(t.Union) > 0 {
		for _, member := range t.Union {
			if member.Check(value) == "" {
				return t.checkFacets(value)
			}
		}
		return fmt.Sprintf("%q is of none of the types of the union", shortened(value))
	}
	if !t.IsList {
		if why := checkForm(t.Base, value); why != "" {
			return why
		}
	}
	return t.checkFacets(value)
}

func checkForm(base, value string) string {
	if bounds, ok := integers[base]; ok {
		n, isNumber := new(big.Int).SetString(strings.TrimPrefix(value, "+"), 10)
		if !isNumber || strings.Contains(value, "_") || strings.HasPrefix(value, "+-") {
			return fmt.Sprintf("%q is no xs:%s", shortened(value), base)
		}
		for i, bound := range bounds {
			limit, has := new(big.Int).SetString(bound, 10)
			if has && (i == 0 && n.Cmp(limit) < 0 || i == 1 && n.Cmp(limit) > 0) {
				return fmt.Sprintf("%s is out of the range of xs:%s", shortened(value), base)
			}
		}
		return ""
	}
	form := base
	if other := sameForm[base]; other != "" {
		form = other
	}
	if pattern := lexical[form]; pattern != nil && !pattern().MatchString(value) ||
		form == "duration" && !strings.ContainsAny(value, "0123456789") {
		return fmt.Sprintf("%q is no xs:%s", shortened(value), base)
	}
	if layout := map[string]string{"date": "2006-01-02", "time": "15:04:05", "dateTime": "2006-01-02T15:04:05"}[form]; layout != "" {
		found := lexical[form]().FindStringSubmatch(value)
		if _, err := time.Parse(layout, strings.TrimPrefix(found[1], "-")); err != nil && !strings.Contains(found[1], "24:00:00") {
			return fmt.Sprintf("%q is no xs:%s: there is no such day or time", shortened(value), base)
		}
	}
	return ""
}

func (t *SimpleType) checkFacets(value string) string {
	for i := range t.Facets {
		if why := t.checkFacet(&t.Facets[i], value); why != "" {
			return why
		}
	}
	return ""
}

func (t *SimpleType) checkFacet(f *Facet, value string) string {
	length := utf8.RuneCountInString(value)
	if t.IsList {
		length = len(strings.Fields(value))
	}
	isBad := false
	switch f.Name {
	case "length":
		isBad = length != f.number
	case "minLength":
		isBad = length < f.number
	case "maxLength":
		isBad = length > f.number
	case "enumeration":
		isBad = !slices.Contains(f.Values, value)
		if isBad {
			return fmt.Sprintf("%q is none of the values %s", shortened(value), shortened(strings.Join(f.Values, ", ")))
		}
	case "pattern":
		isBad = !slices.ContainsFunc(f.pattern, func(p *regexp.Regexp) bool { return p.MatchString(value) })
	case "totalDigits":
		whole, fraction, _ := strings.Cut(strings.TrimLeft(value, "+-"), ".")
		isBad = len(strings.TrimLeft(whole, "0"))+len(strings.TrimRight(fraction, "0")) > f.number
	case "fractionDigits":
		_, fraction, _ := strings.Cut(value, ".")
		isBad = len(strings.TrimRight(fraction, "0")) > f.number
	case "whiteSpace":
	default:
		compared, ok := t.compare(value, f.Value)
		isBad = ok && (f.Name == "minInclusive" && compared < 0 || f.Name == "maxInclusive" && compared > 0 ||
			f.Name == "minExclusive" && compared <= 0 || f.Name == "maxExclusive" && compared >= 0)
	}
	if isBad {
		return fmt.Sprintf("%q breaks %s %s", shortened(value), f.Name, shortened(f.Value))
	}
	return ""
}

// compare orders values of numbers and of dates in one form.
func (t *SimpleType) compare(a, b string) (int, bool) {
	if t.IsNumber() {
		if t.Base == "float" || t.Base == "double" {
			x, err1 := strconv.ParseFloat(a, 64)
			y, err2 := strconv.ParseFloat(b, 64)
			if err1 != nil || err2 != nil {
				return 0, false
			}
			return cmp.Compare(x, y), true
		}
		x, ok1 := new(big.Rat).SetString(a)
		y, ok2 := new(big.Rat).SetString(b)
		if !ok1 || !ok2 {
			return 0, false
		}
		return x.Cmp(y), true
	}
	return strings.Compare(a, b), true
}

func shortened(value string) string {
	const most = 80
	if utf8.RuneCountInString(value) <= most {
		return value
	}
	return string([]rune(value)[:most]) + "…"
}
