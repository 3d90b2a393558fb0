//! The variables by which toolchains are found: a command gets those whose places it can use.

use crate::rig::{BOTH, REQUIRED, Rig, Via, program};
use toolcrib_tests::outcome::succeeded;
use toolcrib_tests::{Client, Program, Running};

/// A home with a toolchain, and what a person's shell exports of it.
fn with_toolchains(via: Via) -> (Program, Vec<(&'static str, String)>) {
    let program = program(via);
    for name in ["home/java/release", "home/certificates.pem", "work/.venv/pyvenv.cfg", "home/go/x", "home/.ssh/ca"] {
        program.write(name, "");
    }
    let path = |name: &str| program.path(name).canonicalize().expect("a place").display().to_string();
    let set = vec![
        ("LOGNAME", "someone".to_owned()),
        ("JAVA_HOME", path("home/java")),
        ("VIRTUAL_ENV", path("work/.venv")),
        ("NODE_EXTRA_CA_CERTS", path("home/certificates.pem")),
        // Hidden, not to be written, not there, and in a directory that a cell has new.
        ("SSL_CERT_FILE", path("home/.ssh/ca")),
        ("GOPATH", path("home/go")),
        ("NVM_DIR", "/no/such/place".to_owned()),
        ("PYENV_ROOT", "/dev/shm".to_owned()),
        ("GITHUB_TOKEN", "secret".to_owned()),
        ("EDITOR", "vi".to_owned()),
    ];
    (program, set)
}

#[test]
fn a_command_gets_what_names_places_that_it_can_use() {
    for via in BOTH {
        let (program, set) = with_toolchains(via);
        let mut command = program.command(&["--yes", "--set", REQUIRED, "run"]);
        command.envs(set.iter().map(|(name, value)| (*name, value)));
        let mut rig = Rig { client: Client::of(Running::start(&mut command)), program };
        let names = set.iter().map(|(name, _)| format!("{name}=${{{name}-}}")).collect::<Vec<_>>().join("\\n");
        let (_, printed) = rig.run(&format!("printf \"{names}\\n\""));
        for (name, value) in &set {
            let passes = ["LOGNAME", "JAVA_HOME", "VIRTUAL_ENV", "NODE_EXTRA_CA_CERTS"].contains(name);
            let value = if passes { value.as_str() } else { "" };
            let value = if *name == "EDITOR" { "true" } else { value };
            assert!(printed.lines().any(|line| line == format!("{name}={value}")), "{via:?} {name}: {printed}");
        }
        let read = "cat $JAVA_HOME/release $VIRTUAL_ENV/pyvenv.cfg $NODE_EXTRA_CA_CERTS";
        assert_eq!(rig.run(read), (0, String::new()), "{via:?}");
    }
}

/// `doctor` names the variables, and says no value.
#[test]
fn doctor_says_what_commands_get() {
    let (program, set) = with_toolchains(Via::Process);
    let mut command = program.command(&["--set", REQUIRED, "--set", "tools.shell_env=[\"GITHUB_TOKEN\"]", "doctor"]);
    command.envs(set.iter().map(|(name, value)| (*name, value))).stdin(std::process::Stdio::null());
    let text = succeeded(&command.output().expect("it starts"));
    let line = text.lines().find(|line| line.contains("commands get ")).unwrap_or_else(|| panic!("{text}"));
    let (given, left_out) = line.split_once("; not passed").expect("two parts");
    for name in ["LOGNAME", "JAVA_HOME", "VIRTUAL_ENV", "NODE_EXTRA_CA_CERTS", "EDITOR", "GITHUB_TOKEN", "HTTPS_PROXY"]
    {
        assert!(given.split_whitespace().any(|word| word == name), "{name}: {line}");
    }
    for name in ["SSL_CERT_FILE", "GOPATH", "NVM_DIR", "PYENV_ROOT"] {
        assert!(!given.contains(name) && left_out.contains(name), "{name}: {line}");
    }
    assert!(!text.contains("secret ") && !line.contains("someone") && !line.contains("/java"), "{text}");
}

/// A script means the same in a pane and beside one, where the person's shell is bash.
#[test]
fn a_script_is_read_by_bash_where_that_is_the_shell() {
    const SCRIPT: &str = "set -o pipefail; false | true; echo $?; a=(1 2); [[ ${a[1]} == 2 ]] && cat <(echo both); \
                          shopt -qo posix || echo own; set +o pipefail";
    for via in BOTH {
        let program = program(via);
        let mut command = program.command(&["--yes", "--set", REQUIRED, "run"]);
        command.env("SHELL", "/bin/bash");
        let mut rig = Rig { client: Client::of(Running::start(&mut command)), program };
        assert_eq!(rig.run(SCRIPT), (0, "1\nboth\nown\n".to_owned()), "{via:?}");
    }
    // Another program that calls itself so is no shell of this machine.
    let program = program(Via::Process);
    program.write("home/bash", "#!/bin/sh\necho forged\n");
    let forged = program.path("home/bash");
    let mut command = program.command(&["--yes", "--set", REQUIRED, "run"]);
    command.env("SHELL", &forged);
    let mut rig = Rig { client: Client::of(Running::start(&mut command)), program };
    assert_eq!(rig.run("echo ${BASH_VERSION:-sh}"), (0, "sh\n".to_owned()));
}
