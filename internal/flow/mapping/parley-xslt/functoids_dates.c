/* Date and time functoids. The current time is that of the zone of the machine. */
#include "parley-xslt.h"

#include <ctype.h>
#include <libxml/xpathInternals.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int days_of(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return month == 2 && is_leap ? 29 : days[month - 1];
}

/* is_clock takes what may stand behind a day: a time, with a fraction and an offset. */
static int is_clock(const char *text)
{
	int hour, minute, second, length = 0;
	if (*text == 0)
		return 1;
	if (*text != 'T' && *text != ' ')
		return 0;
	while (*text == 'T' || *text == ' ')
		text++;
	if (sscanf(text, "%2d:%2d%n", &hour, &minute, &length) != 2 || hour < 0 || hour > 23 || minute < 0 || minute > 59)
		return 0;
	text += length;
	if (*text == ':') {
		if (sscanf(text, ":%2d%n", &second, &length) != 1 || second < 0 || second > 59)
			return 0;
		text += length;
	}
	if (*text == '.')
		for (text++; isdigit((unsigned char)*text); text++)
			;
	if (*text == 'Z')
		return text[1] == 0;
	if (*text == '+' || *text == '-') {
		if (sscanf(text + 1, "%2d:%2d%n", &hour, &minute, &length) != 2 || hour > 14 || minute > 59)
			return 0;
		text += 1 + length;
	}
	return *text == 0;
}

/* is_date reads a day, as year-month-day or month/day/year, with a time behind it or not. */
int is_date(const char *text, int *year, int *month, int *day)
{
	int length = 0;
	while (isspace((unsigned char)*text))
		text++;
	if (sscanf(text, "%4d-%2d-%2d%n", year, month, day, &length) != 3 &&
		sscanf(text, "%4d/%2d/%2d%n", year, month, day, &length) != 3 &&
		sscanf(text, "%2d/%2d/%4d%n", month, day, year, &length) != 3)
		return 0;
	char rest[64];
	snprintf(rest, sizeof rest, "%s", text + length);
	size_t end = strlen(rest);
	while (end > 0 && isspace((unsigned char)rest[end - 1]))
		rest[--end] = 0;
	return *year >= 1 && *month >= 1 && *month <= 12 && *day >= 1 && *day <= days_of(*year, *month) && is_clock(rest);
}

static void add_days(xmlXPathParserContextPtr context, int count)
{
	if (count != 2) {
		xmlXPathErr(context, XPATH_INVALID_ARITY);
		return;
	}
	double days;
	int year, month, day;
	char written[64] = "";
	char *number = text_argument(context);
	char *date = text_argument(context);
	if (is_numeric(number, &days) && fabs(days) < 3700000 && is_date(date, &year, &month, &day)) {
		struct tm at = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day + (int)days, .tm_hour = 12};
		time_t seconds = timegm(&at);
		if (gmtime_r(&seconds, &at) != NULL && at.tm_year + 1900 >= 1 && at.tm_year + 1900 <= 9999)
			snprintf(written, sizeof written, "%04d-%02d-%02d", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday);
	}
	xmlFree(number);
	xmlFree(date);
	return_text(context, written);
}

static void now(xmlXPathParserContextPtr context, int count, const char *format)
{
	if (count != 0) {
		xmlXPathErr(context, XPATH_INVALID_ARITY);
		return;
	}
	char written[64] = "";
	time_t seconds = time(NULL);
	struct tm at;
	if (localtime_r(&seconds, &at) != NULL)
		strftime(written, sizeof written, format, &at);
	return_text(context, written);
}

static void date_now(xmlXPathParserContextPtr context, int count) { now(context, count, "%Y-%m-%d"); }
static void time_now(xmlXPathParserContextPtr context, int count) { now(context, count, "%H:%M:%S"); }
static void both_now(xmlXPathParserContextPtr context, int count) { now(context, count, "%Y-%m-%dT%H:%M:%S"); }

void functoids_register_dates(void)
{
	register_function("DateCurrentDate", date_now);
	register_function("DateCurrentTime", time_now);
	register_function("DateCurrentDateTime", both_now);
	register_function("DateAddDays", add_days);
}
