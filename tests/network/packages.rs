//! A git repository and registries of three languages, as files that a plain web server hands out, and how programs fetch from them.
#![expect(clippy::disallowed_methods, reason = "programs make what is served")]

use crate::web::answer;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is served, by the paths of files below a directory.
pub(crate) struct Served(PathBuf);

/// Makes it; `$1` is the directory.
const MAKE: &str = r#"set -e
mkdir -p "$1" && cd "$1"
mkdir work && cd work && git init -q -b main . && echo cloned >file.txt && git add . \
    && git -c user.name=t -c user.email=t@t commit -qm first && cd ..
git clone -q --bare work repository.git && (cd repository.git && git update-server-info) && rm -r work
mkdir -p npm/small package && echo '{"name":"small","version":"1.0.0","main":"index.js"}' >package/package.json
echo 'module.exports = "from npm";' >package/index.js && tar czf npm/small/small-1.0.0.tgz package && rm -r package
sum=$(openssl dgst -sha512 -binary npm/small/small-1.0.0.tgz | base64 -w0)
printf '{"name":"small","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"small","version":"1.0.0","main":"index.js","dist":{"tarball":"http://packages.test/npm/small/small-1.0.0.tgz","integrity":"sha512-%s"}}}}' "$sum" >npm/small.json
mkdir -p pip/small small-1.0.dist-info && echo 'said = "from pip"' >small.py
printf 'Metadata-Version: 2.1\nName: small\nVersion: 1.0\n' >small-1.0.dist-info/METADATA
printf 'Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n' >small-1.0.dist-info/WHEEL
printf 'small.py,,\nsmall-1.0.dist-info/METADATA,,\nsmall-1.0.dist-info/WHEEL,,\nsmall-1.0.dist-info/RECORD,,\n' >small-1.0.dist-info/RECORD
python3 -c 'import zipfile, glob; z = zipfile.ZipFile("pip/small/small-1.0-py3-none-any.whl", "w"); [z.write(f) for f in ["small.py", *glob.glob("small-1.0.dist-info/*")]]'
rm -r small.py small-1.0.dist-info
echo '<a href="small-1.0-py3-none-any.whl">small-1.0-py3-none-any.whl</a>' >pip/small/index.html
mkdir -p cargo/sm/al cargo/crates small-1.0.0/src && echo 'pub const SAID: &str = "from cargo";' >small-1.0.0/src/lib.rs
printf '[package]\nname = "small"\nversion = "1.0.0"\nedition = "2021"\n' >small-1.0.0/Cargo.toml
tar czf cargo/crates/small-1.0.0.crate small-1.0.0 && rm -r small-1.0.0
echo '{"dl":"http://packages.test/cargo/crates/{crate}-{version}.crate"}' >cargo/config.json
printf '{"name":"small","vers":"1.0.0","deps":[],"cksum":"%s","features":{},"yanked":false}\n' "$(sha256sum cargo/crates/small-1.0.0.crate | cut -d' ' -f1)" >cargo/sm/al/small
"#;

/// A project that needs them.
pub(crate) const PROJECT: [(&str, &str); 3] = [
    (
        "rust/Cargo.toml",
        "[package]\nname = \"project\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\nsmall = { version = \"1\", registry = \"test\" }\n",
    ),
    ("rust/src/main.rs", "fn main() {\n    println!(\"{}\", small::SAID);\n}\n"),
    ("rust/.cargo/config.toml", "[registries.test]\nindex = \"sparse+http://packages.test/cargo/\"\n"),
];

/// What is fetched, how, and what the program that uses it says; [`toolchain`] stands for where the toolchain's programs are.
pub(crate) const FETCHES: [(&str, &str, &str); 4] = [
    ("git", "git clone -q http://packages.test/repository.git && cat repository/file.txt", "cloned"),
    (
        "npm",
        "mkdir node && (cd node && npm install --registry http://packages.test/npm/ \
         --no-audit --no-fund small >log 2>&1 && node -e 'console.log(require(\"small\"))') || (cat node/log; false)",
        "from npm",
    ),
    (
        "pip",
        "python=$(python3 -c 'import sys; print(sys.executable)'); $python -m pip install -q --disable-pip-version-check --trusted-host packages.test \
         --index-url http://packages.test/pip/ --target lib small && PYTHONPATH=lib $python -c 'import small; print(small.said)'",
        "from pip",
    ),
    ("cargo", "(cd rust && export PATH=TOOLCHAIN:$PATH && cargo fetch -q && cargo run -q --offline)", "from cargo"),
];

/// A script with the directory of the toolchain: a wrapper would look for it in the home.
pub(crate) fn toolchain(script: &str) -> String {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().expect("a toolchain");
    let root = String::from_utf8(output.stdout).expect("a path");
    script.replace("TOOLCHAIN", &format!("{}/bin", root.trim()))
}

/// Makes all of it below a directory.
pub(crate) fn make(directory: &Path) -> Served {
    let output = Command::new("sh").args(["-c", MAKE, "sh"]).arg(directory).output().expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Served(directory.to_owned())
}

impl Served {
    /// The answer to a request for a path.
    pub(crate) fn answer(&self, target: &str) -> Vec<u8> {
        let path = target.split('?').next().unwrap_or_default().trim_start_matches('/');
        let file = self.0.join(path);
        let tried = [file.clone(), file.join("index.html"), file.with_extension("json")];
        match tried.iter().filter(|file| file.is_file()).find_map(|file| std::fs::read(file).ok()) {
            Some(bytes) => {
                let kind = if path.starts_with("pip") && !path.ends_with(".whl") {
                    "text/html"
                } else {
                    "application/octet-stream"
                };
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", bytes.len());
                [head.into_bytes(), bytes].concat()
            }
            None => answer("404 Not Found", &[], "there is no such file"),
        }
    }
}
