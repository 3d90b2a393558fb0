//! `wit/browser.wit`: pages of the web, in a browser that the host confines.

use super::Refusal;
use super::bindings::toolcrib::plugin::{browser, types};
use crate::reach::Reach;
use crate::sandbox::State;
use ::browser::{
    Action, Answer, Desk, Desks, Destination, Effect, Filling, PATIENCE, UPLOAD_BYTES, UPLOADS, Upload, View,
};
use base::envelope::Failure;
use base::target::Target;
use base::text::sanitize;
use kept_output::Captured;
use policy::browser::BrowserGrant;
use policy::guard::Exit;
use std::sync::Arc;
use std::time::Duration;

/// Characters of a look where none are said, and at most.
const LOOK_CHARS: u32 = 24_000;
const MOST_CHARS: u32 = 200_000;
/// Bytes of a text or a script.
const TEXT_BYTES: usize = 64 << 10;
/// Characters of a script that the record has.
const RECORDED: usize = 200;

/// What each function has at hand, once it is granted.
struct Granted {
    grant: BrowserGrant,
    scope: Arc<Reach>,
    desk: Arc<Desk>,
}

impl State {
    fn browsing(&mut self) -> Result<Granted, Failure> {
        let grant = self.grants()?.browser()?.clone();
        let desk = self.scope.session.slot::<Desks>().of(&grant);
        Ok(Granted { grant, scope: self.scope.clone(), desk })
    }
}

impl Granted {
    /// The page that a tab is to go to, once it is admitted.
    async fn page(&self, url: &str) -> Result<Target, Failure> {
        let parsed = Target::parse(url, None).map_err(|failure| match failure.hint.as_deref() {
            Some(hint) if hint.contains("read_file") => failure.hint("a browser shows `https://` and `http://` alone"),
            _ => failure,
        });
        let parsed = parsed.and_then(|target| {
            self.scope.guard.check(Exit::Request, [target.url().as_str().as_bytes()])?;
            Ok(target)
        });
        let checked = match parsed {
            Ok(target) => self.grant.admit_page(target, &*self.scope.backend).await,
            Err(refusal) => Err(refusal),
        };
        self.note(&format!("go to {}", sanitize::line(url)), checked)
    }

    /// Writes down what was done, or why it was not.
    fn note<T>(&self, what: &str, decided: Result<T, Failure>) -> Result<T, Failure> {
        BrowserGrant::record(what.to_owned(), decided.as_ref().map(drop), &self.scope);
        decided
    }

    fn effect(&self, effect: Effect) -> browser::Effect {
        let redact = |text: String| self.scope.guard.redact(&text).into_owned();
        browser::Effect {
            tab: effect.tab,
            url: redact(effect.url),
            title: redact(effect.title),
            notices: effect.notices.into_iter().map(redact).collect(),
            changes: whole(redact(effect.changes.join("\n"))),
        }
    }

    /// The head of a long text; the rest is kept.
    async fn cut(&self, what: &str, text: String, chars: u32) -> types::Captured {
        let text = self.scope.guard.redact(&text).into_owned();
        let scope = &self.scope;
        let mut capture = scope.output.capture(format!("{}.{what}", scope.id), chars as usize, usize::MAX);
        capture.push(text.as_bytes()).await;
        let captured: Captured = capture.finish().await;
        captured.stored.iter().for_each(|path| scope.remember_kept(path));
        captured.into()
    }
}

impl State {
    /// The files of an upload, as they are now.
    async fn uploads(&mut self, grant: &BrowserGrant, paths: &[String]) -> Result<Vec<Upload>, Failure> {
        grant.admit_upload()?;
        if paths.is_empty() || paths.len() > UPLOADS {
            return Err(Failure::invalid(format!("an upload has 1 to {UPLOADS} files, this one {}", paths.len())));
        }
        let (mut files, mut room) = (Vec::new(), UPLOAD_BYTES);
        for path in paths {
            let content = self.whole_file(path, room).await?;
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            // A file is not rewritten.
            self.scope.guard.check(Exit::Request, [content.as_slice(), name.as_bytes()])?;
            room -= content.len();
            files.push(Upload { name, content });
        }
        Ok(files)
    }
}

fn whole(text: String) -> types::Captured {
    types::Captured { bytes: text.len() as u64, text, truncated: false, stored: None }
}

impl browser::Host for State {
    async fn tabs(&mut self) -> Result<Vec<browser::Tab>, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        scope
            .within(async {
                let tabs = desk.turn(grant, &scope.scope, &scope.services.browsers).await.tabs().await;
                let shown = |tab: ::browser::Shown| browser::Tab {
                    id: tab.id,
                    url: scope.guard.redact(&tab.url).into_owned(),
                    title: scope.guard.redact(&tab.title).into_owned(),
                    active: tab.is_active,
                    profile: tab.profile,
                };
                Ok(tabs.into_iter().map(shown).collect())
            })
            .await
    }

    async fn open(&mut self, url: Option<String>, profile: Option<String>) -> Result<browser::Effect, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        if let Some(profile) = &profile {
            granted.note(&format!("use the profile {}", sanitize::line(profile)), grant.admit_profile(profile))?;
        }
        let page = match url {
            Some(url) => Some(granted.page(&url).await?),
            None => None,
        };
        scope.touch_state();
        scope
            .within(async {
                Ok(granted
                    .effect(desk.turn(grant, &scope.scope, &scope.services.browsers).await.open(page, profile).await?))
            })
            .await
    }

    async fn go(&mut self, tab: Option<String>, to: browser::Destination) -> Result<browser::Effect, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        let to = match to {
            browser::Destination::Url(url) => Destination::Page(granted.page(&url).await?),
            browser::Destination::Back => Destination::Back,
            browser::Destination::Forward => Destination::Forward,
            browser::Destination::Reload => Destination::Reload,
        };
        scope.touch_state();
        scope
            .within(async {
                Ok(granted.effect(
                    desk.turn(grant, &scope.scope, &scope.services.browsers).await.go(tab.as_deref(), to).await?,
                ))
            })
            .await
    }

    async fn look(&mut self, tab: Option<String>, view: browser::View) -> Result<types::Captured, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        let chars = if view.chars == 0 { LOOK_CHARS } else { view.chars.min(MOST_CHARS) };
        let view = View { within: view.within, find: view.find, changes: view.changes };
        scope
            .within(async {
                let (lines, notices) =
                    desk.turn(grant, &scope.scope, &scope.services.browsers).await.look(tab.as_deref(), &view).await?;
                notices.into_iter().for_each(|notice| scope.guard.notice(scope.guard.redact(&notice).into_owned()));
                Ok(granted.cut("page", lines.join("\n"), chars).await)
            })
            .await
    }

    async fn act(
        &mut self,
        tab: Option<String>,
        element: Option<String>,
        action: browser::Action,
        dialogs: Option<browser::Answer>,
    ) -> Result<browser::Effect, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        let answer = dialogs.map(|browser::Answer { accept, text }| Answer { accept, text });
        if let Some(text) = answer.as_ref().and_then(|answer| answer.text.as_deref()) {
            granted.note("answer a dialog", granted.sent(Exit::Request, text))?;
        }
        let files = match &action {
            browser::Action::Upload(paths) => match self.uploads(grant, paths).await {
                Ok(files) => files,
                Err(refusal) => return Ok(granted.note("upload files", Err(refusal))?),
            },
            browser::Action::Click
            | browser::Action::DoubleClick
            | browser::Action::Hover
            | browser::Action::Fill(_)
            | browser::Action::Select(_)
            | browser::Action::Check(_)
            | browser::Action::Press(_) => Vec::new(),
        };
        scope.touch_state();
        scope
            .within(async {
                let mut turn = desk.turn(grant, &scope.scope, &scope.services.browsers).await;
                let element = element.map(|id| turn.element_of(tab.as_deref(), &id)).transpose()?;
                let on = element.as_ref().map_or("the page".to_owned(), |(_, element)| element.shown());
                let (what, action) = match action {
                    browser::Action::Click => (format!("click {on}"), Ok(Action::Click { times: 1 })),
                    browser::Action::DoubleClick => (format!("click {on} twice"), Ok(Action::Click { times: 2 })),
                    browser::Action::Hover => (format!("point at {on}"), Ok(Action::Hover)),
                    browser::Action::Fill(browser::Entry::Text(text)) => {
                        let what = format!("fill {on} with {} characters", text.chars().count());
                        let checked = granted.sent(Exit::Typed, &text).map(|()| Action::Fill(Filling::Text(text)));
                        (what, checked)
                    }
                    browser::Action::Fill(browser::Entry::Secret(name)) => {
                        let what = format!("fill {on} with the secret {}", sanitize::line(&name));
                        let admitted = match &element {
                            Some((_, element)) => {
                                let url = turn.document_of(element).await?;
                                granted.secret(&name, &url).await
                            }
                            None => {
                                Err(Failure::invalid("say which element").hint("a secret goes into a password field"))
                            }
                        };
                        (what, admitted.map(|value| Action::Fill(Filling::Secret(value))))
                    }
                    browser::Action::Select(options) => {
                        let checked =
                            granted.sent(Exit::Request, &options.join("\n")).map(|()| Action::Select(options));
                        (format!("choose from {on}"), checked)
                    }
                    browser::Action::Check(state) => (format!("set {on} to {state}"), Ok(Action::Check(state))),
                    browser::Action::Press(key) => {
                        (format!("press {} on {on}", sanitize::line(&key)), Ok(Action::Press(key)))
                    }
                    browser::Action::Upload(_) => {
                        let shown = |file: &Upload| format!("`{}` ({} bytes)", file.name, file.content.len());
                        let shown = files.iter().map(shown).collect::<Vec<_>>().join(", ");
                        let place = match &element {
                            Some((_, element)) => turn.document_of(element).await?,
                            None => "no element".to_owned(),
                        };
                        let what = format!("upload {shown} to {on} of {place}");
                        (sanitize::line(&what).into_owned(), Ok(Action::Upload(files.into())))
                    }
                };
                let action = granted.note(&what, action)?;
                let effect = turn.act(tab.as_deref(), element, &action, answer).await?;
                Ok(granted.effect(effect))
            })
            .await
    }

    async fn wait(
        &mut self,
        tab: Option<String>,
        text: String,
        gone: bool,
        ms: u32,
    ) -> Result<browser::Effect, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        let most = Duration::from_millis(ms.into()).min(PATIENCE);
        scope
            .within(async {
                Ok(granted.effect(
                    desk.turn(grant, &scope.scope, &scope.services.browsers)
                        .await
                        .wait(tab.as_deref(), &text, gone, most)
                        .await?,
                ))
            })
            .await
    }

    async fn image(
        &mut self,
        tab: Option<String>,
        element: Option<String>,
        full_page: bool,
    ) -> Result<Vec<u8>, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        let image = scope
            .within(async {
                let mut turn = desk.turn(grant, &scope.scope, &scope.services.browsers).await;
                let element = element.map(|id| turn.element_of(tab.as_deref(), &id)).transpose()?;
                turn.image(tab.as_deref(), element.as_ref(), full_page).await
            })
            .await?;
        self.meter.charge_bytes(image.len())?;
        Ok(image)
    }

    async fn evaluate(&mut self, tab: Option<String>, script: String) -> Result<types::Captured, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        let shown = scope.guard.beginning(&script, RECORDED);
        let admitted = grant.admit_script().and_then(|()| granted.sent(Exit::Request, &script));
        granted.note(&format!("run the script {shown}"), admitted)?;
        scope.touch_state();
        scope
            .within(async {
                let value = desk
                    .turn(grant, &scope.scope, &scope.services.browsers)
                    .await
                    .evaluate(tab.as_deref(), &script)
                    .await?;
                Ok(granted.cut("script", sanitize::text(&value).into_owned(), LOOK_CHARS).await)
            })
            .await
    }

    async fn activate(&mut self, tab: String) -> Result<browser::Effect, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        scope
            .within(async {
                Ok(granted.effect(desk.turn(grant, &scope.scope, &scope.services.browsers).await.activate(&tab).await?))
            })
            .await
    }

    async fn close(&mut self, tab: Option<String>) -> Result<u32, Refusal> {
        let granted = self.browsing()?;
        let Granted { grant, scope, desk } = &granted;
        scope.touch_state();
        scope
            .within(async {
                desk.turn(grant, &scope.scope, &scope.services.browsers).await.close(tab.as_deref()).await
            })
            .await
    }
}

impl Granted {
    /// Holds what goes to a page against the secrets that must not.
    fn sent(&self, exit: Exit, text: &str) -> Result<(), Failure> {
        if text.len() > TEXT_BYTES {
            return Err(Failure::limit(format!(
                "limit: bytes of a text for a page {TEXT_BYTES}, this one has {}",
                text.len()
            )));
        }
        self.scope.guard.check(exit, [text.as_bytes()])
    }

    /// The value of a secret, for the document with this URL.
    async fn secret(&self, name: &str, url: &str) -> Result<leaks::Value, Failure> {
        let document = Target::parse(url, None).map_err(|_| {
            Failure::denied("a secret goes into pages of the web alone, and not into documents of no address")
        })?;
        self.grant.admit_secret(name, &document)?;
        self.scope.secrets.value(name).await
    }
}
