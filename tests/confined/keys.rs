//! Keys and passwords of the person's, used by commands in cells: a person is asked about each use, and nothing else gets out.

use crate::git::{git, repository};
use crate::git_remotes::{HOST, Sshd, bare, reaching};
use crate::rig::{BOTH, REQUIRED, Via, word};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use toolcrib_tests::mcp::{Client, Era, decides, envelope, forms};
use toolcrib_tests::shell::command;
use toolcrib_tests::{Program, eventually, skip, write_program};

const ONCE: &str = "allow once";
const SESSION: &str = "allow for this session";
const NO: &str = "deny";
/// What an agent's socket in a cell cannot be told by ssh-add: that is sent by hand. The answer's kind is printed.
const SENDS: &str = "import os,socket,struct,sys; s=socket.socket(socket.AF_UNIX); s.connect(os.environ['SSH_AUTH_SOCK']); \
    m=bytes.fromhex(sys.argv[1]); s.sendall(struct.pack('>I',len(m))+m); print(s.recv(5)[4])";

/// The person's own programs: an ssh-agent and gpg in the home.
struct Person {
    program: Arc<Program>,
    agent: Option<Child>,
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.outside("gpgconf", &["--kill", "all"]);
        if let Some(agent) = &mut self.agent {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

impl Person {
    fn new(program: Program) -> Self {
        Self { program: Arc::new(program), agent: None }
    }

    fn home(&self, name: &str) -> PathBuf {
        self.program.path("home").canonicalize().expect("a directory").join(name)
    }

    fn socket(&self) -> PathBuf {
        self.program.path("agent")
    }

    #[expect(clippy::disallowed_methods, reason = "the person's own programs")]
    fn outside(&self, name: &str, words: &[&str]) -> Output {
        let mut own = Command::new(name);
        own.args(words).env("HOME", self.home("")).env("SSH_AUTH_SOCK", self.socket()).stdin(Stdio::null());
        own.current_dir(self.program.path("work")).output().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn succeeds(&self, name: &str, words: &[&str]) -> String {
        let output = self.outside(name, words);
        assert!(output.status.success(), "{name} {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Has an ssh-agent with a key, whose public part is in the home.
    #[expect(clippy::disallowed_methods, reason = "the person's own agent")]
    fn with_ssh(mut self) -> Self {
        let mut agent = Command::new("ssh-agent");
        agent.args(["-D", "-a"]).arg(self.socket()).stdout(Stdio::null());
        self.agent = Some(agent.spawn().expect("ssh-agent"));
        eventually("the agent listens", || self.socket().exists());
        let key = self.home(".ssh/mine");
        self.succeeds(
            "ssh-keygen",
            &["-q", "-t", "ed25519", "-N", "", "-C", "me@desk", "-f", key.to_str().expect("text")],
        );
        self.succeeds("ssh-add", &["-q", key.to_str().expect("text")]);
        self
    }

    /// Has a key of gpg.
    fn with_gpg(self) -> Self {
        fs::create_dir(self.home(".gnupg")).expect("a directory");
        fs::set_permissions(self.home(".gnupg"), Permissions::from_mode(0o700)).expect("a mode");
        let key = [
            "--batch",
            "-q",
            "--passphrase",
            "",
            "--quick-generate-key",
            "p <p@example.org>",
            "ed25519",
            "sign",
            "never",
        ];
        self.succeeds("gpg", &key);
        self
    }

    /// Settings of git of the person's.
    fn sets(self, settings: &[(&str, &str)]) -> Self {
        for (key, value) in settings {
            self.succeeds("git", &["config", "--global", key, value]);
        }
        self
    }

    fn serve(&self, settings: &[&str]) -> Client {
        self.serve_to(settings, forms())
    }

    fn serve_to(&self, settings: &[&str], can: Value) -> Client {
        let set = [REQUIRED, "tools.shell_confirm=false"].iter().chain(settings).flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = set.chain(["serve"]).collect();
        let mut server = self.program.command(&arguments);
        if self.agent.is_some() {
            server.env("SSH_AUTH_SOCK", self.socket());
        }
        let mut client = Client::start(&mut server, self.program.clone(), Era::Legacy, can);
        client.shake_hands();
        client
    }
}

/// Runs a command about which nobody is asked.
fn run(client: &mut Client, text: &str) -> Value {
    let result = client.call("run_shell", command(text));
    envelope(&result)["result"].take()
}

/// Runs a command about whose keys somebody is asked; returns the questions, and what came of it.
fn asked(client: &mut Client, text: &str, answers: &[&str]) -> (Vec<String>, Value) {
    let arguments = command(text);
    let call = client.begin("run_shell", arguments.clone());
    let mut words = Vec::new();
    for answer in answers {
        let question = client.question(call, "run_shell", &arguments);
        words.push(question.words().to_owned());
        client.reply(&question, decides(answer));
    }
    let result = client.result(call);
    (words, envelope(&result)["result"].take())
}

fn status(result: &Value) -> i64 {
    result["exit_code"].as_i64().unwrap_or_else(|| panic!("no status: {result}"))
}

#[track_caller]
fn assert_says(words: &str, parts: &[&str]) {
    for part in parts {
        assert!(words.contains(part), "`{part}` is not in: {words}");
    }
}

/// A repository whose person signs with a key of ssh.
fn signing_by_ssh(via: Via) -> Person {
    let person = Person::new(repository(via)).with_ssh();
    let public = person.home(".ssh/mine.pub").display().to_string();
    let allowed = person.home("allowed").display().to_string();
    let key = fs::read_to_string(&public).expect("a key");
    fs::write(&allowed, format!("p@example.org {key}")).expect("written");
    let settings = [("gpg.format", "ssh"), ("user.signingkey", &*public), ("commit.gpgsign", "true")];
    person.sets(&settings).sets(&[("gpg.ssh.allowedSignersFile", &allowed)])
}

#[test]
fn a_commit_is_signed_by_the_ssh_agent_where_a_person_allows_it() {
    for via in BOTH {
        let person = signing_by_ssh(via);
        let fingerprint = person.succeeds("ssh-add", &["-l"]);
        let fingerprint = fingerprint.split(' ').nth(1).expect("a fingerprint").to_owned();
        let mut client = person.serve(&[]);
        let commit = |subject: &str| format!("echo {subject} >f; git commit -q -a -m {subject}");
        let (words, result) = asked(&mut client, &commit("second"), &[ONCE]);
        assert_eq!(status(&result), 0, "{via:?} {result}");
        assert_says(&words[0], &["sign a commit or tag of git", "me@desk", &fingerprint, "use a key of yours"]);
        person.succeeds("git", &["verify-commit", "HEAD"]);
        assert_eq!(person.succeeds("git", &["log", "-1", "--format=%s"]), "second\n");
        // It was about that one.
        let (_, result) = asked(&mut client, &commit("third"), &[NO]);
        assert_ne!(status(&result), 0, "{via:?} {result}");
        assert_says(&result["notices"].to_string(), &["Signature denied by user."]);
        assert_eq!(person.succeeds("git", &["log", "-1", "--format=%s"]), "second\n");
        let (_, result) = asked(&mut client, &commit("fourth"), &[SESSION]);
        assert_eq!(status(&result), 0, "{via:?} {result}");
        let result = run(&mut client, &commit("fifth"));
        assert_eq!(status(&result), 0, "{via:?} {result}");
        person.succeeds("git", &["verify-commit", "HEAD"]);
        // The yes was about git.
        let other = "echo x >x; ssh-keygen -Y sign -n file -f ~/.ssh/mine.pub x";
        let (words, result) = asked(&mut client, other, &[NO]);
        assert_says(&words[0], &["sign something for `file`"]);
        assert_ne!(status(&result), 0, "{via:?} {result}");
        let trail = fs::read_to_string(person.program.path("state/toolcrib/audit.jsonl")).expect("a trail");
        assert_says(&trail, &["sign a commit or tag of git", "denied by", "sign something for `file`"]);
    }
}

#[test]
fn the_agent_signs_what_it_can_read_and_is_not_changed() {
    let person = signing_by_ssh(Via::Process);
    let before = person.succeeds("ssh-add", &["-l"]);
    let mut client = person.serve(&[]);
    let listed = run(&mut client, "ssh-add -l");
    assert_says(listed["stdout"].as_str().expect("text"), &["me@desk"]);
    for text in ["ssh-add -D", "ssh-add -d ~/.ssh/mine.pub", "ssh-keygen -q -t ed25519 -N '' -f k; ssh-add k"] {
        let result = run(&mut client, text);
        assert_ne!(status(&result), 0, "{text}: {result}");
    }
    let key = fs::read_to_string(person.home(".ssh/mine.pub")).expect("a key");
    let hex =
        "python3 -c 'import base64,sys; b=base64.b64decode(sys.argv[1]); print(len(b).to_bytes(4).hex()+b.hex())'";
    let blob = run(&mut client, &format!("{hex} {}", key.split(' ').nth(1).expect("a key")));
    let blob = blob["stdout"].as_str().expect("text").trim().to_owned();
    // Any bytes; a login's with another key in it; a signature that goes on; locking; an extension; an empty and an unknown message.
    for message in [
        format!("0d{blob}0000000568656c6c6f00000000"),
        format!("0d{blob}0000001e00000001733200000003676974000000000000000000000000000000000000000000"),
        format!("0d{blob}000000065353485349470000000000"),
        "160000000178".into(),
        "1b00000003782e79".into(),
        "0b00".into(),
        "ff".into(),
    ] {
        let result = run(&mut client, &format!("python3 -c {} {message}", word(SENDS)));
        assert_eq!(result["stdout"], "5\n", "{message}: {result}");
    }
    assert_eq!(person.succeeds("ssh-add", &["-l"]), before);
}

/// Sends what nobody should: broken frames, much of it, many at once.
#[test]
fn nothing_that_is_sent_hurts_the_host() {
    let person = signing_by_ssh(Via::Process);
    let mut client = person.serve(&[]);
    let hostile = "import os,socket,struct,threading\n\
        def send(path, data):\n    \
            s=socket.socket(socket.AF_UNIX); s.settimeout(5)\n    \
            try:\n        s.connect(path); s.sendall(data); s.shutdown(1); s.recv(1)\n    \
            except OSError: pass\n\
        ssh, host = os.environ['SSH_AUTH_SOCK'], '/run/.keys/host'\n\
        frames = [b'', b'\\0', b'\\xff'*4, struct.pack('>I',0), struct.pack('>I',1<<31), struct.pack('>I',5)+b'ab', os.urandom(4096), b'\\0\\0\\0\\1'*9999, struct.pack('<II',1,1<<31), struct.pack('<I',1<<31), b'a'*(17<<20)]\n\
        threads = [threading.Thread(target=send, args=(p, f)) for p in (ssh, host) for f in frames for _ in range(9)]\n\
        [t.start() for t in threads]; [t.join() for t in threads]; print('done')";
    person.program.write("work/hostile.py", hostile);
    let result = run(&mut client, "python3 hostile.py");
    assert_eq!(result["stdout"], "done\n", "{result}");
    let (_, result) = asked(&mut client, "echo 2 >f; git commit -q -a -m second", &[ONCE]);
    assert_eq!(status(&result), 0, "{result}");
}

#[test]
fn a_person_logs_in_by_the_ssh_agent() {
    for via in BOTH {
        let program = repository(via);
        let bare = bare(&program, "served/bare.git");
        fs::create_dir(program.path("sshd")).expect("a directory");
        let directory = program.path("sshd").canonicalize().expect("a path");
        let Some(sshd) = Sshd::new(&directory) else { skip!("there is no sshd, or no account to enter by") };
        let person = Person::new(program).with_ssh();
        let server = fs::read_to_string(directory.join("host_key.pub")).expect("a key");
        let port = sshd.port;
        fs::write(person.home(".ssh/known_hosts"), format!("[{HOST}]:{port} {server}")).expect("written");
        fs::copy(person.home(".ssh/mine.pub"), directory.join("key.pub")).expect("copied");
        // As ssh looks for its files in the home of the account, and not in that of the environment.
        let ssh = "ssh -F none -o BatchMode=yes -o UserKnownHostsFile=$HOME/.ssh/known_hosts -o IdentityFile=$HOME/.ssh/mine.pub";
        let push = format!(
            "export GIT_SSH_COMMAND={}; git push -q ssh://{}@{HOST}:{port}{} main:pushed",
            word(ssh),
            sshd.user,
            bare.display()
        );
        let settings = reaching(port);
        let mut client = person.serve(&settings.each_ref().map(String::as_str));
        let (words, result) = asked(&mut client, &push, &[NO]);
        assert_ne!(status(&result), 0, "{via:?} {result}");
        let login = format!("log in as `{}` at `[{HOST}]:{port}` with the host key SHA256:", sshd.user);
        assert_says(&words[0], &[&login, "me@desk"]);
        let (_, result) = asked(&mut client, &push, &[ONCE]);
        assert_eq!(status(&result), 0, "{via:?} {result}");
        assert_eq!(git(&bare, &["rev-parse", "pushed"]), git(&person.program.path("work"), &["rev-parse", "main"]));
        let private = run(&mut client, "cat ~/.ssh/mine 2>/dev/null; ls ~/.ssh | cat");
        assert_eq!(private["stdout"], "known_hosts\nmine.pub\n", "{private}");
    }
}

#[test]
fn a_commit_is_signed_by_gpg_where_a_person_has_read_it() {
    for via in BOTH {
        let person = Person::new(repository(via)).with_gpg();
        let person = person.sets(&[("user.signingkey", "p@example.org"), ("commit.gpgsign", "true")]);
        let mut client = person.serve(&[]);
        let (words, result) = asked(&mut client, "echo 2 >f; git commit -q -a -m 'the second'", &[ONCE]);
        assert_eq!(status(&result), 0, "{via:?} {result}");
        assert_says(&words[0], &["sign a commit of git", "p@example.org", "the second", "author p <p@example.org>"]);
        person.succeeds("git", &["verify-commit", "HEAD"]);
        let (words, result) = asked(&mut client, "git tag -s -m 'the first tag' v1", &[SESSION]);
        assert_eq!(status(&result), 0, "{via:?} {result}");
        assert_says(&words[0], &["sign a tag of git", "the first tag"]);
        person.succeeds("git", &["verify-tag", "v1"]);
        let result = run(&mut client, "git tag -s -m 'the second tag' v2; git log -1 --show-signature");
        assert_eq!(status(&result), 0, "{via:?} {result}");
        person.succeeds("git", &["verify-tag", "v2"]);
        // The session's yes was about tags.
        let (_, result) = asked(&mut client, "echo 3 >f; git commit -q -a -m third", &[NO]);
        assert_ne!(status(&result), 0, "{via:?} {result}");
        assert_eq!(person.succeeds("git", &["log", "-1", "--format=%s"]), "the second\n");
    }
}

/// Nobody is asked about what is not signed in any case.
#[test]
fn gpg_signs_nothing_else() {
    let person = Person::new(repository(Via::Process)).with_gpg();
    let mut client = person.serve(&[]);
    let relay = "/run/.keys/git";
    let commit = "git cat-file commit HEAD";
    for text in [
        format!("echo I owe Mallory | {relay} --status-fd=2 -bsau p@example.org"),
        format!("{commit} | {relay} --status-fd=2 -bsau -o/tmp/x"),
        format!("{commit} | {relay} --status-fd=2 -bsau p@example.org --output x"),
        format!("{commit} | {relay} --clearsign"),
        format!("{relay} --export-secret-keys"),
        format!("{relay} -K"),
        format!("{relay} </dev/null"),
    ] {
        let result = run(&mut client, &text);
        assert_ne!(status(&result), 0, "{text}: {result}");
        assert!(result["stdout"].as_str().expect("text").is_empty(), "{text}: {result}");
    }
    // No command puts another program in its place.
    let result = run(
        &mut client,
        &format!("rm -f {relay}; mv {relay} /tmp/x; echo x >{relay}; chmod 0 {relay}; ls -ld /run/.keys"),
    );
    assert!(result["stderr"].as_str().expect("text").matches("/run/.keys/git").count() >= 4, "{result}");
}

/// A web server with TLS that lets a user with a password push; `python3 SERVER root cert key port user:password`.
const SERVER: &str = r#"
import base64, http.server, os, ssl, subprocess, sys
root, cert, key, user = sys.argv[1:5]
class Git(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.0'
    def log_message(self, *_): pass
    def answer(self):
        given = self.headers.get('Authorization', '')
        if given != 'Basic ' + base64.b64encode(user.encode()).decode():
            self.send_response(401); self.send_header('WWW-Authenticate', 'Basic realm="git"'); self.send_header('Content-Length', '0'); self.end_headers(); return
        path, _, query = self.path.partition('?')
        env = dict(os.environ, GIT_PROJECT_ROOT=root, GIT_HTTP_EXPORT_ALL='1', REMOTE_USER='p', REMOTE_ADDR='127.0.0.1',
            REQUEST_METHOD=self.command, PATH_INFO=path, QUERY_STRING=query, CONTENT_TYPE=self.headers.get('Content-Type', ''),
            HTTP_CONTENT_ENCODING=self.headers.get('Content-Encoding', ''), GIT_PROTOCOL=self.headers.get('Git-Protocol', ''), GIT_CONFIG_GLOBAL='/dev/null')
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        out = subprocess.run(['git', 'http-backend'], input=body, env=dict(env, CONTENT_LENGTH=str(len(body))), stdout=subprocess.PIPE).stdout
        head, _, body = out.partition(b'\r\n\r\n')
        fields = dict(line.split(': ', 1) for line in head.decode().splitlines())
        self.send_response(int(fields.pop('Status', '200').split()[0]))
        for name, value in fields.items(): self.send_header(name, value)
        self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
    do_GET = do_POST = answer
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Git)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain(cert, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;
const PASSWORD: &str = "hT7-kkQ2_vZ4rW9xPq";

/// A server of repositories, its port, and the certificate that programs trust.
struct Https {
    child: Child,
    port: u16,
    certificate: PathBuf,
}

impl Drop for Https {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Https {
    #[expect(clippy::disallowed_methods, reason = "the test's own server")]
    fn new(program: &Program) -> Self {
        let path = |name: &str| program.path(name).display().to_string();
        let (certificate, key) = (path("work/cert.pem"), path("key.pem"));
        let name = format!("subjectAltName=DNS:{HOST}");
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=test", "-addext", &name, "-keyout", &key, "-out", &certificate])
            .output();
        assert!(made.expect("openssl").status.success());
        program.write("server.py", SERVER);
        let mut server = Command::new("python3");
        server.arg(path("server.py")).args([&path("served"), &certificate, &key, &format!("me:{PASSWORD}")]);
        let mut child = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("python3");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).expect("a port");
        Self { child, port: line.trim().parse().expect("a port"), certificate: certificate.into() }
    }
}

/// A person whose git keeps a password, the server that it is for, and the settings by which commands reach that.
fn with_password(via: Via) -> (Person, Https, PathBuf, Vec<String>) {
    let program = repository(via);
    let bare = bare(&program, "served/bare.git");
    let server = Https::new(&program);
    let person = Person::new(program);
    let kept = person.home("passwords");
    fs::write(&kept, format!("https://me:{PASSWORD}@{HOST}%3a{}\n", server.port)).expect("written");
    fs::set_permissions(&kept, Permissions::from_mode(0o600)).expect("a mode");
    let helper = format!("store --file={}", kept.display());
    let person =
        person.sets(&[("credential.helper", &helper), ("http.sslCAInfo", &server.certificate.display().to_string())]);
    let mut settings = reaching(server.port).to_vec();
    settings.push(format!("confine.hide=[{:?}]", kept.display().to_string()));
    (person, server, bare, settings)
}

#[test]
fn git_gets_a_password_where_a_person_allows_it() {
    for via in BOTH {
        let (person, server, bare, settings) = with_password(via);
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let mut client = person.serve(&settings);
        let url = format!("https://{HOST}:{}/bare.git", server.port);
        let push = format!("git push -q {url} main:pushed");
        let (words, result) = asked(&mut client, &push, &[NO]);
        assert_ne!(status(&result), 0, "{via:?} {result}");
        assert_says(&words[0], &[&format!("get the password for https://{HOST}:{}", server.port), "reaches besides: "]);
        assert_says(&result["notices"].to_string(), &["Password denied by user."]);
        let (_, result) = asked(&mut client, &push, &[ONCE]);
        assert_eq!(status(&result), 0, "{via:?} {result}");
        assert_eq!(git(&bare, &["rev-parse", "pushed"]), git(&person.program.path("work"), &["rev-parse", "main"]));
        // What it prints of it is taken out, and what git keeps outside is not changed.
        let fill = format!("printf 'protocol=https\\nhost={HOST}:{}\\n\\n' | git credential fill", server.port);
        let (_, result) = asked(&mut client, &fill, &[ONCE]);
        assert!(!result.to_string().contains(PASSWORD), "{result}");
        assert_says(result["stdout"].as_str().expect("text"), &["username=me", "password=[secret:git:"]);
        let reject = format!(
            "printf 'protocol=https\\nhost={HOST}:{}\\nusername=me\\npassword=x\\n\\n' | git credential",
            server.port
        );
        assert_eq!(status(&run(&mut client, &format!("{reject} reject && {reject} approve"))), 0);
        assert_says(&fs::read_to_string(person.home("passwords")).expect("a file"), &[PASSWORD]);
    }
}

/// A command that has a password reaches no host that a person would be asked about, nor one that was allowed before.
#[test]
fn what_has_a_password_reaches_named_hosts_alone() {
    let (person, server, _, settings) = with_password(Via::Process);
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
    let elsewhere = elsewhere.local_addr().expect("an address").port();
    let mut settings: Vec<String> =
        settings.into_iter().filter(|setting| !setting.starts_with("confine.ports")).collect();
    settings.push(format!("confine.ports=[{}, {elsewhere}]", server.port));
    settings.push("tools.fetch_private_ranges=[\"127.0.0.1/32\"]".into());
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut client = person.serve(&settings);
    let connect = format!("curl -sm 5 -o /dev/null telnet://other.org:{elsewhere} </dev/null");
    let fill = format!("printf 'protocol=https\\nhost={HOST}:{}\\n\\n' | git credential fill >/dev/null", server.port);
    let (words, result) = asked(&mut client, &format!("{connect}; {fill}; {connect}"), &[ONCE, ONCE]);
    assert_says(&words[0], &[&format!("other.org:{elsewhere}")]);
    assert_says(&words[1], &["get the password"]);
    assert_says(&result["notices"].to_string(), &[&format!("`other.org:{elsewhere}` is not in `hosts`")]);
}

#[test]
fn no_password_goes_to_what_is_not_https_nor_is_one_made_up() {
    let (person, _server, _, settings) = with_password(Via::Process);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let mut client = person.serve(&settings);
    let fill = |description: &str| format!("printf '{description}\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill");
    let result = run(&mut client, &fill(&format!("protocol=http\\nhost={HOST}")));
    assert_ne!(status(&result), 0, "{result}");
    assert_says(&result["notices"].to_string(), &["a password goes to https alone"]);
    let (_, result) = asked(&mut client, &fill("protocol=https\\nhost=unknown.test"), &[ONCE]);
    assert_ne!(status(&result), 0, "{result}");
    assert_says(
        &result["notices"].to_string(),
        &["no credential helper of git outside has a password for `unknown.test`"],
    );
}

/// Neither `--yes` nor a client that cannot ask allows the use of a key.
#[test]
fn where_nobody_can_be_asked_no_key_is_used() {
    let person = signing_by_ssh(Via::Process);
    let mut client = person.serve_to(&[], serde_json::json!({}));
    let result = run(&mut client, "echo 2 >f; git commit -q -a -m second");
    assert_ne!(status(&result), 0, "{result}");
    let hint =
        "a person has to allow each use of a key, and nobody can be asked: call it where somebody answers questions";
    assert_says(&result["notices"].to_string(), &[hint]);
    let mut yes = person.program.command(&[
        "--yes",
        "--set",
        REQUIRED,
        "call",
        "run_shell",
        &command("git commit -q -a -m second").to_string(),
    ]);
    let output = yes.env("SSH_AUTH_SOCK", person.socket()).output().expect("the program");
    assert_says(&String::from_utf8_lossy(&output.stdout), &["nobody can be asked"]);
    assert_eq!(person.succeeds("git", &["log", "-1", "--format=%s"]), "first\n");
}

#[test]
fn settings_take_keys_away() {
    let person = signing_by_ssh(Via::Process);
    let shown = "echo ${SSH_AUTH_SOCK-none}; git config gpg.program || echo none; git config --get-all credential.helper || echo none; ls -A /run | grep keys || echo none; ls -A ~/.ssh 2>/dev/null";
    let all = "/run/.keys/ssh\n/run/.keys/git\n\n/run/.keys/git credential\n.keys\nmine.pub\n";
    for (settings, expected) in [
        (&[][..], all),
        (&["confine.keys=[\"ssh\"]"], "/run/.keys/ssh\nnone\nnone\n.keys\nmine.pub\n"),
        (&["confine.keys=[\"gpg\"]"], "none\n/run/.keys/git\nnone\n.keys\n"),
        (&["confine.keys=[]"], "none\nnone\nnone\nnone\n"),
        (&["confine.network=none"], "none\nnone\nnone\nnone\n"),
        (&["confine.unix_sockets=false"], "none\nnone\nnone\nnone\n"),
    ] {
        let mut client = person.serve(settings);
        let result = run(&mut client, shown);
        assert_eq!(result["stdout"], expected, "{settings:?}: {result}");
    }
}

/// A pane outlives its host; the next one serves its keys.
#[test]
fn another_host_serves_what_is_in_a_pane() {
    let person = signing_by_ssh(Via::Pane);
    let commit = |subject: &str| format!("echo {subject} >f; git commit -q -a -m {subject}");
    for subject in ["second", "third"] {
        let mut client = person.serve(&[]);
        let (_, result) = asked(&mut client, &commit(subject), &[ONCE]);
        assert_eq!(status(&result), 0, "{subject}: {result}");
        person.succeeds("git", &["verify-commit", "HEAD"]);
    }
}

/// A program that commands left where the person's PATH leads is not what signs.
#[test]
fn no_program_of_the_workspace_is_asked() {
    let person = Person::new(repository(Via::Process)).with_gpg().sets(&[("user.signingkey", "p@example.org")]);
    let fake = person.program.path("work/bin/gpg");
    fs::create_dir(person.program.path("work/bin")).expect("a directory");
    write_program(&fake, format!("#!/bin/sh\ntouch {}\n", word(person.program.path("ran"))));
    let path = std::env::join_paths(
        [person.program.path("work/bin")]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").expect("a PATH"))),
    );
    let arguments = ["--set", REQUIRED, "--set", "tools.shell_confirm=false", "serve"];
    let mut server = person.program.command(&arguments);
    server.env("PATH", path.expect("a PATH"));
    let mut client = Client::start(&mut server, person.program.clone(), Era::Legacy, forms());
    client.shake_hands();
    let (_, result) = asked(&mut client, "echo 2 >f; git commit -q -a -S -m second", &[ONCE]);
    assert_eq!(status(&result), 0, "{result}");
    assert!(!Path::new(&person.program.path("ran")).exists());
    person.succeeds("git", &["verify-commit", "HEAD"]);
}
