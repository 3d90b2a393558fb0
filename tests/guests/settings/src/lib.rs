//! `settings`: says what its host tells it: configuration, environment variables, arguments.
#![cfg(target_arch = "wasm32")]
#![expect(missing_docs, unsafe_code, reason = "what the bindings are made of")]

use wasi::config::store::{self, Error};

wit_bindgen::generate!({ world: "settings", generate_all });

struct Settings;

impl Guest for Settings {
    fn value(key: String) -> Result<Option<String>, String> {
        store::get(&key).map_err(|(Error::Upstream(text) | Error::Io(text))| text)
    }

    fn all() -> Vec<(String, String)> {
        store::get_all().expect("the configuration can be read")
    }

    fn variables() -> Vec<(String, String)> {
        std::env::vars().collect()
    }

    fn arguments() -> Vec<String> {
        std::env::args().collect()
    }
}

export!(Settings);
