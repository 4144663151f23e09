/* Transforming: the documents are read from the request, and the result is written while it is made of its tree. */
#include "parley-xslt.h"

#include <libxml/SAX2.h>
#include <libxml/xmlerror.h>
#include <libxml/xpathInternals.h>
#include <libxslt/imports.h>
#include <libxslt/transform.h>
#include <libxslt/xslt.h>
#include <libxslt/xsltutils.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A document without a type definition has no entities, so that what they protect from cannot happen: the limits of libxml2 for the
 * length of texts are lifted, and the limit of memory counts. The depth stays bounded. */
#define INPUT_OPTIONS (XML_PARSE_NOCDATA | XML_PARSE_NONET | XML_PARSE_COMPACT | XML_PARSE_BIG_LINES | XML_PARSE_HUGE)

#define AGGREGATE "http://schemas.microsoft.com/BizTalk/2003/aggschema"

/* Where the reading of an input stands. */
struct input {
	uint32_t left; /* of its chunk */
	int is_over;
};

static int input_read(void *of, char *into, int length)
{
	struct input *in = of;
	if (in->is_over)
		return 0;
	if (in->left == 0) {
		in->left = read_u32();
		if (in->left == 0) {
			in->is_over = 1;
			return 0;
		}
	}
	int got = read_more(into, (uint32_t)length < in->left ? (size_t)length : in->left);
	if (got == 0)
		return -1; /* the next read of the loop ends the process */
	in->left -= (uint32_t)got;
	return got;
}

static void input_drain(struct input *in)
{
	char bytes[4096];
	while (input_read(in, bytes, sizeof bytes) > 0)
		;
}

/* drain_inputs reads the documents of a request that fails before they are of use. */
void drain_inputs(uint32_t inputs)
{
	for (uint32_t i = 0; i < inputs; i++) {
		struct input in = {0, 0};
		input_drain(&in);
	}
}

/* on_type refuses a document that has a type definition: entities, default values and files come from these. */
static void on_type(void *of, const xmlChar *name, const xmlChar *id, const xmlChar *system)
{
	xmlParserCtxtPtr parser = of;
	(void)name;
	(void)id;
	(void)system;
	failure_set(STATUS_DOCUMENT, "the document has a document type definition, which is refused");
	failure.input_line = parser->input == NULL ? 0 : parser->input->line;
	xmlStopParser(parser);
}

/* How deep elements may be in each other. Reading bounds no depth where it bounds no length, and transforming calls itself for each. */
#define DEPTH_MOST 1000

static void on_element(void *of, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int namespaces, const xmlChar **spaces,
	int attributes, int defaulted, const xmlChar **values)
{
	xmlParserCtxtPtr parser = of;
	if (parser->nodeNr > DEPTH_MOST) {
		failure_set(STATUS_DOCUMENT, "the depth of its elements is more than 1000");
		failure.input_line = parser->input == NULL ? 0 : parser->input->line;
		xmlStopParser(parser);
		return;
	}
	xmlSAX2StartElementNs(of, name, prefix, uri, namespaces, spaces, attributes, defaulted, values);
}

static void on_document_error(void *unused, xmlErrorPtr error)
{
	(void)unused;
	if (error->level < XML_ERR_FATAL || failure.is_set)
		return;
	failure_set(STATUS_DOCUMENT, error->message);
	failure.input_line = error->line;
	if (error->node != NULL)
		failure_at_node(NULL, error->node);
}

/* read_document reads an input to its end. It returns NULL where that failed. */
static xmlDocPtr read_document(int is_utf8)
{
	struct input in = {0, 0};
	xmlParserCtxtPtr parser = xmlNewParserCtxt();
	xmlDocPtr doc = NULL;
	if (parser != NULL) {
		parser->sax->internalSubset = on_type;
		parser->sax->startElementNs = on_element;
		doc = xmlCtxtReadIO(parser, input_read, NULL, &in, "", is_utf8 ? "UTF-8" : NULL, INPUT_OPTIONS);
		xmlFreeParserCtxt(parser);
	}
	input_drain(&in);
	if (doc != NULL && failure.status != STATUS_DONE) {
		xmlFreeDoc(doc);
		doc = NULL;
	}
	if (doc == NULL)
		failure_set(STATUS_DOCUMENT, "the document is not well-formed");
	return doc;
}

/* read_inputs reads the documents. Several become one, as maps of several messages want them. */
static xmlDocPtr read_inputs(uint32_t inputs, int is_utf8)
{
	if (inputs == 1)
		return read_document(is_utf8);
	xmlDocPtr all = xmlNewDoc(BAD_CAST "1.0");
	xmlNodePtr root = xmlNewDocNode(all, NULL, BAD_CAST "Root", NULL);
	xmlDocSetRootElement(all, root);
	xmlSetNs(root, xmlNewNs(root, BAD_CAST AGGREGATE, BAD_CAST "ns0"));
	for (uint32_t i = 0; i < inputs; i++) {
		xmlDocPtr one = read_document(is_utf8);
		if (one == NULL) {
			char at[64];
			snprintf(at, sizeof at, "input %u: ", i);
			char message[sizeof failure.message];
			snprintf(message, sizeof message, "%s", failure.message);
			snprintf(failure.message, sizeof failure.message, "%s%.4000s", at, message);
			drain_inputs(inputs - i - 1);
			xmlFreeDoc(all);
			return NULL;
		}
		char name[64];
		snprintf(name, sizeof name, "InputMessagePart_%u", i);
		xmlNodePtr part = xmlNewDocNode(all, NULL, BAD_CAST name, NULL);
		xmlAddChild(root, part);
		xmlNodePtr content = xmlDocCopyNode(xmlDocGetRootElement(one), all, 1);
		if (content != NULL)
			xmlAddChild(part, content);
		xmlFreeDoc(one);
	}
	return all;
}

/* Whether the text that is being collected is one of an error, and not of a message of the stylesheet. */
static int in_error;

/* Whether it begins with what is wrong with an expression. */
static int is_expression;

/* Whether a message of the stylesheet has ended, so that the next text begins another one. */
static int ends_line;

static void on_run_error(void *of, const char *format, ...)
{
	xsltTransformContextPtr context = of;
	char text[2048];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	int is_place = strncmp(text, "runtime error", 13) == 0;
	if (!in_error) {
		if (is_place ? !is_expression : ends_line)
			failure.message[0] = 0;
		failure.is_set = 1;
		failure.line = 0;
		failure.path[0] = 0;
		failure_at_node(context->inst, context->node);
	}
	if (is_place)
		in_error = 1;
	else
		failure_add(text);
	size_t length = strlen(text);
	if (length > 0 && strcmp(text, "\n") != 0)
		ends_line = 0;
	if (strcmp(text, "\n") == 0)
		ends_line = 1;
}

/* on_generic_error takes the names of functions that there are not, which come before the error of the expression. */
static void on_generic_error(void *unused, const char *format, ...)
{
	char text[1024];
	va_list arguments;
	(void)unused;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (in_error || is_expression)
		return;
	const char *said = strstr(text, ": ");
	failure.message[0] = 0;
	failure.is_set = 1;
	is_expression = 1;
	failure_add(said == NULL ? text : said + 2);
	failure_add("; ");
}

/* on_expression_error takes what is wrong with an expression, before libxslt says that it has no result. */
static void on_expression_error(void *unused, xmlErrorPtr error)
{
	(void)unused;
	if (error->level < XML_ERR_ERROR || in_error)
		return;
	if (!is_expression)
		failure.message[0] = 0;
	failure.is_set = 1;
	is_expression = 1;
	failure_add(error->message);
	if (error->str1 != NULL) {
		failure_add("in ");
		failure_add(error->str1);
	}
	failure_add("; ");
}

static uint64_t output_left;

static int output_write(void *unused, const char *bytes, int length)
{
	(void)unused;
	if (length <= 0)
		return 0;
	if ((uint64_t)length > output_left) {
		failure_set(STATUS_OUTPUT, "the result is too long");
		return -1;
	}
	output_left -= (uint64_t)length;
	write_data(bytes, (size_t)length);
	return length;
}

static int output_close(void *unused)
{
	(void)unused;
	return 0;
}

static void write_result(xsltStylesheetPtr style, xmlDocPtr result, uint64_t most)
{
	output_left = most;
	xmlOutputBufferPtr buffer = xmlOutputBufferCreateIO(output_write, output_close, NULL, NULL);
	xsltSaveResultTo(buffer, result, style);
	xmlOutputBufferClose(buffer);
	if (failure.status != STATUS_DONE)
		return;
	const xmlChar *method, *media;
	XSLT_GET_IMPORT_PTR(method, style, method)
	XSLT_GET_IMPORT_PTR(media, style, mediaType)
	if (method == NULL)
		method = BAD_CAST(result->type == XML_HTML_DOCUMENT_NODE ? "html" : "xml");
	char payload[512];
	int length = snprintf(payload, sizeof payload, "%.100s%c%.300s", (const char *)method, 0, media == NULL ? "" : (const char *)media);
	write_end(payload, (uint32_t)length);
}

/* finish finds out how a run has ended. */
static void finish(xsltTransformContextPtr context)
{
	int is_stopped = context->state == XSLT_STATE_STOPPED;
	if (context->state == XSLT_STATE_OK && failure.status == STATUS_DONE) {
		failure_clear(); /* messages of the stylesheet alone */
		return;
	}
	if (strstr(failure.message, "limit exceeded") != NULL) {
		failure.status = STATUS_OPERATIONS;
	} else if (failure.status == STATUS_DONE) {
		failure.status = is_stopped && !in_error ? STATUS_STOPPED : STATUS_MAP;
	}
	failure_set(STATUS_MAP, "the transformation has failed");
	failure_at_node(context->inst, context->node);
}

void transform(struct map *map, const struct limits *limits, uint32_t inputs, int is_utf8)
{
	xmlSetStructuredErrorFunc(NULL, on_document_error);
	xmlDocPtr doc = read_inputs(inputs, is_utf8);
	if (doc == NULL)
		return;
	xmlSetStructuredErrorFunc(NULL, on_expression_error);
	xsltTransformContextPtr context = xsltNewTransformContext(map->style, doc);
	in_error = is_expression = 0;
	ends_line = 1;
	xmlSetGenericErrorFunc(NULL, on_generic_error);
	functoids_reset();
	xsltSetTransformErrorFunc(context, context, on_run_error);
	context->opLimit = limits->operations;
	context->xpathCtxt->opLimit = limits->operations;
	xmlDocPtr result = xsltApplyStylesheetUser(map->style, doc, NULL, NULL, NULL, context);
	finish(context);
	if (result == NULL)
		failure_set(STATUS_MAP, "the transformation has no result");
	else if (failure.status == STATUS_DONE)
		write_result(map->style, result, limits->output);
	xsltFreeTransformContext(context);
	xmlFreeDoc(result);
	xmlFreeDoc(doc);
}
