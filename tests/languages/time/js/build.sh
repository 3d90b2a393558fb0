#!/bin/sh
# `sh build.sh FILE` builds the component. Without `--sync` it would need a host that runs async components.
set -eu
node_modules/.bin/componentize-qjs --wit clock.wit --world clock --js tool.js --sync --output "$1"
