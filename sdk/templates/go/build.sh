#!/bin/sh
# `sh build.sh FILE` builds a core module, which `toolcrib plugin build` makes a component of.
# It needs Go 1.27 (in .venv or on PATH) and wit-bindgen 0.63. `plugin build` says in TOOLCRIB where it is itself.
set -eu
PATH=$PWD/.venv/bin:$PATH
bindings=build/bindings
exports=$bindings/exports/export_toolcrib_plugin_tools

# The contract, and what the generator makes of it, once: delete build/ to have them anew.
if [ ! -d $exports ]; then
    "${TOOLCRIB:-toolcrib}" plugin wit --out build/wit >/dev/null
    wit-bindgen go --quiet --format=false --world plugin --pkg-name toolcrib.local/plugin/$bindings \
        --out-dir $bindings build/wit
    mkdir -p $exports
    cat >$exports/toolcrib.go <<'END'
package export_toolcrib_plugin_tools

import "toolcrib.local/plugin/toolcrib"

var Definitions, Call = toolcrib.Definitions, toolcrib.Call
END
fi

# The runtime of the bindings, as the generator's crate has it: no module proxy is asked.
if [ ! -d $bindings/runtime ]; then
    for runtime in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/wit-bindgen-go-0.63.0/src/pkg; do :; done
    cp -r "$runtime" $bindings/runtime
fi

# `cabi_realloc` of the runtime uses a function of Go's own, which `-checklinkname=0` permits.
GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags=-checklinkname=0 -o "$1" .
