/* The bytes of requests and answers. */
#include "parley-xslt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char in[64 << 10];
static size_t in_from, in_to;
static char out[64 << 10];
static size_t out_length;

/* read_more reads some bytes, at least one. It returns 0 at the end of the input. */
int read_more(void *into, size_t length)
{
	if (in_from == in_to) {
		ssize_t got;
		do {
			got = read(STDIN_FILENO, in, sizeof in);
		} while (got < 0 && errno == EINTR);
		if (got <= 0)
			return 0;
		in_from = 0;
		in_to = (size_t)got;
	}
	if (length > in_to - in_from)
		length = in_to - in_from;
	memcpy(into, in + in_from, length);
	in_from += length;
	return (int)length;
}

/* read_bytes reads that many bytes. The process ends with its input. */
void read_bytes(void *into, size_t length)
{
	char *at = into;
	while (length > 0) {
		int got = read_more(at, length);
		if (got == 0)
			_exit(EXIT_PROTOCOL);
		at += got;
		length -= (size_t)got;
	}
}

uint32_t read_u32(void)
{
	unsigned char b[4];
	read_bytes(b, sizeof b);
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

uint64_t read_u64(void)
{
	uint64_t high = read_u32();
	return high << 32 | read_u32();
}

struct text read_text(uint32_t most)
{
	struct text t = {NULL, read_u32()};
	if (t.length > most)
		_exit(EXIT_PROTOCOL);
	t.bytes = malloc((size_t)t.length + 1);
	if (t.bytes == NULL)
		_exit(EXIT_MEMORY);
	read_bytes(t.bytes, t.length);
	t.bytes[t.length] = 0;
	return t;
}

void free_text(struct text *text)
{
	free(text->bytes);
	text->bytes = NULL;
}

/* flush writes what is buffered. */
void flush(void)
{
	size_t done = 0;
	while (done < out_length) {
		ssize_t put = write(STDOUT_FILENO, out + done, out_length - done);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			_exit(EXIT_PROTOCOL);
		done += (size_t)put;
	}
	out_length = 0;
}

static void write_bytes(const void *from, size_t length)
{
	const char *at = from;
	while (length > 0) {
		size_t part = sizeof out - out_length;
		if (part > length)
			part = length;
		memcpy(out + out_length, at, part);
		out_length += part;
		at += part;
		length -= part;
		if (out_length == sizeof out)
			flush();
	}
}

static void write_u32(uint32_t value)
{
	unsigned char b[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16), (unsigned char)(value >> 8), (unsigned char)value};
	write_bytes(b, sizeof b);
}

/* write_data writes a part of a result. */
void write_data(const char *bytes, size_t length)
{
	write_bytes("D", 1);
	write_u32((uint32_t)length);
	write_bytes(bytes, length);
}

/* write_end ends an answer: its status, and texts that are separated by zero bytes. */
void write_end(const char *payload, uint32_t length)
{
	char status = (char)failure.status;
	write_bytes("E", 1);
	write_bytes(&status, 1);
	write_u32(length);
	write_bytes(payload, length);
	flush();
}
