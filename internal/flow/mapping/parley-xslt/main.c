/* The loop of requests, and the error of the one that is being worked on. */
#include "parley-xslt.h"

#include <libexslt/exslt.h>
#include <libxslt/xslt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION "1"
#define NAME_MOST 4096
#define DOCUMENT_MOST (16u << 20)
#define INPUTS_MOST 64

struct failure failure;

void failure_clear(void)
{
	memset(&failure, 0, sizeof failure);
}

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from == NULL ? "" : from);
}

/* failure_set keeps the first error. */
void failure_set(int status, const char *message)
{
	if (failure.status == STATUS_DONE)
		failure.status = status;
	if (failure.is_set)
		return;
	failure.is_set = 1;
	copy(failure.message, sizeof failure.message, message);
}

/* failure_add adds to the text of the error. */
void failure_add(const char *message)
{
	size_t length = strlen(failure.message);
	copy(failure.message + length, sizeof failure.message - length, message);
}

/* failure_at_node says at which instruction of the stylesheet, and at which node of the document, the error is. */
void failure_at_node(xmlNodePtr instruction, xmlNodePtr node)
{
	if (instruction != NULL && failure.line == 0) {
		failure.line = xmlGetLineNo(instruction);
		copy(failure.element, sizeof failure.element, (const char *)instruction->name);
		if (instruction->doc != NULL)
			copy(failure.file, sizeof failure.file, (const char *)instruction->doc->URL);
	}
	if (node != NULL && failure.path[0] == 0 && node->type != XML_NAMESPACE_DECL) {
		xmlChar *path = xmlGetNodePath(node);
		copy(failure.path, sizeof failure.path, (const char *)path);
		xmlFree(path);
		if (node->type == XML_ELEMENT_NODE)
			failure.input_line = xmlGetLineNo(node);
	}
}

/* answer_failure ends an answer with the error. */
static void answer_failure(void)
{
	static char payload[sizeof failure + 64];
	int length = snprintf(payload, sizeof payload, "%s%c%ld%c%s%c%s%c%ld%c%s", failure.file, 0, failure.line, 0, failure.element, 0,
		failure.path, 0, failure.input_line, 0, failure.message);
	write_end(payload, (uint32_t)length);
}

/* Memory that cannot be had ends the process: what libxml2 does without it is not worth trusting. */
static void *need(void *got, size_t size)
{
	if (got == NULL && size > 0)
		_exit(EXIT_MEMORY);
	return got;
}

static void *need_malloc(size_t size) { return need(malloc(size), size); }
static void *need_realloc(void *old, size_t size) { return need(realloc(old, size), size); }
static char *need_strdup(const char *text) { return need(strdup(text), 1); }

static void compile(void)
{
	unsigned char key[32];
	read_bytes(key, sizeof key);
	uint32_t documents = read_u32();
	if (documents == 0 || documents > DOCUMENTS_MOST)
		_exit(EXIT_PROTOCOL);
	struct document *document = need_malloc(documents * sizeof *document);
	for (uint32_t i = 0; i < documents; i++) {
		document[i].name = read_text(NAME_MOST);
		document[i].body = read_text(DOCUMENT_MOST);
	}
	struct limits limits = {read_u64(), 0, 0, read_u32()};
	limits_use(&limits);
	failure_clear();
	struct map *made = map_compile(key, document, documents);
	limits_lift();
	if (made == NULL || failure.status != STATUS_DONE)
		answer_failure();
	else
		write_end("", 0);
}

static void run(void)
{
	unsigned char key[32];
	struct limits limits;
	read_bytes(key, sizeof key);
	limits.memory = read_u64();
	limits.operations = read_u64();
	limits.output = read_u64();
	limits.seconds = read_u32();
	uint32_t is_utf8 = read_u32();
	uint32_t inputs = read_u32();
	if (inputs == 0 || inputs > INPUTS_MOST)
		_exit(EXIT_PROTOCOL);
	failure_clear();
	struct map *map = map_find(key);
	if (map == NULL) {
		failure_set(STATUS_UNKNOWN, "");
		drain_inputs(inputs);
		answer_failure();
		return;
	}
	limits_use(&limits);
	transform(map, &limits, inputs, (int)is_utf8);
	limits_lift();
	if (failure.status != STATUS_DONE)
		answer_failure();
}

int main(int count, char **arguments)
{
	if (count == 2 && strcmp(arguments[1], "--version") == 0) {
		printf("parley-xslt %s libxslt %s libxml2 %s\n", VERSION, xsltEngineVersion, xmlParserVersion);
		return 0;
	}
	if (count != 1) {
		fprintf(stderr, "parley-xslt is started by parley, for its maps; it takes no arguments but --version\n");
		return 2;
	}
	xmlMemSetup(free, need_malloc, need_realloc, need_strdup);
	xmlInitParser();
	xsltInit();
	exsltCommonRegister();
	exsltMathRegister();
	exsltSetsRegister();
	exsltStrRegister();
	exsltDateRegister();
	exsltDynRegister();
	exsltFuncRegister();
	functoids_register();
	map_setup();
	sandbox_enter();
	for (;;) {
		char operation;
		if (read_more(&operation, 1) == 0)
			return 0;
		switch (operation) {
		case 'C':
			compile();
			break;
		case 'R':
			run();
			break;
		default:
			_exit(EXIT_PROTOCOL);
		}
	}
}
