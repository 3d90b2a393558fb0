//! Names of tools and plugins: which are valid, and which read alike.

/// 1 to 64 of `A-Za-z0-9_-`: what every model API takes as a tool's name.
pub fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Characters that look alike in one typeface or another, each with what stands for all of them.
const LOOK_ALIKE: [(&str, &str); 16] = [
    ("I", "l"),
    ("1", "l"),
    ("O", "o"),
    ("0", "o"),
    ("5", "s"),
    ("2", "z"),
    ("Z", "z"),
    ("8", "b"),
    ("B", "b"),
    ("9", "g"),
    ("rn", "m"),
    ("vv", "w"),
    ("VV", "w"),
    ("cl", "d"),
    ("-", "_"),
    ("__", "_"),
];

/// Names that a person or a model takes for the same are the same: `run_sheIl`, `tirne`, `Read-File`.
pub fn folded(name: &str) -> String {
    let mut folded = name.to_owned();
    for (seen, meant) in LOOK_ALIKE {
        // Taking one pair away can leave another.
        while folded.contains(seen) {
            folded = folded.replace(seen, meant);
        }
    }
    // `I` is an `i` to whoever reads by letters, and an `l` to whoever reads by shapes.
    folded.to_ascii_lowercase().replace('i', "l").trim_matches('_').to_owned()
}

/// Which of these names was probably meant; none where all are far from it.
#[must_use]
pub fn nearest<'n>(meant: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let meant = folded(meant);
    let near = names.into_iter().filter(|name| is_slip(&folded(name), &meant));
    let scored = near.map(|name| (strsim::jaro_winkler(&folded(name), &meant), name));
    scored.filter(|(score, _)| *score > 0.75).max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
}

/// Whether one name may be a slip of the other: at most a third of its characters differ. A beginning that both have is not enough.
pub fn is_slip(one: &str, other: &str) -> bool {
    strsim::damerau_levenshtein(one, other) * 3 <= one.chars().count().max(other.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_fold_to_one() {
        for (name, look_alikes) in [
            ("run_shell", &["run_sheIl", "run_shelI", "run_she1l", "RUN-SHELL", "run__shell", "run_shell_"][..]),
            ("time", &["tirne", "tlme", "t1me", "TIME", "Tirne"]),
            ("web_search", &["vveb_search", "VVeb_search", "web-search"]),
            ("read_file", &["reacl_file", "read_fiIe", "read_f1le"]),
            ("tool0", &["toolO", "too1o", "tOol0"]),
        ] {
            for other in look_alikes {
                assert_eq!(folded(other), folded(name), "{other}");
            }
        }
    }

    #[test]
    fn what_is_far_off_was_not_meant() {
        let names = ["note_pin", "time", "read_file", "run_shell", "web_search"];
        for (meant, near) in
            [("tmie", "time"), ("runshell", "run_shell"), ("read_fil", "read_file"), ("websearch", "web_search")]
        {
            assert_eq!(nearest(meant, names), Some(near), "{meant}");
        }
        for meant in ["nope", "note", "read", "shell", "x"] {
            assert_eq!(nearest(meant, names), None, "{meant}");
        }
    }

    #[test]
    fn names_that_differ_stay_apart() {
        let names =
            ["run_shell", "time", "timer", "read_file", "readfile", "write_file", "fetch_url", "dear", "c", "r"];
        let folded: std::collections::HashSet<_> = names.map(folded).into();
        assert_eq!(folded.len(), names.len());
    }
}
