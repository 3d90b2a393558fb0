//! `wasi:cli/environment` and `wasi:config`: what the section of a plugin gives it by `config`, and nothing of this machine.
//!
//! In place of a secret a guest gets a word that stands for it. The egress puts the secret where the word is, in requests to its hosts.

use crate::config::{Part, Template};
use crate::sandbox::State;
use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, Linker, Lower};

/// The versions of `wasi:config/store` that components import. The interface is the same in both; none of them is a release.
const CONFIG: [&str; 2] = ["wasi:config/store@0.2.0-draft", "wasi:config/store@0.2.0-rc.1"];

/// Why there is no value. The host always has one, or none.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum Error {
    #[component(name = "upstream")]
    Upstream(String),
    #[component(name = "io")]
    Io(String),
}

type Pairs = Vec<(String, String)>;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut environment = linker.instance("wasi:cli/environment@0.2.6")?;
    environment.func_wrap("get-environment", |store: StoreContextMut<'_, State>, ()| Ok((all(store.data()),)))?;
    environment
        .func_wrap("get-arguments", |store: StoreContextMut<'_, State>, ()| Ok((store.data().arguments().to_vec(),)))?;
    // Where a call is made is told by `.` of `wasi:filesystem`.
    environment.func_wrap("initial-cwd", |_: StoreContextMut<'_, State>, ()| Ok((None::<String>,)))?;
    for name in CONFIG {
        let mut config = linker.instance(name)?;
        config.func_wrap("get", |store: StoreContextMut<'_, State>, (key,): (String,)| {
            let value = all(store.data()).into_iter().find(|(name, _)| *name == key).map(|(_, value)| value);
            Ok((Ok::<_, Error>(value),))
        })?;
        config
            .func_wrap("get-all", |store: StoreContextMut<'_, State>, ()| Ok((Ok::<_, Error>(all(store.data())),)))?;
    }
    Ok(())
}

fn all(state: &State) -> Pairs {
    state.config().iter().map(|(name, template)| (name.clone(), value(template, state))).collect()
}

fn value(template: &Template, state: &State) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Secret(secret) => state.scope.stand_ins.of(secret),
    };
    template.parts().iter().map(part).collect()
}
