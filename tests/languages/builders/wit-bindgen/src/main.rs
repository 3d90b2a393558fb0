//! `wit-bindgen c` and `wit-bindgen go` as `wit-bindgen-cli` 0.63 has them, with 100 crates less: what tests of plugins in C and Go generate
//! bindings with. It takes the options that `build.sh` of these plugins gives, and writes the same files.

use clap::{Args, Parser};
use std::fs;
use std::path::PathBuf;
use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator};

#[derive(Parser)]
#[command(name = "wit-bindgen", version = "0.63.0")]
enum Command {
    C {
        #[clap(flatten)]
        options: wit_bindgen_c::Opts,
        #[clap(flatten)]
        what: What,
    },
    Go {
        #[clap(flatten)]
        options: wit_bindgen_go::Opts,
        #[clap(flatten)]
        what: What,
    },
}

#[derive(Args)]
struct What {
    wit: PathBuf,
    #[arg(long)]
    world: String,
    #[arg(long)]
    out_dir: PathBuf,
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::C { options, what } => generate(&mut *options.build(), &what),
        Command::Go { options, what } => generate(&mut *options.build(), &what),
    }
}

fn generate(generator: &mut dyn WorldGenerator, what: &What) -> anyhow::Result<()> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(&what.wit)?;
    let world = resolve.select_world(&[package], Some(&what.world))?;
    let mut files = Files::default();
    generator.generate(&mut resolve, world, &mut files)?;
    for (name, bytes) in files.iter() {
        let path = what.out_dir.join(name);
        fs::create_dir_all(path.parent().expect("a file is in a directory"))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}
