//! `email_search` and `email_read` where there is no server: what policy decides before one is asked. Servers and what they send are in `tests/mail`.

use serde_json::json;
use toolcrib::envelope::Kind;
use toolcrib_tests::TestHost;

fn host() -> TestHost {
    TestHost::new()
        .set("mail.work.host=\"imap.work.example\"")
        .set("mail.work.user=\"ann\"")
        .set("mail.work.secret=\"WORK\"")
        .set("mail.home.host=\"imap.home.example\"")
        .set("mail.home.user=\"ann\"")
        .set("mail.home.token_command=[\"false\"]")
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_account_the_settings_to_write_are_said() {
    let failure = TestHost::new().failure("email_search", json!({})).await;
    assert_eq!((failure.kind, failure.message.as_str()), (Kind::Denied, "settings name no mail account"));
    assert!(failure.hint.is_some_and(|hint| hint.contains("[mail.NAME]")));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_account_mail_is_not_listed_and_that_is_said() {
    for (host, has_account) in [(TestHost::new(), false), (host(), true)] {
        let host = host.set("tools.offer=[\"mail\"]");
        let (made, context) = host.parts();
        let is_listed = made.offered(context).await.tools.iter().any(|tool| tool.name() == "email_search");
        assert_eq!(is_listed, has_account);
        let all = made.all_tools(context).await.tools;
        let (_, why) = all.into_iter().find(|(tool, _)| tool.name() == "email_search").expect("the tool");
        let expected = (!has_account).then(|| "settings name no mail account".to_owned());
        assert_eq!(why.map(|why| why.message), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_accounts_one_has_to_be_said() {
    let failure = host().failure("email_search", json!({})).await;
    assert_eq!(failure.kind, Kind::InvalidArguments, "{failure:?}");
    assert_eq!(failure.hint.as_deref(), Some("`account` is one of: home, work"));
    let failure = host().failure("email_search", json!({ "account": "other" })).await;
    assert_eq!(failure.kind, Kind::InvalidArguments, "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_and_a_folder_that_are_not_granted_are_denied_with_the_line_that_opens_them() {
    let host = host().set("plugin.mail.mail=[\"home\"]");
    let failure = host.failure("email_search", json!({ "account": "work" })).await;
    assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
    assert_eq!(failure.hint.as_deref(), Some("add \"work\" to `mail` under [plugin.mail]"));
    let failure = host.failure("email_search", json!({ "folders": ["Archive"] })).await;
    assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
    assert_eq!(failure.hint.as_deref(), Some("add \"Archive\" to `folders` under [mail.home]"));
    let failure = host.failure("email_read", json!({ "id": "work:7:42:INBOX" })).await;
    assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
    let failure = host.failure("email_read", json!({ "id": "home:7:42:Archive" })).await;
    assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_make_no_sense_ask_no_server() {
    for arguments in
        [json!({ "account": "home", "query": "a\r\nZ9 CREATE x" }), json!({ "account": "home", "from": "a\u{0}b" })]
    {
        let failure = host().failure("email_search", arguments.clone()).await;
        // Words are cut at line breaks, so only the second reaches the host with one.
        let is_login = failure.message.contains("cannot be used");
        assert!(failure.kind == Kind::InvalidArguments || is_login, "{arguments}: {failure:?}");
    }
    let failure = host().failure("email_read", json!({ "id": "INBOX/7" })).await;
    assert_eq!(failure.kind, Kind::InvalidArguments, "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_may_not_go_to_the_server_stays() {
    let failure = host().failure("email_search", json!({ "account": "work" })).await;
    assert_eq!(
        (failure.kind, failure.message.as_str()),
        (Kind::Denied, "the secret `WORK` may not go to `imap.work.example`")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_can_be_switched_off() {
    let failure = host().set("tools.mail_enabled=false").failure("email_search", json!({ "account": "home" })).await;
    assert_eq!(failure.kind, Kind::Denied, "{failure:?}");
    assert!(failure.message.contains("tools.mail_enabled"), "{failure:?}");
}
