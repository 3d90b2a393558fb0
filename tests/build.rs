//! Builds the guests of the tests, third-party plugins all of them, for `wasm32-wasip2`.

#[path = "../host/builtins/build/components.rs"]
mod components;

fn main() {
    let guests = components::here().join("guests");
    let built = components::build(&guests, &["sdk", "wit", "plugins/web_search/provider", "Cargo.lock", "Cargo.toml"]);
    let directory = built.first().and_then(|guest| guest.parent()).expect("there are guests");
    println!("cargo::rustc-env=GUESTS={}", directory.display());
}
