package mapping_test

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/flow/mapping"
)

// Values of functions of standard functoids, as the public documentation of the functoids has them.
var values = []struct{ expression, value string }{
	{"LogicalEq('1.0', '1')", "true"},
	{"LogicalEq('1,000', '1000')", "true"},
	{"LogicalEq('a', 'A')", "false"},
	{"LogicalNe('a', 'b')", "true"},
	{"LogicalGt('10', '9')", "true"},
	{"LogicalGt('b10', 'b9')", "false"},
	{"LogicalGte('2', '2')", "true"},
	{"LogicalLt('-1', '1')", "true"},
	{"LogicalLte('3', '2')", "false"},
	{"LogicalNot('True')", "false"},
	{"LogicalNot(false())", "true"},
	{"LogicalAnd('true', '1')", "true"},
	{"LogicalAnd('true', '0')", "false"},
	{"LogicalOr('false', 'no', ' TRUE ')", "true"},
	{"LogicalExistence(boolean(/a))", "true"},
	{"LogicalIsString('')", "false"},
	{"LogicalIsNumeric(' -1.5e3 ')", "true"},
	{"LogicalIsNumeric('1x')", "false"},
	{"LogicalIsDate('2024-02-29')", "true"},
	{"LogicalIsDate('2023-02-29')", "false"},
	{"LogicalIsDate('2024-01-31T23:59:59.5+01:00')", "true"},
	{"StringFind('äbcd', 'c')", "3"},
	{"StringFind('abc', 'x')", "0"},
	{"StringLeft('äbc', '2')", "äb"},
	{"StringLeft('ab', '5')", "ab"},
	{"StringLeft('ab', 'x')", ""},
	{"StringRight('äbc', '2')", "bc"},
	{"StringSubstring('abcdef', '2', '4')", "bcd"},
	{"StringSubstring('abc', '2', '9')", "bc"},
	{"StringSubstring('abc', '0', '2')", ""},
	{"StringSize('äb')", "2"},
	{"StringConcat('a', 'b', 'c')", "abc"},
	{"StringUpperCase('straße äé')", "STRAßE ÄÉ"},
	{"StringLowerCase('ÄÉ')", "äé"},
	{"concat('[', userCSharp:StringTrimLeft(' &#160;a '), ']')", "[a ]"},
	{"concat('[', userCSharp:StringTrimRight(' a&#160; '), ']')", "[ a]"},
	{"ConvertAsc('A')", "65"},
	{"ConvertChr('65')", "A"},
	{"ConvertChr('0')", ""},
	{"ConvertHex('255')", "FF"},
	{"ConvertOct('8')", "10"},
	{"MathAdd('1', '2.5', '3')", "6.5"},
	{"MathAdd('1', 'x')", ""},
	{"MathSubtract('10', '1', '2')", "7"},
	{"MathMultiply('3', '0.1')", "0.3"},
	{"MathDivide('1', '3')", "0.333333333333333"},
	{"MathDivide('1', '0')", ""},
	{"MathMultiply('1000000000000000', '10')", "1E+16"},
	{"MathDivide('1', '100000')", "1E-05"},
	{"MathMax('1', '10', '9')", "10"},
	{"MathMin('1', '-10', '9')", "-10"},
	{"MathAbs('-1.5')", "1.5"},
	{"MathInt('-1.5')", "-2"},
	{"MathMod('7', '3')", "1"},
	{"MathMod('7', '0')", ""},
	{"MathRound('2.5')", "2"},
	{"MathRound('3.14159', '2')", "3.14"},
	{"MathRound('1', '-1')", ""},
	{"MathSqrt('16')", "4"},
	{"MathSqrt('-1')", ""},
	{"MathExp10('3')", "1000"},
	{"MathLog10('1000')", "3"},
	{"MathLogn('8', '2')", "3"},
	{"MathPow('2', '10')", "1024"},
	{"MathSin('0')", "0"},
	{"DateAddDays('2024-02-28', '2')", "2024-03-01"},
	{"DateAddDays('2024-03-01T10:00:00', '-1')", "2024-02-29"},
	{"DateAddDays('never', '1')", ""},
	{"string-length(userCSharp:DateCurrentDateTime())", "19"},
	{"string-length(userCSharp:DateCurrentDate())", "10"},
	{"string-length(userCSharp:DateCurrentTime())", "8"},
}

func TestStandardFunctoidsGiveTheirValues(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for _, v := range values {
		expression := v.expression
		if !strings.Contains(expression, "userCSharp:") {
			expression = "userCSharp:" + expression
		}
		fmt.Fprintf(&body, "<V><xsl:value-of select=\"%s\"/></V>", expression)
	}
	maps := mapsOf(t, poolOf(t), "xslt", "m.xsl", sheet(`<xsl:template match="/"><R>`+body.String()+`</R></xsl:template>`), nil)
	var result struct{ V []string }
	if err := xml.Unmarshal([]byte(run(t, maps, "<a/>")), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.V) != len(values) {
		t.Fatalf("there are %d values of %d", len(result.V), len(values))
	}
	for i, v := range values {
		if result.V[i] != v.value {
			t.Errorf("%s is %q, and should be %q", v.expression, result.V[i], v.value)
		}
	}
}

// States of cumulative functoids begin anew with each message.
func TestCumulativeFunctoidsBeginAnewWithEachMessage(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for _, kind := range []string{"Sum", "Avg", "Min", "Max", "Concat"} {
		fmt.Fprintf(&body, `<xsl:variable name="a%[1]s" select="userCSharp:InitCumulative%[1]s(0)"/>
<xsl:for-each select="/a/b"><xsl:variable name="b" select="userCSharp:AddToCumulative%[1]s(0, string(.), '1000')"/></xsl:for-each>
<xsl:value-of select="concat(userCSharp:GetCumulative%[1]s(0), ';')"/>`, kind)
	}
	maps := mapsOf(t, poolOf(t), "xslt", "m.xsl", sheet(`<xsl:template match="/"><R>`+body.String()+`</R></xsl:template>`), nil)
	for range 2 {
		if got := run(t, maps, "<a><b>2</b><b>4</b><b>9</b></a>"); got != "<R>15;5;2;9;249;</R>" {
			t.Errorf("it made %s", got)
		}
	}
	if got := run(t, maps, "<a/>"); got != "<R>;;;;;</R>" {
		t.Errorf("of no values it made %s", got)
	}
}

// compiledOf puts a stylesheet into the C# of a compiled map.
func compiledOf(stylesheet string) string {
	return "namespace Shop {\n  public sealed class M : TransformBase {\n\n    private const string _strMap = @\"" +
		`<?xml version=""1.0"" encoding=""UTF-16""?>` + strings.ReplaceAll(stylesheet, `"`, `""`) + "\";\n    private const string _strArgList = @\"<ExtensionObjects />\";\n  }\n}\n"
}

const script = `<msxsl:script language="C#" implements-prefix="userCSharp"><![CDATA[
public bool LogicalEq(string val1, string val2) { return val1 == val2; }

public string Age(string birthday)
{
	return "7";
}
]]></msxsl:script>`

func TestACompiledMapRunsAsItIs(t *testing.T) {
	t.Parallel()
	maps := mapsOf(t, poolOf(t), "xslt", "M.btm.cs", compiledOf(sheet(`<xsl:template match="/">
<xsl:variable name="v1" select="userCSharp:LogicalEq(string(/a), &quot;1&quot;)"/><R><xsl:if test="$v1">one</xsl:if></R></xsl:template>`+script)), nil)
	if got := run(t, maps, "<a>1.0</a>"); got != "<R>one</R>" {
		t.Errorf("it made %s", got)
	}
}

func TestAMapWithCodeOfItsOwnIsRefused(t *testing.T) {
	t.Parallel()
	pool := newPool(t, mapping.PoolConfig{})
	own := sheet(`<xsl:template match="/"><R><xsl:value-of select="userCSharp:Age(string(/a))"/></R></xsl:template>` + "\n" + script)
	f := refused(t, mapsOf(t, pool, "xslt", "M.btm.cs", compiledOf(own), nil), "<a/>")
	if !strings.Contains(f.Message, "userCSharp:Age") || f.File != "M.btm.cs" || f.Place.Line != 12 {
		t.Errorf("%+v", f)
	}
	assembly := strings.Replace(sheet(`<xsl:template match="/"><R><xsl:value-of select="S:Find('x')"/></R></xsl:template>`), "xmlns:o=",
		`xmlns:S="http://schemas.microsoft.com/BizTalk/2003/ScriptNS0" xmlns:o=`, 1)
	if f := refused(t, mapsOf(t, pool, "xslt", "m.xsl", assembly, nil), "<a/>"); !strings.Contains(f.Message, "S:Find") || f.Place.Line != 5 {
		t.Errorf("%+v", f)
	}
}
