/* The functions that BizTalk's mapper puts into its stylesheets for standard functoids, provided here so that the C# of the stylesheet is
 * not needed. They do what the public documentation of the functoids says. A value that is not of the kind that a function wants gives "".
 */
#include "parley-xslt.h"

#include <ctype.h>
#include <libxml/xpathInternals.h>
#include <libxslt/extensions.h>
#include <libxslt/extra.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USER_CSHARP "http://schemas.microsoft.com/BizTalk/2003/userCSharp"
#define MSXSL "urn:schemas-microsoft-com:xslt"

void register_function(const char *name, xmlXPathFunction function)
{
	xsltRegisterExtModuleFunction(BAD_CAST name, BAD_CAST USER_CSHARP, function);
}

/* text_argument pops an argument as a text, which the caller frees. */
char *text_argument(xmlXPathParserContextPtr context)
{
	xmlChar *text = xmlXPathPopString(context);
	return (char *)(text == NULL ? xmlStrdup(BAD_CAST "") : text);
}

void return_text(xmlXPathParserContextPtr context, const char *text)
{
	valuePush(context, xmlXPathNewString(BAD_CAST text));
}

/* return_number_text returns a number as .NET writes it: fifteen digits at most. */
void return_number_text(xmlXPathParserContextPtr context, double value)
{
	char text[64];
	if (isnan(value)) {
		return_text(context, "NaN");
		return;
	}
	if (isinf(value)) {
		return_text(context, value > 0 ? "Infinity" : "-Infinity");
		return;
	}
	snprintf(text, sizeof text, "%.15g", value == 0 ? 0.0 : value);
	for (char *c = text; *c != 0; c++)
		if (*c == 'e')
			*c = 'E';
	return_text(context, text);
}

/* is_numeric reads a number: blanks around it, a sign, digits with commas between them, a fraction, an exponent. */
int is_numeric(const char *text, double *value)
{
	char digits[400];
	size_t n = 0;
	int has_digits = 0;
	while (isspace((unsigned char)*text))
		text++;
	if (*text == '+' || *text == '-')
		digits[n++] = *text++;
	for (; isdigit((unsigned char)*text) || (*text == ',' && has_digits); text++) {
		if (*text == ',')
			continue;
		has_digits = 1;
		if (n >= 350)
			return 0;
		digits[n++] = *text;
	}
	if (*text == '.') {
		digits[n++] = *text++;
		for (; isdigit((unsigned char)*text); text++) {
			has_digits = 1;
			if (n < 350)
				digits[n++] = *text;
		}
	}
	if (!has_digits)
		return 0;
	if (*text == 'e' || *text == 'E') {
		const char *exponent = text + 1;
		if (*exponent == '+' || *exponent == '-')
			exponent++;
		if (isdigit((unsigned char)*exponent)) {
			digits[n++] = *text++;
			while ((isdigit((unsigned char)*text) || *text == '+' || *text == '-') && n < 380)
				digits[n++] = *text++;
		}
	}
	while (isspace((unsigned char)*text))
		text++;
	digits[n] = 0;
	*value = strtod(digits, NULL);
	return *text == 0 && !isinf(*value);
}

static int is_word(const char *text, const char *word)
{
	while (isspace((unsigned char)*text))
		text++;
	size_t length = strlen(word);
	for (size_t i = 0; i < length; i++)
		if (tolower((unsigned char)text[i]) != word[i])
			return 0;
	for (text += length; isspace((unsigned char)*text); text++)
		;
	return *text == 0;
}

/* is_true reads a truth value: the words true and false, or a number, which is true above 0. */
int is_true(const char *text)
{
	double value;
	if (is_word(text, "true"))
		return 1;
	return !is_word(text, "false") && is_numeric(text, &value) && value > 0;
}

/* compare gives the order of two values: of numbers as such, of others by their bytes. */
static int compare(const char *a, const char *b)
{
	double x, y;
	if (is_numeric(a, &x) && is_numeric(b, &y))
		return (x > y) - (x < y);
	int order = strcmp(a, b);
	return (order > 0) - (order < 0);
}

#undef CHECK_ARITY /* that of libxml2 has other names for what it needs */
#define CHECK_ARITY(N)                                     \
	if (count != (N)) {                                \
		xmlXPathErr(context, XPATH_INVALID_ARITY); \
		return;                                    \
	}

#define COMPARISON(NAME, CONDITION)                                   \
	static void NAME(xmlXPathParserContextPtr context, int count) \
	{                                                             \
		CHECK_ARITY(2)                                        \
		char *b = text_argument(context);                     \
		char *a = text_argument(context);                     \
		int order = compare(a, b);                            \
		xmlFree(a);                                           \
		xmlFree(b);                                           \
		valuePush(context, xmlXPathNewBoolean(CONDITION));    \
	}

COMPARISON(equal, order == 0)
COMPARISON(not_equal, order != 0)
COMPARISON(greater, order > 0)
COMPARISON(greater_or_equal, order >= 0)
COMPARISON(less, order < 0)
COMPARISON(less_or_equal, order <= 0)

static void logical_not(xmlXPathParserContextPtr context, int count)
{
	CHECK_ARITY(1)
	char *a = text_argument(context);
	int is = is_true(a);
	xmlFree(a);
	valuePush(context, xmlXPathNewBoolean(!is));
}

static void existence(xmlXPathParserContextPtr context, int count)
{
	CHECK_ARITY(1)
	valuePush(context, xmlXPathNewBoolean(xmlXPathPopBoolean(context)));
}

/* combine gives whether all, or any, of the arguments are true. */
static void combine(xmlXPathParserContextPtr context, int count, int all)
{
	int result = all;
	for (int i = 0; i < count; i++) {
		char *a = text_argument(context);
		int is = is_true(a);
		xmlFree(a);
		result = all ? result && is : result || is;
	}
	valuePush(context, xmlXPathNewBoolean(result));
}

static void logical_and(xmlXPathParserContextPtr context, int count) { combine(context, count, 1); }
static void logical_or(xmlXPathParserContextPtr context, int count) { combine(context, count, 0); }

static void is_string(xmlXPathParserContextPtr context, int count)
{
	CHECK_ARITY(1)
	char *a = text_argument(context);
	int is = a[0] != 0;
	xmlFree(a);
	valuePush(context, xmlXPathNewBoolean(is));
}

static void logical_is_numeric(xmlXPathParserContextPtr context, int count)
{
	CHECK_ARITY(1)
	double value;
	char *a = text_argument(context);
	int is = is_numeric(a, &value);
	xmlFree(a);
	valuePush(context, xmlXPathNewBoolean(is));
}

static void logical_is_date(xmlXPathParserContextPtr context, int count)
{
	CHECK_ARITY(1)
	int year, month, day;
	char *a = text_argument(context);
	int is = is_date(a, &year, &month, &day);
	xmlFree(a);
	valuePush(context, xmlXPathNewBoolean(is));
}

static void val_to_bool(xmlXPathParserContextPtr context, int count)
{
	CHECK_ARITY(1)
	char *a = text_argument(context);
	int is = is_true(a);
	xmlFree(a);
	valuePush(context, xmlXPathNewBoolean(is));
}

void functoids_register(void)
{
	register_function("LogicalEq", equal);
	register_function("LogicalNe", not_equal);
	register_function("LogicalGt", greater);
	register_function("LogicalGte", greater_or_equal);
	register_function("LogicalLt", less);
	register_function("LogicalLte", less_or_equal);
	register_function("LogicalNot", logical_not);
	register_function("LogicalExistence", existence);
	register_function("LogicalAnd", logical_and);
	register_function("LogicalOr", logical_or);
	register_function("LogicalIsString", is_string);
	register_function("LogicalIsNumeric", logical_is_numeric);
	register_function("IsNumeric", logical_is_numeric);
	register_function("LogicalIsDate", logical_is_date);
	register_function("IsDate", logical_is_date);
	register_function("ValToBool", val_to_bool);
	functoids_register_text();
	functoids_register_numbers();
	functoids_register_cumulative();
	functoids_register_dates();
	xsltRegisterExtModuleFunction(BAD_CAST "node-set", BAD_CAST MSXSL, xsltFunctionNodeSet);
}
