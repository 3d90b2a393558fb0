//! The workspace of a client that names its roots, for `toolcrib serve` without `--directory`.
//!
//! Goes to a directory, and leaves all that follows from it to those who make a host there.

use super::super::setup::{dirs, load, no_workspace, sources, working_directory};
use super::super::{Global, notice};
use base::paths::canonical;
use base::text::sanitize;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;
use toolcrib::envelope::Failure;
use toolcrib_serve::mcp::roots::Opened;
use url::Url;

/// Characters of a root that a notice shows.
const SHOWN_CHARS: usize = 200;
/// Further roots that a notice names.
const NAMED: usize = 5;

/// Asks the client, and goes to its first root, as `--directory` would. Returns the client with the notices for it; none if `stop` came first.
pub(super) async fn enter(
    global: &Global,
    is_lazy: bool,
    stop: &CancellationToken,
) -> Result<Option<(Opened, Vec<String>)>, Failure> {
    let dirs = dirs()?;
    // The operator of a locked machine chooses the workspace.
    if !load(&sources(global, &dirs)?)?.locks.is_empty() {
        return Ok(Some((Opened::unasked(), Vec::new())));
    }
    let opened = tokio::select! {
        opened = Opened::asked(is_lazy) => opened,
        () = stop.cancelled() => return Ok(None),
    };
    let notices = match opened.roots() {
        None => Vec::new(),
        Some(Ok(uris)) => follow(uris, &dirs.home)?,
        Some(Err(why)) => vec![stays(&format!("the client has roots, but {why}"))?],
    };
    notices.iter().for_each(|text| notice(text));
    Ok(Some((opened, notices)))
}

/// Goes to the first root that is a file; returns what the user should know.
fn follow(uris: &[String], home: &Path) -> Result<Vec<String>, Failure> {
    let is_file = |uri: &&String| Url::parse(uri).is_ok_and(|url| url.scheme() == "file");
    let Some(first) = uris.iter().find(is_file).or(uris.first()) else { return Ok(Vec::new()) };
    let entered = workspace(first, home)
        .and_then(|directory| std::env::set_current_dir(directory).map_err(|error| error.to_string()));
    Ok(match entered {
        Err(why) => vec![stays(&format!("the client's root `{}` is not the workspace: {why}", shown(first)))?],
        Ok(()) => others(uris, first).into_iter().collect(),
    })
}

/// The directory of a root, or why it is not a workspace.
fn workspace(uri: &str, home: &Path) -> Result<PathBuf, String> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file");
    let path = url.ok_or("it is not a `file:` address")?.to_file_path();
    let path = canonical(&path.map_err(|()| "it is not on this machine")?);
    if !path.is_dir() {
        return Err("it is not a directory".to_owned());
    }
    no_workspace(&path, home).map_or(Ok(path), Err)
}

/// The notice that the workspace is the directory where this program was started.
fn stays(why: &str) -> Result<String, Failure> {
    let here = working_directory()?;
    let here = sanitize::visible_line(&here.to_string_lossy());
    Ok(format!("{why}; the tools work in `{here}`: name another directory with `toolcrib serve --directory DIR`"))
}

/// The notice that there are more roots than one.
fn others(uris: &[String], first: &String) -> Option<String> {
    let others: Vec<String> = uris.iter().filter(|uri| *uri != first).map(|uri| format!("`{}`", shown(uri))).collect();
    let more = others.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let named = others.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    (!others.is_empty()).then(|| {
        format!(
            "the workspace is the client's root `{}`, and not {named}{more}: start another server there with `toolcrib serve --directory DIR`",
            shown(first)
        )
    })
}

fn shown(uri: &str) -> String {
    sanitize::visible_line(uri).chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_a_directory_of_this_machine_and_not_the_home() {
        let home = std::env::temp_dir().join(format!("toolcrib-roots-{}", std::process::id()));
        std::fs::create_dir(&home).expect("a directory");
        let home = canonical(&home);
        let project = home.join("a project");
        std::fs::create_dir(&project).expect("a directory");
        std::fs::write(home.join("file"), "").expect("a file");
        std::os::unix::fs::symlink(&home, home.join("link")).expect("a link");
        let uri = |path: &Path| Url::from_file_path(path).expect("a whole path").to_string();
        assert_eq!(workspace(&uri(&project), &home), Ok(project.clone()));
        assert_eq!(workspace(&format!("file://localhost{}", project.display()), &home), Ok(project));
        let refused = |uri: &str| workspace(uri, &home).expect_err(uri);
        assert_eq!(refused("file:///"), "`/` is not a workspace");
        for own in [&home, &home.join("link"), &home.join("a project/..")] {
            assert!(refused(&uri(own)).contains("is your home"), "{own:?}");
        }
        for missing in [home.join("file"), home.join("missing")] {
            assert_eq!(refused(&uri(&missing)), "it is not a directory");
        }
        assert_eq!(refused("file://elsewhere/srv"), "it is not on this machine");
        for other in ["https://example.com/", "untitled:one", "/srv", ""] {
            assert_eq!(refused(other), "it is not a `file:` address");
        }
        std::fs::remove_dir_all(&home).expect("it is the test's");
    }

    #[test]
    fn further_roots_are_named_in_one_line() {
        let uris: Vec<String> = ["a", "b\n", "c"].map(|name| format!("file:///{name}")).into();
        let notice = others(&uris, &uris[0]).expect("there are more");
        assert!(notice.contains("`file:///a`, and not `file:///b\\u{a}`, `file:///c`:"), "{notice}");
        assert_eq!(others(&uris[..1], &uris[0]), None);
    }
}
