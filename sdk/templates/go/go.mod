module toolcrib.local/plugin

go 1.27.1

require go.bytecodealliance.org/pkg v0.4.0

// The bindings' runtime, which build.sh takes from the crate of their generator.
replace go.bytecodealliance.org/pkg => ./build/bindings/runtime
