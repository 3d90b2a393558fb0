//! `wit/introspect.wit`: contexts, variables, settings and documents, as the toolset of a call has them. Nothing is changed,
//! and no value of a variable or of a secret is in an answer.

use super::Refusal;
use super::bindings::toolcrib::plugin::{introspect, types};
use crate::sandbox::State;
use audit::Action;
use base::capability::Capability;
use base::envelope::no_such;
use base::text::sanitize;
use kept_output::Captured;
use policy::toolset::{Context, Mount, Toolset};
use std::path::Path;

/// The documents of this program, by name: `host/docs/`, and the page for those who write plugins.
const DOCUMENTS: [(&str, &str); 24] = [
    ("authoring", include_str!("../../../docs/authoring.md")),
    ("browser", include_str!("../../../docs/browser.md")),
    ("cli", include_str!("../../../docs/cli.md")),
    ("confinement", include_str!("../../../docs/confinement.md")),
    ("embedding", include_str!("../../../docs/embedding.md")),
    ("files", include_str!("../../../docs/files.md")),
    ("jobs", include_str!("../../../docs/jobs.md")),
    ("locked", include_str!("../../../docs/locked.md")),
    ("mail", include_str!("../../../docs/mail.md")),
    ("mcp", include_str!("../../../docs/mcp.md")),
    ("panes", include_str!("../../../docs/panes.md")),
    ("plugins", include_str!("../../../docs/plugins.md")),
    ("policy", include_str!("../../../docs/policy.md")),
    ("programs", include_str!("../../../docs/programs.md")),
    ("readme", include_str!("../../../../README.md")),
    ("records", include_str!("../../../docs/records.md")),
    ("remote", include_str!("../../../docs/remote.md")),
    ("schedules", include_str!("../../../docs/schedules.md")),
    ("sdk", include_str!("../../../../sdk/README.md")),
    ("secrets", include_str!("../../../docs/secrets.md")),
    ("settings", config::DEFAULT_TOML),
    ("toolsets", include_str!("../../../docs/toolsets.md")),
    ("upstream", include_str!("../../../docs/upstream.md")),
    ("web", include_str!("../../../docs/web.md")),
];

impl State {
    /// Whether the plugin may look, which is on record.
    fn may_look(&mut self, at: &str) -> Result<(), Refusal> {
        self.meter.charge_bytes(at.len())?;
        let granted = self.grants()?.introspect().map(|_| ());
        let decision = match &granted {
            Ok(()) => "allowed".to_owned(),
            Err(refusal) => format!("{}: {}", refusal.kind.name(), refusal.message),
        };
        self.scope.record(Action {
            capability: Capability::Introspect,
            what: format!("look at {at}"),
            confinement: None,
            declaration: None,
            decision,
        });
        Ok(granted?)
    }

    fn toolset(&self) -> Option<&Toolset> {
        self.scope.session.toolset().map(|toolset| &**toolset)
    }
}

impl introspect::Host for State {
    async fn contexts(&mut self) -> Result<Vec<introspect::ContextFile>, Refusal> {
        self.may_look("contexts")?;
        let contexts = self.toolset().into_iter().flat_map(Toolset::contexts);
        let file = |(name, context): (&str, &Context)| introspect::ContextFile {
            name: name.to_owned(),
            file: context.file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            about: context.about.clone(),
        };
        Ok(contexts.map(file).collect())
    }

    async fn context(&mut self, name: String, offset: u64, max: u32) -> Result<types::Captured, Refusal> {
        self.may_look(&format!("context {}", sanitize::line(&name)))?;
        let toolset = self.scope.session.toolset().cloned();
        // The settings live as long as the host, which this call has.
        let text = match (toolset, self.scope.services.settings.upgrade()) {
            (Some(toolset), Some(settings)) => toolset.context(&name, &settings.policy()).await?,
            (Some(_), None) | (None, _) => return Err(no_such("context", &name, [].into_iter()).into()),
        };
        let bytes = text.len() as u64;
        let begin = text.ceil_char_boundary(usize::try_from(offset).unwrap_or(usize::MAX));
        let piece: String = text[begin..].chars().take(max as usize).collect();
        let truncated = begin + piece.len() < text.len();
        Ok(Captured { text: piece, bytes, truncated, stored: None }.into())
    }

    async fn environment(&mut self) -> Result<Vec<introspect::Entry>, Refusal> {
        self.may_look("environment")?;
        let entry = |(name, about): (&str, &str)| introspect::Entry { name: name.to_owned(), about: about.to_owned() };
        Ok(self.toolset().into_iter().flat_map(Toolset::environment).map(entry).collect())
    }

    async fn mounts(&mut self) -> Result<Vec<introspect::MountPoint>, Refusal> {
        self.may_look("mounts")?;
        let mount = |(at, mount): (&Path, &Mount)| introspect::MountPoint {
            target: at.display().to_string(),
            about: mount.about.clone(),
            read_only: mount.read_only,
        };
        Ok(self.toolset().into_iter().flat_map(Toolset::mounts).map(mount).collect())
    }

    async fn settings(&mut self, section: Option<String>) -> Result<String, Refusal> {
        self.may_look(&format!("settings {}", sanitize::line(section.as_deref().unwrap_or("all"))))?;
        let all = self.scope.services.settings.upgrade().map(|policy| policy.rendered()).unwrap_or_default();
        let Some(section) = section.filter(|section| section != "all") else { return Ok(all) };
        let name = |block: &str| block.lines().next()?.strip_prefix('[')?.strip_suffix(']').map(str::to_owned);
        let is_of =
            |block: &&str| name(block).is_some_and(|name| name == section || name.starts_with(&format!("{section}.")));
        let blocks: Vec<&str> = all.split("\n\n").filter(is_of).collect();
        if blocks.is_empty() {
            let known: Vec<String> = all.split("\n\n").filter_map(name).collect();
            return Err(no_such("section of settings", &section, known.iter().map(String::as_str)).into());
        }
        Ok(blocks.join("\n\n"))
    }

    async fn documents(&mut self) -> Result<Vec<introspect::Entry>, Refusal> {
        self.may_look("documents")?;
        let entry = |(name, text): &(&str, &str)| {
            let title = text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
            introspect::Entry { name: (*name).to_owned(), about: title.to_owned() }
        };
        Ok(DOCUMENTS.iter().map(entry).collect())
    }

    async fn document(&mut self, name: String) -> Result<String, Refusal> {
        self.may_look(&format!("document {}", sanitize::line(&name)))?;
        match DOCUMENTS.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Ok((*text).to_owned()),
            None => Err(no_such("document", &name, DOCUMENTS.iter().map(|(name, _)| *name)).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each page of `host/docs/` is among the documents.
    #[test]
    fn every_page_is_a_document() {
        let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        for page in std::fs::read_dir(pages).expect("the pages").map(|page| page.expect("a page").path()) {
            if page.extension().is_some_and(|extension| extension == "md") {
                let name = page.file_stem().expect("a name").to_string_lossy().into_owned();
                assert!(DOCUMENTS.iter().any(|(known, _)| *known == name), "{name}");
            }
        }
        assert!(DOCUMENTS.is_sorted_by_key(|(name, _)| *name));
    }
}
