#!/bin/sh
# `sh build.sh FILE` builds a core module, and makes the component of it.
set -eu
PATH=$PWD/.venv/bin:$PATH

wit-bindgen go --quiet --format=false --world clock --out-dir build clock.wit
mkdir -p build/export_example_clock_time
cp tool.go build/export_example_clock_time
# The runtime of the bindings, as the generator's crate has it: no module proxy is asked.
for runtime in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/wit-bindgen-go-0.63.0/src/pkg; do :; done
cp -r "$runtime" build/runtime
(
    cd build
    # The generator asks for an older Go than its runtime does.
    go mod edit -go 1.27.1 -replace go.bytecodealliance.org/pkg=./runtime
    # `cabi_realloc` of the runtime uses a function of Go's own, which `-checklinkname=0` permits.
    GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags=-checklinkname=0 -o module.wasm .
)
wit-bindgen component --world clock --module build/module.wasm --output "$1" clock.wit
