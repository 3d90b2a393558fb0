//! What the layers leave of each other.

use super::*;
use crate::HttpRights;
use crate::{Allowlist, HostList, HostPattern};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Sources in a directory of their own, with `/home/u` as home.
struct Given {
    directory: TempDir,
    sources: Sources,
}

fn given() -> Given {
    let directory = tempfile::tempdir().unwrap();
    Given { directory, sources: Sources { home: "/home/u".into(), ..Sources::default() } }
}

impl Given {
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn user(mut self, text: &str) -> Self {
        self.sources.user = Some(self.file("user.toml", text));
        self
    }

    fn project(mut self, text: &str) -> Self {
        self.sources.project = Some(self.file("project/toolcrib.toml", text));
        self
    }

    fn trusted(mut self) -> Self {
        let text = fs::read(self.sources.project.as_ref().unwrap()).unwrap();
        self.sources.project_sha256 = Some(hex::encode(Sha256::digest(text)));
        self
    }

    fn policy(mut self, text: &str) -> Self {
        let path = self.file(&format!("policy{}.toml", self.sources.policies.len()), text);
        self.sources.policies.push(PolicySource::named(path));
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn set(mut self, argument: &str) -> Self {
        self.sources.set.push(argument.to_owned());
        self
    }

    fn settings(&self) -> Settings {
        Settings::load(&self.sources).unwrap()
    }

    /// Returns the error, the test's own directory left out.
    fn error(&self) -> String {
        self.shorten(&Settings::load(&self.sources).unwrap_err().to_string())
    }

    fn notices(&self) -> Vec<String> {
        self.settings().notices.iter().map(|notice| self.shorten(notice)).collect()
    }

    fn origin(&self, key: &str) -> String {
        self.shorten(&self.settings().origins.get(key).unwrap().to_string())
    }

    fn render(&self) -> String {
        self.shorten(&self.settings().render(true))
    }

    fn shorten(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.directory.path().display()), "")
    }
}

fn only(directories: &[&str]) -> Allowlist {
    Allowlist::Only(directories.iter().map(PathBuf::from).collect())
}

fn allows(lists: &[Allowlist], path: &str) -> bool {
    lists.iter().all(|list| list.contains(Path::new(path)))
}

fn domains(entries: &[&str]) -> HostList {
    HostList::Only(entries.iter().map(|entry| HostPattern::domain(entry).unwrap()).collect())
}

fn hosts(entries: &[&str]) -> HostList {
    HostList::Only(entries.iter().map(|entry| HostPattern::exact(entry).unwrap()).collect())
}

fn ranges(entries: &[&str]) -> Vec<HostPattern> {
    entries.iter().map(|entry| HostPattern::range(entry).unwrap()).collect()
}

fn reaches(lists: &[HostList], name: &str) -> bool {
    lists.iter().all(|list| list.covers_name(name))
}

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

#[test]
fn no_sources_give_the_defaults() {
    let settings = given().settings();
    assert_eq!(settings.config, Config::default());
    assert_eq!(settings.notices, [""; 0]);
    assert_eq!(given().origin("limits.call_ms"), "default");
}

#[test]
fn each_layer_outranks_the_one_before() {
    let given = given().user("limits.call_ms = 1");
    assert_eq!((given.settings().config.limits.call_ms, given.origin("limits.call_ms").as_str()), (1, "user.toml:1"));
    let given = given.project("[limits]\ncall_ms = 2").trusted();
    assert_eq!(given.settings().config.limits.call_ms, 2);
    assert_eq!(given.origin("limits.call_ms"), "project/toolcrib.toml:2");
    let given = given.variable("TOOLCRIB_LIMITS_CALL_MS", "3");
    assert_eq!(given.settings().config.limits.call_ms, 3);
    assert_eq!(given.origin("limits.call_ms"), "environment TOOLCRIB_LIMITS_CALL_MS");
    let given = given.set("limits.call_ms=40");
    assert_eq!((given.settings().config.limits.call_ms, given.origin("limits.call_ms").as_str()), (40, "--set"));
    let given = given.policy("[limits]\n\ncall_ms = 30");
    assert_eq!(given.settings().config.limits.call_ms, 30);
    assert_eq!(given.origin("limits.call_ms"), "narrowed by policy0.toml:3");
}

#[test]
fn a_policy_narrows_every_setting_by_its_rule() {
    let given =
        given().user("[tools]\nshell_denylist = ['a', 'b']\nshell_env = ['X', 'Y']\nshell_confirm = false").policy(
            "[tools]\nshell_enabled = false\nfiles_enabled = false\nshell_confirm = true\n\
             shell_denylist = ['b', 'c']\nshell_env = ['Y', 'Z']\n\
             [approval]\nallow_yes = false\ntimeout_ms = 5\n[limits]\nmemory_mib = 4096\nhandles = 1",
        );
    let Config { tools, approval, limits, .. } = given.settings().config;
    assert_eq!((tools.shell_enabled, tools.files_enabled, tools.shell_confirm), (false, false, true));
    assert_eq!((tools.shell_denylist, tools.shell_env), (vec!["a".into(), "b".into(), "c".into()], vec!["Y".into()]));
    assert_eq!((approval.allow_yes, approval.timeout_ms), (false, 5));
    assert_eq!((limits.memory_mib, limits.handles), (64, 1));
    assert_eq!(given.origin("limits.memory_mib"), "default");
    assert_eq!(given.notices(), [""; 0]);
}

#[test]
fn a_policy_narrows_every_setting_about_requests_by_its_rule() {
    let given = given()
        .user(
            "[tools]\nfetch_blocked_domains = ['a.com']\nfetch_private_ranges = ['10.0.0.0/8', '::1']\n\
             fetch_ports = [80, 8080]\nfetch_allowed_domains = ['a.com', 'b.com']",
        )
        .policy(
            "[tools]\nfetch_enabled = false\nfetch_confirm = true\nfetch_plain_http = false\n\
             fetch_allowed_domains = ['*.a.com', 'c.com']\nfetch_blocked_domains = ['b.com']\n\
             fetch_private_ranges = ['10.1.0.0/16']\nfetch_ports = [443, 80]\nsearch_enabled = false\n\
             [network]\nfetch_timeout_secs = 5",
        );
    let Config { tools, network, .. } = given.settings().config;
    assert_eq!(
        (tools.fetch_enabled, tools.fetch_confirm, tools.fetch_plain_http, tools.search_enabled),
        (false, true, false, false)
    );
    assert_eq!(tools.fetch_allowed_domains, domains(&["*.a.com"]));
    assert_eq!(HostList::Only(tools.fetch_blocked_domains), domains(&["a.com", "b.com"]));
    assert_eq!((tools.fetch_private_ranges, tools.fetch_ports), (ranges(&["10.1.0.0/16"]), vec![80]));
    assert_eq!(network.fetch_timeout_secs, 5);
    assert_eq!(given.notices(), [""; 0]);
}

#[test]
fn a_policy_never_widens() {
    let given = given()
        .user(
            "approval.allow_yes = false\n\
             [tools]\nshell_enabled = false\nfiles_allowed_paths = ['/a']\nshell_env = []\n\
             fetch_enabled = false\nfetch_confirm = true\nfetch_allowed_domains = ['a.com']\n\
             fetch_blocked_domains = ['b.a.com']",
        )
        .policy(
            "[tools]\nshell_enabled = true\nshell_confirm = false\nshell_denylist = []\nshell_env = ['X']\n\
             files_allowed_paths = ['/']\nfetch_enabled = true\nfetch_confirm = false\n\
             fetch_allowed_domains = ['com', 'org']\nfetch_blocked_domains = []\n\
             fetch_private_ranges = ['0.0.0.0/0']\nfetch_ports = [22, 80, 443]\n\
             [approval]\nallow_yes = true\ntimeout_ms = 31536000000\n\
             [network]\nfetch_timeout_secs = 3600\n[limits]\ncall_ms = 31536000000",
        );
    let mut settings = given.settings();
    settings.config.bounds = Bounds::default();
    assert_eq!(
        settings.config,
        Given { sources: Sources { policies: Vec::new(), ..given.sources }, ..given }.settings().config
    );
}

#[test]
fn what_is_the_users_alone_cannot_be_set_by_policy() {
    for (line, column, key) in [
        ("agent.name = 'x'", 7, "agent.name"),
        ("tools.search_endpoint = 'https://a.com/'", 7, "tools.search_endpoint"),
        ("tools.search_provider = 'evil'", 7, "tools.search_provider"),
        ("network.dns_servers = ['127.0.0.1']", 9, "network.dns_servers"),
        ("network.ca_file = '/a'", 9, "network.ca_file"),
        ("plugin.x.http.base = 'https://a.com/'", 15, "plugin.x.http.base"),
    ] {
        let expected = format!("policy0.toml:1:{column}: `{key}` cannot be set by policy");
        assert_eq!(given().policy(line).error(), expected);
    }
}

#[test]
fn an_empty_list_of_paths_is_everywhere_for_the_user_and_nowhere_for_a_policy() {
    let given = given().user("tools.files_allowed_paths = []");
    assert_eq!(given.settings().config.tools.files_allowed_paths, Allowlist::Any);
    let given = given.policy("tools.files_allowed_paths = []");
    assert_eq!(given.settings().config.tools.files_allowed_paths, Allowlist::NOTHING);
    assert!(given.render().contains("files_allowed_paths = \"none\"  # narrowed by policy0.toml:1"));
}

#[test]
fn an_empty_list_of_domains_is_every_host_for_the_user_and_none_for_a_policy() {
    let given = given().user("tools.fetch_allowed_domains = []");
    assert_eq!(given.settings().config.allowed_domains(), [HostList::Any]);
    let given = given.policy("tools.fetch_allowed_domains = []");
    assert_eq!(given.settings().config.tools.fetch_allowed_domains, HostList::NOTHING);
    assert!(given.render().contains("fetch_allowed_domains = \"none\"  # narrowed by policy0.toml:1"));
    let given = given.set("tools.fetch_allowed_domains=none");
    assert_eq!(given.settings().config.tools.fetch_allowed_domains, HostList::NOTHING);
}

#[test]
fn a_host_is_held_against_every_list_that_took_part() {
    let given = given()
        .user("tools.fetch_allowed_domains = ['a.com', '10.0.0.0/8']")
        .policy("tools.fetch_allowed_domains = ['b.a.com', '10.1.0.0/16']")
        .policy("tools.fetch_allowed_domains = ['com', '10.0.0.0/8']");
    let settings = given.settings();
    assert_eq!(settings.config.tools.fetch_allowed_domains, domains(&["b.a.com", "10.1.0.0/16"]));
    assert_eq!(
        settings.config.allowed_domains(),
        [
            domains(&["b.a.com", "10.1.0.0/16"]),
            domains(&["a.com", "10.0.0.0/8"]),
            domains(&["b.a.com", "10.1.0.0/16"]),
            domains(&["com", "10.0.0.0/8"]),
        ]
    );
    assert_eq!(HostList::Only(settings.config.opened_domains().to_vec()), domains(&["a.com", "10.0.0.0/8"]));
}

#[test]
fn only_the_user_opens_private_addresses() {
    let given = given().project("[tools]\nfetch_allowed_domains = ['router.lan']\nfetch_private_ranges = []");
    let config = given.settings().config;
    assert_eq!(config.tools.fetch_allowed_domains, domains(&["router.lan"]));
    assert!(config.opened_domains().is_empty());
    assert_eq!(given.notices(), [""; 0]);
    let given = given.trusted().policy("tools.fetch_allowed_domains = ['lan']");
    assert_eq!(HostList::Only(given.settings().config.opened_domains().to_vec()), domains(&["router.lan"]));
    let given = given.policy("tools.fetch_private_ranges = ['10.0.0.0/8']");
    assert!(given.settings().config.tools.fetch_private_ranges.is_empty());
}

#[test]
fn private_addresses_are_open_within_every_list_that_took_part() {
    let given = given()
        .user("tools.fetch_private_ranges = ['127.0.0.1', '10.1.0.0/16']")
        .policy("tools.fetch_private_ranges = ['10.0.0.0/8']");
    assert_eq!(
        given.settings().config.private_ranges(),
        [ranges(&["10.1.0.0/16"]), ranges(&["127.0.0.1", "10.1.0.0/16"]), ranges(&["10.0.0.0/8"])]
    );
    assert_eq!(given.origin("tools.fetch_private_ranges"), "narrowed by policy0.toml:1");
    let given = given.set("tools.fetch_private_ranges=['10.0.0.0/8']");
    assert_eq!(given.settings().config.tools.fetch_private_ranges, ranges(&["10.0.0.0/8"]));
}

#[test]
fn a_policy_leaves_of_paths_what_both_allow() {
    let given = given()
        .user("tools.files_allowed_paths = ['~/work', '/srv']")
        .policy("tools.files_allowed_paths = ['/home', '/srv/a/../b/.', '/opt']");
    assert_eq!(given.settings().config.tools.files_allowed_paths, only(&["/home/u/work", "/srv/b"]));
    let apart = given.set("tools.files_allowed_paths=['/usr']");
    assert_eq!(apart.settings().config.tools.files_allowed_paths, Allowlist::NOTHING);
}

#[test]
fn a_link_out_of_a_policy_stays_outside() {
    let given = given()
        .user("tools.files_allowed_paths = ['/home/u/link', '/etc']")
        .policy("tools.files_allowed_paths = ['/home']");
    let settings = given.settings();
    assert_eq!(settings.config.tools.files_allowed_paths, only(&["/home/u/link"]));
    let lists = settings.config.allowed_paths();
    assert_eq!(lists, [only(&["/home/u/link"]), only(&["/home/u/link", "/etc"]), only(&["/home"])]);
}

#[test]
fn only_the_user_opens_sensitive_directories() {
    let given = given().project("tools.files_allowed_paths = ['/etc']");
    let settings = given.settings();
    assert_eq!(settings.config.tools.files_allowed_paths, only(&["/etc"]));
    assert!(settings.config.opened_paths().is_empty());
    let settings = given.trusted().policy("tools.files_allowed_paths = ['/']").settings();
    assert_eq!(settings.config.opened_paths(), [PathBuf::from("/etc")]);
}

#[test]
fn a_later_layer_of_the_user_undoes_what_a_project_narrowed() {
    let given = given()
        .project("tools.files_allowed_paths = ['src']")
        .variable("TOOLCRIB_TOOLS_FILES_ALLOWED_PATHS", "['/etc']");
    let config = given.settings().config;
    assert_eq!((config.allowed_paths(), config.opened_paths()), (vec![only(&["/etc"])], &["/etc".into()][..]));
}

#[test]
fn who_answers_questions_is_the_users_own_also_in_a_trusted_project() {
    let given = given().project("[approval]\nembedder = true\nnotify = ['program']").trusted();
    let settings = given.settings();
    assert!(!settings.config.approval.embedder && settings.config.approval.notify.is_empty());
    let of_both = |notices: &[String]| {
        ["approval.embedder", "approval.notify"].map(|key| notices.iter().any(|line| line.contains(key)))
    };
    assert_eq!(of_both(&settings.notices), [true, true], "{:?}", settings.notices);
}

#[test]
fn an_untrusted_project_narrows() {
    let given = given().user("tools.shell_env = ['X', 'Y']").project(
        "[tools]\nshell_enabled = false\nshell_denylist = ['git push']\nshell_env = ['Y']\n\
         files_allowed_paths = ['src', '../x']\n[limits]\ncall_ms = 10",
    );
    let Config { tools, limits, .. } = given.settings().config;
    assert_eq!((tools.shell_enabled, limits.call_ms, tools.shell_env), (false, 10, vec!["Y".into()]));
    assert_eq!(tools.shell_denylist.len(), 7);
    let start = given.directory.path();
    assert_eq!(tools.files_allowed_paths, Allowlist::Only(vec![start.join("project/src"), start.join("x")]));
    assert_eq!(given.origin("tools.shell_denylist"), "narrowed by project/toolcrib.toml:3");
    assert_eq!(given.notices(), [""; 0]);
}

#[test]
fn an_untrusted_project_that_asks_for_more_is_ignored_with_a_notice() {
    for (line, key) in [
        ("agent.name = 'root'", "agent.name"),
        ("tools.shell_confirm = false", "tools.shell_confirm"),
        ("tools.shell_denylist = []", "tools.shell_denylist"),
        ("tools.shell_env = ['TOKEN']", "tools.shell_env"),
        ("tools.files_allowed_paths = []", "tools.files_allowed_paths"),
        ("tools.fetch_confirm = false", "tools.fetch_confirm"),
        ("tools.fetch_allowed_domains = []", "tools.fetch_allowed_domains"),
        ("tools.fetch_allowed_domains = ['com']", "tools.fetch_allowed_domains"),
        ("tools.fetch_private_ranges = ['127.0.0.1']", "tools.fetch_private_ranges"),
        ("tools.search_endpoint = 'https://evil.com/'", "tools.search_endpoint"),
        ("tools.search_provider = 'evil'", "tools.search_provider"),
        ("tmux.enabled = false", "tmux.enabled"),
        ("network.fetch_timeout_secs = 21", "network.fetch_timeout_secs"),
        ("network.dns_servers = ['192.0.2.1']", "network.dns_servers"),
        ("network.ca_file = 'evil.pem'", "network.ca_file"),
        ("plugin.x.http.base = 'https://evil.com/'", "plugin.x.http.base"),
        ("limits.call_ms = 60001", "limits.call_ms"),
        ("plugin.x.shell = true", "plugin.x.shell"),
        ("plugin.x.files.read = ['/']", "plugin.x.files.read"),
        ("plugin.x.files.write = ['.']", "plugin.x.files.write"),
    ] {
        let given = given()
            .user("[tools]\nfiles_allowed_paths = ['/a']\nfetch_confirm = true\nfetch_allowed_domains = ['a.com']");
        let before = given.settings();
        let given = given.project(&format!("\n{line}"));
        let after = given.settings();
        assert_eq!((after.config, after.origins), (before.config, before.origins), "{line}");
        let notice = format!(
            "project/toolcrib.toml:2: `{key}` is ignored: a project that is not trusted can only narrow; \
             `toolcrib trust` would accept it"
        );
        assert_eq!(given.notices(), [notice]);
        let accepted = given.trusted();
        assert_eq!(accepted.origin(key), "project/toolcrib.toml:2");
        assert_eq!(accepted.notices(), [""; 0]);
    }
}

#[test]
fn notices_about_a_project_are_bounded() {
    let lines: String = (0..30).map(|number| format!("plugin.p{number}.shell = true\n")).collect();
    let notices = given().project(&lines).notices();
    assert_eq!((notices.len(), notices[20].as_str()), (21, "10 more settings of the project are ignored likewise"));
}

#[test]
fn an_untrusted_project_is_taken_as_far_as_it_narrows() {
    let given = given().user("tools.shell_env = ['X', 'Y']").project("tools.shell_env = ['Y', 'TOKEN']");
    assert_eq!(given.settings().config.tools.shell_env, ["Y"]);
    assert!(given.notices()[0].contains("`tools.shell_env` applies only as far as it narrows"));
}

#[test]
fn an_untrusted_project_that_repeats_what_holds_is_not_noted() {
    let given = given()
        .user("agent.name = 'x'\ntools.shell_env = ['X', 'Y']")
        .project("agent.name = 'x'\ntools.shell_env = ['Y', 'X']\nlimits.call_ms = 60000");
    assert_eq!(given.notices(), [""; 0]);
    assert_eq!(given.origin("tools.shell_env"), "user.toml:2");
}

#[test]
fn an_untrusted_project_cannot_give_a_section_other_bytes() {
    let given = given().user("plugin.x.files.read = ['/a']").project(&format!("plugin.x.sha256 = '{B}'"));
    let config = given.settings().config;
    assert!(!allows(&config.plugin_rights("x", B, false).read, "/a"));
    assert!(given.notices()[0].contains("`plugin.x.sha256` is ignored"));
}

#[test]
fn a_section_grants_to_its_bytes_only() {
    let given =
        given().user(&format!("[plugin.x]\nsha256 = '{}'\nshell = true\nfiles.read = ['~/work']", A.to_uppercase()));
    let config = given.settings().config;
    let rights = config.plugin_rights("x", A, false);
    assert!(rights.shell && allows(&rights.read, "/home/u/work/a") && !allows(&rights.read, "/home/u/workshop"));
    assert!(!allows(&rights.write, "/home/u/work/a"));
    for embedded in [true, false] {
        let rights = config.plugin_rights("x", B, embedded);
        assert!(!rights.shell && !allows(&rights.read, "/home/u/work/a"));
    }
}

#[test]
fn a_section_without_digest_grants_nothing_to_foreign_bytes() {
    let config = given().user("plugin.x.shell = true\nplugin.x.files.read = ['/a']").settings().config;
    let rights = config.plugin_rights("x", A, false);
    assert!(!rights.shell && !allows(&rights.read, "/a/b"));
    let rights = config.plugin_rights("x", A, true);
    assert!(rights.shell && allows(&rights.read, "/a/b") && !allows(&rights.read, "/b") && allows(&rights.write, "/b"));
}

#[test]
fn a_layer_about_other_bytes_starts_with_nothing() {
    let given = given()
        .user(&format!("[plugin.x]\nsha256 = '{A}'\nshell = true\nfiles.read = ['/']"))
        .project(&format!("[plugin.x]\nfiles.write = ['src']\nsha256 = '{B}'"))
        .trusted();
    let config = given.settings().config;
    let rights = config.plugin_rights("x", B, false);
    assert!(!rights.shell && !allows(&rights.read, "/a"));
    assert_eq!(rights.write, [Allowlist::Only(vec![given.directory.path().join("project/src")])]);
    assert_eq!(given.settings().origins.get("plugin.x.shell"), None);
}

#[test]
fn a_policy_takes_the_shell_from_an_embedded_plugin() {
    let given = given().policy("[plugin.x]\nshell = false").policy("[plugin.x]\nshell = true");
    assert!(!given.settings().config.plugin_rights("x", A, true).shell);
    assert_eq!(given.origin("plugin.x.shell"), "narrowed by policy0.toml:2");
}

#[test]
fn panes_are_for_a_grant_that_names_them() {
    for (line, expected) in [
        ("shell = true", (true, false)),
        ("shell.pane = true", (true, true)),
        ("shell = { pane = true }", (true, true)),
        ("shell.pane = false", (true, false)),
        ("shell = false", (false, false)),
    ] {
        let config = given().user(&format!("[plugin.x]\nsha256 = '{A}'\n{line}")).settings().config;
        let rights = config.plugin_rights("x", A, false);
        assert_eq!((rights.shell, rights.pane), expected, "{line}");
    }
    let set = given().set(&format!("plugin.x.sha256={A}")).set("plugin.x.shell.pane=true").settings().config;
    assert!(set.plugin_rights("x", A, false).pane);
    assert!(given().settings().config.plugin_rights("x", A, true).pane);
}

#[test]
fn a_policy_or_an_untrusted_project_takes_panes_and_gives_none() {
    let user = format!("[plugin.x]\nsha256 = '{A}'\nshell.pane = true\n[plugin.y]\nsha256 = '{A}'\nshell = true");
    for line in ["[plugin.x]\nshell.pane = false", "[plugin.x]\nshell = false"] {
        for given in [given().user(&user).policy(line), given().user(&user).project(line)] {
            assert!(!given.settings().config.plugin_rights("x", A, false).pane, "{line}");
        }
    }
    for given in
        [given().policy("plugin.run_shell.shell.pane = false"), given().project("plugin.run_shell.shell.pane = false")]
    {
        let rights = given.settings().config.plugin_rights("run_shell", A, true);
        assert_eq!((rights.shell, rights.pane), (true, false));
        assert!(given.render().contains("# shell: only { pane = false }"), "{}", given.render());
    }
    let more = given().user(&user).policy("plugin.y.shell.pane = true").settings().config;
    assert!(!more.plugin_rights("y", A, false).pane);
    let same = given().user(&user).policy("plugin.x.shell = true").settings().config;
    assert!(same.plugin_rights("x", A, false).pane);
}

#[test]
fn a_grant_for_panes_is_rendered_as_it_is_written() {
    let given = given().user("plugin.x.shell.pane = true");
    assert!(given.render().contains("[plugin.x]\nshell = { pane = true }  # user.toml:1\n"), "{}", given.render());
}

#[test]
fn a_policy_caps_a_plugin_and_grants_it_nothing() {
    let policy = format!("[plugin.x]\nsha256 = '{A}'\nshell = true\nfiles.read = ['/srv']\nfiles.write = []");
    let given = given().policy(&policy);
    let config = given.settings().config;
    let foreign = config.plugin_rights("x", A, false);
    assert!(!foreign.shell && !allows(&foreign.read, "/srv/a") && !allows(&foreign.write, "/srv/a"));
    let embedded = config.plugin_rights("x", A, true);
    assert!(embedded.shell && allows(&embedded.read, "/srv/a") && !allows(&embedded.read, "/a"));
    assert!(!allows(&embedded.write, "/srv/a"));
    assert!(!config.plugin_rights("x", B, true).shell);
    let lines = format!(
        "[plugin.x]\n# sha256: only {A}  # narrowed by policy0.toml:2\n\
         # files.read: only [\"/srv\"]  # narrowed by policy0.toml:4\n\
         files.write = []  # narrowed by policy0.toml:5\n"
    );
    assert!(given.render().ends_with(&lines), "{}", given.render());
}

#[test]
fn a_section_grants_requests_to_its_bytes_only() {
    let given = given().user(&format!(
        "[plugin.x]\nsha256 = '{A}'\nhttp.hosts = ['a.com', '*.b.com']\nhttp.methods = ['POST']\n\
         http.paths = ['/v1/']\nhttp.base = 'https://a.com/v1/'"
    ));
    let config = given.settings().config;
    let rights = HttpRights {
        hosts: vec![hosts(&["a.com", "*.b.com"])],
        methods: vec![vec!["POST".into()]],
        paths: vec![vec!["/v1".into()]],
        base: Some("https://a.com/v1/".into()),
        headers: BTreeMap::new(),
    };
    assert_eq!(config.plugin_rights("x", A, false).http, Some(rights));
    for embedded in [true, false] {
        assert_eq!(config.plugin_rights("x", B, embedded).http, None);
    }
}

#[test]
fn a_section_without_hosts_leaves_them_to_embedded_bytes() {
    let config = given().user("plugin.x.http.methods = ['POST']").settings().config;
    assert_eq!(config.plugin_rights("x", A, false).http, None);
    let rights = config.plugin_rights("x", A, true).http.unwrap();
    assert_eq!((rights.hosts, rights.methods), (vec![HostList::Any], vec![vec!["POST".to_owned()]]));
    let config = given().user("plugin.x.http.hosts = []").settings().config;
    assert_eq!(config.plugin_rights("x", A, true).http, None);
}

#[test]
fn a_policy_caps_the_requests_of_an_embedded_plugin() {
    let given =
        given().policy("[plugin.x]\nhttp.hosts = ['docs.rs']\nhttp.methods = ['GET', 'POST']\nhttp.paths = ['/crate']");
    let config = given.settings().config;
    let rights = config.plugin_rights("x", A, true).http.unwrap();
    assert!(reaches(&rights.hosts, "docs.rs") && !reaches(&rights.hosts, "a.docs.rs"));
    assert_eq!(rights.methods, [vec!["GET", "HEAD"], vec!["GET", "POST"]]);
    assert_eq!(rights.paths, [["/crate"]]);
    assert_eq!(config.plugin_rights("x", A, false).http, None);
    let lines = "[plugin.x]\n# http.hosts: only [\"docs.rs\"]  # narrowed by policy0.toml:2\n\
                 # http.methods: only [\"GET\", \"POST\"]  # narrowed by policy0.toml:3\n\
                 # http.paths: only [\"/crate\"]  # narrowed by policy0.toml:4\n";
    assert!(given.render().ends_with(lines), "{}", given.render());
    let given = given.policy("plugin.x.http.hosts = []");
    assert_eq!(given.settings().config.plugin_rights("x", A, true).http, None);
}

#[test]
fn a_policy_narrows_the_requests_that_the_user_granted() {
    let given = given()
        .user(&format!(
            "[plugin.x]\nsha256 = '{A}'\n\
             http = {{ hosts = ['a.com', '*.b.com'], methods = ['GET', 'PUT'], paths = ['/v1', '/v2'] }}"
        ))
        .policy("[plugin.x]\nhttp.hosts = ['a.com', 'c.b.com', 'd.com']\nhttp.methods = ['PUT']")
        .policy("plugin.x.http.paths = ['/v1/x', '/v10']");
    let config = given.settings().config;
    let rights = config.plugin_rights("x", A, false).http.unwrap();
    assert_eq!(rights.hosts[0], hosts(&["a.com", "c.b.com"]));
    assert_eq!((rights.hosts.len(), rights.methods.len(), rights.paths.len()), (3, 3, 3));
    let own = &config.plugin["x"].http;
    assert_eq!((&own.methods, &own.paths), (&Some(vec!["PUT".to_owned()]), &Some(vec!["/v1/x".to_owned()])));
    assert_eq!(given.origin("plugin.x.http.paths"), "narrowed by policy1.toml:1");
}

#[test]
fn an_untrusted_project_caps_requests_and_grants_none() {
    let given = given().project("[plugin.x]\nhttp.hosts = ['docs.rs']");
    let config = given.settings().config;
    let rights = config.plugin_rights("x", A, true).http.unwrap();
    assert!(reaches(&rights.hosts, "docs.rs") && !reaches(&rights.hosts, "a.com"));
    assert_eq!(config.plugin_rights("x", A, false).http, None);
    let notice = "project/toolcrib.toml:2: `plugin.x.http.hosts` applies only as far as it narrows: a project that is \
                  not trusted can only narrow; `toolcrib trust` would accept it";
    assert_eq!(given.notices(), [notice]);
}

#[test]
fn a_policy_narrows_what_the_user_granted_a_plugin() {
    let given = given()
        .user(&format!("[plugin.x]\nsha256 = '{A}'\nshell = true\nfiles = {{ read = ['/a', '/b'], write = ['/a'] }}"))
        .policy("[plugin.x]\nshell = false\nfiles.read = ['/b/c', '/d']");
    let config = given.settings().config;
    let rights = config.plugin_rights("x", A, false);
    assert!(
        !rights.shell && allows(&rights.read, "/b/c") && !allows(&rights.read, "/a") && !allows(&rights.read, "/d")
    );
    assert!(allows(&rights.write, "/a"));
    assert_eq!(config.plugin["x"].files.read, Some(vec!["/b/c".into()]));
    assert_eq!(given.origin("plugin.x.files.read"), "narrowed by policy0.toml:3");
}

#[test]
fn a_policy_for_other_bytes_drops_the_section() {
    let given = given()
        .user(&format!("[plugin.x]\nsha256 = '{A}'\nfiles.read = ['/a']\n[plugin.y]\nshell = true"))
        .policy(&format!("plugin.x.sha256 = '{A}'"))
        .policy(&format!("plugin.x.sha256 = '{B}'"));
    let settings = given.settings();
    assert_eq!(settings.config.plugin.keys().collect::<Vec<_>>(), ["y"]);
    assert_eq!(given.notices(), ["policy1.toml:1: `[plugin.x]` is dropped: the policy allows other bytes"]);
    for (bytes, embedded) in [(A, false), (B, false), (A, true), (B, true)] {
        assert!(!allows(&settings.config.plugin_rights("x", bytes, embedded).read, "/a"));
    }
}

#[test]
fn environment_variables_are_values_of_toml_or_text() {
    let given = given()
        .variable("TOOLCRIB_TOOLS_SHELL_CONFIRM", "false")
        .variable("TOOLCRIB_AGENT_NAME", "some one")
        .variable("TOOLCRIB_TOOLS_SHELL_ENV", "[\"X\"]")
        .variable("TOOLCRIB_LOG", "debug")
        .variable("TOOLCRIB_PLUGIN_X", "1");
    let Config { agent, tools, .. } = given.settings().config;
    assert_eq!((agent.name.as_str(), tools.shell_confirm, tools.shell_env), ("some one", false, vec!["X".into()]));
}

#[test]
fn an_unknown_variable_of_a_section_is_an_error() {
    assert_eq!(
        given().variable("TOOLCRIB_TOOLS_SHELL_CONFRIM", "false").error(),
        "environment TOOLCRIB_TOOLS_SHELL_CONFRIM: `TOOLCRIB_TOOLS_SHELL_CONFRIM` is not a setting, did you mean \
         `TOOLCRIB_TOOLS_SHELL_CONFIRM`?"
    );
    assert_eq!(
        given().variable("TOOLCRIB_LIMITS_CALL_MS", "1s").error(),
        "environment TOOLCRIB_LIMITS_CALL_MS: `limits.call_ms`: must be a whole number from 1 to 31536000000"
    );
}

#[test]
fn set_takes_any_setting() {
    let given = given().set("tools.files_allowed_paths=none").set("plugin.x.shell=true").set("agent.name = a=b");
    let config = given.settings().config;
    assert_eq!(config.tools.files_allowed_paths, Allowlist::NOTHING);
    let shell = config.plugin["x"].shell.map(|shell| (shell.commands, shell.pane));
    assert_eq!((shell, config.agent.name.as_str()), (Some((true, None)), "a=b"));
    assert_eq!(given.set("agent.name").error(), "--set: `agent.name` has no value: write `key=value`");
}

#[test]
fn what_is_rendered_is_a_configuration() {
    let text = format!(
        "agent.name = 'a \"b\" \\ c'\ntools.files_allowed_paths = [\"/a\\u007f\"]\n\
         [plugin.b]\nsha256 = '{A}'\n[plugin.a]\nfiles.write = []"
    );
    let settings = given().user(&text).settings();
    for origin in [false, true] {
        assert_eq!(given().user(&settings.render(origin)).settings().config, settings.config);
    }
    assert_eq!(
        given().settings().render(false).lines().take(5).collect::<Vec<_>>(),
        ["[agent]", "name = \"agent\"", "", "[tools]", "shell_enabled = true"]
    );
}
