//! P-18: files that are no component: empty, text, a core module, an archive, 1 GiB of holes.
//! Outcome: refused with what it is; of a file that is too large no more is read than a component may have.
//! Switched off: without the cap in `Component::read` (`component.rs`) the host had a gibibyte in memory and the test failed.

use crate::process::peak_mib;
use std::fs::File;
use toolcrib_tests::Preparation;

#[test]
fn a_file_that_is_no_component_is_refused_with_a_reason() {
    let files: [(&str, &[u8], &str); 6] = [
        ("empty", b"", "it is not a component: "),
        ("text", b"(component)", "it is not a component: "),
        ("archive", b"PK\x03\x04\x14\0\0\0\x08\0", "it is not a component: "),
        ("elf", b"\x7fELF\x02\x01\x01\0", "it is not a component: "),
        ("core", b"\0asm\x01\0\0\0", "it is a core module, not a component: build it for wasm32-wasip2"),
        ("nameless", b"\0asm\x0d\0\x01\0", "it exports no function that could be a tool"),
    ];
    let host = files.iter().fold(Preparation::new(), |host, (name, bytes, _)| host.component(name, bytes));
    let siege = host.begin();
    for (name, _, reason) in files {
        for _ in 0..2 {
            let refusal = siege.refusal(name);
            assert!(refusal.contains(&format!("{name}.wasm` was refused: {reason}")), "{refusal}");
        }
    }
    siege.lift();
}

#[test]
fn a_file_of_a_gibibyte_is_not_read_to_its_end() {
    let host = Preparation::new();
    for name in ["one", "two"] {
        File::create(host.plugin(name)).and_then(|file| file.set_len(1 << 30)).expect("a file with holes");
    }
    let siege = host.begin();
    assert!(
        siege
            .refusal("one")
            .ends_with("one.wasm` was refused: it is larger than 32 MiB (limit: `limits.component_mib`)")
    );
    assert!(
        siege
            .refusal("two")
            .ends_with("two.wasm` was refused: it is larger than 32 MiB (limit: `limits.component_mib`)")
    );
    assert!(peak_mib(siege.pid()) < 256, "the host had {} MiB", peak_mib(siege.pid()));
    siege.lift();
}
