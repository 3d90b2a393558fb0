//! `cruncher`: a command-line program as anybody writes one. Its first argument says what it does.

use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut output = io::stdout();
    match arguments.as_slice() {
        ["echo", words @ ..] => words.iter().try_for_each(|word| writeln!(output, "{word}"))?,
        ["count"] => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            writeln!(output, "{} {} {}", text.lines().count(), text.split_whitespace().count(), text.len())?;
        }
        ["cat", path] => {
            io::copy(&mut File::open(path)?, &mut output)?;
        }
        ["fail", text] => {
            eprintln!("{text}");
            return Ok(ExitCode::from(3));
        }
        ["panic"] => panic!("this is the reason"),
        ["spin"] => loop {
            std::hint::black_box(0);
        },
        ["large", count] => {
            let count = count.parse().expect("a number of bytes");
            io::copy(&mut io::repeat(b'x').take(count), &mut output)?;
        }
        ["env"] => {
            let mut variables: Vec<_> = env::vars().collect();
            variables.sort();
            variables.iter().try_for_each(|(name, value)| writeln!(output, "{name}={value}"))?;
        }
        ["both"] => {
            for number in 1..=3 {
                writeln!(output, "out {number}")?;
                output.flush()?;
                eprintln!("err {number}");
            }
        }
        _ => {
            eprintln!(
                "usage: cruncher echo WORD... | count | cat PATH | fail TEXT | panic | spin | large N | env | both"
            );
            return Ok(ExitCode::from(2));
        }
    }
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}
