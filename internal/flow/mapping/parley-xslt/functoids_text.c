/* String and conversion functoids. Positions count characters, from 1. */
#include "parley-xslt.h"

#include <libxml/parserInternals.h>
#include <libxml/xpathInternals.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <wctype.h>

#define CHECK_COUNT(N)                                     \
	if (count != (N)) {                                \
		xmlXPathErr(context, XPATH_INVALID_ARITY); \
		return;                                    \
	}

static void find(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(2)
	char *part = text_argument(context);
	char *text = text_argument(context);
	char *at = part[0] == 0 ? NULL : strstr(text, part);
	int position = 0;
	if (at != NULL) {
		*at = 0;
		position = xmlUTF8Strlen(BAD_CAST text) + 1;
	}
	xmlFree(part);
	xmlFree(text);
	valuePush(context, xmlXPathNewFloat(position));
}

static void return_part(xmlXPathParserContextPtr context, char *text, int from, int length)
{
	xmlChar *part = length <= 0 ? NULL : xmlUTF8Strsub(BAD_CAST text, from, length);
	return_text(context, part == NULL ? "" : (char *)part);
	xmlFree(part);
	xmlFree(text);
}

/* number_argument pops a number that fits in an integer, cut towards 0. It returns 0 where there is none. */
static int number_argument(xmlXPathParserContextPtr context, int *into)
{
	double value;
	char *text = text_argument(context);
	int is = is_numeric(text, &value) && fabs(value) < 2147483648.0;
	xmlFree(text);
	*into = is ? (int)value : 0;
	return is;
}

static int smaller(int a, int b) { return a < b ? a : b; }

static void left(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(2)
	int length;
	number_argument(context, &length);
	char *text = text_argument(context);
	return_part(context, text, 0, smaller(length, xmlUTF8Strlen(BAD_CAST text)));
}

static void right(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(2)
	int length;
	number_argument(context, &length);
	char *text = text_argument(context);
	int whole = xmlUTF8Strlen(BAD_CAST text);
	length = smaller(length, whole);
	return_part(context, text, whole - length, length);
}

static void substring(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(3)
	int from = 0, to = 0;
	int is = number_argument(context, &to);
	is = number_argument(context, &from) && is;
	char *text = text_argument(context);
	int whole = xmlUTF8Strlen(BAD_CAST text);
	if (!is || from < 1 || to < from || from > whole)
		return_part(context, text, 0, 0);
	else
		return_part(context, text, from - 1, smaller(to, whole) - from + 1);
}

static void size(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(1)
	char *text = text_argument(context);
	int length = xmlUTF8Strlen(BAD_CAST text);
	xmlFree(text);
	valuePush(context, xmlXPathNewFloat(length));
}

static void concat(xmlXPathParserContextPtr context, int count)
{
	xmlChar *all = xmlStrdup(BAD_CAST "");
	for (int i = 0; i < count; i++) { /* the last argument comes first */
		xmlChar *after = all;
		all = xmlStrcat((xmlChar *)text_argument(context), after);
		xmlFree(after);
	}
	return_text(context, (char *)all);
	xmlFree(all);
}

/* change_case changes each character; the result may have another length. */
static void change_case(xmlXPathParserContextPtr context, wint_t (*change)(wint_t))
{
	char *text = text_argument(context);
	xmlBufferPtr changed = xmlBufferCreate();
	const xmlChar *at = BAD_CAST text;
	while (*at != 0) {
		int length = 4;
		int c = xmlGetUTF8Char(at, &length);
		if (c < 0)
			break;
		xmlChar written[8] = {0};
		xmlCopyCharMultiByte(written, (int)change((wint_t)c));
		xmlBufferCat(changed, written);
		at += length;
	}
	return_text(context, (const char *)xmlBufferContent(changed));
	xmlBufferFree(changed);
	xmlFree(text);
}

static void upper(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(1)
	change_case(context, towupper);
}

static void lower(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(1)
	change_case(context, towlower);
}

/* is_blank reports whether a character is white space, and how many bytes it has. */
static int is_blank(const xmlChar *at, int *length)
{
	*length = 4;
	int c = xmlGetUTF8Char(at, length);
	return c > 0 && (c == 0xA0 || c == 0x85 || c == 0x2007 || c == 0x202F || c == 0xFEFF || iswspace((wint_t)c));
}

static void trim_left(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(1)
	char *text = text_argument(context);
	const xmlChar *at = BAD_CAST text;
	int length;
	while (*at != 0 && is_blank(at, &length))
		at += length;
	return_text(context, (const char *)at);
	xmlFree(text);
}

static void trim_right(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(1)
	char *text = text_argument(context);
	xmlChar *at = BAD_CAST text, *end = at;
	while (*at != 0) {
		int length, blank = is_blank(at, &length);
		if (length < 1)
			break;
		at += length;
		if (!blank)
			end = at;
	}
	*end = 0;
	return_text(context, text);
	xmlFree(text);
}

static void code_of(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(1)
	char *text = text_argument(context);
	char code[32] = "";
	int length = 4;
	if (text[0] != 0)
		snprintf(code, sizeof code, "%d", xmlGetUTF8Char(BAD_CAST text, &length));
	xmlFree(text);
	return_text(context, code);
}

static void character_of(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(1)
	int code;
	xmlChar written[8] = {0};
	if (number_argument(context, &code) && code > 0 && code <= 0x10FFFF && IS_CHAR((unsigned)code))
		xmlCopyCharMultiByte(written, code);
	return_text(context, (char *)written);
}

static void in_base(xmlXPathParserContextPtr context, const char *format)
{
	char text[32] = "";
	int value;
	if (number_argument(context, &value))
		snprintf(text, sizeof text, format, (unsigned)value);
	return_text(context, text);
}

static void hexadecimal(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(1)
	in_base(context, "%X");
}

static void octal(xmlXPathParserContextPtr context, int count)
{
	CHECK_COUNT(1)
	in_base(context, "%o");
}

void functoids_register_text(void)
{
	register_function("StringFind", find);
	register_function("StringLeft", left);
	register_function("StringRight", right);
	register_function("StringSubstring", substring);
	register_function("StringSize", size);
	register_function("StringConcat", concat);
	register_function("StringUpperCase", upper);
	register_function("StringLowerCase", lower);
	register_function("StringTrimLeft", trim_left);
	register_function("StringTrimRight", trim_right);
	register_function("ConvertAsc", code_of);
	register_function("ConvertChr", character_of);
	register_function("ConvertHex", hexadecimal);
	register_function("ConvertOct", octal);
}
