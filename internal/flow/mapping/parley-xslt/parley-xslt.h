/* parley-xslt transforms messages by stylesheets, for the map workers of parley.
 *
 * It reads requests from standard input and writes answers to standard output, one at a time, as internal/flow/mapping/protocol.go says. It
 * opens no file and no connection: after its start the kernel refuses both.
 */
#ifndef PARLEY_XSLT_H
#define PARLEY_XSLT_H

#include <stdint.h>

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xpath.h>
#include <libxslt/xsltInternals.h>

/* How the process ends when it cannot go on. The caller makes a new one. */
enum { EXIT_MEMORY = 71, EXIT_PROTOCOL = 72 };

/* The outcomes of a request. */
enum {
	STATUS_DONE = 0,
	STATUS_MAP = 1,        /* the stylesheet is wrong, or cannot treat this document */
	STATUS_UNKNOWN = 2,    /* no stylesheet of this key: it is to be sent again */
	STATUS_DOCUMENT = 3,   /* the document is refused */
	STATUS_OUTPUT = 4,     /* the result is too long */
	STATUS_OPERATIONS = 5, /* the stylesheet does too much */
	STATUS_STOPPED = 6     /* by xsl:message terminate="yes" */
};

/* A text with its length, and a zero byte behind it. */
struct text {
	char *bytes;
	uint32_t length;
};

#define DOCUMENTS_MOST 256

/* A file of a map: its stylesheet, or one that the stylesheet includes or reads. */
struct document {
	struct text name, body;
};

/* A stylesheet with its files, kept from one message to the next. */
struct map {
	unsigned char key[32];
	uint64_t used;
	uint32_t documents;
	struct document *document;
	xsltStylesheetPtr style;
};

/* The limits of a run. */
struct limits {
	uint64_t memory;     /* bytes of address space */
	uint64_t operations; /* of XPath and templates */
	uint64_t output;     /* bytes */
	uint32_t seconds;    /* of the processor */
};

/* The first error of a request. Its texts are cut at their sizes. */
struct failure {
	int status;
	int is_set;
	long line;
	long input_line;
	char file[512];
	char element[256];
	char path[2048];
	char message[4096];
};

extern struct failure failure;

void failure_clear(void);
void failure_set(int status, const char *message);
void failure_add(const char *message);
void failure_at_node(xmlNodePtr instruction, xmlNodePtr node);

/* frame.c */
void read_bytes(void *into, size_t length);
int read_more(void *into, size_t length);
uint32_t read_u32(void);
uint64_t read_u64(void);
struct text read_text(uint32_t most);
void free_text(struct text *text);
void write_data(const char *bytes, size_t length);
void write_end(const char *payload, uint32_t length);
void flush(void);

/* sandbox.c */
void sandbox_enter(void);
void limits_use(const struct limits *limits);
void limits_lift(void);

/* map.c */
void map_setup(void);
struct map *map_find(const unsigned char *key);
struct map *map_compile(const unsigned char *key, struct document *document, uint32_t documents);

/* transform.c */
void transform(struct map *map, const struct limits *limits, uint32_t inputs, int is_utf8);
void drain_inputs(uint32_t inputs);

/* functoids.c and its parts */
void functoids_register(void);
void functoids_reset(void);
void register_function(const char *name, xmlXPathFunction function);
void functoids_register_text(void);
void functoids_register_numbers(void);
void functoids_register_cumulative(void);
void functoids_register_dates(void);
int is_numeric(const char *text, double *value);
int is_date(const char *text, int *year, int *month, int *day);
int is_true(const char *text);
char *text_argument(xmlXPathParserContextPtr context);
void return_text(xmlXPathParserContextPtr context, const char *text);
void return_number_text(xmlXPathParserContextPtr context, double value);

#endif
