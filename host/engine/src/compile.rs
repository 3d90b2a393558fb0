//! Compiling: in this process for the components of this binary, in a child with limits for everybody else's.
//!
//! A component can be made so that compiling it takes hours or all memory; then it costs one child and an error. The child is this program
//! again (`toolcrib compile`), gets the very bytes that were read as its standard input, and answers with code on its standard output.

use backend::{Process, ProcessEvent, local};
use base::text::sanitize;
use config::Limits;
use futures_util::future::BoxFuture;
use rustix::process::{Resource, Rlimit};
use rustix::time::{ClockId, clock_gettime};
use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wasmtime::error::OutOfMemory;

/// Native code is larger than the component, but not by this much.
const CODE_BYTES_A_COMPONENT_BYTE: usize = 64;
/// What is there of any component, however small.
const CODE_BYTES_OF_ANY: usize = 1 << 20;
/// What a child may say of its failure, in bytes.
const COMPLAINT_BYTES: usize = 4 << 10;
/// How a child ends that met its limit on CPU time, or on memory.
const OVER_CPU: i32 = 3;
const OVER_MEMORY: i32 = 4;
/// How often a child looks at its CPU time.
const CPU_LOOK: Duration = Duration::from_millis(20);
const FAILED_ON_IT: &str = "the compiler failed on it";
const WATCH_STACK: usize = 64 << 10;
/// What an allocation that fails says before it ends the process; nothing can catch it.
const NO_MEMORY: &[u8] = b"memory allocation of";

/// Where components of others are compiled.
pub enum Compiler {
    /// In this process: for embedders that trust what they load.
    Here,
    /// By this program, which answers to `compile` as Toolcrib does.
    Child(PathBuf),
}

/// Why there is no code.
pub enum CompileError {
    /// The component is at fault, and would be again.
    Component(String),
    /// The next attempt may go well: the child could not be started, was killed, or met a limit on a busy machine.
    Passing(String),
}

/// Compiles in a child; an error says what was wrong or which limit was met.
pub fn in_child<'a>(
    program: &'a Path,
    component: &'a [u8],
    limits: &'a Limits,
) -> BoxFuture<'a, Result<Vec<u8>, CompileError>> {
    Box::pin(async move {
        let failed = |error: io::Error| CompileError::Passing(format!("it could not be compiled: {error}"));
        let argv = [
            program.into(),
            "compile".into(),
            number("--cpu-ms", limits.compile_ms),
            number("--memory-mib", limits.compile_mib),
        ];
        let input = input(component).map_err(failed)?;
        let mut process = local::start_helper(&argv, input).map_err(failed)?;
        // A child that is stopped or starved uses no CPU time; waiting for it has a bound of its own.
        // Four times the CPU time leaves room for a busy machine.
        let patience = Duration::from_millis(limits.compile_ms.saturating_mul(4));
        match tokio::time::timeout(patience, follow(&mut *process, component.len())).await {
            Ok(outcome) => outcome.map_err(failed)?,
            Err(_) => {
                process.end().await;
                Err(Ended::Starved(patience))
            }
        }
        .map_err(|ended| match ended {
            Ended::Complained(complaint) => CompileError::Component(complaint),
            // The machine may be busy: the next attempt may take less.
            Ended::OverCpu => {
                CompileError::Passing(over(format_args!("{} ms of CPU time", limits.compile_ms), "compile_ms"))
            }
            Ended::OverMemory => {
                CompileError::Passing(over(format_args!("{} MiB of memory", limits.compile_mib), "compile_mib"))
            }
            Ended::Starved(patience) => CompileError::Passing(format!(
                "compiling it did not end within {} s, four times `limits.compile_ms`: this machine is busy",
                patience.as_secs()
            )),
            Ended::Killed => CompileError::Passing("the process that compiled it was killed".into()),
        })
    })
}

/// How a child ended that gave no code.
enum Ended {
    Complained(String),
    OverCpu,
    OverMemory,
    Starved(Duration),
    /// By somebody else: its own limits say which they are.
    Killed,
}

fn number(option: &str, value: u64) -> OsString {
    format!("{option}={value}").into()
}

fn over(most: fmt::Arguments<'_>, setting: &str) -> String {
    format!("compiling it takes more than {most} (limit: `limits.{setting}`)")
}

/// The bytes as a file without a name.
fn input(component: &[u8]) -> io::Result<rustix::fd::OwnedFd> {
    // Not a pipe: nobody has to feed the child while its output is read.
    let mut file = tempfile::tempfile()?;
    file.write_all(component)?;
    file.rewind()?;
    Ok(file.into())
}

async fn follow(process: &mut dyn Process, component_bytes: usize) -> io::Result<Result<Vec<u8>, Ended>> {
    let most = component_bytes.saturating_mul(CODE_BYTES_A_COMPONENT_BYTE).saturating_add(CODE_BYTES_OF_ANY);
    let (mut code, mut complaint) = (Vec::new(), Vec::new());
    loop {
        match process.next().await? {
            ProcessEvent::Stdout(bytes) if code.len() + bytes.len() <= most => code.extend(bytes),
            ProcessEvent::Stdout(_) => {
                return Ok(Err(Ended::Complained("its native code is too large for a component of its size".into())));
            }
            ProcessEvent::Stderr(bytes) if complaint.len() < COMPLAINT_BYTES => complaint.extend(bytes),
            ProcessEvent::Stderr(_) => {}
            ProcessEvent::Exited(0) => return Ok(Ok(code)),
            ProcessEvent::Exited(OVER_CPU) => return Ok(Err(Ended::OverCpu)),
            ProcessEvent::Exited(OVER_MEMORY) => return Ok(Err(Ended::OverMemory)),
            ProcessEvent::Exited(-1) if complaint.starts_with(NO_MEMORY) => return Ok(Err(Ended::OverMemory)),
            ProcessEvent::Exited(_) if complaint.is_empty() => return Ok(Err(Ended::Killed)),
            ProcessEvent::Exited(-1) => return Ok(Err(Ended::Killed)),
            ProcessEvent::Exited(_) => {
                let complaint = sanitize::line(String::from_utf8_lossy(&complaint).trim()).into_owned();
                return Ok(Err(Ended::Complained(complaint)));
            }
        }
    }
}

/// Has wasmtime take a component. It panics on some that it ought to refuse, such as those whose adapters it writes itself and then finds
/// invalid: that is an error of the component, too.
pub fn unpanicked<T>(work: impl FnOnce() -> wasmtime::Result<T>) -> wasmtime::Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(wasmtime::Error::msg(format!("{FAILED_ON_IT}: {}", panic_text(&*panic)))))
}

/// What a panic said.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// The child's side: limits itself, then compiles standard input to standard output.
///
/// # Errors
///
/// What is wrong with the component.
pub fn serve(cpu_ms: u64, memory_mib: u64) -> Result<(), String> {
    // The kernel counts this limit in whole seconds, and ends the process without a word: it is for the case that the watch below fails.
    limit(Resource::Cpu, cpu_ms.div_ceil(1000) + 1).map_err(|error| error.to_string())?;
    // Address space, since Linux enforces no limit on resident memory.
    limit(Resource::As, memory_mib << 20).map_err(|error| error.to_string())?;
    limit(Resource::Core, 0).map_err(|error| error.to_string())?;
    // A compiler thread that fails must not leave the others at work.
    std::panic::set_hook(Box::new(|panic| {
        let fault = panic.payload_as_str().unwrap_or("no message");
        if fault.contains("out-of-memory") {
            std::process::exit(OVER_MEMORY);
        }
        let _ = writeln!(io::stderr(), "{FAILED_ON_IT}: {fault}");
        std::process::exit(1);
    }));
    watch_cpu(Duration::from_millis(cpu_ms)).map_err(|error| error.to_string())?;
    let mut component = Vec::new();
    io::stdin().read_to_end(&mut component).map_err(|error| error.to_string())?;
    let engine = crate::compiler().map_err(|error| format!("{error:#}"))?;
    let code = engine.precompile_component(&component).map_err(|error| {
        if error.is::<OutOfMemory>() {
            std::process::exit(OVER_MEMORY);
        }
        format!("{error:#}")
    })?;
    io::stdout().write_all(&code).map_err(|error| error.to_string())
}

/// Ends this process, with a status that says so, when it has used this much CPU time.
fn watch_cpu(most: Duration) -> io::Result<()> {
    let watch = move || loop {
        if Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).is_ok_and(|used| used > most) {
            std::process::exit(OVER_CPU);
        }
        std::thread::sleep(CPU_LOOK);
    };
    std::thread::Builder::new().stack_size(WATCH_STACK).spawn(watch).map(drop)
}

fn limit(resource: Resource, most: u64) -> rustix::io::Result<()> {
    rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
}
