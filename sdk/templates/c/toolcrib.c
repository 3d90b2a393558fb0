// The code of `toolcrib.h`: between C as it is usual and what `wit-bindgen c` made of the contract (`plugin.h`).

#include "toolcrib.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

typedef exports_toolcrib_plugin_tools_definition_t definition_t;
typedef exports_toolcrib_plugin_tools_output_t output_t;
typedef exports_toolcrib_plugin_tools_content_t content_t;
typedef toolcrib_plugin_types_failure_t failure_t;

struct failure failure;
static const char *arguments; // The JSON of this call's arguments.
static output_t output;

// Memory and text.

void *allocate(size_t bytes) {
    void *memory = calloc(bytes ? bytes : 1, 1);
    if (memory == NULL) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return memory;
}

// What the host handed over, with a zero byte behind it.
static const char *received(plugin_string_t text) {
    char *copy = allocate(text.len + 1);
    memcpy(copy, text.ptr, text.len);
    return copy;
}

// How many bytes the character at `text` has in UTF-8; 0 if it is not UTF-8.
static size_t character(const unsigned char *text) {
    unsigned char first = text[0], second = text[1];
    if (first < 0x80) return 1;
    size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
    }
    // Too long for its character, half of one, or past the last one.
    bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                 (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
    return wrong ? 0 : length;
}

// A copy for the host, which ends a plugin that hands over what is not UTF-8.
static plugin_string_t sent(const char *text) {
    const unsigned char *from = (const unsigned char *)(text ? text : "");
    unsigned char *copy = allocate(3 * strlen((const char *)from)), *to = copy;
    while (*from) {
        size_t length = character(from);
        memcpy(to, length ? from : (const unsigned char *)"\xef\xbf\xbd", length ? length : 3);
        to += length ? length : 3;
        from += length ? length : 1;
    }
    return (plugin_string_t){copy, (size_t)(to - copy)};
}

static plugin_option_string_t sent_if(const char *text) { return (plugin_option_string_t){text != NULL, sent(text)}; }

static const char *print(const char *format, va_list values) {
    va_list again;
    va_copy(again, values);
    size_t size = (size_t)vsnprintf(NULL, 0, format, again) + 1;
    va_end(again);
    char *text = allocate(size);
    vsnprintf(text, size, format, values);
    return text;
}

const char *text(const char *format, ...) {
    va_list values;
    va_start(values, format);
    const char *printed = print(format, values);
    va_end(values);
    return printed;
}

// Adds room for one more to a list. Returns where it is.
#define PUSH(list)                                                                          \
    ((list).ptr = realloc((list).ptr, ((list).len + 1) * sizeof *(list).ptr),               \
     (list).ptr == NULL ? abort() : (void)0, (list).ptr + (list).len++)

// Arguments. The host has parsed them before, so they are JSON.

static const char *after_space(const char *at) { return at + strspn(at, " \t\r\n"); }

static const char *after_string(const char *at) {
    for (at++; *at != '"'; at++) at += *at == '\\';
    return at + 1;
}

static const char *after_value(const char *at) {
    if (*at == '"') return after_string(at);
    if (*at != '{' && *at != '[') return at + strcspn(at, ",}] \t\r\n");
    int depth = 0;
    do {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at = *at == '"' ? after_string(at) : at + 1;
    } while (depth > 0);
    return at;
}

// The character that `\uXXXX` stands for, in UTF-8; `at` is before the digits, and then behind them.
static char *unescaped(const char **at, char *to) {
    char digits[5] = {0};
    uint32_t code = (uint32_t)strtoul(memcpy(digits, *at, 4), NULL, 16);
    *at += 4;
    if (code >> 10 == 0x36 && (*at)[0] == '\\' && (*at)[1] == 'u') { // The first half of one.
        uint32_t low = (uint32_t)strtoul(memcpy(digits, *at + 2, 4), NULL, 16);
        code = 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
        *at += 6;
    }
    if (code < 0x80) return *to++ = (char)code, to;
    if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *to++ = (char)(0xe0 | code >> 12);
        } else {
            *to++ = (char)(0xf0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (code & 0x3f));
    return to;
}

// The string of JSON that begins at this quote.
static const char *string(const char *at) {
    static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    char *text = allocate((size_t)(after_string(at) - at)), *to = text;
    for (at++; *at != '"';) {
        if (*at != '\\') {
            *to++ = *at++;
        } else if (at[1] == 'u') {
            at += 2;
            to = unescaped(&at, to);
        } else {
            const char *escape = escapes;
            while (escape[0] != at[1]) escape += 2;
            *to++ = escape[1];
            at += 2;
        }
    }
    return text;
}

// Where the value of an argument begins, or NULL.
static const char *argument(const char *name) {
    const char *at = after_space(after_space(arguments) + 1);
    while (*at == '"') {
        const char *value = after_space(after_space(after_string(at)) + 1);
        if (strcmp(string(at), name) == 0) return value;
        at = after_space(after_value(value));
        at = after_space(at + (*at == ','));
    }
    return NULL;
}

const char *text_argument(const char *name) {
    const char *value = argument(name);
    return value && *value == '"' ? string(value) : NULL;
}

double number_argument(const char *name, double otherwise) {
    const char *value = argument(name);
    return value && *value != 'n' ? strtod(value, NULL) : otherwise;
}

bool truth_argument(const char *name, bool otherwise) {
    const char *value = argument(name);
    return value && *value != 'n' ? *value == 't' : otherwise;
}

// Results and failures.

bool answer(const char *format, ...) {
    va_list values;
    va_start(values, format);
    output.json = sent(print(format, values));
    va_end(values);
    return true;
}

const char *quoted(const char *text) {
    char *json = allocate(6 * strlen(text) + 3), *to = json;
    *to++ = '"';
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20) {
            to += sprintf(to, "\\u%04x", *text);
        } else {
            if (*text == '"' || *text == '\\') *to++ = '\\';
            *to++ = *text;
        }
    }
    *to = '"';
    return json;
}

bool fail(const char *kind, const char *message, const char *hint, const char *data) {
    failure = (struct failure){kind, message, hint, data};
    return false;
}

// Passes on whether a function of the host succeeded, and keeps why not.
static bool succeeded(bool did, failure_t *why) {
    if (did) return true;
    return fail(received(why->kind), received(why->message), why->hint.is_some ? received(why->hint.val) : NULL,
                why->data.is_some ? received(why->data.val) : NULL);
}

void notice(const char *format, ...) {
    va_list values;
    va_start(values, format);
    *PUSH(output.notices) = sent(print(format, values));
    va_end(values);
}

static content_t *attach(uint8_t tag) {
    content_t *part = PUSH(output.content);
    part->tag = tag;
    return part;
}

void attach_text(const char *text) { attach(EXPORTS_TOOLCRIB_PLUGIN_TOOLS_CONTENT_TEXT)->val.text = sent(text); }

void attach_link(const char *url) { attach(EXPORTS_TOOLCRIB_PLUGIN_TOOLS_CONTENT_LINK)->val.link = sent(url); }

void attach_image(const void *bytes, size_t length, const char *media_type) {
    attach(EXPORTS_TOOLCRIB_PLUGIN_TOOLS_CONTENT_IMAGE)->val.image =
        (plugin_tuple2_string_list_u8_t){sent(media_type), {memcpy(allocate(length), bytes, length), length}};
}

void say(enum level level, const char *format, ...) {
    va_list values;
    va_start(values, format);
    plugin_string_t text = sent(print(format, values));
    toolcrib_plugin_events_log((toolcrib_plugin_events_level_t)level, &text);
    va_end(values);
}

void progress(uint64_t done, uint64_t total, const char *message) {
    plugin_string_t text = sent(message);
    toolcrib_plugin_events_progress(done, total ? &total : NULL, message ? &text : NULL);
}

// Files and requests.

const char *read_text(const char *path, size_t *length) {
    plugin_string_t name = sent(path);
    toolcrib_plugin_files_whole_t whole;
    failure_t why;
    if (!succeeded(toolcrib_plugin_files_read_whole(&name, &whole, &why), &why)) return NULL;
    if (length) *length = whole.content.len;
    return received(whole.content);
}

bool write_file(const char *path, const void *bytes, size_t length) {
    plugin_string_t name = sent(path);
    plugin_list_u8_t content = {(uint8_t *)bytes, length};
    uint64_t written;
    failure_t why;
    return succeeded(toolcrib_plugin_files_write(&name, &content, &written, &why), &why);
}

bool send_request(const struct request *request, struct response *response) {
    plugin_string_t method = sent(request->method), url = sent(request->url);
    toolcrib_plugin_http_own_request_t own = toolcrib_plugin_http_constructor_request(&method, &url);
    toolcrib_plugin_http_borrow_request_t prepared = toolcrib_plugin_http_borrow_request(own);
    for (const char *const(*one)[2] = request->headers; one && (*one)[0]; one++) {
        plugin_string_t name = sent((*one)[0]), value = sent((*one)[1]);
        toolcrib_plugin_http_method_request_header(prepared, &name, &value);
    }
    if (request->body) {
        plugin_list_u8_t body = {(uint8_t *)request->body, request->length};
        toolcrib_plugin_http_method_request_body(prepared, &body);
    }
    if (request->limit) toolcrib_plugin_http_method_request_limit(prepared, request->limit);
    toolcrib_plugin_http_response_t raw;
    failure_t why;
    if (!succeeded(toolcrib_plugin_http_method_request_send(prepared, &raw, &why), &why)) return false;
    *response = (struct response){raw.status, received(raw.url), received((plugin_string_t){raw.body.ptr, raw.body.len}),
                                  raw.body.len, raw.truncated, raw.headers.len,
                                  allocate(raw.headers.len * sizeof *response->headers)};
    for (size_t i = 0; i < raw.headers.len; i++) {
        response->headers[i][0] = received(raw.headers.ptr[i].f0);
        response->headers[i][1] = received(raw.headers.ptr[i].f1);
    }
    return true;
}

const char *header(const struct response *response, const char *name) {
    for (size_t i = 0; i < response->header_count; i++) {
        if (strcmp(response->headers[i][0], name) == 0) return response->headers[i][1];
    }
    return NULL;
}

// What the host calls. What is returned is freed behind it by the bindings, so all of it is a copy.

static plugin_list_string_t lines_of(const char *text) {
    plugin_list_string_t lines = {0};
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        *PUSH(lines) = sent(memcpy(allocate(length + 1), text, length));
        text += length + (text[length] == '\n');
    }
    return lines;
}

void exports_toolcrib_plugin_tools_definitions(exports_toolcrib_plugin_tools_list_definition_t *definitions) {
    memset(definitions, 0, sizeof *definitions);
    for (const struct tool *tool = tools; tool->name; tool++) {
        *PUSH(*definitions) = (definition_t){
            .name = sent(tool->name),
            .title = sent_if(tool->title),
            .summary = sent(tool->summary),
            .guidance = {sent(tool->when_to_use), sent(tool->when_not_to_use), sent(tool->disambiguation),
                         lines_of(tool->examples)},
            .usage = sent_if(tool->usage),
            .input_schema = sent(tool->input),
            .output_schema = sent_if(tool->output),
        };
    }
}

bool exports_toolcrib_plugin_tools_call(plugin_string_t *name, plugin_string_t *json, output_t *ret, failure_t *err) {
    arguments = received(*json);
    const char *called = received(*name);
    output.json = sent("null");
    fail("internal", "the tool failed and did not say why", NULL, NULL);
    for (const struct tool *tool = tools; tool->name; tool++) {
        if (strcmp(tool->name, called) == 0 && tool->call()) {
            *ret = output;
            return true;
        }
    }
    *err = (failure_t){sent(failure.kind), sent(failure.message), sent_if(failure.hint), sent_if(failure.data)};
    return false;
}
