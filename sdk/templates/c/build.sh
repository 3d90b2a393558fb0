#!/bin/sh
# `sh build.sh FILE` builds a core module, which `toolcrib plugin build` makes a component of.
# It needs zig 0.17 as a compiler of C (ziglang in .venv, or zig on PATH) and wit-bindgen 0.63. `plugin build` says in
# TOOLCRIB where it is itself.
set -eu
PATH=$PWD/.venv/bin:$PATH
if [ -x .venv/bin/python-zig ]; then zig=python-zig; else zig=zig; fi

# The contract, and what the generator makes of it, once: delete build/ to have them anew.
if [ ! -f build/bindings/plugin_component_type.o ]; then
    "${TOOLCRIB:-toolcrib}" plugin wit --out build/wit >/dev/null
    wit-bindgen c --world plugin --out-dir build/bindings build/wit
fi

# zig would leave `assert` out, which -UNDEBUG prevents, and would set 16 MiB of memory aside for the stack.
$zig cc -target wasm32-wasi -mexec-model=reactor -Os -UNDEBUG -Wl,-z,stack-size=1048576 \
    -Wall -Wextra -Werror -I build/bindings \
    tool.c toolcrib.c build/bindings/plugin.c build/bindings/plugin_component_type.o -o "$1"
