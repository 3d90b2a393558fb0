//! Files that a command makes run with the rights of whoever starts them, never with those of who owns them.

use crate::rig::{BOTH, Rig, Step, Via, program, word};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SETUID: u32 = 0o6000;

/// What of a directory is setuid or setgid, with its mode.
fn setuid_in(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        if metadata.permissions().mode() & SETUID != 0 {
            found.push(format!("{} {:o}", path.display(), metadata.permissions().mode()));
        }
        if metadata.is_dir() {
            found.extend(setuid_in(&path));
        }
    }
    found
}

fn tried(via: Via, printed: &str) {
    let lines: Vec<(&str, &str)> = printed.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let refused: Vec<_> = lines.iter().filter(|(name, _)| !name.starts_with("ordinary ")).collect();
    assert!(refused.len() >= 24, "{via:?} {printed}");
    for (name, error) in refused {
        let expected = if name.starts_with("openat2") { "ENOSYS" } else { "EPERM" };
        assert_eq!(*error, expected, "{via:?}: {name}\n{printed}");
    }
    let ordinary: Vec<_> = lines.iter().filter(|(name, _)| name.starts_with("ordinary ")).collect();
    assert!(ordinary.len() >= 7, "{via:?} {printed}");
    assert!(ordinary.iter().all(|(_, error)| *error == "ok"), "{via:?} {printed}");
}

/// Every call that has a mode is refused one with these bits, a file gets no capabilities, and ordinary modes are as they were.
#[test]
fn no_call_makes_a_file_setuid() {
    for via in BOTH {
        let mut rig = Rig::new(via);
        fs::write(rig.work("setuid.py"), include_str!("setuid.py")).expect("a file");
        let (status, printed) = rig.run("umask 0 && mkdir tried && cd tried && python3 ../setuid.py");
        assert_eq!(status, 0, "{via:?} {printed}");
        tried(via, &printed);
        assert_eq!(setuid_in(&rig.work("")), Vec::<String>::new(), "{via:?}");
    }
}

/// The other steps use the same filter.
#[test]
fn no_step_lets_a_file_be_made_setuid() {
    for step in [Step::Bwrap, Step::Landlock] {
        let mut rig = Rig::by(step, program(Via::Process), &[]);
        fs::write(rig.work("setuid.py"), include_str!("setuid.py")).expect("a file");
        let (status, printed) = rig.run("umask 0 && mkdir tried && cd tried && python3 ../setuid.py");
        assert_eq!(status, 0, "{step:?} {printed}");
        tried(Via::Process, &printed);
        assert_eq!(setuid_in(&rig.work("")), Vec::<String>::new(), "{step:?}");
    }
}

/// Programs that keep modes leave these bits out: a setuid file that was there, or lies in an archive, gets no second one.
#[test]
#[expect(clippy::disallowed_methods, reason = "what the person copies and packs")]
fn copies_and_archives_bring_no_setuid_file() {
    for via in BOTH {
        let program = program(via);
        for (name, mode) in [("given/suid", 0o4755), ("given/sgid", 0o2755), ("given", 0o2755)] {
            if name != "given" {
                program.write(&format!("work/{name}"), "#!/bin/sh\n");
            }
            fs::set_permissions(program.path(&format!("work/{name}")), Permissions::from_mode(mode)).expect("a mode");
        }
        let mut rig = Rig::of(program, &[]);
        let given = rig.work("given");
        // Outside they do keep them.
        let outside = rig.program.path("outside");
        let copied = Command::new("cp").arg("-a").args([&given, &outside]).status().expect("cp");
        assert!(copied.success() && setuid_in(&outside).len() == 2, "{:?}", setuid_in(&outside));
        let mut pack = Command::new("tar");
        pack.arg("-C").arg(&given).arg("-cpf").arg(rig.work("archive.tar")).arg(".");
        assert!(pack.status().expect("tar").success());
        let (_, printed) = rig.run(&format!(
            "mkdir made made/tar made/python; {{ tar -C made/tar -xpf archive.tar; cp -p {0}/* made; cp -a {0} made/all; \
             install -m 4755 {0}/suid made/installed; install -m 2755 -d made/directory; command -v rsync >made/which && rsync -a {0}/ made/rsync; \
             python3 -c \"import shutil, tarfile; shutil.copytree('given', 'made/python/copy', dirs_exist_ok=True)\"; \
             python3 -c \"import tarfile; tarfile.open('archive.tar').extractall('made/python/tar')\"; }} 2>errors; \
             ls -1 made/tar; echo done",
            word(&given)
        ));
        assert!(printed.ends_with("sgid\nsuid\ndone\n"), "{via:?} {printed}");
        assert_eq!(setuid_in(&rig.work("made")), Vec::<String>::new(), "{via:?} {printed}");
    }
}
