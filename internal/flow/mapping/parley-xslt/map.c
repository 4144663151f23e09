/* Stylesheets: compiling them, and keeping them for the messages that follow. */
#include "parley-xslt.h"

#include <libxml/xmlerror.h>
#include <libxslt/documents.h>
#include <libxslt/imports.h>
#include <libxslt/security.h>
#include <libxslt/xslt.h>
#include <libxslt/xsltutils.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_MOST 64

/* Of stylesheets. No file outside of the map is read for any of them. */
#define STYLE_OPTIONS (XML_PARSE_NOENT | XML_PARSE_NOCDATA | XML_PARSE_NONET | XML_PARSE_BIG_LINES)

static struct map *maps[MAPS_MOST];
static uint64_t uses;

/* That of the request. */
static struct map *current;

static void map_free(struct map *map)
{
	if (map->style != NULL)
		xsltFreeStylesheet(map->style);
	for (uint32_t i = 0; i < map->documents; i++) {
		free_text(&map->document[i].name);
		free_text(&map->document[i].body);
	}
	free(map->document);
	free(map);
}

struct map *map_find(const unsigned char *key)
{
	for (int i = 0; i < MAPS_MOST; i++) {
		if (maps[i] != NULL && memcmp(maps[i]->key, key, sizeof maps[i]->key) == 0) {
			maps[i]->used = ++uses;
			current = maps[i];
			return current;
		}
	}
	return NULL;
}

/* load gives a file of the map. Nothing else can be read. */
static xmlDocPtr load(const xmlChar *name, xmlDictPtr dict, int options, void *of, xsltLoadType type)
{
	(void)dict;
	(void)options;
	for (uint32_t i = 0; current != NULL && i < current->documents; i++) {
		struct document *d = &current->document[i];
		if (strcmp(d->name.bytes, (const char *)name) == 0)
			return xmlReadMemory(d->body.bytes, (int)d->body.length, d->name.bytes, NULL, STYLE_OPTIONS);
	}
	char text[600];
	snprintf(text, sizeof text, "%.500s is no file of the map", (const char *)name);
	failure_set(STATUS_MAP, text);
	if (type == XSLT_LOAD_DOCUMENT && of != NULL) {
		xsltTransformContextPtr context = of;
		failure_at_node(context->inst, context->node);
		context->state = XSLT_STATE_STOPPED;
	}
	return NULL;
}

static xmlParserInputPtr load_entity(const char *url, const char *id, xmlParserCtxtPtr context)
{
	(void)url;
	(void)id;
	(void)context;
	return NULL;
}

/* on_compile_error takes the texts of libxslt, which come in parts: the place first. */
static void on_compile_error(void *unused, const char *format, ...)
{
	char text[2048];
	va_list arguments;
	(void)unused;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	long line;
	char file[512], element[256];
	if (sscanf(text, "compilation error: file %511s line %ld element %255s", file, &line, element) == 3) {
		if (failure.line == 0) {
			failure.line = line;
			snprintf(failure.file, sizeof failure.file, "%s", file);
			snprintf(failure.element, sizeof failure.element, "%s", element);
		}
		return;
	}
	if (failure.is_set)
		failure_add("; ");
	failure_set(STATUS_MAP, "");
	failure_add(text);
}

/* on_xml_error takes the errors of libxml2: of stylesheets as XML, and of expressions. */
static void on_xml_error(void *unused, xmlErrorPtr error)
{
	(void)unused;
	if (error->level < XML_ERR_ERROR || failure.is_set)
		return;
	failure_set(STATUS_MAP, error->message);
	if (error->domain == XML_FROM_XPATH && error->str1 != NULL) {
		failure_add(" in ");
		failure_add(error->str1);
		return;
	}
	if (failure.line == 0 && error->line > 0) {
		failure.line = error->line;
		snprintf(failure.file, sizeof failure.file, "%s", error->file == NULL ? "" : error->file);
	}
}

/* in_utf8 has results written in UTF-8, in which messages are, whatever xsl:output says. */
static void in_utf8(xsltStylesheetPtr style)
{
	for (; style != NULL; style = xsltNextImport(style)) {
		if (style->encoding != NULL) {
			xmlFree(style->encoding);
			style->encoding = xmlStrdup(BAD_CAST "UTF-8");
		}
	}
}

/* map_compile makes a map of its files, the stylesheet first, and owns them. It returns NULL where that failed. */
struct map *map_compile(const unsigned char *key, struct document *document, uint32_t documents)
{
	struct map *map = xmlMalloc(sizeof *map);
	memset(map, 0, sizeof *map);
	memcpy(map->key, key, sizeof map->key);
	map->document = document;
	map->documents = documents;
	map->used = ++uses;
	current = map;
	xmlSetStructuredErrorFunc(NULL, on_xml_error);
	xsltSetGenericErrorFunc(NULL, on_compile_error);
	xmlDocPtr doc = xmlReadMemory(document[0].body.bytes, (int)document[0].body.length, document[0].name.bytes, NULL, STYLE_OPTIONS);
	if (doc != NULL) {
		map->style = xsltParseStylesheetDoc(doc);
		if (map->style == NULL)
			xmlFreeDoc(doc);
	}
	if (map->style == NULL || map->style->errors > 0) {
		failure_set(STATUS_MAP, "the stylesheet cannot be compiled");
		map_free(map);
		current = NULL;
		return NULL;
	}
	failure_clear(); /* of what libxslt took in spite of it */
	in_utf8(map->style);
	int oldest = 0;
	for (int i = 0; i < MAPS_MOST; i++) {
		if (maps[i] == NULL || memcmp(maps[i]->key, key, sizeof map->key) == 0) {
			oldest = i;
			break;
		}
		if (maps[i]->used < maps[oldest]->used)
			oldest = i;
	}
	if (maps[oldest] != NULL)
		map_free(maps[oldest]);
	maps[oldest] = map;
	return map;
}

void map_setup(void)
{
	xsltSetLoaderFunc(load);
	xmlSetExternalEntityLoader(load_entity);
	xsltSecurityPrefsPtr security = xsltNewSecurityPrefs();
	xsltSetSecurityPrefs(security, XSLT_SECPREF_WRITE_FILE, xsltSecurityForbid);
	xsltSetSecurityPrefs(security, XSLT_SECPREF_CREATE_DIRECTORY, xsltSecurityForbid);
	xsltSetSecurityPrefs(security, XSLT_SECPREF_READ_NETWORK, xsltSecurityForbid);
	xsltSetSecurityPrefs(security, XSLT_SECPREF_WRITE_NETWORK, xsltSecurityForbid);
	xsltSetDefaultSecurityPrefs(security);
}
