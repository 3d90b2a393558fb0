// What `tool.c` is written with: definitions, calls, failures, files and requests. `toolcrib.c` has the code.
//
// A call begins with fresh memory, and all of it goes when the call ends: nothing has to be freed.
// Text that comes from here ends in a zero byte. Text that goes out is made UTF-8: other bytes become U+FFFD.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// JSON as it is, without quotes to escape: JSON({"lines": [1, 2]}).
#define JSON(...) #__VA_ARGS__
// The schema of an object: SCHEMA("properties": {"path": {"type": "string"}}, "required": ["path"]).
#define SCHEMA(...) "{\"type\": \"object\", \"additionalProperties\": false, " #__VA_ARGS__ "}"

struct tool {
    const char *name, *summary;          // The summary is one sentence.
    const char *input, *output;          // Schemas of the arguments and of the result; no output schema: any result.
    bool (*call)(void);                  // Answers and returns true, or fails and returns false.
    const char *title, *usage;           // What follows may be omitted.
    const char *when_to_use, *when_not_to_use, *disambiguation;
    const char *examples;                // JSON of arguments, one in a line.
};

// The tools of the plugin. `tool.c` defines it; the last one has no name.
extern const struct tool tools[];

// An argument of this call by its name. The host has checked arguments against the schema.
const char *text_argument(const char *name);                 // NULL where it is omitted.
double number_argument(const char *name, double otherwise);
bool truth_argument(const char *name, bool otherwise);

// The result: `printf` of JSON, such as answer(JSON({"lines": %zu, "path": %s}), lines, quoted(path)). Returns true.
bool answer(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Text as a string of JSON, with its quotes.
const char *quoted(const char *text);
// Text as `printf` makes it.
const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The call fails: `kind` is `invalid_arguments`, `denied`, `limit`, `timed_out`, `cancelled`, `busy`, `unavailable`,
// `outcome_unknown`, `execution_failed` or `internal`; `message` says what happened, `hint` what to change, and `data` is
// JSON with what is known nevertheless. `hint` and `data` may be NULL. Returns false.
bool fail(const char *kind, const char *message, const char *hint, const char *data);

// The last failure, also of a function below. It is the call's failure if that returns false.
extern struct failure { const char *kind, *message, *hint, *data; } failure;

// For whoever watches the call: a sentence; how far the call is (a `total` of 0 is unknown). They also see what it prints.
enum level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR };
void say(enum level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void progress(uint64_t done, uint64_t total, const char *message);

// Beside the result: a sentence for the caller; parts.
void notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void attach_text(const char *text);
void attach_link(const char *url);
void attach_image(const void *bytes, size_t length, const char *media_type);

// A whole text file of at most 4 MiB; `length` may be NULL. Returns NULL if it fails.
const char *read_text(const char *path, size_t *length);
// Replaces or creates a file. Returns false if it fails.
bool write_file(const char *path, const void *bytes, size_t length);

struct request {
    const char *method, *url;
    const char *const (*headers)[2];     // Names and values; the last one has no name.
    const void *body;
    size_t length;                       // Of the body.
    uint32_t limit;                      // How many bytes of the response to return; 0: 1 MiB, at most 8 MiB.
};

struct response {
    int status;
    const char *url;                     // After redirects.
    const char *body;
    size_t length;                       // Of the body.
    bool truncated;
    size_t header_count;
    const char *(*headers)[2];           // Names in lower case, and values.
};

// Sends a request and waits for the response. One of any status is no failure. Returns false if it fails.
bool send_request(const struct request *request, struct response *response);
// The first value of a header by its name in lower case, or NULL.
const char *header(const struct response *response, const char *name);

// Memory that is there: the call ends if no more can be had.
void *allocate(size_t bytes);
