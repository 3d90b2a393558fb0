//! Attacks over `wasi:filesystem`. Each is tried in every directory that the host opened.

use crate::{first_line, number};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Advice, Descriptor, DescriptorFlags, DescriptorStat, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};
use wasip2::io::streams::StreamError;

type Outcome = Result<String, String>;

const RAIDED: &[u8] = b"raided";
const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;

/// Lists the directories that the host opened.
pub(crate) fn preopens() -> Outcome {
    let directories = get_directories();
    let lines = directories.iter().map(|(directory, name)| match directory.get_flags() {
        Ok(flags) => format!("{name}: {flags:?}"),
        Err(error) => format!("{name}: {}", error.name()),
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Opens a path with every combination of flags. Says which ones worked.
pub(crate) fn open(path: &str) -> Outcome {
    let modes = [
        DescriptorFlags::empty(),
        DescriptorFlags::READ,
        DescriptorFlags::WRITE,
        DescriptorFlags::READ | DescriptorFlags::WRITE,
        DescriptorFlags::MUTATE_DIRECTORY,
        DescriptorFlags::all(),
    ];
    everywhere(|directory| {
        let mut opened = Vec::new();
        let mut refused = Vec::new();
        for follow in [PathFlags::empty(), FOLLOW] {
            for how in 0..=OpenFlags::all().bits() {
                let how = OpenFlags::from_bits_retain(how);
                for mode in modes {
                    match directory.open_at(follow, path, how, mode) {
                        Ok(file) => opened.push(format!("{follow:?} {how:?} {mode:?}: {}", content(&file))),
                        Err(error) => refused.push(error),
                    }
                }
            }
        }
        refused.sort_by_key(|error: &ErrorCode| error.name());
        refused.dedup();
        if opened.is_empty() {
            Err(refused.into_iter().map(text).collect::<Vec<_>>().join(", "))
        } else {
            Ok(opened.join("\n"))
        }
    })
}

/// Reads the beginning of a file. It may be a FIFO or a device.
pub(crate) fn read(path: &str) -> Outcome {
    everywhere(|directory| Ok(content(&reader(directory, path)?)))
}

/// Says what a path is, with the last link followed and without.
pub(crate) fn stat(path: &str) -> Outcome {
    let said = |stat: DescriptorStat| format!("{:?}, {} bytes, {} links", stat.type_, stat.size, stat.link_count);
    everywhere(|directory| {
        let followed = directory.stat_at(FOLLOW, path).map(said);
        let itself = directory.stat_at(PathFlags::empty(), path).map(said);
        let is_success = followed.is_ok() || itself.is_ok();
        let text = format!("followed {}, itself {}", followed.unwrap_or_else(text), itself.unwrap_or_else(text));
        if is_success { Ok(text) } else { Err(text) }
    })
}

/// Says where a link leads.
pub(crate) fn readlink(path: &str) -> Outcome {
    everywhere(|directory| directory.readlink_at(path).map_err(text))
}

/// Makes a link to the first line at the second, and goes through it.
pub(crate) fn symlink_at(argument: &str) -> Outcome {
    let (target, path) = first_line(argument)?;
    everywhere(|directory| {
        directory.symlink_at(target, path).map_err(|error| format!("symlink-at: {}", error.name()))?;
        let file = reader(directory, path).map_err(|error| format!("made, but open-at: {error}"))?;
        Ok(content(&file))
    })
}

/// Makes a second name for the first line at the second, within each directory and across them.
pub(crate) fn link_at(argument: &str) -> Outcome {
    let (old, new) = first_line(argument)?;
    between(|from, to| {
        let followed = from.link_at(FOLLOW, old, to, new);
        if let Err(followed) = followed {
            from.link_at(PathFlags::empty(), old, to, new)
                .map_err(|error| format!("{}, {}", followed.name(), error.name()))?;
        }
        Ok(content(&reader(to, new)?))
    })
}

/// Moves the first line to the second, within each directory and across them.
pub(crate) fn rename_at(argument: &str) -> Outcome {
    let (old, new) = first_line(argument)?;
    between(|from, to| {
        from.rename_at(old, to, new).map_err(text)?;
        Ok(content(&reader(to, new)?))
    })
}

/// Removes a file or directory.
pub(crate) fn unlink(path: &str) -> Outcome {
    everywhere(|directory| {
        if let Err(file) = directory.unlink_file_at(path) {
            directory.remove_directory_at(path).map_err(|error| format!("{}, {}", file.name(), error.name()))?;
        }
        Ok("removed".into())
    })
}

/// Sets the times of a file, by its path and by a descriptor that can only read.
pub(crate) fn set_times(path: &str) -> Outcome {
    everywhere(|directory| {
        let by_path = directory.set_times_at(FOLLOW, path, NewTimestamp::Now, NewTimestamp::Now);
        let opened = reader(directory, path)?;
        let by_descriptor = opened.set_times(NewTimestamp::Now, NewTimestamp::Now);
        some([("by path", by_path), ("by descriptor", by_descriptor)])
    })
}

/// Overwrites a file.
pub(crate) fn write(path: &str) -> Outcome {
    everywhere(|directory| {
        let file = directory.open_at(FOLLOW, path, OpenFlags::empty(), DescriptorFlags::WRITE).map_err(text)?;
        file.write(RAIDED, 0).map_err(text)?;
        Ok("written".into())
    })
}

/// Writes in every way through a descriptor that was opened to read.
pub(crate) fn write_through_reader(path: &str) -> Outcome {
    everywhere(|directory| {
        let file = reader(directory, path)?;
        let streamed = file
            .write_via_stream(0)
            .and_then(|stream| stream.blocking_write_and_flush(RAIDED).map_err(|_| ErrorCode::Io));
        let appended = file
            .append_via_stream()
            .and_then(|stream| stream.blocking_write_and_flush(RAIDED).map_err(|_| ErrorCode::Io));
        some([
            ("write", file.write(RAIDED, 0).map(drop)),
            ("write-via-stream", streamed),
            ("append-via-stream", appended),
            ("set-size", file.set_size(0)),
        ])
    })
}

/// Creates a file, and a directory beside it.
pub(crate) fn create(path: &str) -> Outcome {
    everywhere(|directory| {
        let how = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let written = directory.open_at(PathFlags::empty(), path, how, DescriptorFlags::WRITE).map(drop);
        let made = directory.create_directory_at(&format!("{path}.d"));
        some([("file", written), ("directory", made)])
    })
}

/// Empties a file that it opens to read.
pub(crate) fn truncate(path: &str) -> Outcome {
    everywhere(|directory| {
        let file = directory.open_at(FOLLOW, path, OpenFlags::TRUNCATE, DescriptorFlags::READ).map_err(text)?;
        Ok(format!("{} bytes are left", file.stat().map_err(text)?.size))
    })
}

/// Makes a file as large as the first line says, without writing.
pub(crate) fn set_size(argument: &str) -> Outcome {
    let (size, path) = number(argument)?;
    everywhere(|directory| {
        let file = writer(directory, path)?;
        file.set_size(size).map_err(text)?;
        Ok(format!("{} bytes", file.stat().map_err(text)?.size))
    })
}

/// Writes at the place that the first line says.
pub(crate) fn sparse(argument: &str) -> Outcome {
    let (offset, path) = number(argument)?;
    everywhere(|directory| {
        let file = writer(directory, path)?;
        file.write(RAIDED, offset).map_err(text)?;
        Ok(format!("{} bytes", file.stat().map_err(text)?.size))
    })
}

/// Appends as many bytes as the first line says.
pub(crate) fn fill(argument: &str) -> Outcome {
    let (count, path) = number(argument)?;
    everywhere(|directory| {
        let file = writer(directory, path)?;
        let stream = file.append_via_stream().map_err(text)?;
        let mut written = 0;
        while written < count {
            let chunk = vec![b'x'; usize::try_from(count - written).map_or(4_096, |left| left.min(4_096))];
            match stream.blocking_write_and_flush(&chunk) {
                Ok(()) => written += chunk.len() as u64,
                Err(error) => return Err(format!("{written} bytes, then {}", reason(error))),
            }
        }
        Ok(format!("{written} bytes"))
    })
}

/// Opens a file as often as the first line says, and keeps all of it open.
pub(crate) fn descriptors(argument: &str) -> Outcome {
    let (count, path) = number(argument)?;
    everywhere(|directory| {
        let mut kept = Vec::new();
        for _ in 0..count {
            kept.push(reader(directory, path).map_err(|error| format!("{} open, then {error}", kept.len()))?);
        }
        Ok(format!("{} open", kept.len()))
    })
}

/// Counts the entries of a directory.
pub(crate) fn listing(path: &str) -> Outcome {
    everywhere(|directory| {
        let entries = reader(directory, path)?.read_directory().map_err(text)?;
        let mut count = 0;
        while entries
            .read_directory_entry()
            .map_err(|error| format!("{count} entries, then {}", error.name()))?
            .is_some()
        {
            count += 1;
        }
        Ok(format!("{count} entries"))
    })
}

/// Begins to list a directory as often as the first line says, and reads nothing of it.
pub(crate) fn listings(argument: &str) -> Outcome {
    let (count, path) = number(argument)?;
    everywhere(|directory| {
        let listed = reader(directory, path)?;
        let mut kept = Vec::new();
        for _ in 0..count {
            kept.push(listed.read_directory().map_err(|error| format!("{} begun, then {}", kept.len(), error.name()))?);
        }
        Ok(format!("{} begun", kept.len()))
    })
}

/// Reads a file of 4 MiB that it writes, as often at one time as the first line says.
pub(crate) fn streams(argument: &str) -> Outcome {
    let (count, path) = number(argument)?;
    everywhere(|directory| {
        let file = writer(directory, path)?;
        file.set_size(4 << 20).map_err(text)?;
        let mut kept = Vec::new();
        for _ in 0..count {
            let stream =
                file.read_via_stream(0).map_err(|error| format!("{} streams, then {}", kept.len(), error.name()))?;
            stream.blocking_read(1).map_err(reason)?;
            kept.push(stream);
        }
        Ok(format!("{} streams", kept.len()))
    })
}

/// Asks for what tells two files apart, though they cannot be opened.
pub(crate) fn metadata_hash(path: &str) -> Outcome {
    everywhere(|directory| {
        let followed = directory.metadata_hash_at(FOLLOW, path).map(drop);
        let itself = directory.metadata_hash_at(PathFlags::empty(), path).map(drop);
        some([("followed", followed), ("itself", itself)])
    })
}

/// Makes the host write what it has to disk, and read ahead.
pub(crate) fn sync(path: &str) -> Outcome {
    everywhere(|directory| {
        let file = reader(directory, path)?;
        some([
            ("directory", directory.sync()),
            ("sync", file.sync()),
            ("sync-data", file.sync_data()),
            ("advise", file.advise(0, 1 << 40, Advice::WillNeed)),
        ])
    })
}

/// Tries an attack in every directory. It failed if it did in all of them.
fn everywhere(attack: impl Fn(&Descriptor) -> Outcome) -> Outcome {
    let directories = get_directories();
    let outcomes = directories.iter().map(|(directory, name)| (name.clone(), attack(directory)));
    summed_up(outcomes.collect())
}

/// Tries an attack from every directory to every directory.
fn between(attack: impl Fn(&Descriptor, &Descriptor) -> Outcome) -> Outcome {
    let directories = get_directories();
    let mut outcomes = Vec::new();
    for (from, from_name) in &directories {
        for (to, to_name) in &directories {
            outcomes.push((format!("{from_name} to {to_name}"), attack(from, to)));
        }
    }
    summed_up(outcomes)
}

fn summed_up(outcomes: Vec<(String, Outcome)>) -> Outcome {
    let is_success = outcomes.iter().any(|(_, outcome)| outcome.is_ok());
    let lines = outcomes.into_iter().map(|(name, outcome)| match outcome {
        Ok(text) => format!("{name}: {text}"),
        Err(error) => format!("{name}: refused: {error}"),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        return Err("no directory is open".into());
    }
    if is_success { Ok(text) } else { Err(text) }
}

/// Says which of several ways worked. It failed if none did.
fn some<const N: usize>(ways: [(&str, Result<(), ErrorCode>); N]) -> Outcome {
    let is_success = ways.iter().any(|(_, result)| result.is_ok());
    let text = ways.map(|(way, result)| format!("{way} {}", result.map_or_else(text, |()| "worked".into()))).join(", ");
    if is_success { Ok(text) } else { Err(text) }
}

fn reader(directory: &Descriptor, path: &str) -> Result<Descriptor, String> {
    directory.open_at(FOLLOW, path, OpenFlags::empty(), DescriptorFlags::READ).map_err(text)
}

fn writer(directory: &Descriptor, path: &str) -> Result<Descriptor, String> {
    directory.open_at(FOLLOW, path, OpenFlags::CREATE, DescriptorFlags::WRITE).map_err(text)
}

/// Kind and beginning of what was opened.
fn content(file: &Descriptor) -> String {
    let kind = file.get_type().map_or_else(text, |kind| format!("{kind:?}"));
    match file.read(64, 0) {
        Ok((bytes, _)) => format!("{kind} {:?}", String::from_utf8_lossy(&bytes)),
        Err(error) => format!("{kind}, read: {}", error.name()),
    }
}

fn text(error: ErrorCode) -> String {
    error.name().into()
}

fn reason(error: StreamError) -> String {
    match error {
        StreamError::Closed => "closed".into(),
        StreamError::LastOperationFailed(error) => error.to_debug_string(),
    }
}
