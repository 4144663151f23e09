/* Cumulative functoids: each has a number in its map, and a state from Init to Get within one transformation. */
#include "parley-xslt.h"

#include <libxml/xpathInternals.h>
#include <string.h>

#define CELLS_MOST 1024

enum kind { SUM, AVERAGE, MINIMUM, MAXIMUM, CONCAT, KINDS };

struct cell {
	int is_begun; /* Init was called */
	int has_value;
	double value;
	double count;
	xmlChar *text;
};

static struct cell cells[KINDS][CELLS_MOST];
static int is_used;

/* functoids_reset forgets the states of the last transformation. */
void functoids_reset(void)
{
	if (!is_used)
		return;
	is_used = 0;
	for (int k = 0; k < KINDS; k++)
		for (int i = 0; i < CELLS_MOST; i++)
			xmlFree(cells[k][i].text);
	memset(cells, 0, sizeof cells);
}

/* cell_argument pops the number of a functoid, and gives its state; NULL without one. */
static struct cell *cell_argument(xmlXPathParserContextPtr context, enum kind kind)
{
	double number = xmlXPathPopNumber(context);
	if (!(number >= 0 && number < CELLS_MOST))
		return NULL;
	return &cells[kind][(int)number];
}

static void return_value(xmlXPathParserContextPtr context, const struct cell *cell, enum kind kind, int is_end)
{
	if (kind == CONCAT)
		return_text(context, cell == NULL || cell->text == NULL ? "" : (const char *)cell->text);
	else if (cell == NULL || !cell->has_value)
		return_text(context, "");
	else
		return_number_text(context, kind == AVERAGE && is_end ? cell->value / cell->count : cell->value);
}

static void begin(xmlXPathParserContextPtr context, int count, enum kind kind)
{
	if (count != 1) {
		xmlXPathErr(context, XPATH_INVALID_ARITY);
		return;
	}
	struct cell *cell = cell_argument(context, kind);
	if (cell != NULL) {
		is_used = 1;
		xmlFree(cell->text);
		memset(cell, 0, sizeof *cell);
		cell->is_begun = 1;
	}
	return_text(context, "");
}

static void take_number(struct cell *cell, enum kind kind, double value)
{
	if (!cell->has_value) {
		cell->has_value = 1;
		cell->value = value;
		return;
	}
	if (kind == SUM || kind == AVERAGE)
		cell->value += value;
	else if (kind == MINIMUM ? value < cell->value : value > cell->value)
		cell->value = value;
}

static void take(xmlXPathParserContextPtr context, int count, enum kind kind)
{
	if (count != 3) {
		xmlXPathErr(context, XPATH_INVALID_ARITY);
		return;
	}
	xmlFree(text_argument(context)); /* its scope is of no use here */
	char *text = text_argument(context);
	struct cell *cell = cell_argument(context, kind);
	double value;
	if (cell != NULL && cell->is_begun) {
		if (kind == CONCAT)
			cell->text = xmlStrcat(cell->text, BAD_CAST text);
		else if (is_numeric(text, &value))
			take_number(cell, kind, value);
		cell->count++;
	}
	xmlFree(text);
	return_value(context, cell, kind, 0);
}

static void end(xmlXPathParserContextPtr context, int count, enum kind kind)
{
	if (count != 1) {
		xmlXPathErr(context, XPATH_INVALID_ARITY);
		return;
	}
	return_value(context, cell_argument(context, kind), kind, 1);
}

#define CUMULATIVE(NAME, KIND)                                                                       \
	static void begin_##NAME(xmlXPathParserContextPtr context, int count) { begin(context, count, KIND); } \
	static void take_##NAME(xmlXPathParserContextPtr context, int count) { take(context, count, KIND); }   \
	static void end_##NAME(xmlXPathParserContextPtr context, int count) { end(context, count, KIND); }

CUMULATIVE(sum, SUM)
CUMULATIVE(average, AVERAGE)
CUMULATIVE(minimum, MINIMUM)
CUMULATIVE(maximum, MAXIMUM)
CUMULATIVE(concat, CONCAT)

void functoids_register_cumulative(void)
{
	register_function("InitCumulativeSum", begin_sum);
	register_function("AddToCumulativeSum", take_sum);
	register_function("GetCumulativeSum", end_sum);
	register_function("InitCumulativeAvg", begin_average);
	register_function("AddToCumulativeAvg", take_average);
	register_function("GetCumulativeAvg", end_average);
	register_function("InitCumulativeMin", begin_minimum);
	register_function("AddToCumulativeMin", take_minimum);
	register_function("GetCumulativeMin", end_minimum);
	register_function("InitCumulativeMax", begin_maximum);
	register_function("AddToCumulativeMax", take_maximum);
	register_function("GetCumulativeMax", end_maximum);
	register_function("InitCumulativeConcat", begin_concat);
	register_function("AddToCumulativeConcat", take_concat);
	register_function("GetCumulativeConcat", end_concat);
}
