//! `wasi:cli/environment` and `wasi:config`: what the section of a plugin gives it by `config`, and nothing of this machine.
//!
//! In place of a secret a guest gets a word that stands for it. The egress puts the secret where the word is, in requests to its hosts.

use crate::sandbox::State;
use config::{Part, Template};
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::p2::bindings::cli::environment;

// The versions of `wasi:config` that components import. The interface is the same in both; none of them is a release.
mod draft {
    wasmtime::component::bindgen!({
        inline: "package wasi:config@0.2.0-draft;
            interface store {
                variant error { upstream(string), io(string) }
                get: func(key: string) -> result<option<string>, error>;
                get-all: func() -> result<list<tuple<string, string>>, error>;
            }
            world configured { import store; }",
        world: "wasi:config/configured",
        imports: { default: trappable },
    });
}

mod candidate {
    wasmtime::component::bindgen!({
        inline: "package wasi:config@0.2.0-rc.1;
            interface store {
                variant error { upstream(string), io(string) }
                get: func(key: string) -> result<option<string>, error>;
                get-all: func() -> result<list<tuple<string, string>>, error>;
            }
            world configured { import store; }",
        world: "wasi:config/configured",
        imports: { default: trappable },
    });
}

type Pairs = Vec<(String, String)>;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    environment::add_to_linker::<_, HasSelf<_>>(linker, |state: &mut State| state)?;
    draft::wasi::config::store::add_to_linker::<_, HasSelf<_>>(linker, |state: &mut State| state)?;
    candidate::wasi::config::store::add_to_linker::<_, HasSelf<_>>(linker, |state: &mut State| state)
}

impl environment::Host for State {
    fn get_environment(&mut self) -> wasmtime::Result<Pairs> {
        Ok(all(self))
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.arguments().to_vec())
    }

    /// The working directory is `.` of `wasi:filesystem`.
    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }
}

impl draft::wasi::config::store::Host for State {
    fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<String>, draft::wasi::config::store::Error>> {
        Ok(Ok(one(self, &key)))
    }

    fn get_all(&mut self) -> wasmtime::Result<Result<Pairs, draft::wasi::config::store::Error>> {
        Ok(Ok(all(self)))
    }
}

impl candidate::wasi::config::store::Host for State {
    fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<String>, candidate::wasi::config::store::Error>> {
        Ok(Ok(one(self, &key)))
    }

    fn get_all(&mut self) -> wasmtime::Result<Result<Pairs, candidate::wasi::config::store::Error>> {
        Ok(Ok(all(self)))
    }
}

fn all(state: &State) -> Pairs {
    state.config().iter().map(|(name, template)| (name.clone(), value(template, state))).collect()
}

fn one(state: &State, key: &str) -> Option<String> {
    state.config().get(key).map(|template| value(template, state))
}

fn value(template: &Template, state: &State) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Secret(secret) => state.scope.stand_ins.of(secret),
    };
    template.parts().iter().map(part).collect()
}
