/* Mathematical and scientific functoids. A value that is no number gives "". */
#include "parley-xslt.h"

#include <libxml/xpathInternals.h>
#include <math.h>

#define ARGUMENTS_MOST 256

/* numbers pops all arguments as numbers, in their order. It returns 0 where one is none. */
static int numbers(xmlXPathParserContextPtr context, int count, double *values)
{
	int are = count <= ARGUMENTS_MOST;
	for (int i = count - 1; i >= 0; i--) {
		double value = 0;
		char *text = text_argument(context);
		are = is_numeric(text, &value) && are;
		xmlFree(text);
		if (i < ARGUMENTS_MOST)
			values[i] = value;
	}
	return are;
}

static int fits(double value) { return value >= -2147483648.0 && value <= 2147483647.0; }

enum operation { ADD, SUBTRACT, MULTIPLY, LARGEST, SMALLEST };

static void fold(xmlXPathParserContextPtr context, int count, enum operation operation)
{
	double v[ARGUMENTS_MOST];
	if (!numbers(context, count, v) || count == 0) {
		return_text(context, "");
		return;
	}
	double result = v[0];
	for (int i = 1; i < count; i++) {
		switch (operation) {
		case ADD:
			result += v[i];
			break;
		case SUBTRACT:
			result -= v[i];
			break;
		case MULTIPLY:
			result *= v[i];
			break;
		case LARGEST:
			result = v[i] > result ? v[i] : result;
			break;
		case SMALLEST:
			result = v[i] < result ? v[i] : result;
			break;
		}
	}
	return_number_text(context, result);
}

static void add(xmlXPathParserContextPtr context, int count) { fold(context, count, ADD); }
static void subtract(xmlXPathParserContextPtr context, int count) { fold(context, count, SUBTRACT); }
static void multiply(xmlXPathParserContextPtr context, int count) { fold(context, count, MULTIPLY); }
static void largest(xmlXPathParserContextPtr context, int count) { fold(context, count, LARGEST); }
static void smallest(xmlXPathParserContextPtr context, int count) { fold(context, count, SMALLEST); }

/* A function of one or two numbers. It returns 0 where it has no value. */
typedef int calculation(const double *v, double *result);

static void calculate(xmlXPathParserContextPtr context, int count, int wanted, calculation *function)
{
	double v[ARGUMENTS_MOST] = {0}, result = 0;
	int are = numbers(context, count, v);
	if (count != wanted) {
		xmlXPathErr(context, XPATH_INVALID_ARITY);
		return;
	}
	if (are && function(v, &result) && !isnan(result))
		return_number_text(context, result);
	else
		return_text(context, "");
}

#define CALCULATION(NAME, WANTED, CONDITION, VALUE)                   \
	static int value_of_##NAME(const double *v, double *result)   \
	{                                                             \
		if (!(CONDITION))                                     \
			return 0;                                     \
		*result = (VALUE);                                    \
		return 1;                                             \
	}                                                             \
	static void NAME(xmlXPathParserContextPtr context, int count) \
	{                                                             \
		calculate(context, count, WANTED, value_of_##NAME);   \
	}

CALCULATION(absolute, 1, 1, fabs(v[0]))
CALCULATION(integer, 1, fits(v[0]), floor(v[0]))
CALCULATION(root, 1, v[0] >= 0, sqrt(v[0]))
CALCULATION(divide, 2, v[1] != 0, v[0] / v[1])
CALCULATION(modulo, 2, fits(v[0]) && fits(v[1]) && rint(v[1]) != 0, fmod(rint(v[0]), rint(v[1])))
CALCULATION(sine, 1, 1, sin(v[0]))
CALCULATION(cosine, 1, 1, cos(v[0]))
CALCULATION(tangent, 1, 1, tan(v[0]))
CALCULATION(arc_tangent, 1, 1, atan(v[0]))
CALCULATION(exponential, 1, 1, exp(v[0]))
CALCULATION(exponential_10, 1, 1, pow(10, v[0]))
CALCULATION(logarithm, 1, v[0] > 0, log(v[0]))
CALCULATION(logarithm_10, 1, v[0] > 0, log10(v[0]))
CALCULATION(logarithm_of, 2, v[0] > 0 && v[1] > 0 && v[1] != 1, log(v[0]) / log(v[1]))
CALCULATION(power, 2, 1, pow(v[0], v[1]))

/* round rounds to decimals, 0 without them; a half goes to the even digit. */
static void round_to(xmlXPathParserContextPtr context, int count)
{
	double v[ARGUMENTS_MOST] = {0};
	int are = numbers(context, count, v);
	if (count != 1 && count != 2) {
		xmlXPathErr(context, XPATH_INVALID_ARITY);
		return;
	}
	double decimals = count == 2 ? trunc(v[1]) : 0;
	if (!are || decimals < 0 || decimals > 15) {
		return_text(context, "");
		return;
	}
	double scale = pow(10, decimals);
	return_number_text(context, fabs(v[0]) < 1e16 ? rint(v[0] * scale) / scale : v[0]);
}

void functoids_register_numbers(void)
{
	register_function("MathAdd", add);
	register_function("MathSubtract", subtract);
	register_function("MathMultiply", multiply);
	register_function("MathDivide", divide);
	register_function("MathMax", largest);
	register_function("MathMin", smallest);
	register_function("MathAbs", absolute);
	register_function("MathInt", integer);
	register_function("MathMod", modulo);
	register_function("MathRound", round_to);
	register_function("MathSqrt", root);
	register_function("MathSin", sine);
	register_function("MathCos", cosine);
	register_function("MathTan", tangent);
	register_function("MathArcTan", arc_tangent);
	register_function("MathATan", arc_tangent);
	register_function("MathExp", exponential);
	register_function("MathExp10", exponential_10);
	register_function("MathLog", logarithm);
	register_function("MathLog10", logarithm_10);
	register_function("MathLogn", logarithm_of);
	register_function("MathPow", power);
}
