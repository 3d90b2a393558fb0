//! E-05: the host was started with variables that make interpreters, compilers and build tools load and run code.
//! Outcome: no command gets one under any name.
//! Switched off: the filter on names (`backend/environment.rs`, `build`): every test of this file failed.

use crate::environment::find;

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "NODE_OPTIONS", "NODE_PATH", "NPM_CONFIG_SCRIPT_SHELL", "npm_config_registry", "PYTHONSTARTUP", "PYTHONPATH",
    "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONWARNINGS", "PERL5OPT", "PERL5LIB", "PERL5DB",
    "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS",
    "LUA_INIT", "LUA_INIT_5_4", "R_PROFILE", "R_PROFILE_USER", "PHPRC", "PHP_INI_SCAN_DIR", "RUSTC_WRAPPER",
    "CARGO_HOME", "CARGO_BUILD_RUSTC_WRAPPER", "RUSTFLAGS", "GOFLAGS", "GOENV", "GOPROXY", "CC", "CXX", "MAKEFLAGS",
    "MAKEFILES", "CMAKE_TOOLCHAIN_FILE", "CMAKE_GENERATOR", "DOTNET_STARTUP_HOOKS", "COR_PROFILER",
    "COR_PROFILER_PATH", "CORECLR_PROFILER", "CORECLR_PROFILER_PATH", "ERL_AFLAGS", "OPENSSL_CONF",
    "OPENSSL_ENGINES", "SSLKEYLOGFILE", "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
];

#[test]
fn no_hook_of_a_language_reaches_a_command() {
    find(NAMES, "perl -e 1; make --version > /dev/null 2> /dev/null").assert_none_of(NAMES);
}
