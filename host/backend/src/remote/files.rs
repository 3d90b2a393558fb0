//! Regular files elsewhere, by short scripts: found by path, then read and written by the name in its directory, with no link followed.
//!
//! Between a look and an act of a script somebody there could still plant a link; nothing that a shell can do closes that window. What
//! policy decides on is found by that place's own shell, in the same step as the roots that it compares with.

use super::{Remote, Way, unknown};
use crate::files::{
    MOST_ENTRIES, absolute, failure, is_directory, is_link, not_a_directory, not_regular, too_many_entries,
};
use crate::{Before, Entry, EntryKind, Facts, FileText, Listing};
use base::envelope::{Failure, Kind};
use file_access::{Expected, HOME_THERE, Place, ReadPath, Resolved, There, Wanted, WritePath};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names that are described by one script: their lengths are bounded by the system.
const AT_ONCE: usize = 250;

/// Prints, each ended by NUL: what became of the first path (`there`, `directory`, `new`, `absent`, `notdir`, `closed`), that path without links, then the others without
/// links, as far as they exist.
const RESOLVE: &str = r#"CDPATH= seen=
resolve() {
    r=$1 rest=
    while :; do
        if [ -d "$r" ]; then
            # Most roots are not there and end at the same directory: it is looked up once.
            if [ "$r" = "$seen" ]; then
                r=$known
                break
            fi
            # One that nobody here may enter keeps its name.
            seen=$r known=$r
            found=$(cd -P -- "$r" 2>/dev/null && pwd -P && echo x) || break
            r=${found%?x}
            known=$r
            break
        elif [ -L "$r" ] && [ -e "$r" ]; then
            found=$(readlink -f -- "$r" && echo x) || break
            r=${found%?x}
            break
        elif [ -e "$r" ] || [ -L "$r" ]; then
            rest=/${r##*/}$rest
            r=${r%/*}
            r=${r:-/}
        else
            case "$r" in */*) ;; *) break ;; esac
            rest=/${r##*/}$rest
            r=${r%/*}
            r=${r:-/}
        fi
    done
    [ "$r" != / ] || r=
    r=$r$rest
    r=${r:-/}
}
p=$1
shift
what=new
dir=${p%/*}
dir=${dir:-/}
if [ -e "$p" ]; then
    what=there
    [ ! -d "$p" ] || what=directory
elif ! [ -d "$dir" ] || ! [ -x "$dir" ]; then
    what=absent
    above=$dir
    while ! [ -e "$above" ] && [ -n "$above" ]; do above=${above%/*}; done
    if ! [ -d "${above:-/}" ]; then
        what=notdir
    elif ! [ -x "${above:-/}" ]; then
        what=closed
    fi
fi
resolve "$p"
printf '%s\0' "$what" "$r"
for p; do
    resolve "$p"
    printf '%s\0' "$r"
done"#;

/// What both others begin with. Arguments: directory, name.
macro_rules! enter {
    ($rest:literal) => {
        concat!(
            r#"CDPATH=
# Engines may stumble over input that nobody reads.
no() {
    cat >/dev/null
    exit "$1"
}
d=$1 f=./$2
cd -P -- "$d" 2>/dev/null || no 62
[ "$(pwd -P && echo x)" = "$d
x" ] || no 61
[ ! -L "$f" ] || no 61
[ ! -d "$f" ] || no 63
if [ -e "$f" ]; then
    [ -f "$f" ] || no 64
fi
"#,
            $rest
        )
    };
}

/// Prints size and number of names, then at most so many bytes from an offset. Further arguments: offset, length.
const READ: &str = enter!(
    r#"[ -e "$f" ] || no 62
[ -r "$f" ] || no 65
size=$(wc -c <"$f") || no 65
names=$(stat -c %h -- "$f" 2>/dev/null || stat -f %l -- "$f" 2>/dev/null || echo 1)
echo "$((size)) $names"
if [ "$3" = 0 ]; then
    cat -- "$f" 2>/dev/null | head -c "$4"
else
    tail -c "+$(($3 + 1))" -- "$f" | head -c "$4"
fi"#
);

/// Prints the first of some files and directories that hold a file under another name. Further arguments: those.
const HOLDING: &str = enter!(
    r#"shift 2
names=$(stat -c %h -- "$f" 2>/dev/null || stat -f %l -- "$f" 2>/dev/null || echo 1)
[ "$names" != 1 ] || exit 0
find . -prune -samefile . >/dev/null 2>&1 || no 70
for r; do
    [ -e "$r" ] || continue
    if [ -n "$(find -H "$r" -type f -samefile "$f" 2>/dev/null | head -n 1)" ]; then
        printf '%s' "$r"
        exit 0
    fi
done"#
);

/// Prints what marks a file, on one line; it changes with its content, as far as the tools there can tell.
macro_rules! stamp {
    () => {
        r#"stamp() {
    s=$(stat -c '%d:%i:%s:%y:%z' -- "$f" 2>/dev/null || stat -f '%d:%i:%z:%Fm:%Fc' -- "$f" 2>/dev/null)
    b=$(($(wc -c <"$f"))) c=
    # Of more than a question would show, size and times have to do: others wait for this.
    [ "$b" -gt 4194304 ] || c=$(cksum <"$f" 2>/dev/null || md5sum <"$f" 2>/dev/null)
    echo "$s $c $b"
}
"#
    };
}

/// Prints what marks a file on one line, its size last, then all of it; nothing where there is none. Further argument: the most bytes that
/// are read.
const LOOK: &str = concat!(
    stamp!(),
    enter!(
        r#"[ -e "$f" ] || exit 0
[ -r "$f" ] || no 65
stamp
[ "$(($(wc -c <"$f")))" -gt "$3" ] || cat -- "$f""#
    )
);

/// Replaces a file by what comes in: written beside it, counted, renamed. Further arguments: length, whether it may have one name only, a
/// word for the temporary file, and what marks the file that is replaced: `any` for any, nothing for none.
const WRITE: &str = concat!(
    stamp!(),
    enter!(
        r#"t=./.toolcrib-$5
# What a writer left that was killed.
find . -maxdepth 1 -name '.toolcrib-????????????????????????????????' -type f -user "$(id -u)" -mmin +60 -exec rm -f -- {} + 2>/dev/null
trap 'rm -f -- "$t"' EXIT
if [ -e "$f" ]; then
    [ -w "$f" ] || no 65
    names=$(stat -c %h -- "$f" 2>/dev/null || stat -f %l -- "$f" 2>/dev/null || echo 1)
    [ "$4" != 1 ] || [ "$names" = 1 ] || no 66
fi
(umask 077 && set -C && : >"$t") 2>/dev/null || no 65
if [ -e "$f" ]; then
    mode=$(stat -c %a -- "$f" 2>/dev/null || stat -f %Lp -- "$f" 2>/dev/null)
    owner=$(stat -c %u:%g -- "$f" 2>/dev/null || stat -f %u:%g -- "$f" 2>/dev/null)
    [ -z "$owner" ] || chown "$owner" "$t" 2>/dev/null
    [ -z "$mode" ] || chmod "0$(printf %s "$mode" | tail -c 3)" "$t" 2>/dev/null
fi
cat >"$t" || no 67
[ "$(($(wc -c <"$t")))" = "$3" ] || no 68
if [ "$6" != any ]; then
    now=
    [ ! -e "$f" ] || now=$(stamp)
    [ "$now" = "$6" ] || no 69
fi
mv -f -- "$t" "$f" || no 67
trap - EXIT"#
    )
);

/// Prints for each name a letter: `f` for a file, `d` for a directory, `l` for a link, `o` for anything else, `-` where there is none; then on a line
/// each their sizes and times. Arguments: directory, names.
const DESCRIBE: &str = r#"CDPATH=
cd -P -- "$1" 2>/dev/null || exit 62
[ "$(pwd -P && echo x)" = "$1
x" ] || exit 61
shift
for f; do
    k=o
    if [ -L "$f" ]; then k=l
    elif [ -d "$f" ]; then k=d
    elif [ -f "$f" ]; then k=f
    elif ! [ -e "$f" ]; then k=-
    fi
    printf %s "$k"
done
echo
# One that is gone leaves its line empty.
each() {
    for f; do stat -c '%s %Y' -- "$f" 2>/dev/null || stat -f '%z %m' -- "$f" 2>/dev/null || echo; done
}
s=$(stat -c '%s %Y' -- "$@" 2>/dev/null) || s=$(stat -f '%z %m' -- "$@" 2>/dev/null) || s=$(each "$@")
printf '%s\n' "$s""#;

/// Prints the names in a directory, each ended by NUL. Further argument: how many there may be.
const NAMES: &str = r#"CDPATH=
cd -P -- "$1" 2>/dev/null || {
    [ -d "$1" ] && exit 65
    [ -e "$1" ] && exit 71
    exit 62
}
[ "$(pwd -P && echo x)" = "$1
x" ] || exit 61
[ -r . ] || exit 65
most=$2
set -- * .[!.]* ..?*
[ "$#" -le "$((most + 3))" ] || exit 72
for f; do
    # A pattern that matches nothing stands for itself.
    if [ -e "./$f" ] || [ -L "./$f" ]; then printf '%s\0' "$f"; fi
done"#;

/// Makes a directory and those above it, and prints whether that took any. Argument: its absolute path without links.
const MAKE: &str = r#"CDPATH= made=0 at= rest=${1#/}/
cd / || exit 62
while [ -n "$rest" ]; do
    step=${rest%%/*} rest=${rest#*/}
    [ -n "$step" ] || continue
    at=$at/$step
    if ! [ -e "./$step" ] && ! [ -L "./$step" ]; then
        if mkdir -- "./$step" 2>/dev/null; then
            made=1
        elif ! [ -d "./$step" ]; then
            exit 65
        fi
    fi
    [ -d "./$step" ] || exit 71
    cd -P -- "./$step" 2>/dev/null || exit 65
    [ "$(pwd -P && echo x)" = "$at
x" ] || exit 61
done
echo "$made""#;

pub(super) async fn resolve<W: Way>(
    remote: &Remote<W>,
    facts: Arc<Facts>,
    path: &str,
    roots: &[PathBuf],
) -> Result<Resolved, Failure> {
    let given = absolute(path, &facts.directory, &facts.home)?;
    let at_home = |root: &PathBuf| match root.strip_prefix(HOME_THERE) {
        Ok(rest) => facts.home.join(rest),
        Err(_) => root.clone(),
    };
    let looked_for = plain(&given);
    let asked = [looked_for.clone()].into_iter().chain(roots.iter().map(at_home));
    let asked: Vec<OsString> = asked.map(PathBuf::into_os_string).collect();
    let (status, printed) = remote.script(RESOLVE, &asked).await?;
    let mut fields = printed.split(|byte| *byte == 0).map(<[u8]>::to_vec);
    let (what, found) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let found = PathBuf::from(OsString::from_vec(found));
    let canonical: Vec<PathBuf> = fields.take(roots.len()).map(|field| OsString::from_vec(field).into()).collect();
    let is_whole = status == 0
        && canonical.len() == roots.len()
        && [&found].into_iter().chain(&canonical).all(|path| path.is_absolute());
    if !is_whole {
        return Err(Failure::new(Kind::Unavailable, format!("{} did not resolve the path", remote.way.name())));
    }
    let names_directory = path.ends_with('/') || path.ends_with("/.");
    let absent = match what.as_slice() {
        b"absent" => Some(failure(path, &io::ErrorKind::NotFound.into())),
        b"there" if names_directory => Some(failure(path, &io::ErrorKind::NotADirectory.into())),
        b"notdir" => Some(failure(path, &io::ErrorKind::NotADirectory.into())),
        b"closed" => Some(failure(path, &io::ErrorKind::PermissionDenied.into())),
        b"new" if names_directory => Some(Failure::failed(format!(
            "`{path}` ends like a directory and does not exist; only files can be read and written"
        ))),
        _ => None,
    };
    let there = There { own: facts.own.clone(), named: roots.iter().map(at_home).collect(), canonical };
    Ok(Resolved { given, path: found, absent, facts, there: Some(there) })
}

/// The path as a shell splits it: without slashes at its end and doubled ones; `..` stays, since what comes before it may be a link.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

pub(super) async fn read<W: Way>(
    remote: &Remote<W>,
    path: &ReadPath,
    offset: u64,
    max_bytes: usize,
) -> Result<FileText, Failure> {
    let shown = path.shown();
    let mut arguments = place(path.as_path())?;
    arguments.extend([offset.to_string().into(), max_bytes.to_string().into()]);
    let (status, printed) = remote.script(READ, &arguments).await?;
    check(&shown, status)?;
    let odd =
        || Failure::new(Kind::Unavailable, format!("{} did not return the content of `{shown}`", remote.way.name()));
    let end = printed.iter().position(|byte| *byte == b'\n').ok_or_else(odd)?;
    let (head, bytes) = (String::from_utf8_lossy(&printed[..end]), printed[end + 1..].to_vec());
    let (size, names) = head.split_once(' ').ok_or_else(odd)?;
    let names = names.parse().map_err(|_| odd())?;
    path.check_links(names)?;
    if names > 1
        && let Some(root) = holding(remote, path.as_path(), path.closed()).await?
    {
        return Err(path.second_name(&root));
    }
    Ok(FileText { bytes, size: size.parse().map_err(|_| odd())? })
}

pub(super) async fn list<W: Way>(remote: &Remote<W>, path: &ReadPath, max: usize) -> Result<Listing, Failure> {
    let shown = path.shown();
    let directory = OsString::from(path.as_path());
    let (status, printed) = remote.script(NAMES, &[directory.clone(), MOST_ENTRIES.to_string().into()]).await?;
    match status {
        71 => return Err(not_a_directory(&shown)),
        72 => return Err(too_many_entries(&shown)),
        _ => check(&shown, status)?,
    }
    let printed = printed.strip_suffix(b"\0").unwrap_or(&printed);
    let mut names: Vec<_> = printed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    let total = names.len() as u64;
    names.sort_unstable();
    names.truncate(max);
    let mut entries = Vec::new();
    for names in names.chunks(AT_ONCE) {
        entries.extend(describe(remote, &directory, names, &shown).await?);
    }
    Ok(Listing { entries, total })
}

pub(super) async fn stat<W: Way>(remote: &Remote<W>, path: &Place) -> Result<Entry, Failure> {
    let shown = path.shown();
    let (directory, name) = match (path.as_path().parent(), path.as_path().file_name()) {
        (Some(parent), Some(name)) => (parent, name),
        _ => (Path::new("/"), OsStr::new(".")),
    };
    let mut found = describe(remote, directory.as_os_str(), &[name.as_bytes()], &shown).await?;
    found.pop().ok_or_else(|| failure(&shown, &io::ErrorKind::NotFound.into()))
}

/// Describes those of some names that are there.
async fn describe<W: Way>(
    remote: &Remote<W>,
    directory: &OsStr,
    names: &[&[u8]],
    shown: &str,
) -> Result<Vec<Entry>, Failure> {
    let named = names.iter().map(|name| OsString::from_vec([b"./", *name].concat()));
    let arguments: Vec<_> = [directory.to_owned()].into_iter().chain(named).collect();
    let (status, printed) = remote.script(DESCRIBE, &arguments).await?;
    check(shown, status)?;
    let printed = String::from_utf8_lossy(&printed);
    let mut lines = printed.lines();
    let kinds = lines.next().unwrap_or_default();
    if kinds.len() != names.len() {
        let message = format!("{} did not say what is in `{shown}`", remote.way.name());
        return Err(Failure::new(Kind::Unavailable, message));
    }
    let facts = lines.chain(std::iter::repeat(""));
    let described = kinds.bytes().zip(names).zip(facts).filter_map(|((kind, name), facts)| {
        let kind = match kind {
            b'f' => EntryKind::File,
            b'd' => EntryKind::Directory,
            b'l' => EntryKind::Link,
            b'o' => EntryKind::Other,
            _ => return None,
        };
        let (size, seconds) = facts.split_once(' ').unwrap_or_default();
        let size = size.parse().ok().filter(|_| kind == EntryKind::File).unwrap_or(0);
        let modified_ms = seconds.parse::<u64>().ok().map(|seconds| seconds.saturating_mul(1000));
        Some(Entry { name: OsString::from_vec(name.to_vec()), kind, size, modified_ms })
    });
    Ok(described.collect())
}

pub(super) async fn make_directory<W: Way>(remote: &Remote<W>, path: &WritePath) -> Result<bool, Failure> {
    let shown = path.shown();
    let (status, printed) = remote.script(MAKE, &[path.as_path().into()]).await?;
    match status {
        71 => Err(not_a_directory(&shown)),
        _ => check(&shown, status).map(|()| printed.starts_with(b"1")),
    }
}

pub(super) async fn look<W: Way>(remote: &Remote<W>, path: &Wanted, max_bytes: usize) -> Result<Before, Failure> {
    let shown = path.shown();
    let is_shown =
        path.may_be_shown(0, 0, 1) && matches!(holding(remote, path.as_path(), path.closed()).await, Ok(None));
    let max_bytes = if is_shown { max_bytes } else { 0 };
    let mut arguments = place(path.as_path())?;
    arguments.push(max_bytes.to_string().into());
    let (status, printed) = remote.script(LOOK, &arguments).await?;
    if status == 65 {
        // It need not be readable to be replaced.
        return Ok(Before::There { size: 0, content: None, stamp: String::new() });
    }
    check(&shown, status)?;
    if printed.is_empty() {
        return Ok(Before::New);
    }
    let odd =
        || Failure::new(Kind::Unavailable, format!("{} did not return the content of `{shown}`", remote.way.name()));
    let end = printed.iter().position(|byte| *byte == b'\n').ok_or_else(odd)?;
    let stamp = String::from_utf8(printed[..end].to_vec()).map_err(|_| odd())?;
    let size = stamp.rsplit(' ').next().and_then(|size| size.parse().ok());
    let (size, content): (u64, _) = (size.ok_or_else(odd)?, printed[end + 1..].to_vec());
    Ok(Before::There { size, content: (content.len() as u64 == size).then_some(content), stamp })
}

pub(super) async fn write<W: Way>(remote: &Remote<W>, path: &WritePath, content: &[u8]) -> Result<(), Failure> {
    let shown = path.shown();
    let mut arguments = place(path.as_path())?;
    let only_one_name = if path.check_links(2).is_err() { "1" } else { "0" };
    let expected = match path.expected() {
        Expected::Anything => "any",
        Expected::New => "",
        Expected::Marked(stamp) => stamp,
    };
    let word = base::text::id::random_id();
    arguments.extend([&content.len().to_string(), only_one_name, &word, expected].map(OsString::from));
    let (status, _) = remote.feed(WRITE, arguments, content).await?;
    if status == 66 {
        return path.check_links(2);
    }
    if status == 69 {
        return Err(path.changed());
    }
    if !(0..=68).contains(&status) {
        return Err(unknown(remote.way.name()));
    }
    check(&shown, status)
}

/// Returns the closed path that is the same file under another name; none if there is no such path or no such file.
async fn holding<W: Way>(
    remote: &Remote<W>,
    path: &Path,
    closed: impl Iterator<Item = &Path>,
) -> Result<Option<PathBuf>, Failure> {
    let mut arguments = place(path)?;
    arguments.extend(closed.map(OsString::from));
    let (status, printed) = remote.script(HOLDING, &arguments).await?;
    let shown = path.display();
    match status {
        0 if printed.is_empty() => Ok(None),
        0 => Ok(Some(OsString::from_vec(printed).into())),
        70 => Err(Failure::denied(format!(
            "`{shown}` has several names, and one may be that of a closed file: {} has no `find` to compare them",
            remote.way.name()
        ))
        .hint("copy the file, so that it has one name")),
        _ => Err(check(&shown.to_string(), status).err().unwrap_or_else(|| unknown(remote.way.name()))),
    }
}

/// Prints something where one of these files and directories, or a file below them, has several names.
const NAMED: &str = r#"for r; do
    [ -e "$r" ] || continue
    find -H "$r" -type f -links +1 2>/dev/null | head -n 1
done"#;

/// Whether a closed file there has several names; else no other name can be one of those.
pub(super) async fn closed_has_names<W: Way>(remote: &Remote<W>, path: &ReadPath) -> Result<bool, Failure> {
    let closed: Vec<OsString> = path.closed().map(OsString::from).collect();
    let (status, printed) = remote.script(NAMED, &closed).await?;
    Ok(status != 0 || !printed.is_empty())
}

/// Directory and name.
fn place(path: &Path) -> Result<Vec<OsString>, Failure> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(is_directory(&path.display().to_string()));
    };
    let name: &OsStr = OsStr::from_bytes(name.as_bytes());
    Ok(vec![directory.into(), name.into()])
}

/// What the status of a script says of the file.
fn check(shown: &str, status: i32) -> Result<(), Failure> {
    Err(match status {
        0 => return Ok(()),
        61 => is_link(shown),
        62 => failure(shown, &io::ErrorKind::NotFound.into()),
        63 => is_directory(shown),
        64 => not_regular(shown),
        65 => failure(shown, &io::ErrorKind::PermissionDenied.into()),
        68 => Failure::failed(format!("`{shown}` was not written: the connection ended while it was sent")),
        _ => Failure::failed(format!("`{shown}` could not be written there; its old content is unchanged")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_keeps_what_may_be_a_link() {
        assert_eq!(plain(Path::new("/a//b/../c/.")), Path::new("/a/b/../c"));
    }

    #[test]
    fn a_root_is_no_file() {
        assert!(place(Path::new("/")).is_err());
        assert_eq!(place(Path::new("/a b/-c")).expect("a file"), ["/a b", "-c"]);
    }
}
