//! Commands that never run: found in whatever words surround them, and not where they are only text.

use super::text;
use toolcrib::envelope::{Failure, Kind};
use toolcrib_tests::TestHost;
use toolcrib_tests::shell::harmless;

/// A host on which `touch denied` is.
fn host() -> TestHost {
    TestHost::new().set("tools.shell_denylist=[\"touch denied\"]")
}

async fn refused(host: &TestHost, command: &str) -> Failure {
    let outcome = host.call("run_shell", harmless(command)).await.outcome;
    let happened = host.work().join("denied").exists();
    assert!(!happened, "`{command}` ran");
    outcome.map(|output| output.result).expect_err(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_names_the_setting_and_the_pattern() {
    let host = TestHost::new();
    let victim = host.work().join("victim");
    let command = format!("rm -rf {}", victim.display());
    let host = host.set(&format!("tools.shell_denylist=[{command:?}]"));
    std::fs::create_dir(&victim).expect("a directory");
    let outcome = host.call("run_shell", harmless(&command)).await.outcome;
    assert!(victim.exists(), "`{command}` ran");
    let failure = outcome.expect_err("it is on the list");
    assert_eq!(failure.kind, Kind::Denied);
    assert!(failure.message.contains("`tools.shell_denylist`"), "{}", failure.message);
    assert!(failure.message.contains(&format!("`{command}`")), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_there_by_default() {
    let host = TestHost::new();
    let failure = host.shell_failure("dd if=/dev/null of=denied").await;
    assert!(!host.work().join("denied").exists());
    assert_eq!(failure.kind, Kind::Denied);
    assert!(failure.message.contains("`dd if=`"), "{}", failure.message);
    for (command, pattern) in
        [("mkfs --help", "`mkfs`"), ("shutdown --help", "`shutdown`"), ("reboot --help", "`reboot`")]
    {
        let failure = host.shell_failure(command).await;
        assert_eq!(failure.kind, Kind::Denied, "{command}");
        assert!(failure.message.contains(pattern), "{command}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_count_and_not_how_they_are_written() {
    let host = host();
    for command in [
        "touch denied",
        "  touch \t  denied  ",
        "touch 'denied'",
        "'touch' \"denied\"",
        "to'u'ch den\"i\"ed",
        r"t\ouch denied",
        "touch \\\n denied",
        "touch denied other",
        "touch denied > /dev/null",
        "> /dev/null touch denied",
        "touch denied # harmless",
    ] {
        let failure = refused(&host, command).await;
        assert_eq!(failure.kind, Kind::Denied, "{command}: {}", failure.message);
        assert!(failure.message.contains("`touch denied`"), "{command}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_found_wherever_the_shell_would_run_it() {
    let host = host();
    for command in [
        "true; touch denied",
        "true\ntouch denied",
        "true && touch denied",
        "false || touch denied",
        "true | touch denied",
        "touch denied &",
        "! touch denied",
        "(touch denied)",
        "{ touch denied; }",
        "if true; then touch denied; fi",
        "if touch denied; then :; fi",
        "for x in 1; do touch denied; done",
        "while touch denied; do break; done",
        "case a in a) touch denied;; esac",
        "f() { touch denied; }; f",
        "echo $(touch denied)",
        "echo `touch denied`",
        "echo \"$(touch denied)\"",
        "x=$(touch denied)",
        "cat <<EOF\n$(touch denied)\nEOF",
        "echo ${x:-$(touch denied)}",
    ] {
        let failure = refused(&host, command).await;
        assert_eq!(failure.kind, Kind::Denied, "{command}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrappers_hide_nothing() {
    let host = host();
    for command in [
        "A=b touch denied",
        "sudo touch denied",
        "sudo -n -u root touch denied",
        "env touch denied",
        "env -i A=b touch denied",
        "nohup touch denied",
        "exec touch denied",
        "command touch denied",
        "nice -n 5 touch denied",
        "timeout 5 touch denied",
        "setsid touch denied",
        "sh -c 'touch denied'",
        "bash -c \"touch denied\"",
        "sh -ec 'true; touch denied'",
        "eval 'touch denied'",
        "eval touch denied",
        "sudo env A=b nohup sh -c 'eval \"touch denied\"'",
    ] {
        let failure = refused(&host, command).await;
        assert_eq!(failure.kind, Kind::Denied, "{command}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_named_by_its_path_is_the_same_program() {
    let host = host();
    for command in ["/usr/bin/touch denied", "/bin/../bin/touch denied"] {
        assert_eq!(refused(&host, command).await.kind, Kind::Denied, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_only_looks_like_the_command_runs() {
    let host = host();
    for command in [
        "echo touch denied",
        "echo 'touch denied'",
        "echo \"; touch denied\"",
        "grep -c 'touch denied' /dev/null || true",
        "true # touch denied",
        "# touch denied\ntrue",
        "cat <<'EOF'\ntouch denied\nEOF",
        "touch allowed",
        "x='touch denied'",
    ] {
        assert_eq!(host.shell(command).await["exit_code"], 0, "{command}");
    }
    assert!(host.work().join("allowed").exists());
    let searched = TestHost::new().shell("grep -c reboot /etc/passwd || true").await;
    assert_eq!((&searched["exit_code"], text(&searched, "stderr")), (&0.into(), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_restricts_nothing() {
    let host = TestHost::new().set("tools.shell_denylist=[]");
    host.shell("dd if=/dev/null of=made 2>/dev/null").await;
    assert!(host.work().join("made").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_entries_are_added_to_the_users() {
    let host = TestHost::new()
        .set("tools.shell_denylist=[\"touch denied\"]")
        .policy("[tools]\nshell_denylist = [\"touch forbidden\"]\n");
    assert!(refused(&host, "touch denied").await.message.contains("`touch denied`"));
    assert!(refused(&host, "touch forbidden").await.message.contains("`touch forbidden`"));
    assert!(!host.work().join("forbidden").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_parsed_is_refused_while_there_is_a_list() {
    let host = host();
    for command in ["echo 'unclosed", "if true; then", "echo $(", "touch denied; )"] {
        let failure = refused(&host, command).await;
        assert_eq!(failure.kind, Kind::Denied, "{command}: {}", failure.message);
        assert!(failure.message.contains("`tools.shell_denylist`"), "{command}: {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nesting_beyond_all_measure_is_refused_and_the_host_goes_on() {
    let host = host();
    for (open, close) in [("{ ", "; }"), ("(", ")"), ("$(", ")"), ("if true; then ", "; fi")] {
        let command = format!("{}touch denied{}", open.repeat(500), close.repeat(500));
        assert_eq!(refused(&host, &command).await.kind, Kind::Denied, "{open}");
    }
    assert_eq!(host.shell("echo next").await["stdout"], "next\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_leaves_its_line_in_the_audit_trail() {
    let host = host();
    refused(&host, "touch denied").await;
    let audit = host.audit();
    let outcome = audit.last().expect("an audit line");
    assert_eq!((&outcome["outcome"], &outcome["actions"][0]["what"]), (&"denied".into(), &"touch denied".into()));
    assert_eq!(outcome["actions"][0]["decision"], "denied by tools.shell_denylist");
}
