//! Whether objects are what their names say.
//!
//! Git compares that when it gets an object, and believes the name of one that it has. Under the name of an object that the person is still to
//! fetch, a command could leave other bytes: their next `git pull` would check those out, and `git status` would show no change.

use gix_hash::{Kind, ObjectId};
use gix_odb::pack::cache::Never;
use gix_odb::pack::data::File as Pack;
use gix_odb::pack::index::File as Index;
use gix_odb::pack::index::traverse::Algorithm;
use gix_odb::pack::index::verify::{Mode, PackContext, integrity};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Bytes of one object, at most: of a loose one, which is hashed piece by piece, and of one in a pack, which is taken into memory.
const MOST_LOOSE: u64 = 4 << 30;
const MOST_PACKED: usize = 512 << 20;
const PIECE: usize = 64 << 10;

/// Checks a loose object.
pub(crate) fn loose(file: &mut File, name: ObjectId) -> io::Result<()> {
    file.rewind()?;
    let mut inflated = flate2::read::ZlibDecoder::new(file).take(MOST_LOOSE);
    let (mut hasher, mut piece) = (gix_hash::hasher(Kind::Sha1), vec![0; PIECE]);
    loop {
        match inflated.read(&mut piece)? {
            0 => break,
            length => hasher.update(&piece[..length]),
        }
    }
    match hasher.try_finalize() {
        Ok(found) if found == name => Ok(()),
        Ok(_) | Err(_) => Err(odd(format!("the object is not `{name}`"))),
    }
}

/// Checks a pack against the bytes of its index.
pub(crate) fn pack(pack: &Path, index: &[u8]) -> io::Result<()> {
    let checked = || -> Result<(), gix_error::Error> {
        // From memory: what is mapped from a file that commands may cut off would end this program.
        let index = Index::from_data(index.to_vec(), PathBuf::new(), Kind::Sha1)?;
        let pack = Pack::at(pack, Kind::Sha1)?.with_alloc_limit_bytes(Some(MOST_PACKED));
        let options = integrity::Options {
            verify_mode: Mode::HashCrc32,
            traversal: Algorithm::DeltaTreeLookup,
            thread_limit: None,
            make_pack_lookup_cache: || Never,
        };
        let context = PackContext { data: &pack, options };
        index.verify_integrity(Some(context), &mut prodash::progress::Discard, &AtomicBool::new(false)).map(drop)
    };
    // What the library did not foresee is not right either.
    match catch_unwind(AssertUnwindSafe(checked)) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(odd(format!("the pack is not what its index says: {error}"))),
        Err(_) => Err(odd("the pack cannot be read".into())),
    }
}

fn odd(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
