//! Credentials by class: what no tool reads, and what is written only where a setting names it.
//!
//! A path of the table is `/absolute`, `~/below any home`, or `$VARIABLE` with what is below it, for programs that can be set to keep
//! their files elsewhere. A directory covers everything below it. Each class names the manual that says where the files are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Files that hold one kind of secret.
pub struct Class {
    /// What they hold, as messages say it.
    pub what: &'static str,
    /// The manual that says that they are there.
    pub source: &'static str,
    /// Where they are.
    pub paths: &'static [&'static str],
}

/// All classes of credentials.
#[rustfmt::skip]
pub const CREDENTIALS: [Class; 13] = [
    Class {
        what: "keys of SSH",
        source: "ssh(1) and sshd(8), FILES; vncpasswd(1)",
        paths: &["~/.ssh", "/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key",
            "/etc/ssh/ssh_host_dsa_key", "~/.vnc/passwd", "~/.config/tigervnc/passwd"],
    },
    Class {
        what: "keys of OpenPGP",
        source: "gpg(1), FILES; pass(1), FILES",
        paths: &["~/.gnupg", "$GNUPGHOME", "~/.password-store", "$PASSWORD_STORE_DIR"],
    },
    Class {
        what: "logins of clouds",
        source: "the manuals of aws, gcloud, az, oci, doctl, hcloud, aliyun, flyctl, terraform, pulumi, vault, s3cmd, rclone, vercel, netlify, wrangler, firebase, databricks and snowsql",
        paths: &["~/.aws", "$AWS_SHARED_CREDENTIALS_FILE", "$AWS_CONFIG_FILE", "~/.config/gcloud", "$CLOUDSDK_CONFIG",
            "$GOOGLE_APPLICATION_CREDENTIALS", "~/.boto", "~/.azure", "$AZURE_CONFIG_DIR", "~/.oci", "~/.config/doctl",
            "~/.config/hcloud", "~/.aliyun", "~/.fly", "~/.config/openstack", "~/.terraform.d/credentials.tfrc.json", "~/.terraformrc",
            "~/.pulumi/credentials.json", "~/.vault-token", "~/.s3cfg", "~/.config/rclone", "~/.rclone.conf",
            "~/.local/share/com.vercel.cli", "~/.config/netlify", "~/.wrangler", "~/.config/.wrangler", "~/.config/configstore",
            "~/.databrickscfg", "~/.snowsql"],
    },
    Class {
        what: "logins of clusters and registries of containers",
        source: "kubectl, Organizing Cluster Access; docker login; containers-auth.json(5); helm registry login; systemd.exec(5), Credentials; docker secret",
        paths: &["~/.kube", "$KUBECONFIG", "~/.docker", "$DOCKER_CONFIG", "~/.config/containers/auth.json", "$REGISTRY_AUTH_FILE",
            "$XDG_RUNTIME_DIR/containers/auth.json", "~/.config/helm/registry", "/run/secrets", "/run/credentials", "/etc/kubernetes",
            "/var/lib/kubelet/pki", "/etc/rancher", "/var/lib/rancher/k3s/server/token", "/etc/docker/key.json"],
    },
    Class {
        what: "logins of forges",
        source: "git-credential-store(1), git-credential-cache(1); gh help environment; glab, hub and tea, configuration",
        paths: &["~/.git-credentials", "~/.config/git/credentials", "~/.git-credential-cache", "~/.cache/git/credential", "~/.config/gh",
            "$GH_CONFIG_DIR", "~/.config/glab-cli", "~/.config/hub", "~/.config/tea"],
    },
    Class {
        what: "logins of package registries",
        source: "npmrc(5); yarn, pnpm, twine, pip, poetry, uv, cargo login, gem signin, bundle config, composer, Maven, Gradle, NuGet, hex and dart pub, configuration",
        paths: &["~/.npmrc", "$NPM_CONFIG_USERCONFIG", "~/.yarnrc", "~/.yarnrc.yml", "~/.config/pnpm/rc", "~/.pypirc", "~/.config/pip",
            "~/.pip", "$PIP_CONFIG_FILE", "~/.config/pypoetry/auth.toml", "~/.local/share/uv/credentials", "~/.cargo/credentials.toml",
            "~/.cargo/credentials", "$CARGO_HOME/credentials.toml", "$CARGO_HOME/credentials", "~/.gem/credentials",
            "~/.local/share/gem/credentials", "~/.bundle/config", "~/.composer/auth.json", "~/.config/composer/auth.json",
            "~/.m2/settings.xml", "~/.m2/settings-security.xml", "~/.gradle/gradle.properties", "~/.nuget/NuGet/NuGet.Config",
            "~/.config/NuGet/NuGet.Config", "~/.hex/hex.config", "~/.pub-cache/credentials.json", "~/.config/dart/pub-credentials.json"],
    },
    Class {
        what: "passwords for servers",
        source: "netrc(5), curl(1), wget(1); libpq, The Password File; mysql, option files; msmtp(1), fetchmail(1), authinfo of Emacs; mount.cifs(8); filezilla, lftp and remmina",
        paths: &["~/.netrc", "~/_netrc", "$NETRC", "~/.curlrc", "~/.wgetrc", "~/.authinfo", "~/.authinfo.gpg", "~/.pgpass", "$PGPASSFILE",
            "~/.my.cnf", "~/.mylogin.cnf", "~/.msmtprc", "~/.config/msmtp", "~/.fetchmailrc", "~/.smbcredentials", "~/.config/filezilla",
            "~/.local/share/lftp", "~/.config/remmina", "~/.local/share/remmina", "~/.dbt/profiles.yml"],
    },
    Class {
        what: "passwords in a keyring",
        source: "gnome-keyring-daemon(1), kwalletd, NSS; security(1) of macOS; Python keyring; KeePassXC, Bitwarden and 1Password",
        paths: &["~/.local/share/keyrings", "~/.gnome2/keyrings", "~/.local/share/kwalletd", "~/.kde/share/apps/kwallet", "~/.pki/nssdb",
            "~/.local/share/python_keyring", "~/Library/Keychains", "~/.config/keepassxc", "~/.config/Bitwarden", "~/.config/Bitwarden CLI",
            "~/.config/1Password", "~/.config/op", "~/.op"],
    },
    Class {
        what: "profiles of browsers and messengers",
        source: "support.mozilla.org, Profiles; chromium, docs/user_data_dir.md; the same of their derivatives; Slack, Discord, Signal and Telegram, data directories",
        paths: &["~/.mozilla", "~/.config/mozilla", "~/.librewolf", "~/.thunderbird", "~/.config/google-chrome", "~/.config/google-chrome-beta",
            "~/.config/google-chrome-unstable", "~/.config/chromium", "~/.config/BraveSoftware", "~/.config/microsoft-edge",
            "~/.config/vivaldi", "~/.config/opera", "~/snap/firefox", "~/snap/chromium", "~/.var/app/org.mozilla.firefox",
            "~/.var/app/org.mozilla.Thunderbird", "~/.var/app/com.google.Chrome", "~/.var/app/org.chromium.Chromium",
            "~/.var/app/com.brave.Browser", "~/Library/Application Support/Firefox", "~/Library/Application Support/Google/Chrome",
            "~/Library/Application Support/Chromium", "~/Library/Application Support/BraveSoftware", "~/Library/Cookies",
            "~/Library/Safari", "~/.config/Slack", "~/.config/discord", "~/.config/Signal", "~/.local/share/TelegramDesktop"],
    },
    Class {
        what: "logins of agents and models",
        source: "Claude Code, Identity and access management; Codex, Authentication; Gemini CLI, Authentication; Copilot, opencode, aider, Qwen Code, Goose and Continue, configuration; huggingface_hub, HF_TOKEN_PATH; llm keys; kaggle; ollama, Linux; VS Code and Cursor, secret storage",
        paths: &["~/.claude/.credentials.json", "~/.claude.json", "$CLAUDE_CONFIG_DIR/.credentials.json", "~/.codex/auth.json",
            "$CODEX_HOME/auth.json", "~/.gemini/oauth_creds.json", "~/.gemini/.env", "~/.qwen/oauth_creds.json", "~/.config/github-copilot",
            "~/.copilot", "~/.local/share/opencode/auth.json", "~/.aider.conf.yml", "~/.config/goose/secrets.yaml", "~/.continue/.env",
            "~/.config/openai", "~/.config/anthropic", "~/.cache/huggingface/token", "~/.cache/huggingface/stored_tokens",
            "~/.huggingface/token", "$HF_TOKEN_PATH", "~/.config/io.datasette.llm/keys.json", "~/.kaggle", "~/.config/kaggle",
            "~/.ollama/id_ed25519", "~/.config/Code/User/globalStorage", "~/.config/Cursor/User/globalStorage"],
    },
    Class {
        what: "what was typed into shells and consoles",
        source: "bash(1), zshparam(1), ksh(1), fish(1), HISTFILE; atuin; Python site, Node.js REPL, psql(1), mysql(1), sqlite3(1), redis-cli, mongosh, irb, less(1), vim viminfo, nushell",
        paths: &["$HISTFILE", "~/.bash_history", "~/.bash_sessions", "~/.zsh_history", "~/.zhistory", "~/.histfile", "~/.zsh_sessions",
            "~/.sh_history", "~/.ksh_history", "~/.ash_history", "~/.history", "~/.local/share/fish/fish_history", "~/.local/share/atuin",
            "~/.python_history", "~/.node_repl_history", "~/.psql_history", "~/.mysql_history", "~/.mariadb_history", "~/.sqlite_history",
            "~/.rediscli_history", "~/.dbshell", "~/.mongodb", "~/.irb_history", "~/.lesshst", "~/.local/state/lesshst", "~/.viminfo",
            "~/.config/nushell/history.txt", "~/.config/nushell/history.sqlite3"],
    },
    Class {
        what: "passwords of this machine's users",
        source: "shadow(5), gshadow(5), pam_pwhistory(8), cron.daily/passwd of Debian, krb5.keytab; sssd.conf(5)",
        paths: &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/master.passwd", "/etc/security/opasswd",
            "/var/backups/shadow.bak", "/var/backups/gshadow.bak", "/etc/krb5.keytab", "/var/lib/sss/secrets"],
    },
    Class {
        what: "keys of this machine",
        source: "update-ca-certificates(8) and its like, certbot; nm-settings-keyfile(5), netplan(5), wpa_supplicant.conf(5), iwd.network(5), wg(8), openvpn(8), ipsec.secrets(5), pppd(8); smbd(8), apt_auth.conf(5); systemd-creds(1)",
        paths: &["/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/NetworkManager/system-connections", "/etc/netplan",
            "/etc/wpa_supplicant", "/var/lib/iwd", "/etc/wireguard", "/etc/openvpn", "/etc/ipsec.secrets", "/etc/ppp/chap-secrets",
            "/etc/ppp/pap-secrets", "/var/lib/samba/private", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/mysql/debian.cnf",
            "/etc/credstore", "/etc/credstore.encrypted", "/var/lib/systemd/credential.secret"],
    },
];

/// What is Toolcrib's where no variable puts it elsewhere; another program's than this one, or another user's.
pub(crate) const TOOLCRIB: Class = Class {
    what: "settings, keys and records of Toolcrib",
    source: "XDG Base Directory Specification",
    paths: &["~/.config/toolcrib", "~/.local/state/toolcrib"],
};

/// Directories of the home that a variable can put elsewhere (XDG Base Directory Specification).
const XDG: [(&str, &str); 4] = [
    (".config", "XDG_CONFIG_HOME"),
    (".local/share", "XDG_DATA_HOME"),
    (".local/state", "XDG_STATE_HOME"),
    (".cache", "XDG_CACHE_HOME"),
];

/// A place where credentials lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    pub root: PathBuf,
    /// What it holds.
    pub what: &'static str,
}

/// All places below this home and of this machine. `variable` looks an environment variable up; it knows none where the place is beyond
/// this machine.
pub(crate) fn secrets(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Vec<Secret> {
    let places = CREDENTIALS.iter().flat_map(|class| class.paths.iter().map(move |path| (class.what, *path)));
    let found = places.flat_map(|(what, path)| expanded(path, home, &variable).map(move |root| Secret { root, what }));
    found.collect()
}

fn expanded(path: &str, home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> impl Iterator<Item = PathBuf> {
    if let Some(below) = path.strip_prefix("~/") {
        let elsewhere = XDG.iter().find_map(|(usual, name)| {
            let rest = Path::new(below).strip_prefix(usual).ok()?;
            absolute(variable(name)?).map(|directory| directory.join(rest))
        });
        return [home.join(below)].into_iter().chain(elsewhere).collect::<Vec<_>>().into_iter();
    }
    let Some(named) = path.strip_prefix('$') else { return vec![PathBuf::from(path)].into_iter() };
    let (name, below) = named.split_once('/').unwrap_or((named, ""));
    // `KUBECONFIG` is a list.
    let directories = variable(name).into_iter().flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>());
    let places = directories.filter_map(|directory| absolute(directory.into()));
    places
        .map(|directory| if below.is_empty() { directory } else { directory.join(below) })
        .collect::<Vec<_>>()
        .into_iter()
}

/// A relative one counts for each program where that is started; `/` would close everything.
fn absolute(path: OsString) -> Option<PathBuf> {
    Some(PathBuf::from(path)).filter(|path| path.is_absolute() && path.parent().is_some())
}

/// What a path below somebody else's home holds: the superuser can read there. Which of that is Toolcrib's may be this program's own.
pub(crate) fn in_another_home(path: &Path, is_own: bool) -> Option<Secret> {
    let below = below_a_home(path)?;
    let toolcrib = (!is_own).then_some(&TOOLCRIB);
    let classes = CREDENTIALS.iter().chain(toolcrib);
    let mut places = classes.flat_map(|class| class.paths.iter().map(move |path| (class.what, *path)));
    places.find_map(|(what, place)| {
        let place = place.strip_prefix("~/")?;
        below.starts_with(place).then(|| Secret { root: path.to_owned(), what })
    })
}

/// All places below a home that [`in_another_home`] knows, as they are below it.
pub(crate) fn below_homes() -> impl Iterator<Item = &'static str> {
    let classes = CREDENTIALS.iter().chain([&TOOLCRIB]);
    classes.flat_map(|class| class.paths.iter().filter_map(|path| path.strip_prefix("~/")))
}

/// The rest of a path below what is a home by its place.
pub(crate) fn below_a_home(path: &Path) -> Option<&Path> {
    let mut parts = path.strip_prefix("/").ok()?.components();
    match parts.next()?.as_os_str().to_str()? {
        "root" => {}
        "home" | "Users" => _ = parts.next()?,
        _ => return None,
    }
    Some(parts.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(variables: &[(&str, &str)]) -> Vec<PathBuf> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
        secrets(Path::new("/home/u"), variable).into_iter().map(|secret| secret.root).collect()
    }

    #[test]
    fn every_class_says_what_it_holds_and_where_that_is_written() {
        for class in &CREDENTIALS {
            assert!(!class.what.is_empty() && class.source.len() > 4 && !class.paths.is_empty(), "{}", class.what);
            for path in class.paths {
                assert!(path.starts_with("~/") || path.starts_with('/') || path.starts_with('$'), "{path}");
            }
        }
    }

    #[test]
    fn programs_that_were_told_to_keep_their_files_elsewhere_are_followed() {
        let usual = roots(&[]);
        assert!(usual.contains(&"/home/u/.config/gh".into()) && usual.iter().all(|root| root.is_absolute()));
        let moved =
            roots(&[("XDG_CONFIG_HOME", "/conf"), ("CARGO_HOME", "/cargo"), ("KUBECONFIG", "/k/one:two:/k/three")]);
        for root in ["/conf/gh", "/home/u/.config/gh", "/cargo/credentials.toml", "/k/one", "/k/three"] {
            assert!(moved.contains(&root.into()), "{root}");
        }
        assert_eq!(roots(&[("GNUPGHOME", "/"), ("NETRC", "")]), usual, "one of them closed everything");
    }

    #[test]
    fn homes_of_others_are_known_by_their_place() {
        for path in ["/root/.ssh/id", "/home/other/.netrc", "/Users/other/Library/Keychains/login"] {
            assert!(in_another_home(Path::new(path), true).is_some(), "{path}");
        }
        for path in ["/root/.config/toolcrib/secrets/X", "/home/other/.local/state/toolcrib/code.key"] {
            let found = [false, true].map(|is_own| in_another_home(Path::new(path), is_own).is_some());
            assert_eq!(found, [true, false], "{path}");
        }
        for path in ["/home/.netrc", "/srv/home/other/.netrc", "/root", "/home/other/netrc", "/home/other/x/.ssh/id"] {
            assert!(in_another_home(Path::new(path), false).is_none(), "{path}");
        }
    }
}
