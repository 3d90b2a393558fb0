//! `visitor`: reads and changes files through the standard library, which knows only the directories that the host opened for it.
#![cfg(target_arch = "wasm32")]
#![expect(missing_docs, unsafe_code, reason = "what the bindings are made of")]

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

wit_bindgen::generate!({ world: "visitor" });

struct Visitor;

impl Guest for Visitor {
    fn list_directory(path: String) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        for entry in fs::read_dir(path).map_err(text)? {
            let entry = entry.map_err(text)?;
            let is_directory = entry.file_type().map_err(text)?.is_dir();
            let kind = if is_directory { "DIR" } else { "FILE" };
            lines.push(format!("[{kind}] {}", entry.file_name().to_string_lossy()));
        }
        lines.sort();
        Ok(lines)
    }

    fn read_file(path: String) -> Result<String, String> {
        fs::read_to_string(path).map_err(text)
    }

    fn search_file(path: String, pattern: String) -> Result<String, String> {
        let mut found = Vec::new();
        search(Path::new(&path), &pattern, &mut found).map_err(text)?;
        found.sort();
        Ok(found.join("\n"))
    }

    fn get_file_info(path: String) -> Result<String, String> {
        let metadata = fs::metadata(path).map_err(text)?;
        let kind = if metadata.is_dir() { "directory" } else { "file" };
        let changed = metadata.modified().map_err(text)?;
        let seconds = changed.duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?.as_secs();
        Ok(format!("kind: {kind}\nsize: {}\nmodified: {seconds}", metadata.len()))
    }

    fn write_file(path: String, content: String) -> Result<(), String> {
        fs::write(path, content).map_err(text)
    }

    fn remove_file(path: String) -> Result<(), String> {
        fs::remove_file(path).map_err(text)
    }

    fn move_path(source: String, destination: String) -> Result<(), String> {
        fs::rename(source, destination).map_err(text)
    }

    fn make_directory(path: String) -> Result<(), String> {
        fs::create_dir(path).map_err(text)
    }
}

/// Adds the paths below a directory whose names contain the pattern. Symbolic links are not followed.
fn search(directory: &Path, pattern: &str, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().contains(pattern) {
            found.push(entry.path().display().to_string());
        }
        if entry.file_type()?.is_dir() {
            search(&entry.path(), pattern, found)?;
        }
    }
    Ok(())
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

export!(Visitor);
