//! What `wit/` says, generated. Plugins see the faces in the other modules, never this one.

wit_bindgen::generate!({
    path: "wit",
    world: "plugin",
    pub_export_macro: true,
    export_macro_name: "__export_component",
    // Tools take declarations among their arguments: the words in `wit/` describe them to the model, too.
    additional_type_attributes: {
        "toolcrib:plugin/types@0.1.0/risk": [
            #[derive(serde::Deserialize, schemars::JsonSchema)]
            #[serde(rename_all = "lowercase")]
        ],
        "toolcrib:plugin/types@0.1.0/declaration": [#[derive(serde::Deserialize, schemars::JsonSchema)]],
        "toolcrib:plugin/types@0.1.0/pane": [#[derive(Default, PartialEq)]],
        "toolcrib:plugin/browser@0.1.0/view": [#[derive(Default, PartialEq)]],
        "toolcrib:plugin/mail@0.1.0/query": [#[derive(Default, PartialEq)]],
        "toolcrib:plugin/panes@0.1.0/view": [#[derive(Default, PartialEq)]],
        "toolcrib:plugin/panes@0.1.0/input": [#[derive(Default, PartialEq)]],
    },
});
