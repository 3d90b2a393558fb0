//! `bin_list`: the programs that the user has declared, and what each is for.

use serde::Serialize;
use toolcrib_sdk::programs::declared;
use toolcrib_sdk::{Guidance, JsonSchema, Result, Tool, notice, schemars};

struct BinList;

#[derive(Serialize, JsonSchema)]
struct Programs {
    programs: Vec<Program>,
}

#[derive(Serialize, JsonSchema)]
struct Program {
    /// The program, and its tool.
    name: String,
    description: String,
    /// Whether its tool has a usage page.
    has_usage: bool,
}

impl Tool for BinList {
    const NAME: &str = "bin_list";
    const TITLE: Option<&str> = Some("List programs");
    const SUMMARY: &str = "List the programs that the user has declared, with the purpose of each.";
    const GUIDANCE: Guidance = Guidance {
        when_to_use: "You want to know which programs exist.",
        when_not_to_use: "To run a program: call the tool of the same name.",
        disambiguation: "",
        examples: &[],
    };
    type Input = ();
    type Output = Programs;

    fn call((): ()) -> Result<Programs> {
        let programs: Vec<Program> = declared()?
            .into_iter()
            .map(|program| Program {
                name: program.name,
                description: program.about,
                has_usage: program.usage.is_some(),
            })
            .collect();
        if programs.is_empty() {
            notice("no programs are declared");
        }
        Ok(Programs { programs })
    }
}

toolcrib_sdk::export!(BinList);
