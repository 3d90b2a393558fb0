//! `wit-bindgen c` and `wit-bindgen go` as `wit-bindgen-cli` 0.63 has them, with 100 crates less: what tests of plugins in C and Go generate
//! bindings with. It takes the options that `build.sh` of these plugins gives, and writes the same files.
//!
//! `wit-bindgen component` stands for `wasm-tools component embed` and `component new --adapt`: `toolcrib plugin pack` makes components of its
//! own contract alone, and tests need those of other hosts too.

use clap::{Args, Parser};
use std::fs;
use std::path::{Path, PathBuf};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME as ADAPTER, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER as ADAPTER_BYTES,
};
use wit_bindgen_core::wit_parser::{Resolve, WorldId};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

#[derive(Parser)]
#[command(name = "wit-bindgen", version = "0.63.0")]
enum Command {
    C {
        #[clap(flatten)]
        options: wit_bindgen_c::Opts,
        #[clap(flatten)]
        what: What,
        #[arg(long)]
        out_dir: PathBuf,
    },
    Go {
        #[clap(flatten)]
        options: wit_bindgen_go::Opts,
        #[clap(flatten)]
        what: What,
        #[arg(long)]
        out_dir: PathBuf,
    },
    Component {
        #[clap(flatten)]
        what: What,
        /// A core module that was built to that world, for WASI's first preview
        #[arg(long)]
        module: PathBuf,
        #[arg(long)]
        output: PathBuf,
    },
}

#[derive(Args)]
struct What {
    wit: PathBuf,
    #[arg(long)]
    world: String,
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::C { options, what, out_dir } => generate(&mut *options.build(), &what, &out_dir),
        Command::Go { options, what, out_dir } => generate(&mut *options.build(), &what, &out_dir),
        Command::Component { what, module, output } => {
            fs::write(output, component(fs::read(module)?, &what)?)?;
            Ok(())
        }
    }
}

impl What {
    fn resolve(&self) -> anyhow::Result<(Resolve, WorldId)> {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_path(&self.wit)?;
        let world = resolve.select_world(&[package], Some(&self.world))?;
        Ok((resolve, world))
    }
}

fn generate(generator: &mut dyn WorldGenerator, what: &What, out_dir: &Path) -> anyhow::Result<()> {
    let (mut resolve, world) = what.resolve()?;
    let mut files = Files::default();
    generator.generate(&mut resolve, world, &mut files)?;
    for (name, bytes) in files.iter() {
        let path = out_dir.join(name);
        fs::create_dir_all(path.parent().expect("a file is in a directory"))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

fn component(mut module: Vec<u8>, what: &What) -> anyhow::Result<Vec<u8>> {
    let (resolve, world) = what.resolve()?;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)?;
    ComponentEncoder::default().module(&module)?.adapter(ADAPTER, ADAPTER_BYTES)?.encode()
}
