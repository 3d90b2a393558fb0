// Three tools in C: one that reads a file, one that makes a request, one that fails in every way.
//
// It replaces `tool.c` of a project that `toolcrib plugin new --lang c` made, whose `toolcrib.c` it uses.

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "toolcrib.h"

static bool lines(void) {
    const char *path = text_argument("path");
    progress(0, 1, path);
    const char *content = read_text(path, NULL);
    if (content == NULL) return false; // For the reason that the host gave.
    size_t lines = 0, characters = 0;
    for (const char *at = content; *at; at++) {
        lines += *at == '\n';
        characters += (*at & 0xc0) != 0x80;
    }
    notice("%zu characters", characters);
    attach_text(path);
    return answer(JSON({"lines": %zu}), lines);
}

static bool get(void) {
    static const char *const headers[][2] = {{"accept", "text/plain"}, {0}};
    struct request request = {.method = "GET", .url = text_argument("url"), .headers = headers};
    struct response response;
    if (!send_request(&request, &response)) return false;
    const char *type = header(&response, "content-type");
    char start[9] = {0};
    strncpy(start, response.body, 8);
    return answer(JSON({"status": %d, "bytes": %zu, "type": %s, "start": %s}), response.status, response.length,
                  type ? quoted(type) : "null", quoted(start));
}

static volatile int zero = 0, on = 1; // The compiler does not know that they stay so.

// With much on the stack of C, or little; then WebAssembly's own ends first.
static int recurse(int depth, int much) {
    volatile int local[much ? 10000 : 1];
    local[0] = depth;
    return on ? recurse(depth + 1, much) + local[0] : depth;
}

static bool fail_in_a_way(void) {
    const char *how = text_argument("how");
    if (!strcmp(how, "kind")) {
        return fail("busy", "somebody else has it", "try again later", JSON({"left": [1, "two"]}));
    }
    if (!strcmp(how, "throw")) assert(zero && "this is the reason");
    if (!strcmp(how, "zero")) return answer("%d", 10 / zero);
    if (!strcmp(how, "capability")) return read_text("none", NULL) != NULL;
    if (!strcmp(how, "caught") && !read_text("none", NULL)) {
        return answer(JSON({"failure": true, "kind": %s, "message": %s, "hint": %s}), quoted(failure.kind),
                      quoted(failure.message), quoted(failure.hint));
    }
    if (!strcmp(how, "spin")) {
        while (on) {}
    }
    if (!strcmp(how, "big")) {
        char *much = allocate((1 << 20) + 2);
        memset(much, 'x', (1 << 20) + 1);
        return answer("%s", quoted(much));
    }
    if (!strcmp(how, "memory")) {
        while (on) memset(allocate(1 << 20), 1, 1 << 20);
    }
    if (!strcmp(how, "recursion")) return answer("%d", recurse(1, 0));
    if (!strcmp(how, "stack")) return answer("%d", recurse(1, 1));
    if (!strcmp(how, "exit")) exit(3);
    if (!strcmp(how, "silent")) return false;
    if (!strcmp(how, "not json")) return answer("nothing");
    if (!strcmp(how, "null")) return answer("%d", *(volatile int *)(intptr_t)zero);
    if (!strcmp(how, "outside")) return answer("%d", *(volatile int *)(intptr_t)(zero - 8));
    if (!strcmp(how, "half")) return fail("execution_failed", "half of \xf0\x9f", NULL, NULL);
    if (!strcmp(how, "log")) {
        printf("said by a tool\n");
        say(LEVEL_WARN, "%s by a tool", "warned");
        return answer("null");
    }
    if (!strcmp(how, "config")) return answer("%s", quoted(getenv("GREETING")));
    if (!strcmp(how, "random")) return answer("%u", arc4random());
    if (!strcmp(how, "image")) {
        attach_image("\x89PNG", 4, "image/png");
        attach_link("https://example.com/");
        return answer("null");
    }
    return fail("invalid_arguments", text("`%s` is not a way", how), NULL, NULL);
}

const struct tool tools[] = {
    {
        .name = "c_lines",
        .summary = "Count the lines of a text file.",
        .input = SCHEMA("properties": {"path": {"type": "string", "description": "File to count."}}, "required": ["path"]),
        .output = SCHEMA("properties": {"lines": {"type": "integer"}}, "required": ["lines"]),
        .call = lines,
    },
    {
        .name = "c_get",
        .summary = "Make a GET request.",
        .input = SCHEMA("properties": {"url": {"type": "string", "description": "Address to ask."}}, "required": ["url"]),
        .call = get,
    },
    {
        .name = "c_fail",
        .summary = "Fail in a way of your choice.",
        .input = SCHEMA("properties": {"how": {"type": "string", "description": "The way."}}, "required": ["how"]),
        .call = fail_in_a_way,
    },
    {0},
};
